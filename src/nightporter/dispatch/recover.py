"""Recovering: what becomes of runs whose claim nobody is behind any more. Boot and the sweep call it; where a worker
died, after its children were ended."""

from __future__ import annotations

from collections.abc import Collection

from nightporter.air import Key
from nightporter.clock import Instant
from nightporter.dispatch.at_hand import Definitions, Runners
from nightporter.dispatch.behind import release_behind
from nightporter.dispatch.cancel import cancel
from nightporter.dispatch.claimed import Claimed
from nightporter.dispatch.end import Attempt, Final, conclude, end
from nightporter.dispatch.traces import announce_reviews, read_traces
from nightporter.rules.ending import may_repeat
from nightporter.states import RunState
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.store.tx_sweep import HeldRun
from nightporter.words import (
    AutomationId,
    Definition,
    Ended,
    Ending,
    ErrorClass,
    Outcome,
    Reason,
    RunId,
    TriggerId,
    Work,
)
from nightporter.words.kept import Unreadable

RECOVER_CHUNK = 250
NO_ATTEMPT_LEFT = "its worker died, and no attempt is left"
MAY_HAVE_HAPPENED = "Its worker went away while it ran, and what it did may have happened"
NOT_HEARD_OF = "the answer to its claim was lost"


def recover(tx: Tx, worker: str, runners: Runners, definitions: Definitions, *, now: Instant) -> dict[str, int]:
    """Take up to 250 running runs away from a dead worker. How many were `requeued`, `review`, `failed`, `cancelled`.

    Each becomes lost; then it is queued again where nothing can have happened or repeating is declared safe, set
    aside for a person where it may have acted, and failed where its attempts are used up. What would be queued again
    although somebody had asked to cancel it is cancelled. All zero: none was left.
    """
    held = {h.run_id: h for h in tx.held_by(worker, RECOVER_CHUNK)}
    tx.lock_automations({h.automation_id for h in held.values()})
    lost = tx.lose([(h.run_id, h.token) for h in held.values()])
    # What it left is read once the runs are out of its hands: one that still lives may just have written an intent.
    traces = read_traces(tx, [(run, held[run].token, held[run].runner) for run, *_ in lost], runners)
    at = tx.not_before([run for run, *_ in lost], now)
    tx.write_transitions(
        [(run, seq, "running", "lost", Reason.WORKER_LOST, worker, held[run].token, held[run].attempt,
          ErrorClass.WORKER_LOST) for run, seq, _, _ in lost],
        now=at,
    )
    tx.forget_children([(run, held[run].token) for run, *_ in lost])
    definitions.fetch(tx, {(held[run].automation_id, held[run].version) for run, *_ in lost})
    requeue, aside, failed, unwanted = [], [], [], []
    known: dict[str, tuple[str, Definition | None]] = {}
    for run, *_ in lost:
        h = held[run]
        known[run] = _definition(tx, h, definitions)
        definition = known[run][1]
        if definition is None or not may_repeat(definition, traces[run]):
            aside.append(h)
        elif h.cancel_reason is not None:
            unwanted.append(h)
        elif h.attempt >= h.attempts:
            failed.append(h)
        else:
            requeue.append(h)
    _write(tx, "queued", tx.requeue([h.run_id for h in [*requeue, *unwanted]], now=at), at)
    _write(tx, "review", tx.to_review([(h.run_id, "its worker died while it ran") for h in aside]), at)
    _write(tx, "failed", tx.abandon([(h.run_id, NO_ATTEMPT_LEFT) for h in failed], now=at), at)
    cancel(tx, [(h.run_id, h.cancel_reason or "", h.cancel_by) for h in unwanted], definitions, now=now)
    announce_reviews(
        tx,
        [(h.run_id, h.automation_id, h.workspace, known[h.run_id][0], _owner(known[h.run_id][1]), MAY_HAVE_HAPPENED)
         for h in aside],
        now=now,
    )
    conclude(
        tx,
        [
            Final(RunId(h.run_id), h.automation_id, h.workspace, known[h.run_id][0], RunState.FAILED, Outcome.FAILED,
                  Reason.WORKER_LOST, NO_ATTEMPT_LEFT, True, known[h.run_id][1], source=h.source)
            for h in failed
        ],
        now=now, ended_at=at,
    )
    release_behind(tx, {held[run].automation_id for run, *_ in lost}, now=now)
    return {
        "requeued": len(requeue), "review": len(aside), "failed": len(failed), "cancelled": len(unwanted),
    }


def take_back(
    tx: Tx, worker: str, in_the_air: Collection[Key], runners: Runners, definitions: Definitions, *, now: Instant
) -> int:
    """Give back what a living worker holds and never began, because it was not told that its claim was committed; how
    many. The attempt is not counted."""
    held = tx.held_by(worker, len(in_the_air) + RECOVER_CHUNK)
    unknown = [h for h in held if (h.run_id, h.token) not in in_the_air]
    not_begun = Ended(Ending.CANCELLED, reason=Reason.NOT_STARTED, error=NOT_HEARD_OF)
    end(tx, [Attempt(_claimed(tx, h, definitions), not_begun) for h in unknown], runners, now=now)
    return len(unknown)


def _claimed(tx: Tx, held: HeldRun, definitions: Definitions) -> Claimed:
    """As much of a claim as its end asks for."""
    name, definition = _definition(tx, held, definitions)
    work = Work(
        run_id=RunId(held.run_id), token=held.token, attempt=held.attempt,
        automation_id=AutomationId(held.automation_id), automation=name, workspace=held.workspace,
        trigger_id=TriggerId(""), source="", kind=held.runner, config={},
    )
    return Claimed(work, held.attempts, 0, definition)


def _definition(tx: Tx, held: HeldRun, definitions: Definitions) -> tuple[str, Definition | None]:
    try:
        return definitions.get(tx, held.automation_id, held.version)
    except Unreadable:  # nobody can say whether repeating is safe, so a person decides
        return held.automation_id, None


def _owner(definition: Definition | None) -> str:
    return definition.owner if definition else ""


def _write(tx: Tx, state: str, rows: list[Row], now: Instant) -> None:
    tx.write_transitions(
        [(row[0], row[1], "lost", state, None, None, row[2], row[3], None) for row in rows], now=now
    )
