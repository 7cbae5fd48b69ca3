"""Schedules with a name: `daily_morning`, `weekly_monday`."""

from __future__ import annotations

from typing import Final

from nightporter.rules.plain.fields import day_name
from nightporter.rules.plain.lexicon import WEEKDAYS

PRESETS: Final[dict[str, str]] = {
    "daily_morning": "0 8 * * *",
    "daily_noon": "0 12 * * *",
    "daily_evening": "0 18 * * *",
    "daily_night": "0 22 * * *",
    "weekday_morning": "0 8 * * mon-fri",
    "weekday_evening": "0 18 * * mon-fri",
    "weekend_morning": "0 8 * * sat,sun",
    **{f"weekly_{name}": f"0 8 * * {day_name(day)}" for day,
    name in sorted(enumerate(WEEKDAYS), key=lambda e: e[0] or 7)},
    "monthly_first": "0 8 1 * *",
    "monthly_last": "0 8 L * *",
    "quarterly_first": "0 8 1 1,4,7,10 *",
    "yearly_first": "0 8 1 1 *",
}
"""What each is as a cron expression: mornings at 08:00, evenings at 18:00, nights at 22:00."""
