"""Which days a sentence means: the day fields of a cron expression, and how they are said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from nightporter.errors import BadSchedule
from nightporter.rules.plain.fields import day_name, month_field, number_field, weekday_field
from nightporter.rules.plain.lexicon import ALL_DAYS, MONTHS, WEEKDAYS
from nightporter.rules.plain.refusals import ambiguous, beyond, incomplete
from nightporter.rules.plain.said import Day, Nth, Said, listed

_ORDINALS: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last", -2: "second to last",
                    -3: "third to last"}
_QUARTERS: Final = ((1, 4, 7, 10), (3, 6, 9, 12))
"""The months in which quarters begin, and end."""
_LENGTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_RULE_DAYS: Final = ("SU", "MO", "TU", "WE", "TH", "FR", "SA")

Kind = Literal["day", "week", "month", "year"]


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a recurring schedule."""

    kind: Kind
    """What repeats: each day, or days of each week, month or year."""
    day: str = "*"
    month: str = "*"
    weekday: str = "*"
    number: int = 1
    """How many of them there are in what repeats."""
    every: int = 1
    """Every so many days, weeks, months or years."""
    by: tuple[str, ...] = ()
    """The same days as parts of a recurrence rule; `?` where it has none."""
    words: str = "every day"

    @property
    def fields(self) -> str:
        """Day, month and weekday as cron has them."""
        return f"{self.day} {self.month} {self.weekday}"

    @property
    def every_day(self) -> bool:
        """No day is told from another."""
        return self.kind == "day" and self.every == 1

    def in_a(self, unit: str) -> int:
        """How many of these days a unit has, as far as that is always the same; 0 where it is not."""
        if unit == self.kind:
            return self.number
        return {("day", "week"): 1, ("day", "month"): 1, ("day", "year"): 1,
            ("week", "day"): 7}.get((unit, self.kind), 0)


def days_of(said: Said, count: int, unit: str | None) -> Days:
    """The days that are meant. Raises BadSchedule where that is open or contradicts itself."""
    chosen = [name for name in ("weekdays", "nth", "monthdays", "dates") if getattr(said, name)]
    if len(chosen) > 1:
        raise beyond("days of two kinds stand side by side",
            "a day of the week, of the month and of the year cannot be "
                     "told to be one day", "write one kind of day")
    months = [month for month in said.months or range(1, 13) if month not in said.not_months]
    month = month_field(months)
    if unit in ("second", "minute", "hour"):
        raise beyond(f"every {unit} and a time of day contradict each other", "the one repeats, the other is fixed",
                     "write `every day at 09:00`, or `every 2h from 08:00 to 20:00`")
    if not chosen:
        return _without_days(said, count, unit, month)
    match chosen[0]:
        case "weekdays":
            return _of_week(said, count, unit, month)
        case "dates":
            return _of_year(said, count, unit)
        case "nth":
            return _nth_of_month(said, count, unit, months)
        case _:
            return _of_month(said, count, unit, months)


def _time(said: Said) -> str:
    """The time that was said, for a suggestion."""
    return said.times[0].shown if said.times else "09:00"


def _without_days(said: Said, count: int, unit: str | None, month: str) -> Days:
    if said.not_weekdays:
        left = ALL_DAYS - set(said.not_weekdays)
        if unit in ("day", None) and count == 1 and left:
            return Days("week", month=month, weekday=weekday_field(left), number=len(left), words="every day",
                        by=(_by_weekdays(left), *_by_months(said)))
    if unit is None and not said.each:
        shown = said.times[0].shown if said.times else "09:00"
        raise ambiguous(f"a time without a day ({shown})", f"every day at {shown}", f"today at {shown}")
    if unit in (None, "day"):
        if month != "*" and unit is None:
            raise incomplete("the days are not said", "every day in december at 09:00")
        if month == "*" and not (said.times or said.marks or said.window or said.often):
            raise ambiguous(f"every {f'{count} days' if count > 1 else 'day'}", f"every {count * 24}h",
                            f"every {f'{count} days' if count > 1 else 'day'} at 09:00",
                            meaning="it may mean elapsed time, or days of the calendar at some time of day")
        return Days("day", month=month, every=count, by=_by_months(said))
    if unit == "week" and count > 1 and not said.times:
        raise ambiguous(f"every {count} weeks", f"every {count * 168}h", f"every {count} weeks on monday at 09:00",
                        meaning="it may mean elapsed time, or days of the calendar at some time of day")
    if unit == "week":
        raise incomplete("the day of the week is not said", "every monday at 09:00")
    if unit == "year":
        raise incomplete("the day of the year is not said", "every year on 24 december at 18:00")
    raise incomplete(f"the day of the {unit} is not said", "on the 1st of every month at 09:00",
                     "first monday of the month at 09:00")


