"""Schedules in words: not read yet, but the cron form of the common ones can be offered."""

from __future__ import annotations

import re
from typing import Final

_DAYS: Final = {
    "daily": "*", "every day": "*", "each day": "*", "weekdays": "mon-fri", "every weekday": "mon-fri",
    "weekends": "sat,sun",
    **{
        word: day
        for day, full in {
            "mon": "monday", "tue": "tuesday", "wed": "wednesday", "thu": "thursday", "fri": "friday",
            "sat": "saturday", "sun": "sunday",
        }.items()
        for word in (day, full, full + "s", "every " + full)
    },
}
_TIME: Final = re.compile(r"(?:at\s+)?(\d{1,2})(?::(\d\d))?\s*(am|pm)?")


def cron_form(words: str) -> str | None:
    """The cron expression of `weekdays at 07:30`, `daily at 7`, `mon,wed at 9:30am`; None for other words."""
    said = " ".join(words.lower().split())
    days, _, time = said.rpartition(" at ")
    if not days:
        return None
    named = [_DAYS.get(day.strip()) for day in re.split(r",| and ", days)]
    found = _TIME.fullmatch(time.strip())
    if found is None or None in named:
        return None
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    every_day = "*" in named
    return f"{minute} {hour} * * {'*' if every_day else ','.join(day for day in named if day)}"
