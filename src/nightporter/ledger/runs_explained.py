"""Why a run ran when it did, how it ended, and what became of its result."""

from __future__ import annotations

import re
import socket
from typing import assert_never

from nightporter.clock import SECOND, Instant
from nightporter.ledger.details import RunDetail, run_detail
from nightporter.ledger.lateness import ON_TIME, why_late, why_waiting
from nightporter.ledger.lines import DeliveryLine, RunLine, trigger_line
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.status import worker_lines
from nightporter.ledger.why import Explanation, because, clause, remedy, strange
from nightporter.states import DeliveryState, RunState
from nightporter.store import Tx
from nightporter.words import Definition, Reason, Sight


def explain_run(tx: Tx, run_id: str, now: Instant) -> Explanation:
    """Why a run ran when it did, how it ended, and what became of its result. Raises NotFound."""
    detail = run_detail(tx, run_id)
    run = detail.line
    timezone = zone_of(tx, run.automation_id, f"{run.automation_id}/{run.trigger}")
    sentences = [_ran(tx, detail, timezone, now), *_folded(run), *_earlier_attempts(detail),
                 *_delivered(detail, timezone, now)]
    if run.dead_at is not None:
        sentences.append(f"It is a dead letter: `nightporter replay {run.id}` runs it again.")
    return Explanation(
        "run", run.id, run.automation, " ".join(sentences), verdict="admitted", reason=run.reason, run_id=run.id,
        firing_id=run.firing_id,
    )


def _ran(tx: Tx, detail: RunDetail, timezone: str, now: Instant) -> str:
    run = detail.line
    occasion = _occasion_of_run(detail, timezone)
    if run.started_at is None:
        return _never_started(tx, run, occasion, timezone, now)
    due = run.queued_at if run.scheduled_for is None else run.scheduled_for
    late = run.started_at - due
    since = "it was due" if run.scheduled_for is not None else "it was admitted"
    start = f"{lasting(late)} after {since}" if late >= 0 else f"{lasting(late)} before {since}"
    if late > ON_TIME:
        start = f"{lasting(late)} late, because {why_late(tx, run, timezone)}"
    return f"{run.automation} ran {occasion}, {start}. {_looked(detail)}{_ended(tx, run, timezone, now)}"


def _looked(detail: RunDetail) -> str:
    """What its look saw, where its end does not say so."""
    if detail.look is None or detail.look.answer not in (Sight.SOMETHING, Sight.SKIPPED):
        return ""
    if detail.look.answer == Sight.SKIPPED:
        return f"Its look was not asked, as {detail.look.text or 'somebody'} wanted. "
    said = " ".join(detail.look.text.split())
    return f"Its look found {said[:150] + '...' if len(said) > 150 else said or 'something'}. "


def _never_started(tx: Tx, run: RunLine, occasion: str, timezone: str, now: Instant) -> str:
    if run.state == RunState.QUEUED:
        waited = lasting(now - run.queued_at)
        return (f"{run.automation} was admitted {occasion} and has been waiting for {waited}: "
                f"{why_waiting(tx, run, timezone, now)}.")
    return f"{run.automation} was admitted {occasion} and never started. {_ended(tx, run, timezone, now)}"


