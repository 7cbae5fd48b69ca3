"""Recurrence rules in one plain sentence."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from nightporter.clock import Instant, moment
from nightporter.rules.rrule import DAYS, Rule
from nightporter.rules.rrule_clocks import clocks_sentence
from nightporter.rules.sentences import MONTHS, ORDINALS, in_runs, listed, local_words, weekday_name

_UNITS = {"SECONDLY": "second", "MINUTELY": "minute", "HOURLY": "hour", "DAILY": "day", "WEEKLY": "week",
          "MONTHLY": "month", "YEARLY": "year"}


def rule_sentence(rule: Rule, anchor: Instant | None, zone: ZoneInfo) -> str:
    """`Every 2 weeks on Monday and Friday at 09:00, 10 times`; the rule itself where no plain words are known."""
    days = _days(rule, anchor, zone)
    times = _times(rule, anchor, zone)
    if (rule.positions or rule.seconds) and (clocks := clocks_sentence(rule)) is not None:
        said = clocks
    elif days is None or times is None or rule.positions or rule.weeks or rule.year_days:
        said = f"Rule {_written(rule)}"
    else:
        unit = _UNITS[rule.freq]
        said = f"Every {unit if rule.interval == 1 else f'{rule.interval} {unit}s'}{days}{times}"
    if rule.count is not None:
        said += ", once" if rule.count == 1 else f", {rule.count} times"
    if rule.until:
        said += f", until {rule.until[:4]}-{rule.until[4:6]}-{rule.until[6:8]}"
    if anchor is not None and (rule.interval > 1 or rule.count is not None):
        said += f", counted from {local_words(anchor, zone)}"
    return said


def _days(rule: Rule, anchor: Instant | None, zone: ZoneInfo) -> str | None:
    start = None if anchor is None else moment(anchor).astimezone(zone)
    plain = [weekday for n, weekday in rule.weekdays if n == 0]
    nth = [f"the {_nth(n)} {weekday_name(weekday)}" for n, weekday in rule.weekdays if n]
    if (nth and plain) or (rule.weekdays and rule.month_days) or "" in nth or any("None" in each for each in nth):
        return None
    months = in_runs(list(rule.months), lambda each: MONTHS[each - 1]) if rule.months else ""
    days = ""
    if nth:
        days = f" on {listed(nth)}"
    elif plain:
        days = f" on {in_runs(plain, weekday_name)}"
    elif rule.month_days:
        if any(each < -1 for each in rule.month_days):
            return None
        days = f" on {listed([f'day {each}' if each > 0 else 'the last day' for each in rule.month_days])}"
    elif start is not None and rule.freq == "WEEKLY":
        days = f" on {weekday_name(start.weekday())}"
    elif start is not None and rule.freq == "MONTHLY":
        days = f" on day {start.day}"
    elif start is not None and rule.freq == "YEARLY":
        days = f" on day {start.day}"
        months = months or MONTHS[start.month - 1]
    if rule.freq == "YEARLY" and nth and not rule.months:
        return None
    return days + (f" in {months}" if months else "")


def _nth(n: int) -> str | None:
    if n < 0:
        return "last" if n == -1 else None
    return ORDINALS[n] if n < len(ORDINALS) else None


def _times(rule: Rule, anchor: Instant | None, zone: ZoneInfo) -> str | None:
    start = None if anchor is None else moment(anchor).astimezone(zone)
    if rule.freq in ("SECONDLY", "MINUTELY"):
        return ""
    if rule.seconds or (rule.freq == "HOURLY" and (rule.hours or rule.minutes)):
        return None
    if rule.freq == "HOURLY" or (start is None and not rule.hours):
        return "" if not rule.minutes else None
    hours = rule.hours or ((start.hour,) if start is not None else ())
    minutes = rule.minutes or ((start.minute,) if start is not None else (0,))
    seconds = f":{start.second:02}" if start is not None and start.second else ""
    if len(hours) * len(minutes) > 6:
        return None
    return f" at {listed([f'{hour:02}:{minute:02}{seconds}' for hour in hours for minute in minutes])}"


def _written(rule: Rule) -> str:
    """The rule without its end, as a calendar writes it."""
    lists = {
        "BYMONTH": rule.months, "BYWEEKNO": rule.weeks, "BYYEARDAY": rule.year_days, "BYMONTHDAY": rule.month_days,
        "BYDAY": [f"{n or ''}{DAYS[weekday]}" for n, weekday in rule.weekdays], "BYHOUR": rule.hours,
        "BYMINUTE": rule.minutes, "BYSECOND": rule.seconds, "BYSETPOS": rule.positions,
    }
    parts = [f"FREQ={rule.freq}", *([f"INTERVAL={rule.interval}"] if rule.interval > 1 else [])]
    parts += [f"{name}={','.join(map(str, values))}" for name, values in lists.items() if values]
    return ";".join(parts)
