"""Arming: setting the slot of a trigger without answering one."""

from __future__ import annotations

from dataclasses import replace

from nightporter import logs
from nightporter.clock import Instant
from nightporter.rules.schedule import next_due, same_occurrence
from nightporter.rules.zones import TZDATA
from nightporter.store import Tx
from nightporter.store.tx_automations import TriggerRow
from nightporter.store.tx_clock import schedule_from, schedule_text
from nightporter.words import Schedule

log = logs.get(__name__)

HAS_PASSED = "its only moment has passed"


def open_schedule(
    tx: Tx, trigger_id: str, version: int, schedule: Schedule, *, enabled: bool, since: Instant
) -> None:
    """Put a schedule in force: slots after `since` are owed under it. The trigger is not armed yet; a disabled one owes
    no slots."""
    tx.arm([(trigger_id, None, "", version, schedule_text(schedule))])
    if enabled:
        tx.open_version(trigger_id, version, schedule, tzdata=TZDATA, at=since)


def arm(tx: Tx, automation_id: str, *, since: Instant, now: Instant) -> int:
    """Set the next slot, strictly after `since`, of each enabled clock trigger that has none; how many were armed.

    A slot that has come by now is the clock's to answer, as late as it is then. Where only moments were to come and all
    of them have passed, the automation is completed: it does not look as if it still acted.
    """
    rows = []
    for trigger in tx.triggers(automation_id):
        if not owes(trigger) or trigger.next_fire_at is not None:
            continue
        schedule = readable(tx, trigger, now=now)
        slot = None if schedule is None else first_owed(trigger, schedule, since)
        if slot is not None:
            rows.append((trigger.id, slot, TZDATA, trigger.version, trigger.schedule))
    tx.arm(rows)
    if not rows and _is_over(tx, automation_id):
        tx.complete({automation_id}, reason=HAS_PASSED, now=now)
    return len(rows)


def first_owed(trigger: TriggerRow, schedule: Schedule, since: Instant) -> Instant | None:
    """The first slot, of a trigger that is not armed, that is owed after `since`. One that fell asleep goes on with the
    occurrence that was to come then, wherever another release of the zone data has put that meanwhile."""
    if trigger.wall is not None:
        return same_occurrence(schedule, since, trigger.wall)
    return next_due(schedule, Instant(max(since, trigger.owed_since or since)))


def edited_since(trigger: TriggerRow, was: Schedule, is_: Schedule, now: Instant) -> Instant:
    """After which instant slots are owed under the schedule that a trigger is given: from now on, but for those that
    come a second time because the zone data has changed, and were answered the first time under the old schedule."""
    armed = trigger.next_fire_at or first_owed(trigger, was, now)
    since = Instant(max(now, trigger.owed_since or now))
    if armed is not None and replace(was, offset=is_.offset) == is_:  # what was answered comes no second time, later
        return Instant(max(since, armed - was.offset + is_.offset - 1))
    while armed is not None and (slot := next_due(is_, since)) is not None and slot < armed:
        if next_due(was, Instant(slot - 1)) != slot:
            break
        since = slot
    return since


def _is_over(tx: Tx, automation_id: str) -> bool:
    """Whether all it has to come are moments that have passed, and nothing of it goes on."""
    clocks = [t for t in tx.triggers(automation_id) if owes(t)]
    return (
        bool(clocks) and all(t.next_fire_at is None and schedule_from(t.schedule or "").kind == "at" for t in clocks)
        and not tx.waiting_runs(automation_id) and not tx.running_runs(automation_id)
    )


def owes(trigger: TriggerRow) -> bool:
    """Whether it has a schedule in force whose slots want an answer."""
    return (
        trigger.kind == "clock" and trigger.enabled and trigger.schedule is not None and not trigger.error
        and trigger.removed_at is None
    )


def readable(tx: Tx, trigger: TriggerRow, *, now: Instant) -> Schedule | None:
    """Its schedule; one that cannot be read is put into quarantine, so that it stands in no other's way."""
    try:
        schedule = schedule_from(trigger.schedule or "")
        next_due(schedule, now)
    except Exception as error:  # whatever a row can be made to raise, it is that trigger's matter
        log.error("operation.unreadable_trigger", trigger=trigger.id, error=str(error))
        tx.quarantine_trigger(trigger.id, str(error), now=now)
        return None
    return schedule
