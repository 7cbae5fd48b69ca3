"""systemd's OnCalendar expressions: `Mon..Fri *-*-* 09:00:00`, `*-*-01/2`, `*:0/15`; as systemd reads them, or refused.

    [days of the week] [[year-]month-day] [hour:minute[:second]] [zone]

Each part is `*`, a value, a range `a..b`, a list, each with a step `/n`; `~` before the day counts from the end of the
month. Without a date it is every day, without a time 00:00. Day of the week and date must both match.
"""

from __future__ import annotations

import re
from typing import Final

from nightporter.errors import BadSchedule
from nightporter.rules import zones
from nightporter.rules.cron import MONTH, values_of
from nightporter.rules.plain.fields import day_name, month_field, number_field, weekday_field
from nightporter.rules.plain.understood import Understood
from nightporter.rules.schedule import parse

LONGEST: Final = 200
_KEY: Final = re.compile(r"OnCalendar *= *", re.IGNORECASE)
_UNMISTAKABLE: Final = re.compile(r"\*-|\*:|\*~|-\*|\.\.|~\d|[:\d]/\d|\d/\d+:")
_NAMED: Final = {
    "minutely": "*-*-* *:*", "hourly": "*-*-* *:00", "daily": "*-*-*", "weekly": "Mon *-*-*", "monthly": "*-*-01",
    "quarterly": "*-01,04,07,10-01", "semiannually": "*-01,07-01", "semi-annually": "*-01,07-01",
    "biannually": "*-01,07-01", "bi-annually": "*-01,07-01", "yearly": "*-01-01", "annually": "*-01-01",
}
_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_WEEK: Final = re.compile(r"[A-Za-z]+(?:(?:\.\.|-|,)[A-Za-z]+)*,?")
_ITEM: Final = re.compile(r"(\*|\d{1,4})(?:\.\.(\d{1,4}))?(?:/(\d{1,4}))?")


def is_on_calendar(text: str) -> bool:
    """Whether a text can be nothing but such an expression: by the key in front, or by its shape."""
    return bool(_KEY.match(text) or _UNMISTAKABLE.search(text) or text.lower() in ("semiannually", "semi-annually"))


def on_calendar(text: str, timezone: str) -> Understood:
    """The schedule of an expression, with or without the key in front. Raises BadSchedule."""
    written = _KEY.sub("", text, count=1).strip()
    if len(written) > LONGEST or not written:
        raise _bad(text[:40], "it is empty or too long")
    parts = _NAMED.get(written.lower(), written).split()
    zone = timezone
    if len(parts) > 1 and (parts[-1] in zones.names() or parts[-1].upper() == "UTC"):
        zone = parts.pop()
    weekdays = _weekdays(parts.pop(0)) if _WEEK.fullmatch(parts[0]) else None
    date = parts.pop(0) if parts and re.search(r"[-~]", parts[0]) else "*-*-*"
    time = parts.pop(0) if parts and ":" in parts[0] else "00:00"
    if parts:
        raise _bad(parts[0], "it is no day of the week, no date, no time and no zone")
    clock = _clock(time)
    exact = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})", date)
    if exact and weekdays is None and re.fullmatch(r"\d{1,2}:\d{1,2}(:\d{1,2})?", time):
        year, month, day = exact.groups()
        at = ":".join(f"{int(part):02}" for part in time.split(":"))
        return Understood(parse("at", f"{year}-{int(month):02}-{int(day):02}T{at}", zone))
    month, days = _date(date)
    fields = _days(days, month, weekdays)
    if fields is None:
        # Cron fires on either kind of day, systemd on those that are both.
        return Understood(parse("rrule", _rule(time, month, days, weekdays or []), zone))
    return Understood(parse("cron", f"{clock} {fields}", zone))


def _weekdays(text: str) -> list[int]:
    found: list[int] = []
    for item in text.rstrip(",").split(","):
        first, _, last = item.replace("..", "-").partition("-")
        low = _weekday(first)
        high = _weekday(last) if last else low
        low, high = (low + 6) % 7, (high + 6) % 7
        if high < low:
            raise _bad(item, "its last day comes before its first one, and the week begins on Monday")
        found += [(day + 1) % 7 for day in range(low, high + 1)]
    return sorted(set(found))


def _weekday(text: str) -> int:
    for number, name in enumerate(_DAYS):
        if text.lower() in (name, name[:3]):
            return number
    raise _bad(text, "it is no day of the week")


