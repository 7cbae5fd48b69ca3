"""Cron expressions: five fields, or six with leading seconds, turned into bit masks of the local calendar.

    second (0-59)  minute (0-59)  hour (0-23)  day of month (1-31)  month (1-12)  weekday (0-7, 0 and 7 Sunday)

Names JAN-DEC and SUN-SAT in any case; `*`, ranges (which may wrap: 22-4, FRI-MON), lists, steps; in the day
fields also `?` (as `*`), `L`, `L-3`, `15W`, `LW`, `FRIL`, `FRI#2`; the macros @yearly to @hourly. When both day
fields are restricted a day matches that is in either; a field that begins with `*` counts as unrestricted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Final

from nightporter.errors import BadSchedule

MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_EPOCH_DAY: Final = 719_163
"""1970-01-01 as an ordinal of `date`."""

_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One place of an expression: what it counts and within which bounds."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def bounds(self) -> str:
        """The allowed range, for people."""
        named = f" or {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"the {self.name} goes from {self.low} to {self.high}{named}"


SECOND: Final = Field("second", 0, 59)
MINUTE: Final = Field("minute", 0, 59)
HOUR: Final = Field("hour", 0, 23)
DAY: Final = Field("day of month", 1, 31)
MONTH: Final = Field("month", 1, 12, MONTHS)
WEEKDAY: Final = Field("weekday", 0, 7, WEEKDAYS)
FIELDS: Final = (SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY)

_ITEM: Final = re.compile(r"(?:(\*)|([0-9]+|[A-Z]+)(?:-([0-9]+|[A-Z]+))?)(?:/([0-9]+))?")
_FROM_END: Final = re.compile(r"L(?:-([0-9]+))?")
_NEAREST: Final = re.compile(r"(?:([0-9]+)|L(?:-([0-9]+))?)W")
_LAST_OF_KIND: Final = re.compile(r"([0-9]+|[A-Z]{3})L")
_NTH_OF_KIND: Final = re.compile(r"([0-9]+|[A-Z]+)#([0-9]+)")


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked expression as masks over the wall of its zone. Made by `parse_cron` only."""

    fields: tuple[str, ...]
    """Second, minute, hour, day, month and weekday, in capitals, without leading zeros; a missing second is `0`."""
    wild: bool
    """Second, minute or hour begins with `*`: the job follows elapsed time through zone changes."""
    seconds: int
    """Bit s: second s of a minute."""
    minutes: int
    """Bit m: minute m of a day, 0 to 1439."""
    months: int
    """Bit n: month n, 1 to 12."""
    days: tuple[int, ...]
    """For each shape of a month (28 to 31 days long, beginning on Sunday to Saturday), bit d: day d."""

    def first_from(self, wall: int) -> int | None:
        """The first matching wall second at or after `wall`; None past the year 9999."""
        day, second = divmod(wall, 86_400)
        today = date.fromordinal(day + _EPOCH_DAY)
        year, month = today.year, today.month
        if self.months >> month & 1:
            rest = self.days[_shape(year, month)] >> today.day
            if rest & 1:
                minute, second = divmod(second, 60)
                left = self.minutes >> minute
                if left & 1 and (in_minute := self.seconds >> second):
                    return wall + _lowest(in_minute)
                left >>= 1
                if left:
                    return day * 86_400 + (minute + 1 + _lowest(left)) * 60 + _lowest(self.seconds)
            rest >>= 1
            if rest:
                return (day + 1 + _lowest(rest)) * 86_400 + self._first_time()
        while True:
            later = self.months >> (month + 1)
            if later:
                month += 1 + _lowest(later)
            else:
                year, month = year + 1, _lowest(self.months)
            if year > 9999:
                return None
            if days := self.days[_shape(year, month)]:
                found = date(year, month, 1).toordinal() - _EPOCH_DAY + _lowest(days) - 1
                return found * 86_400 + self._first_time()

    def _first_time(self) -> int:
        return _lowest(self.minutes) * 60 + _lowest(self.seconds)


