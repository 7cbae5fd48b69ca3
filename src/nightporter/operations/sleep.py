"""Sleep: how an automation falls asleep and wakes, and what every change of one begins with.

A span of sleep is a pause in the store, and one at most is open. Its slots are answered by one line for each trigger
when it ends, or when the schedule changes in it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from nightporter.admission import admit
from nightporter.clock import Instant
from nightporter.errors import NotFound
from nightporter.operations.arm import arm, first_owed, owes, readable
from nightporter.rules.missed import MOST
from nightporter.rules.schedule import count_between
from nightporter.sources.clock import settle
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.store.tx_automations import AutomationRow, TriggerRow
from nightporter.words import Reason, Schedule, Settled, Sleep, TriggerId, Verdict, derived_id
from nightporter.words.kept import read_back


def locked(tx: Tx, automation_id: str, *, now: Instant) -> tuple[AutomationRow, Instant]:
    """Lock an automation that is to be changed: its row, and the instant that the change is made at. Raises NotFound.

    That is now, unless something was written of it later than the caller looked at the clock: a slot that was answered
    while the caller waited for its turn must not be counted again.
    """
    row = tx.lock_automation(automation_id)
    if row is None:
        raise NotFound(f"no automation has the id {automation_id}", next="`nightporter list` shows what there is")
    answered = [t.last_fired_at for t in tx.triggers(automation_id) if t.kind == "clock" and t.last_fired_at]
    return row, Instant(max([now, row.state_at, row.updated_at, *answered]))


def caught_up(tx: Tx, automation_id: str, *, now: Instant) -> tuple[AutomationRow, Instant]:
    """The same, with nothing left that belongs before the change: a pause whose end has come is over, and every slot
    up to then is answered."""
    row, now = locked(tx, automation_id, now=now)
    if is_over(row, now):
        wake(tx, row, by="desk", now=now)
    settle(tx, automation_id, now=now)
    row, _ = locked(tx, automation_id, now=now)
    return row, now


def is_over(row: AutomationRow, now: Instant) -> bool:
    """Whether it is paused, and the end of that has come."""
    return row.state == AutomationState.PAUSED and row.state_until is not None and row.state_until <= now


def fall_asleep(tx: Tx, automation_id: str, why: Sleep, *, now: Instant) -> None:
    """Disarm it, and open its pause; one that was open ends here, answered by its own reason."""
    tx.disarm([t.id for t in tx.triggers(automation_id)])
    end_pause(tx, automation_id, until=now, now=now)
    tx.open_pause(automation_id, why, at=now)


def wake(tx: Tx, row: AutomationRow, *, by: str, now: Instant) -> bool:
    """Make it active: what it slept through is one line, its triggers are armed, its queued runs are let go. False
    where it cannot be.

    A pause with an end ends there, however much later that is noticed; the slots after it are answered as any that are
    late, here and now: nothing that is armed when this returns has passed.
    """
    if not tx.enable(row.id, by=by, now=now):
        return False
    if row.state == AutomationState.COMPLETED:
        tx.count_anew(row.id)
    ended = now if row.state != AutomationState.PAUSED or row.state_until is None else min(now, row.state_until)
    end_pause(tx, row.id, until=ended, now=now)
    arm(tx, row.id, since=ended, now=now)
    tx.unpause_runs(row.id)
    log_change(tx, row.id, "enable", by, "", now)
    settle(tx, row.id, now=now)
    return True


def end_pause(tx: Tx, automation_id: str, *, until: Instant, now: Instant) -> Sleep | None:
    """End the pause that is open, answering its slots up to `until` by one line for each trigger. Why it was, if one
    was open."""
    pause = tx.close_pause(automation_id, at=until)
    if pause is None:
        return None
    paused_from, why = pause[0], Sleep(pause[1])
    lines, told = [], []
    for trigger in tx.triggers(automation_id):
        schedule = readable(tx, trigger, now=now) if owes(trigger) else None
        if schedule is None:
            continue
        since = Instant(max(paused_from, trigger.created_at, trigger.last_fired_at or 0))
        line = in_one_line(trigger, schedule, f"paused:{paused_from}", _REASONS[why], since, until)
        if line is None:
            continue
        told.append((trigger.id, None, trigger.tzdata, trigger.version, trigger.schedule))
        lines.append(line)
    if told:
        tx.arm(told)  # for nothing: the occurrence that was to come has its answer
    admit(tx, lines, now=now)
    return why


def in_one_line(
    trigger: TriggerRow, schedule: Schedule, key: str, why: Reason, since: Instant, until: Instant
) -> Settled | None:
    """The slots of a trigger that is not armed that came after `since` and until `until`, answered; None where none
    did."""
    first = first_owed(trigger, schedule, since)
    if first is None or first > until:
        return None
    count, exact = count_between(schedule, Instant(first - 1), until, cap=MOST)
    return Settled(TriggerId(trigger.id), key, Verdict.COLLAPSED, why, first, until, count, exact)


_REASONS = {
    Sleep.PAUSED: Reason.PAUSED, Sleep.AUTO_PAUSED: Reason.PAUSED, Sleep.VANISHED: Reason.PAUSED,
    Sleep.EXPIRED: Reason.EXPIRED, Sleep.CONFIGURATION: Reason.CONFIGURATION, Sleep.USED_UP: Reason.MAX_RUNS,
}


# -- the pause that a broken definition was in before it broke -------------------------------------------------------


class Paused(NamedTuple):
    """A pause, as it was before the definition broke."""

    by: str
    reason: str
    until: Instant | None


def as_it_was(row: AutomationRow) -> str:
    """The state of an automation that is about to break, as it is kept."""
    return json.dumps({"state": row.state, "by": row.state_by, "reason": row.state_reason, "until": row.state_until})


def paused_before(row: AutomationRow, now: Instant) -> Paused | None:
    """The pause that a broken automation was in; None where it was in none, or that has come to its end."""
    if not row.state_before:
        return None
    try:
        before = read_back(row.state_before)
        state, by, reason, until = (before[key] for key in ("state", "by", "reason", "until"))
        over = until is not None and until <= now
    except (ValueError, KeyError, TypeError):  # nobody knows what it was: it sleeps on until a person says otherwise
        return Paused("desk", "what it was before its definition broke cannot be read", None)
    return None if state == AutomationState.ACTIVE or over else Paused(str(by), str(reason), until)


def log_change(tx: Tx, automation_id: str, verb: str, by: str, detail: str, now: Instant) -> None:
    """A line of the trail of who changed what."""
    row = tx.lock_automation(automation_id)
    assert row is not None
    tx.write_change(
        id=derived_id("chg", now, automation_id, str(tx.changes(automation_id))), now=now, actor=by,
        workspace=row.workspace, automation_id=automation_id, verb=verb, version=row.version, detail=detail,
    )
