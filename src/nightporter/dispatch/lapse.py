"""Lapsing: a run that waited until it was too old to be begun ends without having been."""

from __future__ import annotations

from collections.abc import Sequence

from nightporter.clock import Instant
from nightporter.dispatch.at_hand import Definitions
from nightporter.dispatch.behind import release_behind
from nightporter.dispatch.end import Final, conclude
from nightporter.states import RunState
from nightporter.store import Tx
from nightporter.store.tx_dispatch import Candidate
from nightporter.words import Reason, RunId
from nightporter.words.kept import Unreadable


def lapse(tx: Tx, candidates: Sequence[Candidate], definitions: Definitions, *, now: Instant) -> None:
    """End these queued runs as stale, and let go what waited behind them. The caller holds the locks of their
    automations."""
    if not candidates:
        return
    of = {c.run_id: c for c in candidates}
    at = tx.not_before(list(of), now)
    ended = tx.lapse(list(of), reason=Reason.STALE, now=at)
    tx.write_transitions(
        [(run, seq, "queued", "skipped", Reason.STALE, None, token, attempt, None)
         for run, seq, token, attempt in ended],
        now=at,
    )
    definitions.fetch(tx, {(of[run].automation_id, of[run].version) for run, *_ in ended})
    conclude(tx, [_final(tx, of[run], definitions) for run, *_ in ended], now=now, ended_at=at)
    release_behind(tx, {of[run].automation_id for run, *_ in ended}, now=now)


def _final(tx: Tx, c: Candidate, definitions: Definitions) -> Final:
    name, definition = "", None
    try:
        name, definition = definitions.get(tx, c.automation_id, c.version)
    except Unreadable:  # its month is counted in UTC
        definition = None
    return Final(
        RunId(c.run_id), c.automation_id, c.workspace, name, RunState.SKIPPED, None, Reason.STALE, "", False, definition
    )
