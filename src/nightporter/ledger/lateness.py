"""Why a run waits, and why one started later than it was due."""

from __future__ import annotations

from typing import assert_never

from nightporter.clock import SECOND, Instant
from nightporter.ledger.lines import RunLine
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.pages import NEWEST
from nightporter.ledger.why import because
from nightporter.store import Tx
from nightporter.words import Overlap, Policy, Reason, Sleep

ON_TIME = SECOND
"""A start later than this after its slot is explained."""


def why_late(tx: Tx, run: RunLine, timezone: str) -> str:
    """The causes of a late first start, as clauses joined by `and`; empty when it was on time or never started."""
    if run.started_at is None:
        return ""
    causes = []
    if run.scheduled_for is not None and run.queued_at - run.scheduled_for > ON_TIME:
        causes.append(answered_late(tx, run.scheduled_for, run.queued_at, timezone))
    if run.started_at - run.queued_at > ON_TIME:
        causes.append(_started_late(tx, run, run.started_at, timezone))
    return " and ".join(causes)


def answered_late(tx: Tx, slot: Instant, queued_at: Instant, timezone: str) -> str:
    """Why a slot had its answer only then, as a clause."""
    if (gap := in_a_gap(tx, slot, timezone)) is not None:
        return gap
    if not tx.read_desk_at(slot) and (began := tx.read_desk_after(slot, queued_at)) is not None:
        return f"the desk was not running until {spoken(began, timezone)}"
    return f"the desk could not answer its slot for {lasting(queued_at - slot)}: it was asleep, busy or not running"


_GAPS = {
    "sleep": "the machine slept, or the desk stood still, from {0} to {1}",
    "step_forward": "the clock was set forward from {0} to {1}",
    "restored": "the store was put back to {0}, and what ran until {1} is not in it",
}


def in_a_gap(tx: Tx, slot: Instant, timezone: str) -> str | None:
    """The gap that a slot lies in, as a clause; that the desk was down is told by its workers."""
    gap = tx.gap_around(slot)
    if gap is None or gap.kind not in _GAPS:
        return None
    return _GAPS[gap.kind].format(spoken(gap.gap_from, timezone), spoken(gap.gap_to, timezone))


def _started_late(tx: Tx, run: RunLine, started_at: Instant, timezone: str) -> str:
    waited = lasting(started_at - run.queued_at)
    pause = tx.read_pause(run.automation_id, run.queued_at, started_at)
    if pause is not None and run.source != "manual":
        return asleep(pause[2]) + ("" if pause[1] is None else f" until {spoken(pause[1], timezone)}")
    front = tx.read_run_in_front(run.automation_id, run.id, queued_at=run.queued_at, started_at=started_at)
    if front is not None and started_at - front[1] <= ON_TIME:
        before, ended_at = front
        ceiling = _ceiling(tx, run)
        if _goes_alone(tx, run):
            return f"it waited {waited} behind {before}, which was still going"
        if ceiling is not None and tx.read_running_just_before(run.automation_id, ended_at) >= ceiling:
            return f"it waited {waited} until {before} ended: {because(Reason.CONCURRENCY_CEILING, f'{ceiling}')}"
    if _gathered(tx, run):
        return f"it waited {waited} for others like it"
    if run.catchup and run.source == "clock" and tx.read_desk_at(run.queued_at):
        return f"it waited {waited} for its turn among late runs, which begin one after another"
    if not tx.read_desk_at(run.queued_at) and (began := tx.read_desk_after(run.queued_at, started_at)) is not None:
        return f"no desk was running to take it until {spoken(began, timezone)}"
    return f"it waited {waited} for its turn: the workers were busy, or the desk was stopped"


def why_waiting(tx: Tx, run: RunLine, timezone: str, now: Instant) -> str:
    """Why a queued run does not run yet, as a clause."""
    match run.blocked:
        case "time":
            left = f", in {lasting((run.run_after or now) - now)}" if (run.run_after or 0) > now else ""
            at = spoken(run.run_after or now, timezone) + left
            if run.attempt:
                return f"it is tried again at {at}"
            if run.reason is not None:
                return f"it was given back, because {because(run.reason)}, and goes on at {at}"
            if run.catchup:
                return f"late runs begin one after another, and its turn is at {at}"
            if run.source != "clock" and _gathered(tx, run):
                return f"it gathers what else arrives until {at}"
            return f"what is due all at once begins a little apart, and its turn is at {at}"
        case "overlap":
            return f"{_in_front(tx, run)} is still going, and it must go alone"
        case "concurrency":
            ceiling = _ceiling(tx, run)
            return because(Reason.CONCURRENCY_CEILING, "" if ceiling is None else f"{ceiling}")
        case "paused":
            return because(Reason.PAUSED)
    if tx.stopped():
        return because(Reason.STOPPED)
    if not tx.workers():
        return "no desk is running to take it"
    return "it waits for a free place at a worker"


def asleep(reason: str) -> str:
    """What a pause of that reason was, as a clause."""
    match reason:
        case Sleep.CONFIGURATION:
            return "its definition could not be read"
        case Sleep.EXPIRED:
            return "it was past its expiry"
        case Sleep.VANISHED:
            return "what it was made by was gone"
        case Sleep.USED_UP:
            return "its schedules had started as many runs as they may"
        case _:
            return "it was paused"


def _in_front(tx: Tx, run: RunLine) -> str:
    """What goes before it: a running one, else the oldest that waits."""
    for state in ("running", "held", "lost", "queued"):
        rows = tx.read_runs_of(run.automation_id, before=NEWEST, since=Instant(0), state=state, room=20)
        others = [row[0] for row in rows if row[0] != run.id]
        if others:
            return str(others[-1])
    return "a run before it"


def _ceiling(tx: Tx, run: RunLine) -> int | None:
    row = tx.read_automation(run.automation_id)
    return None if row is None or row[13] is None else int(row[13])


def _gathered(tx: Tx, run: RunLine) -> bool:
    """Whether runs of its trigger wait for others like them."""
    row = tx.read_trigger(f"{run.automation_id}/{run.trigger}")
    try:
        return row is not None and Policy.from_json(row[5]).coalesce is not None
    except ValueError:
        return False


def _goes_alone(tx: Tx, run: RunLine) -> bool:
    row = tx.read_trigger(f"{run.automation_id}/{run.trigger}")
    if row is None or run.source == "manual":
        return False
    try:
        overlap = Policy.from_json(row[5]).overlap
    except ValueError:  # it cannot be read: nothing is known of what it goes behind
        return False
    match overlap:
        case Overlap.QUEUE | Overlap.REPLACE:
            return True
        case Overlap.SKIP | Overlap.PARALLEL:
            return False
        case _:
            assert_never(overlap)
