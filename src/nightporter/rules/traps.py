"""Traps: what a schedule does as it was written, and hardly as it was meant. Warnings, never refusals. Pure.

    traps          of one schedule
    traps_of       of a whole definition: of each of its schedules, and of what its ceiling makes of them
    collisions     where a schedule fires in one minute with many others
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nightporter.clock import DAY, MINUTE, SECOND, Instant, micros, moment
from nightporter.errors import BadSchedule
from nightporter.rules.ceilings import beyond_the_ceiling
from nightporter.rules.cron import MONTH, Cron, parse_cron, values_of
from nightporter.rules.durations import format_duration, parse_duration
from nightporter.rules.exclusions import next_running
from nightporter.rules.rrule import parse_rule
from nightporter.rules.schedule import next_due, wall_of
from nightporter.rules.zones import stretch_at, zone
from nightporter.words import Definition, Schedule

YEAR: Final = 366 * DAY
CROWD: Final = 3
"""Others in the same minute, from which on it is worth a word."""
LOOKED_AT: Final = 5
"""Coming fires that are compared with those of others."""
_MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
                  "November", "December")
_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_STEPS: Final = (("second", "minute", 60), ("minute", "hour", 60), ("hour", "day", 24))


@dataclass(frozen=True, slots=True)
class Trap:
    """One warning."""

    code: str
    """A stable word for programs: `days_united`, `uneven_step` ..."""
    text: str
    """What happens, and what to write where something else was meant."""


def traps(schedule: Schedule, now: Instant, *, desk_zone: str | None = None) -> tuple[Trap, ...]:
    """What to be warned of. `desk_zone` is the zone that the people of this desk live in, where it is known."""
    try:
        return tuple(_found(schedule, now, desk_zone))
    except BadSchedule as error:
        return (Trap("unreadable", error.what),)


def traps_of(
    definition: Definition, now: Instant, *, desk_zone: str | None = None
) -> tuple[Trap, ...]:
    """What to be warned of in a definition: of its schedules that are switched on, and of its ceiling."""
    found: list[Trap] = []
    for trigger in definition.triggers:
        if trigger.schedule is not None and trigger.enabled:
            found += traps(trigger.schedule, now, desk_zone=desk_zone)
    try:
        slots = beyond_the_ceiling(definition, now)
    except BadSchedule:
        slots = None
    if slots is not None:
        found.append(Trap(
            "above_ceiling",
            f"it is due {slots} times in an hour, and limits.per_hour lets {definition.limits.per_hour} through: the "
            "others are skipped; write `per_hour: none` or a higher number under `limits:`",
        ))
    return tuple(dict.fromkeys(found))


def collisions(schedule: Schedule, others: Mapping[str, Schedule], now: Instant) -> tuple[Trap, ...]:
    """The first of the coming fires that at least three others share the minute with."""
    slot = next_running(schedule, now)
    for _ in range(LOOKED_AT):
        if slot is None:
            break
        minute = Instant(slot - slot % MINUTE)
        there = sorted(name for name, other in others.items() if _fires_within(other, minute))
        if len(there) >= CROWD:
            shown = ", ".join(there[:CROWD]) + (f" and {len(there) - CROWD} more" if len(there) > CROWD else "")
            at = moment(slot).astimezone(zone(schedule.timezone))
            return (Trap("crowded_minute",
                f"{len(there)} others fire in the same minute, {at:%Y-%m-%d %H:%M}: {shown}; "
                         "another minute spreads the load"),)
        slot = next_running(schedule, slot)
    return ()


def _fires_within(schedule: Schedule, minute: Instant) -> bool:
    try:
        slot = next_due(schedule, Instant(minute - 1))
    except BadSchedule:
        return False
    return slot is not None and slot < minute + MINUTE


def _found(schedule: Schedule, now: Instant, desk_zone: str | None) -> Iterator[Trap]:
    coming = next_running(schedule, now)
    if coming is None:
        if schedule.kind == "at":
            yield Trap("passed", "its moment has passed, so it will not run by itself")
        else:
            yield Trap("never_again", "it has no fire any more: its end has passed, or all of it is left out")
    if schedule.kind == "cron":
        yield from _of_cron(schedule, parse_cron(schedule.expression))
    elif schedule.kind == "rrule":
        rule = parse_rule(schedule.expression)
        days = ",".join(str(day) for day in rule.month_days if day > 0)
        yield from _missing_days(days or "*", "*", ",".join(map(str, rule.months)) or "*")
    elif schedule.kind == "every":
        yield from _of_interval(schedule, now)
    yield from _clock_changes(schedule, now)
    if schedule.timezone == "UTC" and desk_zone is not None and coming is not None:
        there = moment(coming).astimezone(zone(desk_zone))
        if not there.utcoffset() and not _changes(desk_zone, now):
            return
        yield Trap("other_zone", f"its times are UTC, and the zone of this desk is {desk_zone}: "
                   f"{moment(coming):%H:%M} UTC is {there:%H:%M} there")


def _of_cron(schedule: Schedule, cron: Cron) -> Iterator[Trap]:
    day, month, weekday = cron.fields[3:]
    restricted = day not in ("*", "?") and weekday not in ("*", "?")
    if restricted and (day.startswith("*") or weekday.startswith("*")):
        yield Trap("days_both", f"day of month {day} and weekday {weekday} must both match, because one of them begins "
                   "with *; without it, either would do")
    elif restricted:
        yield Trap("days_united", f"it fires on each day of month {day} and on each weekday {weekday}, not only where "
                   "both fall together: that is how cron reads two day fields")
    yield from _uneven_steps(cron)
    yield from _missing_days(day, weekday, month)
    if len(schedule.expression.split()) == 6:
        yield Trap("six_fields", "it has six fields, so the first one is seconds: five fields begin with the minute")
    if re.search(r"(?<![0-9#])[07](?![0-9])", re.sub(r"#\d|/\d+", "", weekday)):
        yield Trap("numbered_sunday", "weekdays 0 and 7 are both Sunday; elsewhere 1 may be Sunday, so write its name")


def _uneven_steps(cron: Cron) -> Iterator[Trap]:
    for (unit, within, span), written in zip(_STEPS, cron.fields, strict=False):
        for item in written.split(","):
            match = re.fullmatch(r"(\*|\d+)/(\d+)", item)
            if match is None:
                continue
            first, step = 0 if match[1] == "*" else int(match[1]), int(match[2])
            last = first + (span - 1 - first) // step * step
            gap = span - last + first
            if step == 1 or (gap == step and last != first):
                continue
            if last == first:
                yield Trap("uneven_step",
                    f"{item} is once each {within}, at {unit} {first}: a step longer than what is "
                           f"left of the {within} does not go on into the next one")
            else:
                yield Trap("uneven_step", f"{item} begins anew each {within}: {step} {unit}s apart, and {gap} from "
                           f"{unit} {last} to the next {within}; for an even interval write `every {step}{unit[0]}`")


def _missing_days(day: str, weekday: str, month: str) -> Iterator[Trap]:
    months = sorted(values_of(MONTH, month))
    numbers = [int(each) for each in re.findall(r"(?<![-/L\d])\d+", day)] if day[0] not in "*?L" else []
    last = max((number for number in numbers if number <= 31), default=0)
    if last > 28 and min(numbers) > 28 and "-" not in day:
        first = min(numbers)
        short = [_MONTHS[each - 1] for each in months if _LENGTHS[each - 1] < first]
        if first == 29 and 2 in months:
            short = ["February of years that are no leap years"]
        if short:
            yield Trap("short_months", f"day {first} is not in every month: {_listed(short)} "
                       f"{'has' if len(short) == 1 else 'have'} no fire; L is the last day of each month")
    if "#5" in weekday:
        yield Trap("short_months", "not every month has a fifth one: those that have none have no fire; L is the last "
                   "one of each month")


def _of_interval(schedule: Schedule, now: Instant) -> Iterator[Trap]:
    duration = parse_duration(schedule.expression)
    period = micros(duration)
    length = format_duration(duration)
    if period < DAY and period > 3600 * SECOND and DAY % period:
        yield Trap("drifts",
            f"{length} does not divide a day: it fires at other times each day; for the same times write "
                   "them, such as `every day at 09:00 and 17:00`")
    elif period % DAY == 0 and _changes(schedule.timezone, now):
        yield Trap("elapsed_days",
            f"{length} is elapsed time: after the clocks change it fires an hour earlier or later; "
                   "for a time of day write `every day at 09:00` and its like")


def _changes(name: str, now: Instant) -> list[tuple[int, int, int]]:
    """The clock changes of a zone within a year: the second, and the offsets before and after it."""
    found: list[tuple[int, int, int]] = []
    second = now // SECOND
    stretch = stretch_at(name, second)
    while stretch.end < second + YEAR // SECOND:
        following = stretch_at(name, stretch.end)
        if following.offset != stretch.offset:
            found.append((stretch.end, stretch.offset, following.offset))
        stretch = following
    return found


def _clock_changes(schedule: Schedule, now: Instant) -> Iterator[Trap]:
    """Times that the clock of the zone leaves out, or shows twice, in the next year."""
    if wall_of(schedule, now) is None:
        return  # it follows elapsed time, whatever the clock shows
    anchor = schedule.anchor
    if anchor is not None:
        anchor = Instant(anchor + stretch_at(schedule.timezone, anchor // SECOND).offset * SECOND)
    on_the_wall = replace(schedule, timezone="UTC", bounds=None, anchor=anchor)
    told: set[str] = set()
    for second, before, after in _changes(schedule.timezone, now):
        code = "clock_gap" if after > before else "clock_fold"
        low, high = second + min(before, after), second + max(before, after)
        slot = next_due(on_the_wall, Instant(low * SECOND - 1))
        if code in told or slot is None or slot >= high * SECOND:
            continue
        told.add(code)
        wall, landed = moment(slot), moment(Instant(second * SECOND)).astimezone(zone(schedule.timezone))
        if code == "clock_gap":
            yield Trap(code, f"the clock of {schedule.timezone} leaves out {wall:%H:%M} on {wall:%Y-%m-%d}: "
                       f"on that day it fires when the clock has jumped, at {landed:%H:%M} or after")
        else:
            yield Trap(code, f"the clock of {schedule.timezone} shows {wall:%H:%M} twice on {wall:%Y-%m-%d}: "
                       "it fires the first time only")


def _listed(parts: list[str]) -> str:
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last
