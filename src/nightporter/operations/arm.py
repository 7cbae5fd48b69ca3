"""Arming: setting the slot of a trigger without answering one."""

from __future__ import annotations

from nightporter.admission import admit
from nightporter.clock import Instant
from nightporter.rules.schedule import count_between, next_due
from nightporter.rules.zones import TZDATA
from nightporter.sources.clock import LATE_AT_ONCE
from nightporter.store import Tx
from nightporter.store.tx_clock import schedule_from, schedule_text
from nightporter.words import Reason, Schedule, Settled, TriggerId, Verdict


def open_schedule(
    tx: Tx, trigger_id: str, version: int, schedule: Schedule, *, enabled: bool, now: Instant
) -> None:
    """Put a schedule in force from now on; the trigger is not armed yet. A disabled one owes no slots."""
    tx.arm([(trigger_id, None, "", version, schedule_text(schedule))])
    if enabled:
        tx.open_version(trigger_id, version, schedule, tzdata=TZDATA, at=now)


def arm(tx: Tx, automation_id: str, *, now: Instant) -> int:
    """Set the next slot, strictly after now, of each enabled clock trigger that has none; how many were armed."""
    rows = []
    for trigger in tx.triggers(automation_id):
        if (
            trigger.kind != "clock" or not trigger.enabled or trigger.schedule is None or trigger.error
            or trigger.removed_at is not None or trigger.next_fire_at is not None
        ):
            continue
        slot = next_due(schedule_from(trigger.schedule), now)
        if slot is not None:
            rows.append((trigger.id, slot, TZDATA, trigger.version, trigger.schedule))
    tx.arm(rows)
    return len(rows)


def reopen(tx: Tx, automation_id: str, *, now: Instant) -> str | None:
    """End the pause that is open, answering its slots by one line for each trigger. Its reason, if there was one."""
    pause = tx.close_pause(automation_id, at=now)
    if pause is None:
        return None
    paused_from, reason = pause
    lines = []
    for trigger in tx.triggers(automation_id):
        if trigger.kind != "clock" or not trigger.enabled or trigger.schedule is None or trigger.removed_at is not None:
            continue
        schedule = schedule_from(trigger.schedule)
        since = Instant(max(paused_from, trigger.created_at))
        first = next_due(schedule, since)
        if first is None or first > now:
            continue
        count, exact = count_between(schedule, since, now, cap=LATE_AT_ONCE)
        lines.append(Settled(
            TriggerId(trigger.id), f"paused:{paused_from}", Verdict.COLLAPSED,
            Reason.EXPIRED if reason == "expired" else Reason.CONFIGURATION if reason == "configuration"
            else Reason.PAUSED,
            first, now, count, exact,
        ))
    admit(tx, lines, now=now)
    return reason
