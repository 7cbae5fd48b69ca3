"""Holidays out of an iCalendar file: its all-day events become days with names.

Recurring ones are followed for ten years from the beginning of last year. Events of some hours, and those that cannot
be read, leave nothing out and spoil nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from nightporter import logs
from nightporter.clock import Instant, moment
from nightporter.errors import BadInput, NightporterError
from nightporter.outside.files import read_regular
from nightporter.rules.legible import legible
from nightporter.rules.recurrence import Recurrence
from nightporter.rules.rrule import end_of_rule, parse_rule
from nightporter.words.bounds import Days

log = logs.get(__name__)

LARGEST: Final = 1_000_000
"""Bytes of one calendar."""
_YEARS: Final = 10
_MOST_EVENTS: Final = 5000
_LONGEST: Final = timedelta(days=366)
_LONGEST_NAME: Final = 80
_DAY: Final = 86_400
_EPOCH: Final = date(1970, 1, 1)


def days_of_calendar(path: Path, now: Instant, *, most: int) -> tuple[Days, ...]:
    """The days of a calendar in order. Raises BadInput when it is none, has none, or has more than `most`."""
    begin = date(moment(now).year - 1, 1, 1)
    end = date(begin.year + _YEARS, 12, 31)
    found: set[tuple[str, str, str]] = set()
    events = _events(path)
    moved = {(_text(each, "UID"), _date(each, "RECURRENCE-ID")) for each in events if "RECURRENCE-ID" in each}
    for event in events:
        try:
            for first, last in _spans(event, begin, end, moved):
                found.add((first.isoformat(), last.isoformat(), _text(event, "SUMMARY")))
        except Exception as error:  # the others are days all the same
            log.warning("calendar.unreadable_day", calendar=path.name, day=_text(event, "SUMMARY"), error=str(error))
            continue
        if len(found) > most:
            raise BadInput(f"the calendar {path.name!r} has too many days", why=f"{most} are the most",
                           next="write a calendar of holidays only")
    if not found:
        raise BadInput(f"the calendar {path.name!r} has no day that could be left out",
                       why=f"it needs all-day events from {begin.year} to {end.year}",
                       next="check that it is the right file")
    return tuple(Days(*each) for each in sorted(found))


def _events(path: Path) -> list[Any]:
    from icalendar import Calendar

    try:
        content = read_regular(path, LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(f"the calendar {str(path)!r} cannot be read", why=reason,
                       next="check that it is there; a path is taken from the folder of the definition") from error
    if len(content) > LARGEST:
        raise BadInput(f"the calendar {path.name!r} is too large", why=f"{LARGEST} bytes are the most",
                       next="write a calendar of holidays only")
    try:
        events = [each for one in Calendar.from_ical(content, multiple=True) for each in one.walk("VEVENT")]
    except Exception as error:  # whatever a file can be made to raise, it is no calendar
        raise BadInput(f"{path.name!r} is no calendar", why=" ".join(str(error).split())[:200] or type(error).__name__,
                       next="write an iCalendar file, such as calendar programs export") from error
    if len(events) > _MOST_EVENTS:
        raise BadInput(f"the calendar {path.name!r} has {len(events)} events", why=f"{_MOST_EVENTS} are the most",
                       next="write a calendar of holidays only")
    return events


def _spans(event: Any, begin: date, end: date, moved: set[tuple[str, date | None]]) -> Iterator[tuple[date, date]]:
    """First and last day of each occurrence that reaches into the years asked about."""
    first = _date(event, "DTSTART")
    if first is None or _text(event, "STATUS").upper() == "CANCELLED":
        return
    length = timedelta(days=1)
    if "DTEND" in event and (after := _date(event, "DTEND")) is not None:
        length = after - first
    elif "DURATION" in event:
        length = event["DURATION"].dt
    length = min(max(length, timedelta(days=1)), _LONGEST)
    uid = _text(event, "UID")
    for day in _occurrences(event, first, end):
        last = day + length - timedelta(days=1)
        if "RECURRENCE-ID" not in event and (uid, day) in moved:
            continue
        if last >= begin and day <= end:
            yield day, last


def _occurrences(event: Any, first: date, end: date) -> Iterator[date]:
    spared = set(_dates(event, "EXDATE"))
    extra = set(_dates(event, "RDATE"))
    if "RRULE" not in event:
        yield from sorted(({first} | extra) - spared)
        return
    written = event["RRULE"]
    found = {first} | extra
    for each in written if isinstance(written, list) else [written]:
        rule = parse_rule(each.to_ical().decode())
        recurrence = Recurrence(rule, (first - _EPOCH).days * _DAY)
        until = end_of_rule(rule, "UTC")
        last = (end - _EPOCH).days * _DAY if until is None else min((end - _EPOCH).days * _DAY, until // 1_000_000)
        wall = recurrence.first_after((first - _EPOCH).days * _DAY - 1)
        while wall is not None and wall <= last and len(found) < _MOST_EVENTS:
            found.add(_EPOCH + timedelta(days=wall // _DAY))
            wall = recurrence.first_after(wall)
    yield from sorted(found - spared)


def _date(event: Any, key: str) -> date | None:
    """The day that a property names; None where it names a time of day, or nothing."""
    value = getattr(event.get(key), "dt", None)
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _dates(event: Any, key: str) -> Iterator[date]:
    value = event.get(key)
    for each in value if isinstance(value, list) else [value] if value is not None else []:
        for one in getattr(each, "dts", ()):
            if isinstance(one.dt, date):
                yield one.dt.date() if isinstance(one.dt, datetime) else one.dt


def _text(event: Any, key: str) -> str:
    try:
        return legible(" ".join(str(event.get(key, "")).split()))[:_LONGEST_NAME]
    except (NightporterError, ValueError, TypeError):
        return ""
