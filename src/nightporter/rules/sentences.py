"""Schedules in one plain sentence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from zoneinfo import ZoneInfo

from nightporter.clock import Instant, moment
from nightporter.rules.cron import DAY, HOUR, MINUTE, MONTH, WEEKDAY, Cron, values_of
from nightporter.rules.durations import format_duration

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")
_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
_UNITS = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}


def at_sentence(at: Instant, zone: ZoneInfo) -> str:
    """`Once, on Tuesday 3 November 2026 at 09:00, Europe/Berlin`."""
    return f"Once, on {_local(at, zone)}, {zone.key}"


def every_sentence(period: timedelta, anchor: Instant | None, zone: ZoneInfo) -> str:
    """`Every 15 minutes, counted from Tuesday 3 November 2026 at 09:00, Europe/Berlin`."""
    written = format_duration(period)
    number, unit = written[:-1], _UNITS.get(written[-1], "")
    if number.isdigit() and unit:
        written = unit if number == "1" else f"{number} {unit}s"
    counted = f", counted from {_local(anchor, zone)}" if anchor is not None else ""
    return f"Every {written}{counted}, {zone.key}"


def cron_sentence(cron: Cron, zone: str) -> str:
    """`At 09:00 on Monday to Friday, Europe/Berlin`; the normalised expression where no plain words are known."""
    time, days, months = _time(cron), _days(cron), _months(cron)
    if time is None or days is None or months is None:
        fields = cron.fields[1:] if cron.fields[0] == "0" else cron.fields
        return f"Cron {' '.join(fields)}, {zone}"
    return f"{time}{days}{months}, {zone}"


def _local(at: Instant, zone: ZoneInfo) -> str:
    local = moment(at).astimezone(zone)
    clock = f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"
    return f"{_WEEKDAYS[local.isoweekday() % 7]} {local.day} {_MONTHS[local.month - 1]} {local.year} at {clock}"


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
    if len(minutes) == 1 and (stepped := _stepped(hour, 24, "hour")) is not None:
        past = f" at minute {minutes[0]}" if minutes[0] else ""
        return stepped + past
    times = [f"{h:02}:{m:02}" for h in sorted(values_of(HOUR, hour)) for m in minutes]
    return f"At {_listed(times)}" if len(times) <= 6 else None


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
    if hours != list(range(hours[0], hours[-1] + 1)):
        return None
    return f" from {hours[0]:02}:00 to {hours[-1]:02}:59"


def _days(cron: Cron) -> str | None:
    day, weekday = cron.fields[3], cron.fields[5]
    by_day, by_weekday = _by_day(day), _by_weekday(weekday)
    if by_day is None or by_weekday is None:
        return None
    if by_day and by_weekday:
        if day.startswith("*") or weekday.startswith("*"):
            return None
        return f"{by_day} or{by_weekday}"
    return by_day or by_weekday


def _by_day(written: str) -> str | None:
    if written in ("*", "?"):
        return ""
    if written == "L":
        return " on the last day of the month"
    if written == "LW":
        return " on the last weekday (Monday to Friday) of the month"
    if "L" in written or "W" in written:
        return None
    days = sorted(values_of(DAY, written))
    return f" on day {_listed(str(each) for each in days)} of the month" if len(days) <= 6 else None


def _by_weekday(written: str) -> str | None:
    if written in ("*", "?"):
        return ""
    kind, mark, number = written.partition("#")
    if mark and "," not in written:
        (named,) = values_of(WEEKDAY, kind)
        return f" on the {_ORDINALS[int(number)]} {_WEEKDAYS[named]} of the month"
    if written.endswith("L") and "," not in written:
        (named,) = values_of(WEEKDAY, written[:-1])
        return f" on the last {_WEEKDAYS[named]} of the month"
    if mark or any(item.endswith("L") and item != "JUL" for item in written.split(",")):
        return None
    # Monday first: a week that ends on Sunday reads in the order in which people live it.
    chosen = sorted(values_of(WEEKDAY, written), key=lambda each: (each + 6) % 7)
    places = [(each + 6) % 7 for each in chosen]
    if len(chosen) == 7:
        return ""
    if len(chosen) > 2 and places == list(range(places[0], places[-1] + 1)):
        return f" on {_WEEKDAYS[chosen[0]]} to {_WEEKDAYS[chosen[-1]]}"
    return f" on {_listed(_WEEKDAYS[each] for each in chosen)}"


def _months(cron: Cron) -> str | None:
    if cron.fields[4] == "*":
        return ""
    return f" in {_listed(_MONTHS[each - 1] for each in sorted(values_of(MONTH, cron.fields[4])))}"


def _listed(parts: Iterable[str]) -> str:
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last
