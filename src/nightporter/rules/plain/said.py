"""What a sentence says, phrase by phrase, before anything is made of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nightporter.rules.plain.times import Time

Amount = tuple[int, str]
"""How many of a unit: `(15, "minute")`."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day of a year, or of every year."""

    day: int
    month: int
    year: int | None = None


@dataclass(frozen=True, slots=True)
class Nth:
    """The first Monday, the last day or weekday of a month: `kind` is a weekday's number, `day` or `workday`."""

    ordinal: int
    kind: int | str


Bound = Day | tuple[tuple[str, Any], ...]
"""A date, or the words that name a day or a month."""


@dataclass(slots=True)
class Said:
    """One sentence taken apart. Lists keep the order in which their items were said."""

    every: list[Amount] = field(default_factory=list)
    """`every 1 hour 30 minutes`: how often, in what was said."""
    compact: bool = False
    """It was said as `90m`: a length, whatever its units."""
    other: bool = False
    """`every other monday`."""
    adverb: str | None = None
    often: Amount | None = None
    """`twice a day`."""
    weekdays: list[int] = field(default_factory=list)
    workdays: bool = False
    repeats: bool = False
    """`every`, a plural, a range or a list: it is not about one day."""
    each: bool = False
    """The word `every` stood before the days."""
    nth: list[Nth] = field(default_factory=list)
    monthdays: list[int] = field(default_factory=list)
    scope: str | None = None
    """`of the month`, `of the quarter`, `of the year`."""
    months: list[int] = field(default_factory=list)
    dates: list[Day] = field(default_factory=list)
    times: list[Time] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    """`:30`, `at minute 30`: minutes of each hour."""
    window: tuple[Time, Time] | None = None
    begins: Time | None = None
    """`from 08:00`, without an end."""
    part: str | None = None
    relative: tuple[str, int | None] | None = None
    later: list[Amount] | None = None
    zone: tuple[str, ...] | None = None
    season: tuple[int, int] | None = None
    starts: Bound | None = None
    ends: Bound | None = None
    counted: bool = False
    once: bool = False
    not_weekdays: list[int] = field(default_factory=list)
    not_months: list[int] = field(default_factory=list)
    not_dates: list[Day] = field(default_factory=list)
    not_nth: list[Nth] = field(default_factory=list)
    not_holidays: bool = False
    more: list[Said] = field(default_factory=list)
    """Further clauses: `mondays at 9 and fridays at 17`."""


_FLAGS = ("compact", "repeats", "each", "once", "zone", "workdays")


def says_only(said: Said, *names: str) -> bool:
    """Whether a clause says nothing but these things; how they were said, and the place, do not count."""
    return not any(
        getattr(said, name) not in (None, False, []) for name in said.__dataclass_fields__
        if name not in _FLAGS and name not in names
    )


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    *head, last = list(words)
    return f"{', '.join(head)} and {last}" if head else last
