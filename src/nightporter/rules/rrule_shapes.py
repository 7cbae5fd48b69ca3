"""Which days of a month or a year a recurrence rule names. It depends on nothing but the length of the month or the
year, the weekday it begins with, and for numbers of weeks on the years beside it."""

from __future__ import annotations

from datetime import date
from itertools import accumulate
from typing import Final

from nightporter.rules.rrule import Rule

_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_leap(year: int) -> bool:
    """Whether a year has a 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_of_month(rule: Rule, month: int, first: int, length: int, start: int) -> tuple[int, ...]:
    """The days of a month, by their numbers, that the rule allows. `first` is the weekday of the first of the month;
    `start` is the day of a monthly rule that names none."""
    if rule.months and month not in rule.months:
        return ()
    named = rule.month_days
    if rule.freq == "MONTHLY" and not named and not rule.weekdays:
        named = (start,)
    return tuple(
        day for day in range(1, length + 1)
        if (not named or day in named or day - length - 1 in named)
        and (not rule.weekdays or _is_weekday(rule, (first + day - 1) % 7, day - 1, length))
    )


def days_of_year(
    rule: Rule, first: int, leap_before: bool, leap: bool, leap_after: bool, start: date
) -> tuple[int, ...]:
    """The days of a year, counted from 0, that a yearly rule names. `first` is the weekday of 1 January; what the rule
    does not name is taken from its start."""
    months, month_days, weekdays = rule.months, rule.month_days, rule.weekdays
    if not (rule.weeks or rule.year_days or month_days or weekdays):
        months, month_days = months or (start.month,), (start.day,)
    on = ((0, start.weekday()),) if rule.weeks and not (weekdays or month_days or rule.year_days) else weekdays
    lengths = [days + (leap and n == 1) for n, days in enumerate(_LENGTHS)]
    year, begins = sum(lengths), [0, *accumulate(lengths)]
    found: list[int] = []
    for month, (begin, length) in enumerate(zip(begins, lengths, strict=False), 1):
        if months and month not in months:
            continue
        for day in range(length):
            at = begin + day
            if month_days and day + 1 not in month_days and day - length not in month_days:
                continue
            if rule.year_days and at + 1 not in rule.year_days and at - year not in rule.year_days:
                continue
            if on and not any(
                (first + at) % 7 == weekday and _is_nth(n, *((day, length) if months else (at, year)))
                for n, weekday in on
            ):
                continue
            if rule.weeks and not _in_week(rule, at, first, 365 + leap_before, year, 365 + leap_after):
                continue
            found.append(at)
    return tuple(found)


def _is_weekday(rule: Rule, weekday: int, at: int, length: int) -> bool:
    return any(weekday == each and _is_nth(n, at, length) for n, each in rule.weekdays)


def _is_nth(n: int, at: int, length: int) -> bool:
    """Whether a day is the nth of its weekday in a span; counted from 0."""
    if n == 0:
        return True
    return at // 7 == n - 1 if n > 0 else (length - 1 - at) // 7 == -n - 1


def _in_week(rule: Rule, at: int, first: int, before: int, year: int, after: int) -> bool:
    """Whether a day lies in one of the rule's weeks. The first week of a year is that with four days of it."""
    begin = _first_week(first, rule.week_start)
    next_begin = year + _first_week((first + year) % 7, rule.week_start)
    if at < begin:
        low, high = _first_week((first - before) % 7, rule.week_start) - before, begin
    elif at >= next_begin:
        low, high = next_begin, year + after + _first_week((first + year + after) % 7, rule.week_start)
    else:
        low, high = begin, next_begin
    week, weeks = (at - low) // 7 + 1, (high - low) // 7
    return week in rule.weeks or week - weeks - 1 in rule.weeks


def _first_week(first: int, week_start: int) -> int:
    """The day, counted from 1 January, with which the first week of a year begins."""
    into = (first - week_start) % 7
    return -into if into <= 3 else 7 - into