def _of_week(said: Said, count: int, unit: str | None, month: str) -> Days:
    days = sorted(set(said.weekdays) - set(said.not_weekdays))
    if not days:
        raise beyond("no day is left", "all that was said is excepted again", "say fewer exceptions")
    named = listed(WEEKDAYS[day] for day in said.weekdays)
    if unit in ("month", "quarter", "year"):
        raise incomplete(f"which {named} of the {unit} is not said", f"first {named} of the month at 09:00")
    if unit == "day" and not (said.workdays or len(days) > 2):
        raise beyond(f"every day and {named} contradict each other", "the one is all days, the other is not",
                     f"write `every {named} at 09:00`")
    if unit is None and not said.repeats and not said.often:
        raise ambiguous(f"{named} alone", f"every {named} at {_time(said)}", f"next {named} at {_time(said)}",
                        meaning="it may be meant every week, or once")
    if said.other and (said.workdays or len(days) > 1):
        raise ambiguous(f"every other {'weekday' if said.workdays else named}", f"every 2 weeks on {named} at 09:00",
                        meaning="it may mean every second week, or every second one of those days")
    return Days("week", month=month, weekday=weekday_field(days), number=len(days), every=2 if said.other else count,
                by=(_by_weekdays(days), *_by_months(said)), words=f"every {named}")


def parts_of(said: Said) -> tuple[str, ...]:
    """The days of the week and the months that were said, as parts of a recurrence rule."""
    left = set(said.weekdays or ALL_DAYS) - set(said.not_weekdays)
    return (*([_by_weekdays(left)] if len(left) < 7 else []), *_by_months(said))


def _by_weekdays(days: Iterable[int]) -> str:
    return f"BYDAY={','.join(_RULE_DAYS[day] for day in sorted(days, key=lambda day: (day + 6) % 7))}"


def _by_months(said: Said) -> tuple[str, ...]:
    return _by(sorted({month for month in said.months or range(1, 13) if month not in said.not_months}))


def _of_month(said: Said, count: int, unit: str | None, months: list[int]) -> Days:
    if unit in ("day", "week"):
        raise beyond(f"every {unit} and a day of the month contradict each other", "a month is no number of weeks",
                     "write `on the 1st of every month at 09:00`")
    days = _numbers([Nth(number, "day") for number in said.monthdays])
    said_once = len(said.monthdays) == 1 and not (said.each or said.scope or said.months or said.repeats)
    if said_once and unit is None:
        raise ambiguous("a single day of the month", f"on day {said.monthdays[0]} of every month at {_time(said)}",
                        f"on 15 december 2026 at {_time(said)}", meaning="it may be meant every month, or once")
    if unit == "quarter" or said.scope == "quarter":
        if not all(day == "1" for day in days.split(",")):
            raise beyond("days of a quarter are its first and its last", "others are counted by month",
                         "write `on the 15th in january, april, july and october at 09:00`")
        months = [month for month in _QUARTERS[0] if month in months]
    _exist(said.monthdays, months)
    if (unit == "year" or said.scope == "year") and not said.months:
        raise incomplete("the month is not said", "every year on 24 december at 18:00")
    return Days("month", day=days, month=month_field(months), number=len(said.monthdays),
                every=count if unit == "month" else 1, words="on the 1st of every month",
                by=(f"BYMONTHDAY={','.join(map(str, said.monthdays))}", *_by(months)))


def _by(months: list[int]) -> tuple[str, ...]:
    return () if len(months) == 12 else (f"BYMONTH={','.join(map(str, months))}",)


def _exist(days: list[int], months: list[int]) -> None:
    for day in days:
        if day > 0 and not any(day <= _LENGTHS[month - 1] for month in months):
            raise beyond(f"{MONTHS[months[0] - 1]} has no day {day}", "it would never come",
                         "for the end of a month write `last day of the month`")


