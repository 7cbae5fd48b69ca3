"""Bounds of a schedule: when it begins and ends, the seasons it keeps to, and the days and hours it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any

from nightporter.clock import Instant
from nightporter.words.sparse import sparse, sparse_of


@dataclass(frozen=True, slots=True)
class Season:
    """Days of every year, the last one included; it may pass the turn of the year."""

    first: tuple[int, int]
    """Month and day."""
    last: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Days:
    """Days of the calendar that are left out."""

    first: str
    """`2026-12-24`."""
    last: str
    """Included."""
    name: str = ""
    """`Christmas Eve`; may be empty."""


@dataclass(frozen=True, slots=True)
class Window:
    """Hours that are left out on some days of every week."""

    begin: int
    """The minute of the day it begins with, 0 to 1439."""
    end: int
    """The minute it ends before, 1 to 1440; at or before `begin`: that of the next day."""
    weekdays: tuple[int, ...] = ()
    """The days it begins on, 1 Monday to 7 Sunday; none means every day."""
    name: str = ""


def _many(of: Callable[[Any], Any]) -> Mapping[str, Any]:
    return sparse(lambda raw: tuple(of(each) for each in raw))


def _season(raw: Any) -> Season:
    return Season(_day(raw["first"]), _day(raw["last"]))


def _day(raw: Any) -> tuple[int, int]:
    month, day = raw
    date(2000, month, day)
    return month, day


def _days(raw: Any) -> Days:
    first, last = date.fromisoformat(raw["first"]), date.fromisoformat(raw["last"])
    return Days(first.isoformat(), last.isoformat(), str(raw["name"]))


def _window(raw: Any) -> Window:
    weekdays = tuple(int(each) for each in raw["weekdays"])
    begin, end = int(raw["begin"]), int(raw["end"])
    if not (0 <= begin < 1440 and 0 < end <= 1440 and all(1 <= each <= 7 for each in weekdays)):
        raise ValueError("it is no window of a day")
    return Window(begin, end, weekdays, str(raw["name"]))


def _instant(raw: Any) -> Instant | None:
    return None if raw is None else Instant(int(raw))


@dataclass(frozen=True)
class Bounds:
    """What a schedule is held within. Start, end and seasons: outside them it has no slots. What is left out has its
    slots, and each of them leaves a line that says why nothing ran."""

    start: Instant | None = field(default=None, metadata=sparse(_instant))
    """No slot before it."""
    end: Instant | None = field(default=None, metadata=sparse(_instant))
    """No slot after it."""
    seasons: tuple[Season, ...] = field(default=(), metadata=_many(_season))
    """None means all of the year."""
    days: tuple[Days, ...] = field(default=(), metadata=_many(_days))
    windows: tuple[Window, ...] = field(default=(), metadata=_many(_window))

    @cached_property
    def _hash(self) -> int:
        return hash((self.start, self.end, self.seasons, self.days, self.windows))

    def __hash__(self) -> int:
        return self._hash  # a calendar may have a thousand days, and every question about a schedule looks it up

    @property
    def leaves_out(self) -> bool:
        """Whether there are days or hours that are left out."""
        return bool(self.days or self.windows)

    @staticmethod
    def of(raw: Any) -> Bounds:
        """Of plain JSON. Raises ValueError, TypeError or KeyError where it is none."""
        return Bounds(**sparse_of(Bounds, raw))
