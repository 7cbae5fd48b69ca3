"""Within which bounds a schedule has slots, and which of them are left out.

    start, end, seasons    outside them there is no slot
    days, windows          there is a slot, and nothing runs at it: `Standing.excluded` says why

A day begins when the zone's clock first shows its midnight, or has just jumped over it, so that days follow each other
whatever the clock does. A window of hours goes by what the clock shows, both times where it goes back.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import Final, Protocol

from nightporter.clock import SECOND, Instant
from nightporter.rules.sentences import words_of_days, words_of_window
from nightporter.rules.zones import DAY_SECONDS, EARLIEST, LATEST, first_pass, stretch_at
from nightporter.words.bounds import Bounds, Season

MOST_SEASONS: Final = 150
"""Seasons that are looked through for a slot at most."""

_EPOCH_DAY: Final = 719_163
"""1970-01-01 as an ordinal of `date`."""
_FIRST_DAY: Final = date(2, 1, 1).toordinal() - _EPOCH_DAY
_LAST_DAY: Final = date(9998, 12, 31).toordinal() - _EPOCH_DAY


class Slots(Protocol):
    """The slots of a schedule of some kind."""

    def next(self, after: int) -> Instant | None:
        """The first slot strictly after."""
        ...

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether slots are left out at an instant, and until when it surely stays so."""

    excluded: str | None
    """Why, in words: `25 December 2026 (Christmas Day)`."""
    until: Instant
    """The first instant for which this need not hold."""


@dataclass(frozen=True, slots=True)
class ShiftedSlots:
    """The slots of another schedule, each later by the same."""

    slots: Slots
    offset: int

    def next(self, after: int) -> Instant | None:
        """The first slot strictly after."""
        found = self.slots.next(after - self.offset)
        return None if found is None else Instant(found + self.offset)

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before."""
        found = self.slots.previous(before - self.offset)
        return None if found is None else Instant(found + self.offset)


@dataclass(frozen=True, slots=True)
class BoundedSlots:
    """The slots of another schedule that lie between its start and its end, and in season."""

    slots: Slots
    bounds: Bounds
    zone: str

    def next(self, after: int) -> Instant | None:
        """The first slot strictly after; None when there is none any more."""
        start, end, seasons = self.bounds.start, self.bounds.end, self.bounds.seasons
        if start is not None:
            after = max(after, start - 1)
        for _ in range(MOST_SEASONS):
            slot = self.slots.next(after)
            if slot is None or (end is not None and slot > end) or slot >= LATEST * SECOND:
                return None
            if not seasons or _in_season(self.bounds, today := day_at(self.zone, slot)):
                return slot
            opening = min(_opening(season, today) for season in seasons)
            if opening > _LAST_DAY:
                return None
            after = max(beginning(self.zone, opening) - 1, slot)
        return None

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before; None when there is none."""
        start, end, seasons = self.bounds.start, self.bounds.end, self.bounds.seasons
        if end is not None:
            before = min(before, end)
        for _ in range(MOST_SEASONS):
            slot = self.slots.previous(before)
            if slot is None or (start is not None and slot < start):
                return None
            if not seasons or _in_season(self.bounds, today := day_at(self.zone, slot)):
                return slot
            closed = max(_closed(season, today) for season in seasons)
            if closed < _FIRST_DAY:
                return None
            before = min(beginning(self.zone, closed) - 1, slot - 1)
        return None


