"""`start:`, `end:`, `season:` and `exclude:`: when a schedule begins and ends, and what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final

from nightporter.clock import Instant
from nightporter.definitions import grammar
from nightporter.definitions.calendars import days_of_calendar
from nightporter.definitions.moments import end_of, instant_of
from nightporter.definitions.written import Entries, Items, Scalar, Value, bad, misread, text_of, wrong_type
from nightporter.errors import BadInput
from nightporter.rules.legible import legible
from nightporter.words.bounds import Bounds, Days, Season, Window

MOST: Final = 2000
"""Days that a schedule may leave out, those of a calendar counted too."""
_MOST_SEASONS: Final = 6
_MOST_WINDOWS: Final = 50
_LONGEST_NAME: Final = 80

_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DAYS: Final = re.compile(rf"({_DAY})(?:\s+to\s+({_DAY}))?")
_MONTH_DAY: Final = r"([0-9]{1,2})-([0-9]{1,2})"
_SEASON: Final = re.compile(rf"{_MONTH_DAY}\s+to\s+{_MONTH_DAY}")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES: Final = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
                       "october", "november", "december")
_LAST_OF_MONTH: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTH_SPAN: Final = re.compile(r"([a-z]+)(?:\s+to\s+([a-z]+))?")
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WINDOW: Final = re.compile(
    r"([a-z][a-z, -]*?)?\s*(?:([0-9]{1,2}):([0-9]{2})\s*-\s*([0-9]{1,2}):([0-9]{2}))?", re.IGNORECASE
)
_EXAMPLE: Final = (
    'write a day (2026-12-24), days (2026-12-24 to 2027-01-03), or hours ("sat,sun", "mon-fri 12:00-13:00")'
)


def bounds_of(
    options: Entries, outer: Entries, timezone: str, *, folder: Path | None, now: Instant, beside: list[Path]
) -> Bounds | None:
    """The bounds of one schedule: what stands at it, else what stands at the automation. None where nothing does.

    `folder` is where calendars are looked for; those that are read are added to `beside`.
    """
    said = {key: value for key in grammar.BOUNDS if (value := options.get(key) or outer.get(key)) is not None}
    if not said:
        return None
    start = _instant("start", said.get("start"), timezone)
    end = None if (value := said.get("end")) is None else _end(value, timezone)
    if start is not None and end is not None and end < start:
        raise bad(said["end"].place, "`end` lies before `start`", next="change one of them")
    days: list[Days] = []
    windows: list[Window] = []
    for item in _items(said.get("exclude")):
        for found in _left_out(item, folder, now, beside):
            if isinstance(found, Days):
                days.append(found)
            else:
                windows.append(found)
        if len(days) > MOST or len(windows) > _MOST_WINDOWS:
            raise bad(item.place, "too much is left out", why=f"{MOST} days and {_MOST_WINDOWS} windows are the most",
                      next="leave some out, or write fewer schedules")
    return Bounds(start, end, _seasons(said.get("season")), tuple(dict.fromkeys(days)), tuple(dict.fromkeys(windows)))


def _instant(key: str, value: Value | None, timezone: str) -> Instant | None:
    if value is None:
        return None
    written = text_of(key, value).strip()
    try:
        return instant_of(written + "T00:00" if re.fullmatch(_DAY, written) else written, timezone)
    except BadInput as error:
        misread(value.place, error)


def _end(value: Value, timezone: str) -> Instant:
    written = text_of("end", value).strip()
    try:
        return Instant(end_of(written, timezone) - bool(re.fullmatch(_DAY, written)))
    except BadInput as error:
        misread(value.place, error)


def _items(value: Value | None) -> tuple[Value, ...]:
    if value is None:
        return ()
    return tuple(value.items) if isinstance(value, Items) else (value,)


def _seasons(value: Value | None) -> tuple[Season, ...]:
    found = tuple(_season(item) for item in _items(value))
    if value is not None and not 1 <= len(found) <= _MOST_SEASONS:
        raise bad(value.place, f"`season` has {len(found)} entries", why=f"it has from 1 to {_MOST_SEASONS}",
                  next="write `season: 03-01 to 10-31`")
    return found


def _season(value: Value) -> Season:
    written = text_of("season", value).strip().lower()
    if match := _SEASON.fullmatch(written):
        first, last = (int(match[1]), int(match[2])), (int(match[3]), int(match[4]))
        if all(1 <= month <= 12 and 1 <= day <= _LAST_OF_MONTH[month - 1] for month, day in (first, last)):
            return Season(first, last)
    elif match := _MONTH_SPAN.fullmatch(written):
        begin, end = _month(match[1]), _month(match[2] or match[1])
        if begin and end:
            return Season((begin, 1), (end, _LAST_OF_MONTH[end - 1]))
    raise bad(value.place, f"{written[:40]!r} is no season", why="a season is from a day of the year to another",
              next="write `season: 03-01 to 10-31`, or `season: march to october`")


def _month(name: str) -> int:
    """1 to 12; 0 where it is none."""
    for names in (_MONTHS, _MONTH_NAMES):
        if name in names:
            return names.index(name) + 1
    return 0


def _left_out(value: Value, folder: Path | None, now: Instant, beside: list[Path]) -> Iterator[Days | Window]:
    if not isinstance(value, Entries):
        yield _days_or_hours(value, "")
        return
    grammar.check_keys(value, grammar.EXCLUDE, "in `exclude`", {})
    kinds = [key for key in ("days", "hours", "calendar") if key in value.values]
    if len(kinds) != 1:
        raise bad(value.place, "an entry of `exclude` says one of `days`, `hours` and `calendar`", next=_EXAMPLE)
    said, name = value.values[kinds[0]], value.get("name")
    if kinds[0] != "calendar":
        named = "" if name is None else legible(" ".join(text_of("name", name).split()))[:_LONGEST_NAME]
        found = _days_or_hours(said, named)
        if isinstance(found, Days) != (kinds[0] == "days"):
            raise bad(said.place, f"`{kinds[0]}` cannot be {_text(said)[:40]!r}", next=_EXAMPLE)
        yield found
        return
    if name is not None:
        raise bad(value.keys["name"], "`name` says nothing for a calendar", why="its days have names of their own",
                  next="remove it")
    path = Path(text_of("calendar", said)).expanduser()
    if folder is None and not path.is_absolute():
        raise bad(said.place, f"the calendar {str(path)!r} cannot be found", why="there is no file that it is beside",
                  next="write its whole path")
    path = path if folder is None else folder / path
    beside.append(path)
    try:
        yield from days_of_calendar(path, now, most=MOST)
    except BadInput as error:
        misread(said.place, error)


def _text(value: Value) -> str:
    return value.text if isinstance(value, Scalar) else ""


def _days_or_hours(value: Value, name: str) -> Days | Window:
    if not isinstance(value, Scalar) or value.kind != "text":
        raise wrong_type("exclude", value, "days or hours", next=_EXAMPLE)
    written = text_of("exclude", value).strip()
    if match := _DAYS.fullmatch(written):
        return _days(value, match[1], match[2] or match[1], name)
    match = _WINDOW.fullmatch(written)
    if match is None or not written:
        raise bad(value.place, f"{written[:40]!r} is neither days nor hours", next=_EXAMPLE)
    weekdays = () if match[1] is None else _weekdays(value, match[1].strip().lower())
    if match[2] is None:
        return Window(0, 1440, weekdays, name)
    begin, end = int(match[2]) * 60 + int(match[3]), int(match[4]) * 60 + int(match[5])
    if begin > 1439 or not 0 <= end <= 1440 or int(match[3]) > 59 or int(match[5]) > 59 or begin == end:
        raise bad(value.place, f"{written[:40]!r} are no hours", why="a day goes from 00:00 to 24:00", next=_EXAMPLE)
    return Window(begin, end or 1440, weekdays, name)


def _days(value: Value, first: str, last: str, name: str) -> Days:
    try:
        if not 2 <= date.fromisoformat(first).year <= date.fromisoformat(last).year <= 9998 or last < first:
            raise ValueError("the last day lies before the first")
    except ValueError as error:
        raise bad(value.place, f"{first} to {last} are no days" if last != first else f"{first} is no day",
                  why=str(error), next="correct it") from error
    return Days(first, last, name)


def _weekdays(value: Value, written: str) -> tuple[int, ...]:
    found: set[int] = set()
    for item in re.split(r"[,\s]+", re.sub(r"\s*-\s*", "-", written)):
        first, _, last = item.partition("-")
        if first[:3] not in _WEEKDAYS or (last and last[:3] not in _WEEKDAYS):
            raise bad(value.place, f"{item[:40]!r} is no weekday", next=_EXAMPLE)
        begin = _WEEKDAYS.index(first[:3])
        end = _WEEKDAYS.index(last[:3]) if last else begin
        found.update((begin + step) % 7 + 1 for step in range((end - begin) % 7 + 1))
    return tuple(sorted(found))


def written_bounds(bounds: Bounds, shown: Any) -> dict[str, Any]:
    """The same as options that read as these bounds; `shown` writes an instant."""
    found: dict[str, Any] = {}
    if bounds.start is not None:
        found["start"] = shown(bounds.start)
    if bounds.end is not None:
        found["end"] = shown(bounds.end)
    if bounds.seasons:
        found["season"] = [
            f"{each.first[0]:02}-{each.first[1]:02} to {each.last[0]:02}-{each.last[1]:02}" for each in bounds.seasons
        ]
    left_out: list[Any] = []
    for days in bounds.days:
        span = days.first if days.last == days.first else f"{days.first} to {days.last}"
        left_out.append({"days": span, "name": days.name} if days.name else span)
    for window in bounds.windows:
        hours = f"{window.begin // 60:02}:{window.begin % 60:02}-{window.end // 60:02}:{window.end % 60:02}"
        weekdays = ",".join(_WEEKDAYS[each - 1] for each in window.weekdays)
        span = f"{weekdays} {hours}".strip()
        left_out.append({"hours": span, "name": window.name} if window.name else span)
    if left_out:
        found["exclude"] = left_out
    return found