def _ended(tx: Tx, run: RunLine, timezone: str, now: Instant) -> str:
    if run.state not in set(RunState):
        return f"What became of it cannot be told: {strange(run.state)}."
    state = RunState(run.state)
    took = "" if run.duration is None else f" after {lasting(round(run.duration * SECOND))}"
    attempt = f" on attempt {run.attempt} of {run.attempts}" if run.attempt > 1 else ""
    why = because(run.reason, run.error)
    next = remedy(run.reason, name=run.automation, run=run.id)
    match state:
        case RunState.QUEUED:
            last = f" after its last attempt: {because(run.reason, run.error)}" if run.reason else ""
            return f"It is queued again{last}; {why_waiting(tx, run, timezone, now)}."
        case RunState.RUNNING:
            begun = run.attempt_at or now
            if (gone := _worker_gone(tx, run)) is not None:
                return (f"It was running when its worker {gone}; a desk takes it back within a minute of noticing, and "
                        "then it is queued again, or set aside for your review where it may have acted.")
            asked = f", and {run.cancel_by or 'somebody'} asked to end it" if run.cancel_at is not None else ""
            return f"It has been running for {lasting(now - begun)}{attempt}{asked}."
        case RunState.WAITING:
            return "It waits for a person's answer."
        case RunState.HELD:
            return f"It is held until {spoken(run.run_after or now, timezone)}: {why}."
        case RunState.LOST:
            return f"It is lost: {why}; the desk decides within a minute what becomes of it."
        case RunState.REVIEW:
            return (f"It may have acted and is not repeated unasked: {why}. `nightporter review {run.id} retry` runs "
                    f"it again, `nightporter review {run.id} dismiss` closes it.")
        case RunState.SUCCEEDED:
            return f"It succeeded{took}{attempt} with {_AMOUNTED.get(run.outcome or '', 'a result')}."
        case RunState.SKIPPED if run.reason == Reason.STALE:
            return f"It was not begun any more: {why}. {next}"
        case RunState.SKIPPED:
            return f"It ended{took}{attempt}: {why}, so nothing was sent; that is a success."
        case RunState.FAILED:
            return f"It failed{took}{attempt}: {why}. {next}".rstrip()
        case RunState.TIMED_OUT:
            return f"It timed out{took}{attempt}: {why}; that is not tried again. {next}".rstrip()
        case RunState.CANCELLED:
            return f"It was cancelled{took}: {_cancelled(run)}."
        case _:
            assert_never(state)


def _worker_gone(tx: Tx, run: RunLine) -> str | None:
    """How the worker of a running run is gone, as a clause; None where it lives, as far as can be told from here."""
    row = tx.read_worker(run.worker) if run.worker else None
    if row is not None and row[5] is not None:
        return "was declared dead" if row[6] == "dead" else "left"
    here = worker_lines(tx, socket.gethostname()) if row is not None else ()
    return "died" if any(w.id == run.worker and w.alive is False for w in here) else None


_AMOUNTED = {"action": "an action", "report": "a report", "needs_you": "something that needs you"}


def _cancelled(run: RunLine) -> str:
    if run.reason == Reason.SUPERSEDED:
        return f"{because(run.reason)} ({run.cancel_by})" if run.cancel_by else because(run.reason)
    if run.reason == Reason.CANCELLED_BY and run.cancel_by:
        return f"{run.cancel_by} cancelled it"
    return because(run.reason, run.error)


def _folded(run: RunLine) -> list[str]:
    """What came while it waited, and is part of it."""
    if not run.merged:
        return []
    many = "One more arrival was" if run.merged == 1 else f"{run.merged} more arrivals were"
    return [f"{many} folded into it while it waited."]


def _earlier_attempts(detail: RunDetail) -> list[str]:
    """What happened to the attempts before the latest."""
    cut = [t for t in detail.transitions if t.from_state == "running" and t.to_state in ("queued", "held", "lost")]
    if detail.line.state in (RunState.LOST, RunState.REVIEW, RunState.QUEUED, RunState.HELD):
        cut = cut[:-1]  # the latest is what the sentence before was about
    if detail.line.reason == Reason.WORKER_LOST and detail.line.state == RunState.FAILED:
        cut = cut[:-1]
    if not cut:
        return []
    reasons = list(dict.fromkeys(because(t.reason) for t in cut))
    many = "An earlier attempt was" if len(cut) == 1 else f"{len(cut)} earlier attempts were"
    return [f"{many} not the last one: {'; '.join(reasons)}."]


def _delivered(detail: RunDetail, timezone: str, now: Instant) -> list[str]:
    run = detail.line
    if detail.deliveries:
        return [_delivery(d, timezone, now) for d in detail.deliveries]
    if run.state == RunState.SUCCEEDED:
        return ["Nothing was sent: its definition names no destination for that outcome."]
    return []


