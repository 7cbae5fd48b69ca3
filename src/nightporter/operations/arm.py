"""Arming: setting the slot of a trigger without answering one."""

from __future__ import annotations

from nightporter import logs
from nightporter.clock import Instant
from nightporter.rules.schedule import next_due
from nightporter.rules.zones import TZDATA
from nightporter.store import Tx
from nightporter.store.tx_automations import TriggerRow
from nightporter.store.tx_clock import schedule_from, schedule_text
from nightporter.words import Schedule

log = logs.get(__name__)

HAS_PASSED = "its only moment has passed"


def open_schedule(
    tx: Tx, trigger_id: str, version: int, schedule: Schedule, *, enabled: bool, now: Instant
) -> None:
    """Put a schedule in force from now on; the trigger is not armed yet. A disabled one owes no slots."""
    tx.arm([(trigger_id, None, "", version, schedule_text(schedule))])
    if enabled:
        tx.open_version(trigger_id, version, schedule, tzdata=TZDATA, at=now)


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
        slot = None if schedule is None else next_due(schedule, since)
        if slot is not None:
            rows.append((trigger.id, slot, TZDATA, trigger.version, trigger.schedule))
    tx.arm(rows)
    if not rows and _is_over(tx, automation_id):
        tx.complete({automation_id}, reason=HAS_PASSED, now=now)
    return len(rows)


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