def standing(bounds: Bounds, zone: str, at: int) -> Standing:
    """Whether a slot at an instant is left out, and why."""
    second = max(at // SECOND, EARLIEST)
    if second >= LATEST:
        return Standing(None, Instant(at + 400 * 366 * DAY_SECONDS * SECOND))
    today = day_at(zone, at)
    beginnings, closed = _closed_days(bounds)
    place = bisect_right(beginnings, today)
    if place and today <= closed[place - 1][0]:
        last, named = closed[place - 1]
        return Standing(named, beginning(zone, last + 1))
    stretch = stretch_at(zone, second)
    day, inside = divmod(second + stretch.offset, DAY_SECONDS)
    hours = _hours_of_week(bounds)[(day + 3) % 7]
    _, until, why = hours[bisect_right(hours, (inside + 1,)) - 1]
    end = min(second - inside + until, stretch.end)
    if place < len(beginnings) and day >= beginnings[place] - 2:
        end = min(end, beginning(zone, beginnings[place]) // SECOND)
    return Standing(why, Instant(max(end, second + 1) * SECOND))


def day_at(zone: str, at: int) -> int:
    """The latest day that the zone's clock has shown by an instant, counted from 1970."""
    second = min(max(at // SECOND, EARLIEST), LATEST)
    stretch = stretch_at(zone, second)
    return (max(second, stretch.fresh - 1) + stretch.offset) // DAY_SECONDS


def beginning(zone: str, day: int) -> Instant:
    """The instant at which a day of the zone begins."""
    return Instant(first_pass(zone, min(max(day, _FIRST_DAY), _LAST_DAY + 1) * DAY_SECONDS) * SECOND)


@lru_cache(maxsize=8192)
def _in_season(bounds: Bounds, day: int) -> bool:
    found = date.fromordinal(day + _EPOCH_DAY)
    today = (found.month, found.day)
    return any(
        season.first <= today <= season.last if season.first <= season.last
        else today >= season.first or today <= season.last
        for season in bounds.seasons
    )


def _opening(season: Season, today: int) -> int:
    """The first day of a season after this one."""
    year = date.fromordinal(today + _EPOCH_DAY).year
    this_year = _day_in(year, season.first)
    return this_year if this_year > today else _day_in(year + 1, season.first)


def _closed(season: Season, today: int) -> int:
    """The first day after the season that ended last, today or before."""
    year = date.fromordinal(today + _EPOCH_DAY).year
    this_year = _day_after(year, season.last)
    return this_year if this_year <= today else _day_after(year - 1, season.last)


def _day_in(year: int, month_day: tuple[int, int]) -> int:
    """A day of a year; 1 March for a 29 February that the year does not have."""
    if not 1 <= year <= 9998:
        return _LAST_DAY + 1 if year > 1 else _FIRST_DAY - 1
    month, day = month_day
    if (month, day) == (2, 29) and not _is_leap(year):
        month, day = 3, 1
    return date(year, month, day).toordinal() - _EPOCH_DAY


def _day_after(year: int, month_day: tuple[int, int]) -> int:
    found = _day_in(year, month_day)
    missing = month_day == (2, 29) and 1 <= year <= 9998 and not _is_leap(year)
    return found if missing else found + 1


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


@lru_cache(maxsize=512)
def _closed_days(bounds: Bounds) -> tuple[tuple[int, ...], tuple[tuple[int, str], ...]]:
    """The beginnings of spans of days that are left out, and for each its last day and its words. What overlaps is
    cut, so that the spans follow each other; a day is what the first one that names it says."""
    found: list[tuple[int, int, str]] = []
    for first, last, days in sorted(
        ((_ordinal(each.first), _ordinal(each.last), each) for each in bounds.days),
        key=lambda each: (each[0], each[1], not each[2].name),
    ):
        begin = max(first, found[-1][1] + 1) if found else first
        if begin <= last:
            found.append((begin, last, words_of_days(days)))
    return tuple(each[0] for each in found), tuple((each[1], each[2]) for each in found)


def _ordinal(text: str) -> int:
    return date.fromisoformat(text).toordinal() - _EPOCH_DAY


_Hours = tuple[tuple[int, int, str | None], ...]


@lru_cache(maxsize=512)
def _hours_of_week(bounds: Bounds) -> tuple[_Hours, ...]:
    """For each day of the week, Monday first, its pieces: from which second, until which, why it is left out."""
    week: list[list[tuple[int, int, str]]] = [[] for _ in range(7)]
    for window in bounds.windows:
        why = words_of_window(window)
        begin, end = window.begin * 60, window.end * 60
        for weekday in window.weekdays or range(1, 8):
            if end > begin:
                week[weekday - 1].append((begin, end, why))
            else:
                week[weekday - 1].append((begin, DAY_SECONDS, why))
                week[weekday % 7].append((0, end, why))
    return tuple(_pieces(each) for each in week)


def _pieces(left_out: list[tuple[int, int, str]]) -> _Hours:
    edges = sorted({0, DAY_SECONDS, *(edge for begin, end, _ in left_out for edge in (begin, end))})
    return tuple(
        (begin, end, next((why for low, high, why in left_out if low <= begin < high), None))
        for begin, end in pairwise(edges)
    )
