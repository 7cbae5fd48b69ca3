"""Schedules that no cron expression can be, as recurrence rules: every other week, and times that share no minutes."""

from __future__ import annotations

from collections.abc import Sequence

from nightporter.clock import Instant
from nightporter.errors import BadSchedule
from nightporter.rules.plain.days import Days
from nightporter.rules.plain.once import NeedsNow
from nightporter.rules.plain.refusals import beyond
from nightporter.rules.plain.said import listed
from nightporter.rules.plain.times import Time
from nightporter.rules.schedule import next_due, parse
from nightporter.words import Schedule

MOST_POSITIONS = 366
"""The positions that a rule can name."""
_FREQUENCIES = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}


def daily_times(times: Sequence[Time], days: Days, zone: str) -> Schedule:
    """Times of day that are no product of hours and minutes, on days that cron could say."""
    if "?" in days.by or (days.weekday.count("#") or "L" in days.weekday):
        raise _no_product(times)
    return parse("rrule", ";".join(["FREQ=DAILY", *days.by, *_times(times)]), zone)


def weekly_clauses(clauses: Sequence[tuple[Sequence[int], Sequence[Time]]], months: tuple[str, ...],
    zone: str) -> Schedule:
    """Days of the week that have times of their own: `mondays at 9 and fridays at 17`."""
    pairs = sorted({((day + 6) % 7, time.of_day) for days, times in clauses for day in days for time in times})
    everyday = [time for _, times in clauses for time in times]
    weekdays = sorted({day for day, _ in pairs})
    product, parts = _product(everyday)
    order = {pair: at for at, pair in enumerate(((day, time) for day in weekdays for time in product), 1)}
    positions = [order[pair] for pair in pairs]
    if max(positions) > MOST_POSITIONS:
        raise _no_product(everyday)
    by_day = f"BYDAY={','.join(('MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU')[day] for day in weekdays)}"
    setpos = [] if len(positions) == len(order) else [f"BYSETPOS={','.join(map(str, positions))}"]
    return parse("rrule", ";".join(["FREQ=WEEKLY", by_day, *months, *parts, *setpos]), zone)


def counted(times: Sequence[Time], days: Days, zone: str, start: Instant | None, now: Instant | None) -> Schedule:
    """Every so many days, weeks, months or years: counted from the first of them that comes."""
    if start is None and now is None:
        raise NeedsNow(
            f"every {days.every} {days.kind}s is counted from a day, which is not said",
            why="a file is read again and again, and each time it would begin anew",
            next="write the first day as well, such as `every 2 weeks on monday at 09:00 from 2026-12-07`",
        )
    if "?" in days.by:
        raise beyond("of every so many months this day cannot be said", "a rule has no such day",
                     "write a named day, such as `first monday`")
    product, parts = _product(times)
    if len(product) != len({time.of_day for time in times}):
        raise _no_product(times)
    frequency = _FREQUENCIES[days.kind]
    rest = ";".join([*days.by, *(part for part in parts if part != "BYSECOND=0")])
    plain = parse("rrule", f"FREQ={frequency};{rest}", zone, anchor=_whole(start, now))
    first = next_due(plain, Instant((start or 0) - 1) if start is not None else now or Instant(0))
    return parse("rrule", f"FREQ={frequency};INTERVAL={days.every};{rest}", zone, anchor=first)


def _whole(start: Instant | None, now: Instant | None) -> Instant:
    at = start if start is not None else now or Instant(0)
    return Instant(at - at % 60_000_000)


def _times(times: Sequence[Time]) -> list[str]:
    product, parts = _product(times)
    wanted = {time.of_day for time in times}
    if len(wanted) == len(product):
        return parts
    if len(product) > MOST_POSITIONS:
        raise _no_product(times)
    return [*parts, f"BYSETPOS={','.join(str(at) for at, time in enumerate(product, 1) if time in wanted)}"]


def _product(times: Sequence[Time]) -> tuple[list[int], list[str]]:
    """All times that have one of the hours, one of the minutes and one of the seconds; and the parts that say so."""
    hours, minutes, seconds = (sorted({getattr(time, part) for time in times}) for part in ("hour", "minute", "second"))
    product = [hour * 3600 + minute * 60 + second for hour in hours for minute in minutes for second in seconds]
    parts = [f"{name}={','.join(map(str, numbers))}" for name, numbers in (
        ("BYHOUR", hours), ("BYMINUTE", minutes), ("BYSECOND", seconds))]
    return product, parts


def _no_product(times: Sequence[Time]) -> BadSchedule:
    shown = [time.shown for time in sorted(set(times), key=lambda time: time.of_day)]
    return beyond(f"{listed(shown)} cannot be said on these days in one schedule",
                  "its hours would have to share their minutes", "write one trigger for each under `triggers:`")
