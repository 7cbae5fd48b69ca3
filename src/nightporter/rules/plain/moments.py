"""Days and times of a calendar as instants of a zone, by the same reading as every other one-shot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from nightporter.clock import Instant
from nightporter.errors import BadSchedule
from nightporter.rules.plain.lexicon import WEEKDAYS
from nightporter.rules.plain.said import Day
from nightporter.rules.plain.times import Time
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import EARLIEST

_BEFORE_ALL = Instant(EARLIEST * 1_000_000)


def date_of(day: Day, weekdays: Sequence[int] = ()) -> date:
    """The date, which lies on that weekday where one stands beside it. Raises BadSchedule."""
    try:
        found = date(day.year or 2000, day.month, day.day)
    except ValueError as error:
        raise BadSchedule(f"there is no day {day.day} in that month", why=str(error), next="check the date") from error
    if weekdays and list(weekdays) != [found.isoweekday() % 7]:
        raise BadSchedule(
            f"{found} is no {WEEKDAYS[weekdays[0]]}", why=f"it is a {WEEKDAYS[found.isoweekday() % 7]}",
            next="leave the day of the week out, or check the date",
        )
    return found


def written(day: date, time: Time) -> str:
    """`2026-12-24T18:00`."""
    return f"{day.isoformat()}T{time.shown}"


def instant_at(expression: str, timezone: str) -> Instant:
    """The instant of `2026-12-24T18:00` in a zone. Raises BadSchedule."""
    at = next_due(parse("at", expression, timezone), _BEFORE_ALL)
    if at is None:
        raise BadSchedule(f"{expression} is out of reach", next="write a later date")
    return at


def local_instant(day: Day, time: Time, weekdays: Sequence[int], timezone: str) -> Instant:
    """The instant of a day and a time in a zone. Raises BadSchedule."""
    return instant_at(written(date_of(day, weekdays), time), timezone)