@lru_cache(maxsize=4096)
def parse_cron(expression: str) -> Cron:
    """Check an expression. Raises BadSchedule, naming the field, its value and what is allowed."""
    text = " ".join(expression.split())
    if len(text) > 400:
        raise BadSchedule("the cron expression is too long", why="400 characters are the most", next="shorten it")
    if not text.isascii():
        strange = next(character for character in text if not character.isascii())
        raise BadSchedule(
            f"{strange!r} in the cron expression {text!r} cannot be used",
            why="fields are made of the digits 0-9, the letters A-Z and * , - / ? #",
            next="type it again with plain characters",
        )
    if text.startswith("@") and text.lower() not in _MACROS:
        raise _unknown_macro(text)
    written = _MACROS.get(text.lower(), text).upper().split()
    if len(written) not in (5, 6):
        raise _not_cron(text, len(written))
    written = [re.sub(r"(?<![0-9])0+(?=[0-9])", "", field) for field in written]
    fields = tuple(written) if len(written) == 6 else ("0", *written)
    second, minute, hour, day, month, weekday = fields
    seconds = _mask(_values(SECOND, second))
    in_hour = _values(MINUTE, minute)
    hours = _values(HOUR, hour)
    cron = Cron(
        fields=fields,
        wild=any(each.startswith("*") for each in (second, minute, hour)),
        seconds=seconds,
        minutes=_mask({h * 60 + m for h in hours for m in in_hour}),
        months=_mask(_values(MONTH, month)),
        days=_day_masks(day, weekday),
    )
    if not any(cron.days[shape] for month in range(1, 13) if cron.months >> month & 1 for shape in _shapes_of(month)):
        raise BadSchedule(
            f"the cron expression {text!r} never matches",
            why=f"no year has such a day: day of month {day}, month {month}, weekday {weekday}",
            next="change the day or the month; L is the last day of a month",
        )
    return cron


def values_of(field: Field, written: str) -> frozenset[int]:
    """The values a checked field without L, W and # allows; weekdays are 0 to 6."""
    return frozenset(_values(field, written))


def _values(field: Field, written: str) -> set[int]:
    """Raises BadSchedule for anything but `*`, values, ranges, lists and steps."""
    if written == "?" and field in (DAY, WEEKDAY):
        written = "*"
    chosen: set[int] = set()
    for item in written.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _bad(field, item, "it is not a value, a range or a step")
        star, first, last, stride = match.groups()
        span = 7 if field is WEEKDAY else field.high - field.low + 1
        step = int(stride) if stride else 1
        if not 1 <= step <= span:
            unit = "" if field in (MONTH, WEEKDAY) else field.name[0]
            longer = f"; for a longer interval write every {stride}{unit}" if unit and step > span else ""
            raise _bad(field, item, f"a step goes from 1 to {span}{longer}")
        low = field.low if star else _value(field, first, item)
        if field is WEEKDAY and low == 7 and last is not None:
            low = 0
        if last is not None:
            high = _value(field, last, item)
        elif star or stride:
            high = field.low + span - 1
        else:
            high = low
        if high < low and not (field is WEEKDAY and low == 7):
            high += span
        # 7 is Sunday again; every other range that passes its end goes on at its beginning.
        chosen.update(field.low + (each - field.low) % span for each in range(low, max(low, high) + 1, step))
    return chosen


def _value(field: Field, written: str, item: str) -> int:
    if written.isdigit():
        number = int(written)
        if not field.low <= number <= field.high:
            raise _bad(field, item, f"{written} is out of range")
        return number
    if written not in field.names:
        known = f"no {field.name} is named {written}" if field.names else "names stand for months and weekdays only"
        raise _bad(field, item, known)
    return field.names.index(written) + field.low


@lru_cache(maxsize=1024)
def _day_masks(day: str, weekday: str) -> tuple[int, ...]:
    """The days that match, for each shape of a month."""
    by_day = _day_rule(day)
    by_weekday = _weekday_rule(weekday)
    either = day[0] not in "*?" and weekday[0] not in "*?"
    masks: list[int] = []
    for length in range(28, 32):
        for first in range(7):
            one, other = by_day(first, length), by_weekday(first, length)
            masks.append(_mask(one | other if either else one & other))
    return tuple(masks)


_DaysOf = Callable[[int, int], set[int]]
"""Which days match in a month that begins on this weekday (0 Sunday) and is so long."""


def _day_rule(written: str) -> _DaysOf:
    if nearest := _NEAREST.fullmatch(written):
        number, back = nearest.groups()
        target = None if number is None else _value(DAY, number, written)
        from_end = _from_end(back, written)
        return lambda first, length: _weekday_nearest(length - from_end if target is None else target, first, length)
    plain: set[int] = set()
    ends: set[int] = set()
    for item in written.split(","):
        if match := _FROM_END.fullmatch(item):
            ends.add(_from_end(match[1], item))
        elif _NEAREST.fullmatch(item):
            raise _bad(DAY, item, "W cannot stand in a list")
        else:
            plain |= _values(DAY, item)
    return lambda _first, length: {each for each in plain | {length - end for end in ends} if 1 <= each <= length}


def _from_end(written: str | None, item: str) -> int:
    back = int(written or 0)
    if back > 30:
        raise _bad(DAY, item, "no month has so many days before its last one")
    return back