def _clock(text: str) -> str:
    """Second, minute and hour as cron has them; the second only where it is not 0."""
    if "." in text.replace("..", ""):
        raise _bad(text, "seconds are whole ones here")
    fields = text.split(":")
    if len(fields) not in (2, 3):
        raise _bad(text, "a time is hour:minute or hour:minute:second")
    hour = number_field(_values(fields[0], 0, 23), range(24))
    minute = number_field(_values(fields[1], 0, 59), range(60))
    if len(fields) == 2 or fields[2].lstrip("0") == "":
        return f"{minute} {hour}"
    return f"{number_field(_values(fields[2], 0, 59), range(60))} {minute} {hour}"


def _date(text: str) -> tuple[str, list[int]]:
    """The month as cron has it, and the days; those that are counted from the end are negative, -1 the last one."""
    match = re.fullmatch(r"(?:([^-~]+)-)?([^-~]+)([-~])([^-~]+)", text)
    if match is None:
        raise _bad(text, "a date is month-day or year-month-day")
    year, month, mark, day = match.groups()
    if year not in (None, "*"):
        raise _bad(text, "a repeating schedule here has no years; bounds have: write * and `start` and `end`")
    months = month_field(_values(month, 1, 12))
    if mark == "-":
        return months, _values(day, 1, 31)
    # From the end a range and a step run towards the last day: ~07/1 is the last seven.
    return months, [-each for each in _from_end(day)]


def _from_end(text: str) -> list[int]:
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None or match[1] == "*" or match[2] is not None:
            raise _bad(item, "days from the end are numbers, with a step or without")
        first, step = int(match[1]), int(match[3] or 0)
        if not 1 <= first <= 31 or (match[3] and not step):
            raise _bad(item, "a month has 31 days at most")
        if step >= first:
            raise _bad(item, "its step leads beyond the last day at once")
        found.update(range(first, 0, -step) if step else [first])
    return sorted(found)


def _values(text: str, low: int, high: int) -> list[int]:
    found: set[int] = set()
    for item in text.split(","):
        match = _ITEM.fullmatch(item)
        if match is None:
            raise _bad(item, "a part is *, a value, a range a..b or a step a/n")
        first, last, step = match.groups()
        if first == "*":
            if last is not None or step is not None:
                raise _bad(item, "* stands alone; a step begins at a number, such as 0/15")
            begin, end = low, high
        else:
            begin = int(first)
            end = int(last) if last is not None else high if step else begin
        if not low <= begin <= end <= high or (step is not None and not int(step)):
            raise _bad(item, f"it goes from {low} to {high}, upwards")
        if step is not None and last is None and begin + int(step) > high:
            raise _bad(item, f"its step leads beyond {high} at once")
        found.update(range(begin, end + 1, int(step or 1)))
    return sorted(found)


def _rule(time: str, month: str, days: list[int], weekdays: list[int]) -> str:
    """A day of the week that is a day of the month as well, as a recurrence rule."""
    fields = [*time.split(":"), "0"][:3]
    lists = {
        "BYMONTH": sorted(values_of(MONTH, month)) if month != "*" else [], "BYMONTHDAY": days,
        "BYHOUR": _values(fields[0], 0, 23), "BYMINUTE": _values(fields[1], 0, 59),
        "BYSECOND": _values(fields[2], 0, 59),
    }
    parts = [f"{name}={','.join(map(str, numbers))}" for name, numbers in lists.items() if numbers]
    return ";".join(["FREQ=DAILY", f"BYDAY={','.join(day_name(day)[:2].upper() for day in weekdays)}", *parts])


def _days(days: list[int], month: str, weekdays: list[int] | None) -> str | None:
    """The day fields of cron; None where it has no such days."""
    everything = days == list(range(1, 32))
    if weekdays is None or len(weekdays) == 7:
        plain = number_field([day for day in days if day > 0]) if days[0] > 0 else ""
        ends = [f"L-{-day - 1}".removesuffix("-0") for day in days if day < 0]
        return f"{'*' if everything else ','.join(part for part in (plain, *ends) if part)} {month} *"
    if everything:
        return f"* {month} {weekday_field(weekdays)}"
    if sorted(days) == list(range(-7, 0)):
        return f"* {month} {','.join(f'{day_name(day)}L' for day in weekdays)}"
    for number in range(1, 5):
        if days == list(range(number * 7 - 6, number * 7 + 1)):
            return f"* {month} {','.join(f'{day_name(day)}#{number}' for day in weekdays)}"
    return None


def _bad(part: str, why: str) -> BadSchedule:
    return BadSchedule(f"{part[:40]!r} cannot be used in an OnCalendar expression", why=why,
                       next="write it like Mon..Fri *-*-* 09:00:00")
