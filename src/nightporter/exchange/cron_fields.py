"""The five fields of a crontab line, as cron itself reads them, and the expression that means the same here.

Cron takes less than we do: no `L`, `W`, `#`, `?`, no seconds, no range that runs backwards, no step behind a single
number. What it would not run is refused, so that an import never starts what never ran.
"""

from __future__ import annotations

import re
from typing import Final

from nightporter.errors import BadSchedule
from nightporter.rules.cron import DAY, HOUR, MINUTE, MONTH, WEEKDAY, Field, parse_cron

MACROS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_ITEM: Final = re.compile(r"(?:\*|([0-9]{1,4}|[A-Za-z]{1,9})(?:-([0-9]{1,4}|[A-Za-z]{1,9}))?)(?:/([0-9]{1,4}))?")


def macro_of(word: str) -> str:
    """The expression of an `@word`. Raises BadSchedule."""
    if word in MACROS:
        return word
    if word == "@reboot":
        raise BadSchedule("it runs when the machine starts", why="that is no clock time",
                          next="let a unit of systemd start it, or run it by hand")
    if word.lower() in MACROS:
        raise BadSchedule(f"cron does not know {word}", why="these words have small letters",
                          next=f"write {word.lower()} there")
    raise BadSchedule(f"cron does not know {word[:40]}", next=f"it knows {', '.join(MACROS)} and @reboot")


def expression_of(fields: list[str]) -> str:
    """Five fields of a crontab -> a cron expression with the same fires. Raises BadSchedule where cron would take them
    for an error, or where they never match."""
    written = [_field(field, text) for field, text in zip((MINUTE, HOUR, DAY, MONTH, WEEKDAY), fields, strict=True)]
    expression = " ".join(written)
    parse_cron(expression)
    return expression


def warning_of(expression: str) -> str:
    """What an expression does that is seldom meant; empty where nothing is."""
    if expression.startswith("@"):
        return ""
    minute, hour, day, month, weekday = expression.split()
    found = []
    if not day.startswith("*") and not weekday.startswith("*"):
        found.append("both day fields are restricted, so it runs on the days of either, as cron does")
    elif "*" not in (day, weekday):
        found.append("one day field is a step of *, so it runs on the days that are in both, as cron does")
    for field, text in ((MINUTE, minute), (HOUR, hour), (DAY, day), (MONTH, month)):
        if text == f"*/{_span(field)}":
            found.append(f"the step of the {field.name} is as long as its range: it matches once in each, as in cron")
    if day in ("29", "30", "31") and weekday == "*" and month == "*":
        found.append(f"months that have no day {day} are left out, as in cron")
    return "; ".join(found)


def _field(field: Field, text: str) -> str:
    return ",".join(_item(field, item) for item in text.split(","))


def _item(field: Field, item: str) -> str:
    if "~" in item:
        raise BadSchedule(f"{item[:40]!r} is a moment that cron draws by lot", why="it is another one at each reading",
                          next=f"choose a {field.name}")
    match = _ITEM.fullmatch(item)
    if match is None:
        raise BadSchedule(f"cron does not take {item[:40]!r} for a {field.name}", next=field.bounds)
    first, last, step = match.groups()
    if step is not None and first is not None and last is None:
        raise BadSchedule(f"cron does not take {item!r} for a {field.name}", why="a step stands behind * or a range",
                          next=f"write {first}-{field.high}/{step}")
    low = None if first is None else _number(field, first)
    if last is not None and low is not None and _number(field, last) < low:
        raise BadSchedule(f"cron does not take {item!r} for a {field.name}", why="the range runs backwards",
                          next="write its two parts with a comma between them")
    if step is not None and int(step) == 0:
        raise BadSchedule(f"cron does not take {item!r} for a {field.name}", why="its step is nothing",
                          next="write a step of 1 or more")
    if field is WEEKDAY and low == 7:
        return "7"  # a range that begins at 7 ends there
    if step is not None and int(step) > _span(field):
        # To cron a step beyond the range is one that leaves the first value alone; so is the longest we take.
        return f"{item.partition('/')[0]}/{_span(field)}"
    return item


def _number(field: Field, text: str) -> int:
    if text.isdigit():
        if field.low <= int(text) <= field.high:
            return int(text)
        raise BadSchedule(f"cron does not take {text!r} for a {field.name}", next=field.bounds)
    if text.upper() not in field.names:
        raise BadSchedule(f"cron does not take {text!r} for a {field.name}", next=field.bounds)
    return field.names.index(text.upper()) + field.low


def _span(field: Field) -> int:
    return 7 if field is WEEKDAY else field.high - field.low + 1
