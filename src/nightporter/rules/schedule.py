"""When a schedule is due: the one door to cron, every, at and recurrence rules.

Preview, arming and firing all ask here, so that they cannot disagree. Results are a function of the schedule and
of the pinned time zone database (`zones.TZDATA`); nothing reads a clock. A schedule that `parse` would refuse is
refused by every function here with the same BadSchedule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, assert_never

from nightporter.clock import DAY, SECOND, Instant, instant, micros
from nightporter.errors import BadSchedule
from nightporter.rules.bounds import BoundedSlots, ShiftedSlots, Slots
from nightporter.rules.cron import parse_cron
from nightporter.rules.durations import format_duration, parse_duration
from nightporter.rules.rrule import parse_rule
from nightporter.rules.rrule_sentence import rule_sentence
from nightporter.rules.rrule_slots import HourlySlots, slots_of_rule
from nightporter.rules.sentences import at_sentence, bounds_in_words, cron_sentence, every_sentence
from nightporter.rules.slots import AtSlot, CronSlots, EverySlots
from nightporter.rules.zones import EARLIEST, LATEST, first_pass, stretch_at, zone
from nightporter.words.automation import Schedule, ScheduleKind
from nightporter.words.bounds import Bounds

SHORTEST: Final = SECOND
"""The shortest `every`, in microseconds."""
LONGEST: Final = 365 * DAY
"""The longest `every`, in microseconds."""

ANCHORED: Final = ("every", "rrule")
"""Kinds that are counted from an anchor."""

_BEFORE_ALL: Final = Instant(EARLIEST * SECOND)

_LOCAL_TIME: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
    r"\s*(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?",
    re.IGNORECASE,
)


def parse(
    kind: ScheduleKind, expression: str, timezone: str, *, anchor: Instant | None = None, bounds: Bounds | None = None
) -> Schedule:
    """Check what was written and make a schedule of it. Raises BadSchedule with what, why and next.

    `anchor` belongs to `every` and `rrule`; without one they are counted from the start of their bounds, or from the
    epoch. A one-shot in the past is a valid schedule that has no next slot.
    """
    if anchor is not None and kind not in ANCHORED:
        raise BadSchedule(
            f"{kind} takes no anchor", why="only intervals and recurrence rules are counted from one",
            next="leave the anchor out",
        )
    schedule = Schedule(kind, " ".join(expression.split()), timezone.strip(), anchor)
    _check_reach("anchor", anchor)
    _slots_of(schedule)
    return within(schedule, bounds)


def within(schedule: Schedule, bounds: Bounds | None) -> Schedule:
    """The schedule within bounds. Raises BadSchedule where nothing of it is left."""
    if bounds is None or bounds == Bounds():
        return schedule
    _check_reach("start", bounds.start)
    _check_reach("end", bounds.end)
    schedule = replace(schedule, bounds=bounds)
    if next_due(schedule, _BEFORE_ALL) is None:
        raise BadSchedule(
            f"the schedule {schedule.expression!r} has no time within its bounds",
            why="it never falls between its start and its end and in season",
            next="change `start`, `end` or `season`, or the schedule",
        )
    return schedule


def _check_reach(name: str, at: Instant | None) -> None:
    if at is not None and not EARLIEST * SECOND <= at <= LATEST * SECOND:
        raise BadSchedule(f"the {name} is out of reach", why="the years go from 2 to 9998", next="check the year")


def wants_anchor(schedule: Schedule) -> bool:
    """Whether it is counted from the instant at which it is stored."""
    started = schedule.bounds is not None and schedule.bounds.start is not None
    return schedule.kind in ANCHORED and schedule.anchor is None and not started


def next_due(schedule: Schedule, after: Instant) -> Instant | None:
    """The first slot strictly after `after`, left out or not; None when the schedule is exhausted."""
    return _slots_of(schedule).next(after)


def previous_due(schedule: Schedule, before: Instant) -> Instant | None:
    """The last slot at or before `before`; None when there is none (cron: within a hundred years)."""
    return _slots_of(schedule).previous(before)


def slots_between(schedule: Schedule, after: Instant, until: Instant) -> Iterator[Instant]:
    """The slots strictly after `after` and at or before `until`, ascending."""
    slots = _slots_of(schedule)
    slot = slots.next(after)
    while slot is not None and slot <= until:
        yield slot
        slot = slots.next(slot)


def count_between(schedule: Schedule, after: Instant, until: Instant, *, cap: int = 480) -> tuple[int, bool]:
    """How many slots lie strictly after `after` and at or before `until`, and whether the number is exact.

    A number that reached `cap` with more to come is the cap, not exact. A fixed interval without seasons is not
    enumerated and always exact, however large.
    """
    if schedule.offset:
        later, schedule = schedule.offset, replace(schedule, offset=0)
        after, until = Instant(after - later), Instant(until - later)
    slots: Slots = _slots_of(schedule)
    while isinstance(slots, BoundedSlots) and not slots.bounds.seasons:
        start, end = slots.bounds.start, slots.bounds.end
        after = after if start is None else Instant(max(after, start - 1))
        until = until if end is None else min(until, end)
        slots = slots.slots
    if isinstance(slots, EverySlots):
        return slots.count(after, until), True
    count, slot = 0, slots.next(after)
    while slot is not None and slot <= until:
        if count == cap:
            return cap, False
        count += 1
        slot = slots.next(slot)
    return count, True


def wall_of(schedule: Schedule, slot: Instant) -> int | None:
    """What the clock of the zone shows at a slot, in seconds; None where the schedule does not go by it."""
    slots = _unbounded(schedule)
    while isinstance(slots, BoundedSlots):
        slots = slots.slots
    elapsed = isinstance(slots, EverySlots | HourlySlots) or (isinstance(slots, CronSlots) and slots.cron.wild)
    if elapsed or schedule.timezone == "UTC" or (isinstance(slots, AtSlot) and _has_offset(schedule.expression)):
        return None
    return slot // SECOND + stretch_at(schedule.timezone, slot // SECOND).offset


def same_occurrence(schedule: Schedule, slot: Instant, wall: int | None) -> Instant | None:
    """Where a slot that was computed with another release of the zone data is by this one: the slot nearest to where
    the zone's clock shows `wall`, or, where that is not known or does not count, nearest to the slot itself.

    The first slot after now would not do: it skips an occurrence that moved back over now, and repeats one that moved
    ahead of it.
    """
    place = slot if wall is None else Instant(first_pass(schedule.timezone, wall) * SECOND)
    before, after = previous_due(schedule, place), next_due(schedule, place)
    if before is None or after is None:
        return after if before is None else before
    return before if place - before < after - place else after


def sentence(schedule: Schedule) -> str:
    """The schedule in one plain sentence, with its bounds and its zone."""
    bounds = schedule.bounds
    within = "" if bounds is None else bounds_in_words(bounds, zone(schedule.timezone))
    later = f", {format_duration(timedelta(microseconds=schedule.offset))} later" if schedule.offset else ""
    return f"{_sentence(schedule)}{within}, {schedule.timezone}{later}"


def _sentence(schedule: Schedule) -> str:
    match schedule.kind:
        case "cron":
            return cron_sentence(parse_cron(schedule.expression))
        case "every":
            return every_sentence(parse_duration(schedule.expression), schedule.anchor, zone(schedule.timezone))
        case "at":
            return at_sentence(_at(schedule.expression, schedule.timezone), zone(schedule.timezone))
        case "rrule":
            return rule_sentence(parse_rule(schedule.expression), schedule.anchor, zone(schedule.timezone))
    assert_never(schedule.kind)


def _slots_of(schedule: Schedule) -> Slots:
    if schedule.bounds is None and not schedule.offset:
        return _slots(schedule.kind, schedule.expression, schedule.timezone, schedule.anchor)
    if schedule.offset:
        return ShiftedSlots(_slots_of(replace(schedule, offset=0)), schedule.offset)
    return _bounded(schedule)


@lru_cache(maxsize=16_384)
def _bounded(schedule: Schedule) -> Slots:
    slots, bounds = _unbounded(schedule), schedule.bounds
    if bounds is None or (bounds.start is None and bounds.end is None and not bounds.seasons):
        return slots
    return BoundedSlots(slots, bounds, schedule.timezone)


def _unbounded(schedule: Schedule) -> Slots:
    anchor = schedule.anchor
    if anchor is None and schedule.bounds is not None and schedule.kind in ANCHORED:
        anchor = schedule.bounds.start
    return _slots(schedule.kind, schedule.expression, schedule.timezone, anchor)


@lru_cache(maxsize=16_384)
def _slots(kind: ScheduleKind, expression: str, timezone: str, anchor: Instant | None) -> Slots:
    zone(timezone)
    match kind:
        case "cron":
            return CronSlots(parse_cron(expression), timezone)
        case "every":
            return EverySlots(_period(expression), anchor or 0)
        case "at":
            return AtSlot(_at(expression, timezone))
        case "rrule":
            return slots_of_rule(expression, timezone, anchor)
    assert_never(kind)


def _period(expression: str) -> int:
    if re.fullmatch(r"(?:\S+ ){4,5}\S+|@[a-z]+", expression) and re.match(r"[0-9*@]", expression):
        raise BadSchedule(
            f"{expression!r} is not an interval", why="it looks like a cron expression", next="write it as cron"
        )
    period = micros(parse_duration(expression))
    if not SHORTEST <= period <= LONGEST:
        raise BadSchedule(
            f"an interval of {expression} is too {'short' if period < SHORTEST else 'long'}",
            why="an interval goes from 1s to 365d",
            next="write a longer one" if period < SHORTEST else "for something rarer use cron or at",
        )
    return period


def _at(expression: str, timezone: str) -> Instant:
    """The instant of a one-shot: its own offset wins over the zone, a missing local time is the next valid one."""
    match = _LOCAL_TIME.fullmatch(expression)
    if match is None:
        raise _not_an_instant(expression)
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    if not 1 < int(year) < 9999:
        raise BadSchedule(f"the year {year} is out of reach", why="the years go from 2 to 9998", next="check the year")
    # 24:00 is the midnight at the end of the day.
    midnight = (hour, minute, int(second or 0), int(fraction or 0)) == ("24", "00", 0, 0)
    try:
        local = datetime(
            int(year), int(month), int(day), 0 if midnight else int(hour), int(minute), int(second or 0),
            int((fraction or "0").ljust(6, "0")), tzinfo=UTC,
        ) + timedelta(days=midnight)
        shift = _shift(offset)
    except (ValueError, OverflowError) as problem:
        raise BadSchedule(
            f"{expression!r} is not a time that exists", why=str(problem), next="write a date such as 2026-11-03T09:00"
        ) from problem
    wall = instant(local)
    if shift is not None:
        return Instant(wall - micros(shift))
    return Instant(first_pass(timezone, wall // SECOND) * SECOND + wall % SECOND)


def _has_offset(expression: str) -> bool:
    match = _LOCAL_TIME.fullmatch(expression)
    return match is not None and match.groups()[-1] is not None


def _shift(offset: str | None) -> timedelta | None:
    if offset is None:
        return None
    if offset in "Zz":
        return timedelta(0)
    digits = offset[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError(f"the offset {offset} is not within a day")
    return timedelta(hours=hours, minutes=minutes) * (-1 if offset[0] == "-" else 1)


def _not_an_instant(expression: str) -> BadSchedule:
    shown = expression[:60]
    what = f"{shown!r} is not an instant" if shown else "the instant is empty"
    try:
        parse_duration(expression.removeprefix("in "))
    except BadSchedule:
        return BadSchedule(
            what, why="a one-shot needs a date and a time of day", next="write it like 2026-11-03T09:00"
        )
    return BadSchedule(
        what,
        why="a duration says how long, not when",
        next="to repeat, write it as every; for once, write the instant like 2026-11-03T09:00",
    )