def _weekday_nearest(day: int, first: int, length: int) -> set[int]:
    """The day itself, or the nearest Monday to Friday of the same month; nothing when the month lacks the day."""
    if not 1 <= day <= length:
        return set()
    kind = (first + day - 1) % 7
    if kind == 6:
        return {day - 1 if day > 1 else day + 2}
    if kind == 0:
        return {day + 1 if day < length else day - 2}
    return {day}


def _weekday_rule(written: str) -> _DaysOf:
    plain: set[int] = set()
    nth: set[tuple[int, int]] = set()
    last: set[int] = set()
    for item in written.split(","):
        if match := _NTH_OF_KIND.fullmatch(item):
            number = int(match[2])
            if not 1 <= number <= 5:
                raise _bad(WEEKDAY, item, "a month has a first to a fifth weekday of a kind")
            nth.add((_value(WEEKDAY, match[1], item) % 7, number))
        elif match := _LAST_OF_KIND.fullmatch(item):
            last.add(_value(WEEKDAY, match[1], item) % 7)
        elif item == "L":
            raise _bad(WEEKDAY, item, "L needs a weekday before it, such as FRIL")
        else:
            plain |= _values(WEEKDAY, item)

    def days(first: int, length: int) -> set[int]:
        found: set[int] = set()
        for each in range(1, length + 1):
            kind, number = (first + each - 1) % 7, (each + 6) // 7
            if kind in plain or (kind, number) in nth or (kind in last and each + 7 > length):
                found.add(each)
        return found

    return days


@lru_cache(maxsize=4096)
def _shape(year: int, month: int) -> int:
    """The index into `Cron.days` of a month."""
    first = date(year, month, 1)
    length = (date(year, month, 28) + timedelta(days=4)).replace(day=1) - first if month < 12 else timedelta(days=31)
    return (length.days - 28) * 7 + first.toordinal() % 7


def _shapes_of(month: int) -> range:
    """The shapes a month takes in the course of 400 years: all seven first weekdays of its lengths."""
    if month == 2:
        return range(14)
    return range(14, 21) if month in (4, 6, 9, 11) else range(21, 28)


def _mask(bits: Iterable[int]) -> int:
    mask = 0
    for bit in bits:
        mask |= 1 << bit
    return mask


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _bad(field: Field, item: str, why: str) -> BadSchedule:
    return BadSchedule(
        f"the {field.name} field cannot be {item!r}" if item else f"the {field.name} field has an empty entry",
        why=why,
        next=field.bounds,
    )


def _unknown_macro(text: str) -> BadSchedule:
    if text.lower() == "@reboot":
        return BadSchedule(
            "@reboot is not a clock time", why="it has no next instant", next="write when it is to run, such as @daily"
        )
    return BadSchedule(
        f"{text[:40]!r} is not a known macro", why="macros stand alone", next=f"write one of {', '.join(_MACROS)}"
    )


def _not_cron(text: str, count: int) -> BadSchedule:
    shown = text[:60]
    if not text:
        return BadSchedule(
            "the cron expression is empty", why="it needs 5 or 6 fields", next="write something like 0 9 * * mon-fri"
        )
    if re.search(r"\b(?:FREQ|RRULE|DTSTART)\b", text, re.IGNORECASE):
        return BadSchedule(
            f"{shown!r} is a recurrence rule", why="it stands under `triggers`",
            next=f"write `triggers: [{{rrule: \"{shown}\"}}]`",
        )
    if re.fullmatch(r"(?:[0-9]+(?:ms|[smhdw]))+|PT?[0-9][0-9A-Z.]*", text, re.IGNORECASE):
        return BadSchedule(
            f"{shown!r} alone is ambiguous", why=f'it may mean "every {shown}" or "in {shown}"',
            next=f"to repeat, write every {shown}; for once in {shown} from now, write the instant as at",
        )
    if text.lower().startswith(("every ", "in ")):
        return BadSchedule(
            f"{shown!r} is not a cron expression", why="it says how long, not at which times",
            next="to repeat, write it as every, such as 15m; for once, write the instant as at",
        )
    if count == 1 or re.match(r"[A-Za-z]", text):
        return BadSchedule(
            f"{shown!r} is not a cron expression", why="plain words are read where any schedule may stand, as `when`",
            next="write 5 fields, such as 0 9 * * mon-fri for weekdays at 09:00, or an interval, such as every 15m",
        )
    return BadSchedule(
        f"the cron expression {shown!r} has {count} fields",
        why="it needs 5 (minute, hour, day, month, weekday) or 6 with leading seconds"
        + ("; there is no year field" if count == 7 else ""),
        next="write something like 0 9 * * mon-fri",
    )
