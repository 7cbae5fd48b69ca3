"""quiet: whether it is a quiet hour somewhere, and when that ends. Pure.

A span is told by the clock of its zone: it begins when that first shows its beginning, and ends when it has shown its
end for the last time. A night on which the clock is changed is longer or shorter by that; a time that is left out is
the first one after it.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from nightporter.clock import SECOND, Instant, moment
from nightporter.errors import BadInput
from nightporter.rules.zones import DAY_SECONDS, first_pass, stretch_at, zone
from nightporter.words import QuietHours

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPAN: Final = re.compile(r"(?:([a-z,\- ]+) )?(\d{1,2}):(\d\d) ?- ?(\d{1,2}):(\d\d)")
_LONGEST: Final = 16
"""Spans that may follow one another without a break."""


class Span(NamedTuple):
    """Hours of a day."""

    days: frozenset[int]
    """On which it begins; Monday is 0."""
    start: int
    """Minutes after midnight."""
    end: int
    """The same, of the day after where it is not later than the start."""


@lru_cache(maxsize=1024)
def parse(text: str) -> Span:
    """`22:00-07:00`, `mon-fri 22:00-07:00`, `sat,sun 00:00-24:00`. Raises BadInput."""
    found = _SPAN.fullmatch(" ".join(text.lower().split()))
    if found is None:
        raise _unread(text, "hours are from a time of day to another")
    days, *times = found.groups()
    hour, minute, last_hour, last_minute = (int(each) for each in times)
    start, end = hour * 60 + minute, last_hour * 60 + last_minute
    if max(minute, last_minute) > 59 or start >= 24 * 60 or end > 24 * 60:
        raise _unread(text, "a day has 24 hours of 60 minutes")
    if start == end:
        raise _unread(text, "it ends when it begins")
    return Span(_days(days, text) if days else frozenset(range(7)), start, end)


def written(text: str) -> str:
    """The same span as it is stored. Raises BadInput."""
    span = parse(text)
    days = "" if len(span.days) == 7 else ",".join(DAYS[day] for day in sorted(span.days)) + " "
    return f"{days}{_time(span.start)}-{_time(span.end)}"


def quiet_until(quiet: QuietHours | None, now: Instant) -> Instant | None:
    """When the quiet hours end that it is in; None where it is in none."""
    if quiet is None or not quiet.spans:
        return None
    end: Instant | None = None
    for _ in range(_LONGEST):
        later = max((e for text in quiet.spans for s, e in _around(parse(text), quiet.timezone, end or now)
                     if s <= (end or now) < e), default=None)
        if later is None:
            break
        end = later
    return end


def held_until(quiet: QuietHours | None, *, failed: bool, now: Instant) -> Instant | None:
    """Until when a result waits that is bound for a destination with such hours; None where it does not."""
    if quiet is None or (failed and not quiet.failures):
        return None
    return quiet_until(quiet, now)


def _around(span: Span, timezone: str, at: Instant) -> list[tuple[Instant, Instant]]:
    """Where the span lies on the days around an instant."""
    today = moment(at).astimezone(zone(timezone)).date()
    found = []
    for day in (today - timedelta(days=1), today):
        if day.weekday() in span.days:
            until = day if span.end > span.start else day + timedelta(days=1)
            found.append((_first(timezone, day, span.start), _last(timezone, until, span.end)))
    return found


def _wall(day: date, minutes: int) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) + minutes * 60


@lru_cache(maxsize=512)
def _first(timezone: str, day: date, minutes: int) -> Instant:
    """When the zone's clock first shows a time of a day, or has just jumped over it."""
    return Instant(first_pass(timezone, _wall(day, minutes)) * SECOND)


@lru_cache(maxsize=512)
def _last(timezone: str, day: date, minutes: int) -> Instant:
    """When it shows it for the last time."""
    wall = _wall(day, minutes)
    second = first_pass(timezone, wall)
    after = stretch_at(timezone, second).end
    while after < second + DAY_SECONDS:
        stretch = stretch_at(timezone, after)
        if stretch.start <= wall - stretch.offset < stretch.end:
            return Instant((wall - stretch.offset) * SECOND)
        after = stretch.end
    return Instant(second * SECOND)


def _days(text: str, whole: str) -> frozenset[int]:
    found: set[int] = set()
    for part in (each for each in re.split(r"[, ]+", text) if each):
        first, _, last = part.partition("-")
        if first not in DAYS or (last and last not in DAYS):
            raise _unread(whole, f"{part!r} names no days")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % 7 for day in range(begin, (end if end >= begin else end + 7) + 1)}
    return frozenset(found)


def _time(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _unread(text: str, why: str) -> BadInput:
    return BadInput(f"{text[:60]!r} is no span of hours", why=why,
                    next='write "22:00-07:00", or "sat,sun 00:00-24:00"')
