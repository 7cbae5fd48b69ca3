"""The days and times of a recurrence rule on the clock of its zone, period by period.

A period is a day, a week, a month or a year of the rule, counted from the one that holds its first time; each can be
looked at without those before it. Which days one holds depends on the shape of its month or year, and is kept.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import date
from typing import Final

from nightporter.errors import BadSchedule
from nightporter.rules.rrule import Rule
from nightporter.rules.rrule_shapes import days_of_month, days_of_year, is_leap

DAY: Final = 86_400
_EPOCH_DAY: Final = 719_163
_FIRST_DAY: Final = date(2, 1, 1).toordinal() - _EPOCH_DAY
_LAST_DAY: Final = date(9998, 12, 31).toordinal() - _EPOCH_DAY
_CYCLE: Final = 146_097 + 366
"""After 400 years the calendar repeats: nothing is looked for that is further away."""
_MOST_COUNTED: Final = 10_000
"""Periods that are walked through at most to find the last time of a COUNT."""


class Recurrence:
    """The walls, in seconds as the zone's clock shows them, at which a daily or longer rule is due.

    An hourly rule asks it only which days it keeps to.
    """

    def __init__(self, rule: Rule, start: int) -> None:
        """`start` is the wall before which nothing is due. Raises BadSchedule when its COUNT cannot be counted."""
        self._rule = rule
        self._start = start
        self._day0, second = divmod(start, DAY)
        self._first = date.fromordinal(self._day0 + _EPOCH_DAY)
        self._times = tuple(
            hour * 3600 + minute * 60 + each
            for hour in rule.hours or (second // 3600,)
            for minute in rule.minutes or (second // 60 % 60,)
            for each in rule.seconds or (second % 60,)
        )
        self._weekdays = sorted((day - rule.week_start) % 7 for _, day in rule.weekdays) or [
            (self._first.weekday() - rule.week_start) % 7
        ]
        self._week0 = self._day0 - (self._first.weekday() - rule.week_start) % 7
        self._months: dict[tuple[int, int, int], tuple[int, ...]] = {}
        self._years: dict[tuple[int, bool, bool, bool], tuple[int, ...]] = {}
        self._last: int | None = None
        most = self._most_days() * len(self._times)
        if rule.positions and min(map(abs, rule.positions)) > most:
            raise BadSchedule("the recurrence rule never matches", why=f"BYSETPOS chooses among {most} times at most",
                              next="change BYSETPOS")
        if rule.count is not None and rule.freq != "HOURLY":
            self._last = self._counted(rule.count)

    def _most_days(self) -> int:
        """How many days a period has at most."""
        rule = self._rule
        match rule.freq:
            case "DAILY":
                return 1
            case "WEEKLY":
                return len(self._weekdays)
            case "MONTHLY":
                named = len(rule.month_days) or (31 if rule.weekdays else 1)
                return min(named, sum(1 if n else 5 for n, _ in rule.weekdays) or 31)
            case _:
                named = 366 if rule.weeks or rule.year_days or rule.month_days or rule.weekdays else 1
                return named if named > 1 else len(rule.months) or 1

    def first_after(self, wall: int) -> int | None:
        """The first time strictly after `wall`; None when there is none within 400 years."""
        wall = max(wall, self._start - 1)
        for days in self._periods(wall // DAY):
            times = self._chosen(days) if self._rule.positions else None
            found = _first_of(days, self._times, wall) if times is None else _above(times, wall)
            if found is not None:
                return found if self._last is None or found <= self._last else None
        return None

    def last_before(self, wall: int) -> int | None:
        """The last time at or before `wall`; None when there is none within 400 years."""
        wall = wall if self._last is None else min(wall, self._last)
        if wall < self._start:
            return None
        for days in self._periods_back(wall // DAY):
            times = self._chosen(days) if self._rule.positions else None
            found = _last_of(days, self._times, wall) if times is None else _below(times, wall)
            if found is not None:
                return found if found >= self._start else None
        return None

    def day_from(self, day: int) -> int | None:
        """The first day at or after this one that the rule's months, days of the month and weekdays allow."""
        end = min(day + _CYCLE, _LAST_DAY)
        while day <= end:
            found = date.fromordinal(day + _EPOCH_DAY)
            days = self._in_month(found.year, found.month)
            place = bisect_left(days, found.day)
            if place < len(days):
                return day - found.day + days[place]
            month = found.year * 12 + found.month
            while (allowed := self._rule.months) and month % 12 + 1 not in allowed:
                month += 1
            day = _ordinal(month // 12, month % 12 + 1)
        return None

    def day_back(self, day: int) -> int | None:
        """The last such day at or before this one."""
        end = max(day - _CYCLE, _FIRST_DAY)
        while day >= end:
            found = date.fromordinal(day + _EPOCH_DAY)
            days = self._in_month(found.year, found.month)
            place = bisect_right(days, found.day)
            if place:
                return day - found.day + days[place - 1]
            month = found.year * 12 + found.month - 2
            while (allowed := self._rule.months) and month % 12 + 1 not in allowed:
                month -= 1
            month += 1
            day = _ordinal(month // 12, month % 12 + 1) - 1
        return None

    # -- periods -------------------------------------------------------------------------------------------------

    def _periods(self, day: int) -> Iterator[tuple[int, ...]]:
        """The days of each period from the one that holds `day` on, for 400 years."""
        day = min(max(day, self._day0), _LAST_DAY)
        end, step = min(day + _CYCLE, _LAST_DAY), self._rule.interval
        match self._rule.freq:
            case "DAILY":
                at: int | None = day + (self._day0 - day) % step
                while at is not None and at <= end:
                    at = self.day_from(at)
                    if at is None or at > end:
                        return
                    late = (at - self._day0) % step
                    if not late:
                        yield (at,)
                    at += step - late
            case "WEEKLY":
                week = self._week0 + (day - self._week0) // (7 * step) * 7 * step
                while week <= end:
                    if days := self._in_week(week):
                        yield days
                        week += 7 * step
                        continue
                    after = self._month_after(week + 7)
                    week = self._week0 + -((self._week0 - max(after - 6, week + 1)) // (7 * step)) * 7 * step
            case "MONTHLY":
                month0, now = self._first.year * 12 + self._first.month - 1, _month_of(day)
                for month in range(month0 + (now - month0) // step * step, min(now + 4801, 9998 * 12 + 12), step):
                    first = _ordinal(month // 12, month % 12 + 1) - 1
                    if days := self._in_month(month // 12, month % 12 + 1):
                        yield tuple(first + each for each in days)
            case _:
                year0, now = self._first.year, date.fromordinal(day + _EPOCH_DAY).year
                for year in range(year0 + (now - year0) // step * step, min(now + 401, 9999), step):
                    if days := self._in_year(year):
                        first = _ordinal(year, 1)
                        yield tuple(first + each for each in days)

    def _periods_back(self, day: int) -> Iterator[tuple[int, ...]]:
        """The same backwards, to the first period."""
        day = min(max(day, self._day0), _LAST_DAY)
        step = self._rule.interval
        match self._rule.freq:
            case "DAILY":
                at: int | None = day - (day - self._day0) % step
                while at is not None and at >= self._day0:
                    at = self.day_back(at)
                    if at is None or at < self._day0:
                        return
                    late = (at - self._day0) % step
                    if not late:
                        yield (at,)
                    at -= late or step
            case "WEEKLY":
                week = self._week0 + (day - self._week0) // (7 * step) * 7 * step
                while week >= self._week0:
                    if days := self._in_week(week):
                        yield days
                        week -= 7 * step
                        continue
                    before = self._month_before(week - 1)
                    week = self._week0 + (min(before, week - 1) - self._week0) // (7 * step) * 7 * step
            case "MONTHLY":
                month0, now = self._first.year * 12 + self._first.month - 1, _month_of(day)
                for month in range(month0 + (now - month0) // step * step, month0 - 1, -step):
                    first = _ordinal(month // 12, month % 12 + 1) - 1
                    if days := self._in_month(month // 12, month % 12 + 1):
                        yield tuple(first + each for each in days)
            case _:
                year0, now = self._first.year, date.fromordinal(day + _EPOCH_DAY).year
                for year in range(year0 + (now - year0) // step * step, year0 - 1, -step):
                    if days := self._in_year(year):
                        first = _ordinal(year, 1)
                        yield tuple(first + each for each in days)

    def _in_week(self, week: int) -> tuple[int, ...]:
        days = tuple(week + each for each in self._weekdays)
        months = self._rule.months
        if not months:
            return days
        return tuple(each for each in days if date.fromordinal(each + _EPOCH_DAY).month in months)

    def _month_after(self, day: int) -> int:
        """The first day at or after this one that is in one of the rule's months."""
        found = date.fromordinal(min(day, _LAST_DAY) + _EPOCH_DAY)
        if found.month in self._rule.months:
            return day
        month = found.year * 12 + found.month
        while month % 12 + 1 not in self._rule.months:
            month += 1
        return _ordinal(month // 12, month % 12 + 1)

    def _month_before(self, day: int) -> int:
        """The last day at or before this one that is in one of the rule's months."""
        found = date.fromordinal(max(day, _FIRST_DAY) + _EPOCH_DAY)
        if found.month in self._rule.months:
            return day
        month = found.year * 12 + found.month - 2
        while month % 12 + 1 not in self._rule.months:
            month -= 1
        return _ordinal((month + 1) // 12, (month + 1) % 12 + 1) - 1

    def _in_month(self, year: int, month: int) -> tuple[int, ...]:
        """The days of a month, by their numbers."""
        first = date(year, month, 1).weekday()
        length = 28 + (is_leap(year) if month == 2 else 3 - (month in (4, 6, 9, 11)))
        days = self._months.get((month, first, length))
        if days is None:
            days = days_of_month(self._rule, month, first, length, self._first.day)
            self._months[month, first, length] = days
        return days

    def _in_year(self, year: int) -> tuple[int, ...]:
        """The days of a year, counted from 0."""
        shape = (date(year, 1, 1).weekday(), is_leap(year - 1), is_leap(year), is_leap(year + 1))
        days = self._years.get(shape)
        if days is None:
            days = self._years[shape] = days_of_year(self._rule, *shape, self._first)
        return days

    # -- times of a period ---------------------------------------------------------------------------------------

    def _chosen(self, days: tuple[int, ...]) -> list[int]:
        """The times of a period that BYSETPOS chooses."""
        many, total = len(self._times), len(days) * len(self._times)
        places = {each - 1 if each > 0 else total + each for each in self._rule.positions}
        return [
            days[place // many] * DAY + self._times[place % many] for place in sorted(places) if 0 <= place < total
        ]

    def _counted(self, count: int) -> int:
        """The wall of the last of so many times."""
        rule, per_day = self._rule, len(self._times)
        if not rule.positions and ((rule.freq == "DAILY" and not rule.limits_days)
                                   or (rule.freq == "WEEKLY" and not rule.months)):
            base = self._day0 if rule.freq == "DAILY" else self._week0
            days = [0] if rule.freq == "DAILY" else self._weekdays
            times = [day * DAY + time for day in days for time in self._times]
            before = bisect_left(times, self._start - base * DAY)
            period, place = divmod(count - 1 + before, len(times))
            return base * DAY + period * rule.interval * (1 if rule.freq == "DAILY" else 7) * DAY + times[place]
        left = count
        for walked, days_of in enumerate(self._periods(self._day0)):
            if walked == _MOST_COUNTED:
                break
            if rule.positions or walked == 0:
                found = self._chosen(days_of) if rule.positions else [
                    day * DAY + time for day in days_of for time in self._times
                ]
                found = [wall for wall in found if wall >= self._start]
                if len(found) >= left:
                    return found[left - 1]
                left -= len(found)
            elif len(days_of) * per_day >= left:
                return days_of[(left - 1) // per_day] * DAY + self._times[(left - 1) % per_day]
            else:
                left -= len(days_of) * per_day
        if left == count:
            return self._start  # it has no time at all
        raise BadSchedule(f"COUNT={count} is too much to be counted through",
                          why="the rule would have to be walked through to its end", next="write UNTIL instead")


def _first_of(days: tuple[int, ...], times: tuple[int, ...], wall: int) -> int | None:
    day, time = divmod(wall, DAY)
    place = bisect_left(days, day)
    if place < len(days) and days[place] == day:
        later = bisect_right(times, time)
        if later < len(times):
            return day * DAY + times[later]
        place += 1
    return days[place] * DAY + times[0] if place < len(days) else None


def _last_of(days: tuple[int, ...], times: tuple[int, ...], wall: int) -> int | None:
    day, time = divmod(wall, DAY)
    place = bisect_right(days, day)
    if place and days[place - 1] == day:
        later = bisect_right(times, time)
        if later:
            return day * DAY + times[later - 1]
        place -= 1
    return days[place - 1] * DAY + times[-1] if place else None


def _above(walls: list[int], wall: int) -> int | None:
    place = bisect_right(walls, wall)
    return walls[place] if place < len(walls) else None


def _below(walls: list[int], wall: int) -> int | None:
    place = bisect_right(walls, wall)
    return walls[place - 1] if place else None


def _ordinal(year: int, month: int) -> int:
    """The first day of a month."""
    return date(year, month, 1).toordinal() - _EPOCH_DAY if year <= 9999 else _LAST_DAY + 1


def _month_of(day: int) -> int:
    found = date.fromordinal(day + _EPOCH_DAY)
    return found.year * 12 + found.month - 1
