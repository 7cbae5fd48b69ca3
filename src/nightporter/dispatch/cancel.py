"""Cancelling: a run that waits ends on request, and all that follows from its end is written with it."""

from __future__ import annotations

from collections.abc import Sequence

from nightporter.clock import Instant
from nightporter.dispatch.at_hand import Definitions
from nightporter.dispatch.end import Final, conclude
from nightporter.states import RunState
from nightporter.store import Tx
from nightporter.store.tx_dispatch import Waiting
from nightporter.words import Definition, Reason, RunId
from nightporter.words.kept import Unreadable


def cancel(tx: Tx, wanted: Sequence[tuple[str, str, str]], definitions: Definitions, *, now: Instant) -> list[str]:
    """End those of the runs `(run, reason, by)` that are queued or held; the automations they are of.

    The caller holds the locks of these automations, and lets go what waited behind the runs.
    """
    reasons = {run: reason for run, reason, _ in wanted}
    was = {row.run_id: row for row in tx.waiting(list(reasons))}
    at = tx.not_before(list(was), now)
    ended = tx.cancel([row for row in wanted if row[0] in was], now=at)
    tx.write_transitions(
        [(run, seq, was[run].state, "cancelled", reasons[run], None, token, attempt, None)
         for run, seq, _, token, attempt in ended],
        now=at,
    )
    definitions.fetch(tx, {(was[run].automation_id, was[run].version) for run, *_ in ended})
    conclude(
        tx,
        [
            Final(RunId(run), automation_id, was[run].workspace, was[run].automation, RunState.CANCELLED, None,
                  Reason(reasons[run]), "", False, _definition(tx, was[run], definitions))
            for run, _, automation_id, _, _ in ended
        ],
        now=now, ended_at=at,
    )
    return [row[2] for row in ended]


def _definition(tx: Tx, run: Waiting, definitions: Definitions) -> Definition | None:
    try:
        return definitions.get(tx, run.automation_id, run.version)[1]
    except Unreadable:  # its month is counted in UTC
        return None
