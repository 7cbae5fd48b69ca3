"""The rows of the record with their names: what lists are made of. `as_json` is the shape that surfaces promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant
from nightporter.errors import NightporterError
from nightporter.ledger.moments import local, seconds
from nightporter.ledger.pages import plain
from nightporter.rules.schedule import sentence
from nightporter.store.sql_port import Row
from nightporter.store.tx_clock import schedule_from
from nightporter.words import SENTENCES, Policy, Reason, Schedule
from nightporter.words.kept import read_back


def reason_sentence(code: str | None) -> str:
    """The sentence of a stored reason; its code where this release does not know it."""
    if not code:
        return ""
    try:
        return SENTENCES[Reason(code)]
    except ValueError:
        return code


def schedule_json(schedule: Schedule) -> dict[str, Any]:
    """A schedule as surfaces show it; its offset in seconds."""
    return {**plain(schedule), "offset": seconds(schedule.offset)}


@dataclass(frozen=True, slots=True)
class TriggerLine:
    """A standing instruction and where it is."""

    id: str
    name: str
    kind: str
    enabled: bool
    schedule: Schedule | None
    sentence: str
    """The schedule in words; why it cannot be read where it cannot."""
    timezone: str
    next_fire_at: Instant | None
    next_fire_local: str | None
    overlap: str
    runner: str
    error: str
    firings: int
    runs: int
    last_fired_at: Instant | None
    last_verdict: str | None
    last_reason: str | None

    def as_json(self) -> dict[str, Any]:
        shown = plain(self)
        del shown["runner"]
        shown["schedule"] = None if self.schedule is None else schedule_json(self.schedule)
        return shown


def trigger_line(row: Row) -> TriggerLine:
    """From a row of `read_triggers`. A trigger that cannot be read says so in its sentence."""
    schedule, words, timezone, overlap, runner = None, "", "UTC", "", ""
    try:
        policy = Policy.from_json(row[5])
        overlap, runner = str(policy.overlap), policy.runner
        if row[6] is not None:
            schedule = schedule_from(row[6])
            timezone, words = schedule.timezone, sentence(schedule)
    except (NightporterError, ValueError, TypeError, ArithmeticError) as error:
        words = f"cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return TriggerLine(
        id=row[1], name=row[2], kind=row[3], enabled=bool(row[4]), schedule=schedule, sentence=words,
        timezone=timezone, next_fire_at=row[7], next_fire_local=local(row[7], timezone), overlap=overlap, runner=runner,
        error=row[8], firings=row[9], runs=row[10], last_fired_at=row[11], last_verdict=row[12], last_reason=row[13],
    )


@dataclass(frozen=True, slots=True)
class AutomationLine:
    """An automation in a list: what it is, whether it acts, and how it has been."""

    id: str
    name: str
    workspace: str
    owner: str
    state: str
    state_reason: str
    state_by: str
    state_at: Instant
    state_until: Instant | None
    truth: str
    """Where it may be edited: file, store or code."""
    path: str
    error: dict[str, Any] | None
    """What is wrong with its definition: `{code, what, why, next, path, line, column}`."""
    target: str
    """The kind of what runs."""
    triggers: tuple[TriggerLine, ...]
    next_fire_at: Instant | None
    next_fire_local: str | None
    timezone: str
    """Of the next fire."""
    last_run_id: str | None
    last_outcome: str | None
    last_success_at: Instant | None
    last_failure_at: Instant | None
    errors_in_a_row: int
    queued: int
    running: int
    held: int
    review: int
    version: int
    concurrent: int | None
    expires: Instant | None
    created_at: Instant
    updated_at: Instant

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def automation_line(row: Row, triggers: tuple[TriggerLine, ...], load: tuple[int, int, int, int]) -> AutomationLine:
    """From a row of `read_automations`."""
    (id, workspace, owner, name, state, state_reason, state_by, state_at, state_until, truth, path, error, version,
     concurrent, expires, created_at, updated_at, last_run_id, last_outcome, last_success_at, last_failure_at,
     errors_in_a_row) = row
    armed = min((t for t in triggers if t.next_fire_at is not None), key=lambda t: t.next_fire_at or 0, default=None)
    return AutomationLine(
        id=id, name=name, workspace=workspace, owner=owner, state=state, state_reason=state_reason, state_by=state_by,
        state_at=state_at, state_until=state_until, truth=truth, path=path,
        error=error_of(error, path) if error else None,
        target=next((t.runner for t in triggers if t.runner), ""), triggers=triggers,
        next_fire_at=armed.next_fire_at if armed else None, next_fire_local=armed.next_fire_local if armed else None,
        timezone=armed.timezone if armed else next((t.timezone for t in triggers if t.schedule), "UTC"),
        last_run_id=last_run_id, last_outcome=last_outcome, last_success_at=last_success_at,
        last_failure_at=last_failure_at, errors_in_a_row=errors_in_a_row, queued=load[0], running=load[1],
        held=load[2], review=load[3], version=version, concurrent=concurrent, expires=expires, created_at=created_at,
        updated_at=updated_at,
    )


def error_of(text: str, path: str) -> dict[str, Any]:
    """What is wrong with a definition, as it is kept: `{code, what, why, next, path, line, column}`."""
    whole: dict[str, Any] = {
        "code": "bad_definition", "what": text, "why": "", "next": "", "path": path, "line": 0, "column": 0,
    }
    try:
        read = read_back(text)
    except ValueError:  # not ours, but still the best that is known
        return whole
    if not isinstance(read, dict):
        return whole
    said = {key: read[key] for key, usual in whole.items() if type(read.get(key)) is type(usual)}
    return {**whole, "what": "", **said}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in a list. Durations are seconds."""

    id: str
    automation_id: str
    automation: str
    workspace: str
    trigger: str
    """The trigger's name within the automation."""
    source: str
    firing_id: str
    version: int
    target: str
    state: str
    reason: str | None
    reason_sentence: str
    blocked: str | None
    run_after: Instant | None
    """Of a waiting run: not before."""
    attempt: int
    attempts: int
    worker: str | None
    scheduled_for: Instant | None
    queued_at: Instant
    started_at: Instant | None
    attempt_at: Instant | None
    ended_at: Instant | None
    late: float | None
    """From when it was due, or admitted where it had no slot, to its first start."""
    ran_late: bool
    duration: float | None
    """Of the latest attempt, once the run has ended."""
    outcome: str | None
    error_class: str | None
    error: str
    exit_code: int | None
    cancel_at: Instant | None
    cancel_by: str
    dead_at: Instant | None
    root: str | None
    depth: int
    replay_of: str | None
    merged: int
    """Arrivals that were folded into it while it waited."""
    carries: str
    """The firing whose payload it carries: its own, or the last of those that were folded into it."""
    catchup: bool
    """It makes up for a slot that was missed."""
    look: str | None
    """What its look came to: something, nothing, failed or skipped. None before it answered, and without a look."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def run_line(row: Row) -> RunLine:
    """From a row of `read_runs`."""
    (id, automation_id, name, workspace, trigger_id, firing_id, source, version, runner, state, reason, blocked,
     run_after, attempt, attempts, worker, scheduled_for, queued_at, started_at, attempt_at, ended_at, ran_late,
     outcome, error_class, error, exit_code, cancel_at, cancel_by, dead_at, root, depth, replay_of, merged,
     carries, catchup, look) = row
    due = queued_at if scheduled_for is None else scheduled_for
    return RunLine(
        id=id, automation_id=automation_id, automation=name or automation_id, workspace=workspace,
        trigger=trigger_id.rpartition("/")[2], source=source, firing_id=firing_id, version=version, target=runner,
        state=state, reason=reason, reason_sentence=reason_sentence(reason), blocked=blocked,
        run_after=run_after if state in ("queued", "held") else None, attempt=attempt, attempts=attempts,
        worker=worker, scheduled_for=scheduled_for, queued_at=queued_at, started_at=started_at, attempt_at=attempt_at,
        ended_at=ended_at, late=None if started_at is None else seconds(started_at - due), ran_late=bool(ran_late),
        duration=None if ended_at is None or attempt_at is None else seconds(ended_at - attempt_at), outcome=outcome,
        error_class=error_class, error=error, exit_code=exit_code, cancel_at=cancel_at, cancel_by=cancel_by,
        dead_at=dead_at, root=root, depth=depth, replay_of=replay_of, merged=merged, carries=carries or firing_id,
        catchup=bool(catchup), look=look,
    )


@dataclass(frozen=True, slots=True)
class FiringLine:
    """A line of the ledger: an arrival and what became of it."""

    id: str
    automation_id: str
    automation: str
    workspace: str
    trigger_id: str
    source: str
    external_id: str
    scheduled_for: Instant | None
    arrived_at: Instant
    verdict: str
    reason: str | None
    reason_sentence: str
    detail: str
    run_id: str | None
    slot_from: Instant | None
    slot_to: Instant | None
    slots: int | None
    slots_exact: bool | None
    """False: `slots` is a lower bound."""
    sender: str
    owner: str
    root: str | None
    depth: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def firing_line(row: Row) -> FiringLine:
    """From a row of `read_firings`."""
    (id, automation_id, name, workspace, trigger_id, source, external_id, scheduled_for, arrived_at, verdict, reason,
     detail, run_id, slot_from, slot_to, slots, slots_exact, sender, owner, root, depth) = row
    return FiringLine(
        id=id, automation_id=automation_id, automation=name or automation_id, workspace=workspace,
        trigger_id=trigger_id, source=source, external_id=external_id, scheduled_for=scheduled_for,
        arrived_at=arrived_at, verdict=verdict, reason=reason, reason_sentence=reason_sentence(reason), detail=detail,
        run_id=run_id, slot_from=slot_from, slot_to=slot_to, slots=slots,
        slots_exact=None if slots_exact is None else bool(slots_exact), sender=sender, owner=owner, root=root,
        depth=depth,
    )


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """A result on its way to one destination."""

    id: str
    run_id: str
    automation_id: str
    automation: str
    workspace: str
    destination: str
    kind: str
    lane: str
    state: str
    reason: str | None
    reason_sentence: str
    best_effort: bool
    event_id: str
    tries: int
    next_try_at: Instant | None
    created_at: Instant
    ended_at: Instant | None
    evidence: str
    error: str

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def delivery_line(row: Row) -> DeliveryLine:
    """From a row of `read_deliveries`."""
    (id, run_id, automation_id, name, workspace, destination, kind, lane, state, reason, best_effort, event_id, tries,
     next_try_at, created_at, ended_at, evidence, error) = row
    return DeliveryLine(
        id=id, run_id=run_id, automation_id=automation_id, automation=name or automation_id, workspace=workspace,
        destination=destination, kind=kind, lane=lane, state=state, reason=reason,
        reason_sentence=reason_sentence(reason), best_effort=bool(best_effort), event_id=event_id, tries=tries,
        next_try_at=next_try_at if state == "pending" else None, created_at=created_at, ended_at=ended_at,
        evidence=evidence, error=error,
    )


@dataclass(frozen=True, slots=True)
class InboxLine:
    """A person's message from the desk."""

    id: str
    workspace: str
    owner: str
    automation_id: str | None
    automation: str | None
    run_id: str | None
    kind: str
    title: str
    text: str
    created_at: Instant
    read_at: Instant | None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def inbox_line(row: Row) -> InboxLine:
    """From a row of `read_inbox`."""
    id, workspace, owner, automation_id, name, run_id, kind, title, text, created_at, read_at = row
    return InboxLine(id, workspace, owner, automation_id, name, run_id, kind, title, text, created_at, read_at)
