"""Mending: what was put aside because nobody could read it, and can be read again, goes on without a restart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from nightporter import logs
from nightporter.admission import admit
from nightporter.clock import Instant, micros
from nightporter.errors import StoreError, StoreRefused
from nightporter.incidents import schedule_failed, schedule_readable
from nightporter.operations.arm import arm, open_schedule, owes
from nightporter.operations.sleep import in_one_line, wake
from nightporter.rules.schedule import next_due
from nightporter.rules.zones import TZDATA
from nightporter.states import AutomationState
from nightporter.store import Store, Tx
from nightporter.store.tx_automations import TriggerRow
from nightporter.store.tx_clock import schedule_from
from nightporter.words import IncidentKind, Policy, Reason, Schedule

log = logs.get(__name__)


def take_up_again(store: Store, *, now: Callable[[], Instant], apart: timedelta = timedelta(minutes=1)) -> int:
    """Let quarantined triggers go on whose rows somebody has mended; how many. `apart`: between the looks at one that
    nobody has mended which count as an error more, whoever looks. Raises StoreError when the store is ill."""
    mended = 0
    for trigger_id in store.read(lambda tx: tx.quarantined_triggers()):
        try:
            if store.write(partial(_take_up, trigger_id=trigger_id, clock=now, apart=micros(apart))):
                log.warning("clock.trigger_mended", trigger=trigger_id)
                mended += 1
        except Exception as error:
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                raise
            log.error("clock.trigger_not_mended", trigger=trigger_id, error=str(error))
    return mended


def _take_up(tx: Tx, trigger_id: str, clock: Callable[[], Instant], apart: int) -> bool:
    now = clock()
    automation_id = trigger_id.rpartition("/")[0]
    automation = tx.lock_automation(automation_id)
    trigger = next((t for t in tx.triggers(automation_id) if t.id == trigger_id), None)
    if automation is None or trigger is None or not trigger.error:
        return False
    schedule = _read(trigger, now)
    if schedule is None:
        if trigger.removed_at is None and trigger.enabled and not _counted(tx, trigger_id, now, apart):
            schedule_failed(tx, trigger_id, trigger.error, now=now)
        return False
    tx.release_trigger(trigger_id)
    was_why = schedule_readable(tx, trigger_id, now=now)
    since = _owed_since(tx, trigger)
    if since is None:  # its schedule is another now: from now on
        tx.close_version(trigger_id, at=now)
        open_schedule(tx, trigger_id, trigger.version + 1, schedule, enabled=trigger.enabled, since=now)
        if automation.state == AutomationState.ACTIVE:
            arm(tx, automation_id, since=now, now=now)
    elif automation.state == AutomationState.ACTIVE:  # what came meanwhile is the clock's to answer
        again = next(t for t in tx.triggers(automation_id) if t.id == trigger_id)
        if owes(again):
            tx.arm([(trigger_id, next_due(schedule, since), TZDATA, again.version, again.schedule)])
    else:
        _answer_asleep(tx, trigger, schedule, since, now)
    if was_why:
        wake(tx, automation, by="desk", now=now)
    return True


def _answer_asleep(tx: Tx, trigger: TriggerRow, schedule: Schedule, since: Instant, now: Instant) -> None:
    """Its automation sleeps, perhaps since nobody could read it: what came in all that time is one line."""
    if tx.pause_now(trigger.id.rpartition("/")[0]) is None or not owes(replace(trigger, error="")):
        return
    line = in_one_line(trigger, schedule, f"unreadable:{since}", Reason.UNREADABLE, since, now)
    if line is not None:
        tx.arm([(trigger.id, None, trigger.tzdata, trigger.version, trigger.schedule)])  # it has its answer
        admit(tx, [line], now=now)


def _counted(tx: Tx, trigger_id: str, now: Instant, apart: int) -> bool:
    """Whether somebody has looked so lately that it is the same look: another desk, or a start before this one."""
    last = tx.last_fault_at(IncidentKind.SCHEDULE, trigger_id)
    return last is not None and last <= now < last + apart * 4 // 5  # a loop may come round a little early


def _read(trigger: TriggerRow, now: Instant) -> Schedule | None:
    try:
        Policy.from_json(trigger.policy)
        schedule = schedule_from(trigger.schedule or "")
        next_due(schedule, now)
    except Exception:  # whatever it raised before, it raises still
        return None
    return schedule


def _owed_since(tx: Tx, trigger: TriggerRow) -> Instant | None:
    """After which instant the slots of its schedule are not answered yet; None where no version of it is in force."""
    for _, number, text, _, since, until in tx.clock_versions([trigger.id]):
        if number == trigger.version and text == trigger.schedule and until is None:
            return Instant(max(since, trigger.last_fired_at or since))
    return None
