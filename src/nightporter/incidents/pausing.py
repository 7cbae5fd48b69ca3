"""Pausing: the desk stops an automation whose errors have reached its own number in a row."""

from __future__ import annotations

from nightporter.clock import Instant
from nightporter.incidents.record import Fault, happened, in_force, route_over
from nightporter.incidents.telling import About, tell_paused
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.store.tx_incidents import Standing
from nightporter.words import Definition, IncidentKind, Sleep, derived_id

_NO_SENSE = "its schedule could not be made sense of"


def pause_by_the_desk(
    tx: Tx, fault: Fault, standing: Standing, definition: Definition, why: str, *, now: Instant
) -> bool:
    """active -> auto_paused: disarmed, its pause open, said in the inbox and to whom alerts go. False: it does not act.

    The caller has the lock of the automation. A slot that has come and is not answered yet belongs to the pause.
    """
    row = tx.lock_automation(fault.automation_id)
    if row is None:
        return False
    triggers = tx.triggers(row.id)
    at = Instant(max([now, row.state_at, row.updated_at, *(t.last_fired_at or now for t in triggers)]))
    if not tx.auto_pause(row.id, reason=why, now=at):
        return False
    unanswered = [Instant(t.next_fire_at - 1) for t in triggers if t.next_fire_at is not None and t.next_fire_at <= at]
    tx.disarm([t.id for t in triggers])
    tx.open_pause(row.id, Sleep.AUTO_PAUSED, at=min([at, *unanswered]))
    tx.write_change(
        id=derived_id("chg", at, row.id, str(tx.changes(row.id))), now=at, actor="desk", workspace=row.workspace,
        automation_id=row.id, verb="auto_pause", version=row.version, detail=why,
    )
    about = About(standing.id, fault.kind, fault.route, row.id, standing.times, standing.first_at, now, fault.error,
                  fault.subject)
    tell_paused(tx, about, definition, f"{definition.name} was paused by the desk: {why}", now=now)
    return True


def schedule_failed(tx: Tx, trigger_id: str, error: str, *, now: Instant) -> None:
    """A schedule could not be made sense of: one error more, and perhaps the last. The automation is locked first."""
    automation_id = trigger_id.rpartition("/")[0]
    tx.lock_automations([automation_id])
    in_a_row = tx.count_schedule_error(automation_id)
    if not in_a_row:
        return
    fault = Fault(IncidentKind.SCHEDULE, trigger_id, error, trigger_id, automation_id)
    standing = happened(tx, [fault], now=now)[trigger_id]
    definition = in_force(tx, [automation_id])[automation_id]
    most = definition.failures.pause_after_schedule_errors
    if most is not None and in_a_row >= most:
        why = f"{_NO_SENSE} {in_a_row} times in a row"
        pause_by_the_desk(tx, fault, standing, definition, why, now=now)


def schedule_readable(tx: Tx, trigger_id: str, *, now: Instant) -> bool:
    """It can be made sense of again: the row of errors ends, and so does the incident. True where the desk paused the
    automation for its schedules, and each of them can be made sense of: nothing is left to be paused for."""
    automation_id = trigger_id.rpartition("/")[0]
    tx.schedules_readable(automation_id)
    route_over(tx, IncidentKind.SCHEDULE, trigger_id, now=now)
    row = tx.lock_automation(automation_id)
    return (row is not None and row.state == AutomationState.AUTO_PAUSED and row.state_reason.startswith(_NO_SENSE)
            and not any(t.error for t in tx.triggers(automation_id) if t.removed_at is None))