def _nth_of_month(said: Said, count: int, unit: str | None, months: list[int]) -> Days:
    kinds = {"day": "days", "workday": "weekdays"}
    groups = {kinds.get(str(nth.kind), "named") for nth in said.nth}
    if len(groups) > 1:
        raise beyond("days of two kinds stand side by side", "a schedule has one kind", "write one trigger for each")
    only = said.nth[0]
    if only.kind not in (*range(7), "day", "workday"):
        raise beyond(f"the {_ORDINALS.get(only.ordinal, 'nth')} {only.kind} is no day", "a schedule needs a day",
                     "write `first monday of the month at 09:00`")
    if said.scope not in (None, "month", "quarter", "year"):
        raise beyond(f"a day of the {said.scope} is not counted so", "it has names", "write `every monday at 09:00`")
    if unit in ("day", "week"):
        raise beyond(f"every {unit} and a day of the month contradict each other", "a month is no number of weeks",
                     "write `first monday of the month at 09:00`")
    if said.each and said.scope is None and len(said.nth) == 1 and only.ordinal not in (1, -1, -2, -3) and unit is None:
        return _every_nth(only)
    scope = said.scope if said.scope in ("quarter", "year") else unit
    if scope == "quarter":
        months = [month for month in _end_of(said.nth, _QUARTERS) if month in months]
    elif scope == "year" and not said.months:
        months = list(_end_of(said.nth, ((1,), (12,))))
    day, weekday, by = "*", "*", "?"
    if groups == {"named"}:
        named = [f"{nth.ordinal}{_RULE_DAYS[nth.kind]}" for nth in said.nth if isinstance(nth.kind, int)]
        by = f"BYDAY={','.join(named)}"
        weekday = ",".join(_of_kind(nth) for nth in said.nth)
    elif groups == {"days"}:
        day = _numbers(said.nth)
        by = f"BYMONTHDAY={','.join(str(nth.ordinal) for nth in said.nth)}"
        _exist([nth.ordinal for nth in said.nth], months)
    else:
        if len(said.nth) > 1 or only.ordinal not in (1, -1):
            raise beyond("of the weekdays of a month only the first and the last can be said", "cron has no others",
                         "write a named day, such as `second tuesday of the month at 09:00`")
        day = "1W" if only.ordinal == 1 else "LW"
    return Days("month", day=day, weekday=weekday, month=month_field(months), number=len(said.nth),
                every=count if unit == "month" else 1, words="first monday of the month", by=(by, *_by(months)))


def _every_nth(only: Nth) -> Days:
    """`every third friday`: of the month, or one in three."""
    ordinal = _ORDINALS.get(only.ordinal, f"{only.ordinal}th")
    if only.kind == "day":
        raise ambiguous(f"every {ordinal} day", f"every {only.ordinal} days at 09:00",
                        f"{ordinal} day of the month at 09:00")
    name = WEEKDAYS[only.kind] if isinstance(only.kind, int) else "weekday"
    raise ambiguous(f"every {ordinal} {name}", f"{ordinal} {name} of the month at 09:00",
                    f"every {only.ordinal} weeks on {name} at 09:00")


def _end_of(days: list[Nth], ends: tuple[tuple[int, ...], tuple[int, ...]]) -> tuple[int, ...]:
    """The months with the beginnings, or the ends, of what the days are counted in."""
    if all(nth.ordinal > 0 for nth in days):
        return ends[0]
    if all(nth.ordinal < 0 for nth in days):
        return ends[1]
    raise beyond("first and last of more than a month cannot stand in one schedule", "they are in different months",
                 "write one trigger for each")


def _of_kind(nth: Nth) -> str:
    name = day_name(nth.kind) if isinstance(nth.kind, int) else ""
    if nth.ordinal == -1:
        return f"{name}L"
    if not 1 <= nth.ordinal <= 5:
        raise beyond(f"a month has no {nth.ordinal}. {name}", "it has a first to a fifth, and a last",
                     "write `last friday of the month at 09:00`")
    return f"{name}#{nth.ordinal}"


def _numbers(days: list[Nth]) -> str:
    for nth in days:
        if not (1 <= nth.ordinal <= 31 or -4 < nth.ordinal < 0):
            raise BadSchedule(f"{nth.ordinal} is no day of a month", why="the days go from 1 to 31",
                              next="write `on the 1st and 15th at 09:00`")
    plain = number_field([nth.ordinal for nth in days if nth.ordinal > 0])
    ends = [f"L-{-nth.ordinal - 1}".removesuffix("-0") for nth in days if nth.ordinal < 0]
    return ",".join(part for part in (plain, *ends) if part)


def _of_year(said: Said, count: int, unit: str | None) -> Days:
    days = list(dict.fromkeys(said.dates))
    shown = _shown(days[0])
    if unit not in (None, "year"):
        raise beyond(f"every {unit} and {shown} contradict each other", "the date comes once a year",
                     f"write `every year on {shown} at 09:00`")
    numbers, months = sorted({day.day for day in days}), sorted({day.month for day in days})
    if len(numbers) * len(months) != len(days):
        raise beyond("these dates are no days of one cron expression", "its months share their days",
                     "write one trigger for each")
    for day in days:
        _exist([day.day], [day.month])
    return Days("year", day=_numbers([Nth(day, "day") for day in numbers]), month=month_field(months),
                number=len(days), every=count, words=f"every year on {shown}",
                by=(f"BYMONTH={','.join(map(str, months))}", f"BYMONTHDAY={','.join(map(str, numbers))}"))


def _shown(day: Day) -> str:
    return f"{day.day} {MONTHS[day.month - 1]}" + (f" {day.year}" if day.year else "")