def _delivery(d: DeliveryLine, timezone: str, now: Instant) -> str:
    to = d.destination if d.destination == d.kind else f"{d.destination} ({d.kind})"
    if d.state not in set(DeliveryState):
        return f"Whether it reached {to} cannot be told: {strange(d.state)}."
    state = DeliveryState(d.state)
    match state:
        case DeliveryState.DELIVERED:
            # The whole of it is in `deliveries` and in JSON; a digest is nothing to read.
            evidence = _DIGEST.sub("", d.evidence)
            return f"It was delivered to {to}: {evidence}." if evidence else f"It was delivered to {to}."
        case DeliveryState.UNVERIFIED:
            return f"To {to}: {because(d.reason or Reason.UNVERIFIED, d.evidence)}."
        case DeliveryState.PENDING if d.reason == Reason.HELD_QUIET:
            return f"Its delivery to {to} waits until {spoken(d.next_try_at or now, timezone)}: {because(d.reason)}."
        case DeliveryState.PENDING if d.tries == 0:
            return f"Its delivery to {to} has not been tried yet."
        case DeliveryState.PENDING:
            next = spoken(d.next_try_at or now, timezone)
            return (f"Its delivery to {to} has failed {_times(d.tries)} so far: {because(d.reason, d.error)}; "
                    f"it is tried again at {next}.")
        case DeliveryState.SENDING:
            return f"It is being delivered to {to}."
        case DeliveryState.GIVEN_UP:
            next = remedy(Reason.GAVE_UP, name=d.automation, run=d.run_id)
            return f"It was not delivered to {to} after {_times(d.tries)}: {because(d.reason, d.error)}. {next}"
        case DeliveryState.UNKNOWN:
            return (f"Whether it reached {to} is not known: {clause(d.error or 'the worker died while sending')}. "
                    f"`nightporter deliver {d.run_id}` sends it again, perhaps a second time.")
        case _:
            assert_never(state)


_DIGEST = re.compile(r" ?\b\w+:[0-9a-f]{32,}")


def _times(n: int) -> str:
    return "one try" if n == 1 else f"{n} tries"


def _occasion_of_run(detail: RunDetail, timezone: str) -> str:
    run = detail.line
    again = f", as a replay of {run.replay_of}" if run.replay_of else ""
    sender = detail.firing.sender if detail.firing else ""
    if run.scheduled_for is not None:
        wanted = f" because {asked(run.source, sender, run.queued_at, timezone)}" if run.source == "manual" else ""
        return f"for its {'missed ' if run.catchup else ''}slot of {spoken(run.scheduled_for, timezone)}{wanted}{again}"
    return f"because {asked(run.source, sender, run.queued_at, timezone)}{again}"


def asked(source: str, sender: str, at: Instant, timezone: str) -> str:
    match source:
        case "manual":
            return f"{sender or 'a person'} asked at {spoken(at, timezone)}"
        case "call":
            return f"{sender or 'a program'} called it at {spoken(at, timezone)}"
        case _:
            return f"{sender or source} told of something at {spoken(at, timezone)}"


def zone_of(tx: Tx, automation_id: str, trigger_id: str) -> str:
    """In which zone to speak: the trigger's, else that of a schedule of its automation, else the definition's."""
    row = tx.read_trigger(trigger_id) if trigger_id else None
    if row is not None and row[6] is not None:
        return trigger_line(row).timezone
    for other in tx.read_triggers([automation_id]):
        if other[6] is not None:
            return trigger_line(other).timezone
    automation = tx.read_automation(automation_id)
    text = None if automation is None else tx.read_definition(automation_id, automation[12])
    try:
        return Definition.from_json(text).timezone if text else "UTC"
    except ValueError:  # unreadable: its line says so, and UTC is true everywhere
        return "UTC"
