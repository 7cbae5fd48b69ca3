"""Rules by the day or the week whose times are named one by one, in words: `At 09:00 and 17:30 every day`."""

from __future__ import annotations

from itertools import pairwise

from nightporter.rules.rrule import Rule
from nightporter.rules.sentences import MONTHS, in_runs, listed, weekday_name

_DAY = 86_400
_MOST = 8


def clocks_sentence(rule: Rule) -> str | None:
    """The days and times of a rule that picks positions out of hours and minutes; None for other rules."""
    weekly = rule.freq == "WEEKLY"
    if rule.interval != 1 or rule.freq not in ("DAILY", "WEEKLY") or not rule.hours or not rule.minutes:
        return None
    if any(n for n, _ in rule.weekdays) or any(each < 0 for each in (*rule.positions, *rule.month_days)):
        return None
    if rule.weekdays and rule.month_days:
        return None
    times = sorted(
        hour * 3600 + minute * 60 + second
        for hour in rule.hours for minute in rule.minutes for second in rule.seconds or (0,)
    )
    months = f" in {in_runs(list(rule.months), lambda each: MONTHS[each - 1])}" if rule.months else ""
    if not weekly:
        picked = [times[at - 1] for at in rule.positions if at <= len(times)] or times
        said = _times(sorted(picked))
        days = [weekday for _, weekday in rule.weekdays]
        return None if said is None else said + _days(days, rule.month_days, every_day=said.startswith("At")) + months
    if not rule.weekdays or rule.week_start:
        return None
    by_day: dict[int, tuple[int, ...]] = {}
    days = sorted(weekday for _, weekday in rule.weekdays)
    for at in sorted(rule.positions) or range(1, len(days) * len(times) + 1):
        day, time = divmod(at - 1, len(times))
        if day < len(days):
            by_day[days[day]] = (*by_day.get(days[day], ()), times[time])
    groups: dict[tuple[int, ...], list[int]] = {}
    for weekday, picks in by_day.items():
        groups.setdefault(picks, []).append(weekday)
    parts = [(_times(list(picks)), weekdays) for picks, weekdays in groups.items()]
    if any(said is None or not said.startswith("At") for said, _ in parts):
        return None
    said = " and ".join(f"{said}{_days(weekdays, (), every_day=True)}" for said, weekdays in parts)
    return said[0] + said[1:].replace(" At ", " at ") + months


def _times(times: list[int]) -> str | None:
    """`At 09:00 and 17:30`; `Every 20 minutes from 09:00 to 17:00` for many in a row."""
    if len(times) <= 3:
        return f"At {listed([_clock(time) for time in times])}"
    gaps = [(after - before) % _DAY for before, after in pairwise([*times, times[0]])]
    step = min(gaps)
    wide = [at for at, gap in enumerate(gaps) if gap != step]
    if len(wide) == 1 and step % 60 == 0:
        first, last = times[(wide[0] + 1) % len(times)], times[wide[0]]
        return f"Every {_length(step)} from {_clock(first)} to {_clock(last)}"
    return f"At {listed([_clock(time) for time in times])}" if len(times) <= _MOST else None


def _length(step: int) -> str:
    if step % 3600 == 0:
        return "hour" if step == 3600 else f"{step // 3600} hours"
    return "minute" if step == 60 else f"{step // 60} minutes"


def _clock(time: int) -> str:
    shown = f"{time // 3600:02}:{time // 60 % 60:02}"
    return f"{shown}:{time % 60:02}" if time % 60 else shown


def _days(weekdays: list[int], month_days: tuple[int, ...], *, every_day: bool) -> str:
    if len(weekdays) == 1:
        return f" every {weekday_name(weekdays[0])}"
    if weekdays:
        return f" on {in_runs(sorted(weekdays), weekday_name)}" if len(weekdays) < 7 else " every day"
    if month_days:
        return f" on day {listed([str(day) for day in sorted(month_days)])} of the month"
    return " every day" if every_day else ""
