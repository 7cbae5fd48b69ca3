"""Recovering: what a dead worker's runs become. Boot and the sweep call it, after the dead worker's children ended."""

from __future__ import annotations

from nightporter.clock import Instant
from nightporter.dispatch.claim import Definitions, Runners
from nightporter.dispatch.end import Final, conclude, release_behind
from nightporter.dispatch.traces import announce_reviews, read_traces
from nightporter.rules.ending import may_repeat
from nightporter.states import RunState
from nightporter.store import Tx
from nightporter.words import Definition, ErrorClass, Outcome, Reason, RunId

RECOVER_CHUNK = 250


def recover(tx: Tx, worker: str, runners: Runners, definitions: Definitions, *, now: Instant) -> dict[str, int]:
    """Take up to 250 running runs away from a dead worker. How many were `requeued`, `review`, `failed`.

    Each becomes lost; then it is queued again where nothing can have happened or repeating is declared safe, set
    aside for a person where it may have acted, and failed where its attempts are used up. All zero: none was left.
    """
    held = tx.held_by(worker, RECOVER_CHUNK)
    if not held:
        return {"requeued": 0, "review": 0, "failed": 0}
    tx.lock_automations({row[1] for row in held})
    traces = read_traces(tx, [(row[0], row[2], row[7]) for row in held], runners)
    rows = {row[0]: row for row in held}
    lost = tx.lose([(row[0], row[2]) for row in held])
    tx.write_transitions(
        [(run, seq, "running", "lost", Reason.WORKER_LOST, worker, rows[run][2], rows[run][4], ErrorClass.WORKER_LOST)
         for run, seq, _, _ in lost],
        now=now,
    )
    tx.forget_children([(run, rows[run][2]) for run, *_ in lost])
    requeue, aside, failed = [], [], []
    known: dict[str, tuple[str, Definition | None]] = {}
    for run, *_ in lost:
        known[run] = _definition(tx, rows[run], definitions)
        definition = known[run][1]
        cancelled = rows[run][8] is not None
        if definition is None or not may_repeat(definition, traces[run]):
            aside.append(run)
        elif cancelled or rows[run][4] >= rows[run][5]:
            failed.append(run)
        else:
            requeue.append(run)
    _write(tx, "queued", tx.requeue(requeue, now=now), now)
    _write(tx, "review", tx.to_review([(r, "its worker died while it ran") for r in aside]), now)
    _write(tx, "failed", tx.abandon([(r, "its worker died, and no attempt is left") for r in failed], now=now), now)
    announce_reviews(
        tx,
        [(r, rows[r][1], rows[r][10], known[r][0], _owner(known[r][1])) for r in aside],
        now=now,
    )
    conclude(
        tx,
        [
            Final(RunId(r), rows[r][1], rows[r][10], known[r][0], RunState.FAILED, Outcome.FAILED, Reason.WORKER_LOST,
                  "its worker died, and no attempt is left", True, known[r][1])
            for r in failed
        ],
        now=now,
    )
    release_behind(tx, {row[1] for row in held}, now=now)
    return {"requeued": len(requeue), "review": len(aside), "failed": len(failed)}


def _definition(tx: Tx, row: tuple[object, ...], definitions: Definitions) -> tuple[str, Definition | None]:
    try:
        return definitions.get(tx, str(row[1]), int(row[6]))  # type: ignore[call-overload]  # a row
    except Exception:  # unreadable: nobody can say whether repeating is safe, so a person decides
        return str(row[1]), None


def _owner(definition: Definition | None) -> str:
    return definition.owner if definition else ""


def _write(tx: Tx, state: str, rows: list[tuple[object, ...]], now: Instant) -> None:
    tx.write_transitions(
        [(row[0], row[1], "lost", state, None, None, row[2], row[3], None) for row in rows], now=now
    )
