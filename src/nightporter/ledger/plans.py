"""Schedules looked over: those that come no more, that an hourly ceiling cuts short, and what has slept for long."""

from __future__ import annotations

from collections.abc import Iterator

from nightporter.clock import DAY, HOUR, Instant
from nightporter.errors import NightporterError
from nightporter.ledger.home import Finding
from nightporter.ledger.lines import AutomationLine, TriggerLine
from nightporter.ledger.moments import lasting, spoken
from nightporter.rules.schedule import count_between, next_due
from nightporter.states import AutomationState
from nightporter.words import Schedule

LONG_ASLEEP = 30 * DAY


def plan_findings(line: AutomationLine, per_hour: int | None, now: Instant) -> Iterator[Finding]:
    """What is to be said of one automation's schedules."""
    if line.state in (AutomationState.PAUSED, AutomationState.AUTO_PAUSED) and now - line.state_at > LONG_ASLEEP:
        by = f" by {line.state_by}" if line.state_by else ""
        yield Finding("asleep_for_long", "note", f"{line.name} has been {line.state.replace('_', ' ')}{by} for "
                      f"{lasting(now - line.state_at)}", line.state_reason,
                      f"nightporter enable {line.name}, or nightporter remove {line.name}", line.name)
    if line.state != AutomationState.ACTIVE:
        return
    clocks = [trigger for trigger in line.triggers if trigger.schedule is not None and trigger.enabled]
    for trigger in clocks:
        yield from _trigger(line, trigger, per_hour, now)
    off = [t for t in line.triggers if t.schedule is not None and not t.enabled]
    if off and not clocks:
        yield Finding("switched_off", "note", f"{line.name} has a schedule, and it is switched off",
                      f"`enabled: false` at {', '.join(t.name for t in off)}", f"nightporter show {line.name}",
                      line.name)


def _trigger(line: AutomationLine, trigger: TriggerLine, per_hour: int | None, now: Instant) -> Iterator[Finding]:
    schedule = trigger.schedule
    if schedule is None:
        return
    try:
        coming = next_due(schedule, now)
        if coming is None:
            if trigger.next_fire_at is None:
                yield _no_more(line, trigger, schedule, now)
            return
        count, _ = count_between(schedule, now, Instant(now + HOUR), cap=(per_hour or 0) + 1)
    except (NightporterError, ArithmeticError):
        return  # the row's own finding says that it cannot be read
    if trigger.next_fire_at is None and not trigger.error:
        yield Finding("not_armed", "error", f"{line.name} is active, its trigger {trigger.name} is due at "
                      f"{spoken(coming, trigger.timezone)}, and it is not armed", "its slot will pass unanswered",
                      f"nightporter disable {line.name} && nightporter enable {line.name}", line.name)
    if per_hour is not None and count > per_hour:
        yield Finding("ceiling_below_schedule", "warning",
                      f"{line.name} may run {per_hour} times an hour, and its trigger {trigger.name} comes more often",
                      f"its schedule: {trigger.sentence}; what is beyond the ceiling is skipped",
                      f"nightporter show {line.name}: raise `limits: {{per_hour: ...}}`, or let it come less often",
                      line.name)


def _no_more(line: AutomationLine, trigger: TriggerLine, schedule: Schedule, now: Instant) -> Finding:
    if schedule.kind == "at":
        return Finding("at_in_the_past", "warning", f"{line.name} is to run at {schedule.expression} "
                       f"({trigger.timezone}), which is past", "a moment in the past comes no more",
                       f"nightporter run {line.name}, or write another moment; nightporter remove {line.name}",
                       line.name)
    return Finding("never_again", "warning", f"the schedule of {line.name} has no slot any more",
                   f"{trigger.name}: {trigger.sentence}", f"nightporter remove {line.name}, or write another schedule",
                   line.name)
