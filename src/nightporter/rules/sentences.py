"""Schedules in one plain sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from nightporter.clock import Instant, moment
from nightporter.rules.cron import DAY, HOUR, MINUTE, MONTH, WEEKDAY, Cron, values_of
from nightporter.rules.durations import format_duration
from nightporter.words.bounds import Bounds, Days, Window

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_OF_MONTH = " of the month"
_MOST_DAYS = 3
"""Days that a sentence names; of more it says how many."""
_UNITS = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}


def at_sentence(at: Instant, zone: ZoneInfo) -> str:
    """`Once, on Tuesday 3 November 2026 at 09:00`."""
    return f"Once, on {local_words(at, zone)}"


def every_sentence(period: timedelta, anchor: Instant | None, zone: ZoneInfo) -> str:
    """`Every 15 minutes, counted from Tuesday 3 November 2026 at 09:00`."""
    written = format_duration(period)
    number, unit = written[:-1], _UNITS.get(written[-1], "")
    if number.isdigit() and unit:
        written = unit if number == "1" else f"{number} {unit}s"
    counted = f", counted from {local_words(anchor, zone)}" if anchor is not None else ""
    return f"Every {written}{counted}"


def cron_sentence(cron: Cron) -> str:
    """`At 09:00 on Monday to Friday`; the normalised expression where no plain words are known."""
    time, days = _time(cron), _days(cron)
    if time is None or days is None:
        fields = cron.fields[1:] if cron.fields[0] == "0" else cron.fields
        return f"Cron {' '.join(fields)}"
    if time.startswith("At ") and (not days or days.startswith(" in ")):
        days = " every day" + days
    return f"{time}{days}"


def bounds_in_words(bounds: Bounds, zone: ZoneInfo) -> str:
    """`, from 1 March to 31 October, not on 24 December: Christmas Eve`; empty where there are none."""
    words = []
    if bounds.seasons:
        words.append(listed([f"from {_month_day(each.first)} to {_month_day(each.last)}" for each in bounds.seasons]))
    if bounds.start is not None:
        words.append(f"not before {local_words(bounds.start, zone)}")
    if bounds.end is not None:
        words.append(f"not after {local_words(bounds.end, zone)}")
    left_out = [words_of_days(each) for each in bounds.days]
    if len(left_out) > _MOST_DAYS:
        left_out = [*left_out[:_MOST_DAYS], f"{len(left_out) - _MOST_DAYS} more days"]
    if left_out:
        words.append(f"not on {listed(left_out)}")
    if bounds.windows:
        words.append(f"not from {listed([words_of_window(each) for each in bounds.windows[:_MOST_DAYS]])}")
    return "".join(f", {each}" for each in words)


def words_of_days(days: Days) -> str:
    """`25 December 2026 (Christmas Day)`, `20 December 2026 to 3 January 2027`."""
    first, last = date.fromisoformat(days.first), date.fromisoformat(days.last)
    words = f"{first.day} {MONTHS[first.month - 1]} {first.year}"
    if last != first:
        words += f" to {last.day} {MONTHS[last.month - 1]} {last.year}"
    return f"{words} ({days.name})" if days.name else words


def words_of_window(window: Window) -> str:
    """`22:00 to 06:00`, `00:00 to 24:00 on Saturday and Sunday (weekend)`."""
    words = f"{window.begin // 60:02}:{window.begin % 60:02} to {window.end // 60:02}:{window.end % 60:02}"
    if window.weekdays:
        words += f" on {in_runs(sorted(each - 1 for each in window.weekdays), weekday_name)}"
    return f"{words} ({window.name})" if window.name else words


def weekday_name(place: int) -> str:
    """Of a day of the week, 0 Monday."""
    return _WEEKDAYS[(place + 1) % 7]


def _month_day(month_day: tuple[int, int]) -> str:
    return f"{month_day[1]} {MONTHS[month_day[0] - 1]}"


def local_words(at: Instant, zone: ZoneInfo) -> str:
    """`Tuesday 3 November 2026 at 09:00`."""
    local = moment(at).astimezone(zone)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{_WEEKDAYS[local.isoweekday() % 7]} {local.day} {MONTHS[local.month - 1]} {local.year} at {clock}"


def _time(cron: Cron) -> str | None:
    second, minute, hour = cron.fields[:3]
    if second != "0":
        if second == minute == hour == "*":
            return "Every second"
        step = second.removeprefix("*/")
        plain = minute == hour == "*" and step != second and step.isdigit() and 60 % int(step) == 0
        return f"Every {step} seconds" if plain else None
    if (stepped := _stepped(minute, 60, "minute")) is not None:
        window = _hour_window(hour)
        return None if window is None else stepped + window
    minutes = sorted(values_of(MINUTE, minute))
    if len(minutes) <= 6 and (stepped := _stepped(hour, 24, "hour")) is not None:
        past = f" at minute {listed([str(each) for each in minutes])}" if minutes != [0] else ""
        return stepped + past
    hours = sorted(values_of(HOUR, hour))
    if len(minutes) == 1 and len(hours) > 3 and _in_a_row(hours):
        return f"Every hour from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[0]:02}"
    if len(minutes) == 1 and len(hours) > 3 and len(steps := {b - a for a, b in pairwise(hours)}) == 1:
        return f"Every {steps.pop()} hours from {hours[0]:02}:{minutes[0]:02} to {hours[-1]:02}:{minutes[0]:02}"
    times = [f"{h:02}:{m:02}" for h in hours for m in minutes]
    return f"At {listed(times)}" if len(times) <= 6 else None


def _stepped(written: str, span: int, unit: str) -> str | None:
    """`Every 15 minutes` for `*/15`, where the step divides the span; None for anything else."""
    if written == "*":
        return f"Every {unit}"
    step = written.removeprefix("*/")
    if step == written or not step.isdigit() or span % int(step):
        return None
    return f"Every {unit}" if int(step) == 1 else f"Every {int(step)} {unit}s"


def _hour_window(written: str) -> str | None:
    if written == "*":
        return ""
    hours = sorted(values_of(HOUR, written))
    if not _in_a_row(hours):
        return None
    return f" from {hours[0]:02}:00 to {hours[-1]:02}:59"


def _days(cron: Cron) -> str | None:
    day, month, weekday = cron.fields[3:]
    by_day, by_weekday = _by_day(day), _by_weekday(weekday)
    if by_day is None or by_weekday is None:
        return None
    months = "" if month == "*" else in_runs(sorted(values_of(MONTH, month)), lambda each: MONTHS[each - 1])
    if by_day and by_weekday:
        if day.startswith("*") or weekday.startswith("*"):
            return None
        return f"{by_day} or{by_weekday.replace(' every ', ' on ')}" + (f", in {months}" if months else "")
    days = by_day or by_weekday
    if months and days.endswith(_OF_MONTH):
        return days.removesuffix(_OF_MONTH) + f" of {months}"
    return days + (f" in {months}" if months else "")


def _by_day(written: str) -> str | None:
    if written in ("*", "?"):
        return ""
    if written == "L":
        return " on the last day" + _OF_MONTH
    if written == "LW":
        return " on the last weekday (Monday to Friday)" + _OF_MONTH
    if written in ("L-1", "L-2"):
        return f" on the {'second' if written == 'L-1' else 'third'} to last day" + _OF_MONTH
    if written == "1W":
        return " on the first weekday (Monday to Friday)" + _OF_MONTH
    if "L" in written or "W" in written:
        return None
    days = sorted(values_of(DAY, written))
    named = in_runs(days, str)
    return f" on day {named}{_OF_MONTH}" if named.count(",") <= 6 else None


def _by_weekday(written: str) -> str | None:
    if written in ("*", "?"):
        return ""
    items = written.split(",")
    counted = [_of_its_kind(item) for item in items if "#" in item or item.endswith("L")]
    if counted:
        return f" on {listed(counted)}{_OF_MONTH}" if len(counted) == len(items) <= 4 else None
    # Monday first: a week that ends on Sunday reads in the order in which people live it.
    places = sorted((each + 6) % 7 for each in values_of(WEEKDAY, written))
    if len(places) == 1:
        return f" every {weekday_name(places[0])}"
    return "" if len(places) == 7 else f" on {in_runs(places, weekday_name)}"


def _of_its_kind(item: str) -> str:
    """`the second Friday` for `FRI#2`, `the last Friday` for `FRIL`."""
    kind, _, number = item.removesuffix("L").partition("#")
    (named,) = values_of(WEEKDAY, kind)
    return f"the {ORDINALS[int(number)] if number else 'last'} {_WEEKDAYS[named]}"


def in_runs(values: Sequence[int], name: Callable[[int], str]) -> str:
    """The values in words, three and more in a row as `first to last`."""
    rows: list[list[int]] = []
    for value in values:
        if rows and value == rows[-1][-1] + 1:
            rows[-1].append(value)
        else:
            rows.append([value])
    parts: list[str] = []
    for row in rows:
        parts += [f"{name(row[0])} to {name(row[-1])}"] if len(row) > 2 else [name(each) for each in row]
    return listed(parts)


def _in_a_row(values: list[int]) -> bool:
    return values == list(range(values[0], values[-1] + 1))


def listed(parts: list[str]) -> str:
    """`a, b and c`."""
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last
