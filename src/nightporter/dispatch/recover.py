"""Recovering: what a dead worker's runs become. Boot and the sweep call it, after the dead worker's children ended."""

from __future__ import annotations

from dataclasses import dataclass

from nightporter.clock import Instant
from nightporter.dispatch.claim import Definitions, Runners
from nightporter.dispatch.end import Final, conclude, release_behind
from nightporter.dispatch.traces import announce_reviews, read_traces
from nightporter.rules.ending import may_repeat
from nightporter.states import RunState
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.words import Definition, ErrorClass, Outcome, Reason, RunId

RECOVER_CHUNK = 250
NO_ATTEMPT_LEFT = "its worker died, and no attempt is left"


def recover(tx: Tx, worker: str, runners: Runners, definitions: Definitions, *, now: Instant) -> dict[str, int]:
    """Take up to 250 running runs away from a dead worker. How many were `requeued`, `review`, `failed`, `cancelled`.

    Each becomes lost; then it is queued again where nothing can have happened or repeating is declared safe, set
    aside for a person where it may have acted, and failed where its attempts are used up. What would be queued again
    although somebody had asked to cancel it is cancelled. All zero: none was left.
    """
    held = {row[0]: _Held(*row) for row in tx.held_by(worker, RECOVER_CHUNK)}
    tx.lock_automations({h.automation_id for h in held.values()})
    traces = read_traces(tx, [(h.run_id, h.token, h.runner) for h in held.values()], runners)
    lost = tx.lose([(h.run_id, h.token) for h in held.values()])
    tx.write_transitions(
        [(run, seq, "running", "lost", Reason.WORKER_LOST, worker, held[run].token, held[run].attempt,
          ErrorClass.WORKER_LOST) for run, seq, _, _ in lost],
        now=now,
    )
    tx.forget_children([(run, held[run].token) for run, *_ in lost])
    requeue, aside, failed, cancelled = [], [], [], []
    known: dict[str, tuple[str, Definition | None]] = {}
    for run, *_ in lost:
        h = held[run]
        known[run] = _definition(tx, h, definitions)
        definition = known[run][1]
        if definition is None or not may_repeat(definition, traces[run]):
            aside.append(h)
        elif h.cancel_reason is not None:
            cancelled.append(h)
        elif h.attempt >= h.attempts:
            failed.append(h)
        else:
            requeue.append(h)
    _write(tx, "queued", tx.requeue([h.run_id for h in [*requeue, *cancelled]], now=now), now)
    _write(tx, "review", tx.to_review([(h.run_id, "its worker died while it ran") for h in aside]), now)
    _write(tx, "failed", tx.abandon([(h.run_id, NO_ATTEMPT_LEFT) for h in failed], now=now), now)
    _cancel(tx, cancelled, now)
    announce_reviews(
        tx,
        [(h.run_id, h.automation_id, h.workspace, known[h.run_id][0], _owner(known[h.run_id][1])) for h in aside],
        now=now,
    )
    conclude(
        tx,
        [
            Final(RunId(h.run_id), h.automation_id, h.workspace, known[h.run_id][0], RunState.FAILED, Outcome.FAILED,
                  Reason.WORKER_LOST, NO_ATTEMPT_LEFT, True, known[h.run_id][1])
            for h in failed
        ] + [
            Final(RunId(h.run_id), h.automation_id, h.workspace, known[h.run_id][0], RunState.CANCELLED, None,
                  Reason(h.cancel_reason or Reason.CANCELLED_BY), "", False, known[h.run_id][1])
            for h in cancelled
        ],
        now=now,
    )
    release_behind(tx, {held[run].automation_id for run, *_ in lost}, now=now)
    return {
        "requeued": len(requeue), "review": len(aside), "failed": len(failed), "cancelled": len(cancelled),
    }


@dataclass(frozen=True, slots=True)
class _Held:
    """A run of the dead worker."""

    run_id: str
    automation_id: str
    token: int
    attempt: int
    attempts: int
    version: int
    runner: str
    workspace: str
    cancel_reason: str | None
    cancel_by: str


def _cancel(tx: Tx, cancelled: list[_Held], now: Instant) -> None:
    reasons = {h.run_id: h.cancel_reason for h in cancelled}
    ended = tx.cancel([(h.run_id, h.cancel_reason or "", h.cancel_by) for h in cancelled], now=now)
    tx.write_transitions(
        [(run, seq, "queued", "cancelled", reasons[run], None, token, attempt, None)
         for run, seq, _, token, attempt in ended],
        now=now,
    )


def _definition(tx: Tx, held: _Held, definitions: Definitions) -> tuple[str, Definition | None]:
    try:
        return definitions.get(tx, held.automation_id, held.version)
    except Exception:  # unreadable: nobody can say whether repeating is safe, so a person decides
        return held.automation_id, None


def _owner(definition: Definition | None) -> str:
    return definition.owner if definition else ""


def _write(tx: Tx, state: str, rows: list[Row], now: Instant) -> None:
    tx.write_transitions(
        [(row[0], row[1], "lost", state, None, None, row[2], row[3], None) for row in rows], now=now
    )
