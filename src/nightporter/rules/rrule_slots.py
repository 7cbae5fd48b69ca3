"""The slots of a recurrence rule: which instant comes next, in microseconds UTC.

    daily and longer   on the clock of the zone; a time that a clock change leaves out comes as much later as the clock
                       jumped, unless that was 3 h or more; a time that is shown twice counts the first time
    hourly             follows elapsed time, as wildcard cron does
    finer              a grid of elapsed time
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nightporter.clock import SECOND, Instant
from nightporter.errors import BadSchedule
from nightporter.rules.bounds import BoundedSlots, Slots, beginning
from nightporter.rules.recurrence import Recurrence
from nightporter.rules.rrule import Rule, end_of_rule, parse_rule
from nightporter.rules.slots import EverySlots
from nightporter.rules.zones import EARLIEST, LATEST, Stretch, stretch_at
from nightporter.words.bounds import Bounds

_CORRECTION: Final = 3 * 3600
"""A jump of so many seconds is a correction: what it leaves out is not made up."""
_MOST_COUNTED: Final = 2000
"""Of an hourly rule with BY parts: how many are counted through."""
_GRID: Final = {"SECONDLY": SECOND, "MINUTELY": 60 * SECOND, "HOURLY": 3600 * SECOND}


def slots_of_rule(expression: str, zone: str, anchor: int | None) -> Slots:
    """The slots of a rule whose first time may not be before `anchor`. Raises BadSchedule.

    One that is not anchored yet is taken from the epoch, each of its periods: which of them it keeps is not known.
    """
    rule = parse_rule(expression)
    if anchor is None:
        anchor, rule = 0, replace(rule, interval=1)
    anchor -= anchor % SECOND
    end = end_of_rule(rule, zone)
    slots: Slots
    period = _GRID.get(rule.freq)
    plain = not (rule.limits_days or rule.hours or rule.minutes or rule.seconds)
    if period is not None and plain:
        period *= rule.interval
        slots = EverySlots(period, anchor)
        if rule.count is not None:
            end = Instant(anchor + (rule.count - 1) * period)
    else:
        second = anchor // SECOND
        if not EARLIEST + 800 * 86_400 <= second <= LATEST - 800 * 86_400:
            raise BadSchedule("the anchor is out of reach", why="the years go from 4 to 9996", next="check the year")
        wall = second + stretch_at(zone, second).offset
        recurrence = Recurrence(rule, wall)
        slots = RuleSlots(recurrence, zone) if period is None else _hourly(rule, recurrence, zone, second)
        if slots.next(anchor - 1) is None:
            raise BadSchedule(f"the recurrence rule {expression[:200]!r} never matches", why="no year has such a day",
                              next="change its days or its months")
    return slots if end is None else BoundedSlots(slots, Bounds(end=end), zone)


@dataclass(frozen=True, slots=True)
class RuleSlots:
    """A daily or longer rule in its zone."""

    recurrence: Recurrence
    zone: str

    def next(self, after: int) -> Instant | None:
        """The first slot strictly after; None when there is none within 400 years."""
        second = max(after // SECOND, EARLIEST)
        if second >= LATEST:
            return None
        stretch, begin = self._around(second)
        wall: int | None = begin
        best: int | None = None
        while wall is not None and (wall := self.recurrence.first_after(wall)) is not None:
            if stretch.start <= wall - stretch.offset < stretch.end:
                found, made_up = wall - stretch.offset, False
            else:
                resolved = _resolved(self.zone, wall)
                if resolved is None:
                    continue
                found, made_up = resolved
            if found > second:
                best = found if best is None else min(best, found)
                if not made_up:
                    break
        return None if best is None or best >= LATEST else Instant(best * SECOND)

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before; None when there is none."""
        second = min(before // SECOND, LATEST)
        if second < EARLIEST:
            return None
        stretch = stretch_at(self.zone, second)
        wall: int | None = max(second, stretch.fresh - 1) + stretch.offset + 1
        best: int | None = None
        floor: int | None = None
        while wall is not None and (wall := self.recurrence.last_before(wall - 1)) is not None:
            if floor is not None and wall <= floor:
                break
            resolved = _resolved(self.zone, wall)
            if resolved is None or resolved[0] > second:
                continue
            best = resolved[0] if best is None else max(best, resolved[0])
            if floor is None:
                floor = self._around(best)[1]  # what a gap before it left out may come later than it
        return None if best is None else Instant(best * SECOND)

    def _around(self, second: int) -> tuple[Stretch, int]:
        """The stretch that holds a second, and the wall after which times are due later than it, or may be: shortly
        after a gap, those that the gap left out."""
        stretch = stretch_at(self.zone, second)
        shown = max(second, stretch.fresh - 1) + stretch.offset
        if second - stretch.start < _CORRECTION and stretch.start > EARLIEST:
            before = stretch_at(self.zone, stretch.start - 1)
            if stretch.offset > before.offset:
                return stretch, min(shown, stretch.start + before.offset - 1)
        return stretch, shown


def _resolved(zone: str, wall: int) -> tuple[int, bool] | None:
    """The second at which the zone's clock first shows a wall, or would have without a gap, and whether it was one;
    None for what a correction left out."""
    stretch = stretch_at(zone, max(wall - 2 * 86_400, EARLIEST))
    offset = stretch.offset
    while wall - stretch.offset >= stretch.end:
        if stretch.end >= LATEST:
            return LATEST, False
        offset = stretch.offset
        stretch = stretch_at(zone, stretch.end)
    if wall - stretch.offset >= stretch.start:
        return wall - stretch.offset, False
    return (wall - offset, True) if stretch.offset - offset < _CORRECTION else None


@dataclass(frozen=True, slots=True)
class HourlySlots:
    """An hourly rule that names minutes, hours or days."""

    recurrence: Recurrence
    zone: str
    rule: Rule
    begin: int
    """The second with which the hour of its first time began."""
    first: int
    """The second before which nothing is due."""
    times: tuple[int, ...]
    """Seconds of an hour."""

    def next(self, after: int) -> Instant | None:
        """The first slot strictly after; None when there is none within 400 years."""
        second, step = max(after // SECOND, self.first - 1), self.rule.interval * 3600
        place = max((second - self.begin) // step - 1, 0)
        while (hour := self._hour(place)) is not None:
            day, time = divmod(hour + stretch_at(self.zone, hour).offset, 86_400)
            coming = self.recurrence.day_from(day)
            if coming is None:
                return None
            if coming > day:
                place = max(place + 1, (beginning(self.zone, coming) // SECOND - self.begin) // step - 1)
                continue
            if not self.rule.hours or time // 3600 in self.rule.hours:
                for each in self.times:
                    if hour + each > second:
                        return Instant((hour + each) * SECOND)
            place += 1
        return None

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before; None when there is none."""
        second, step = before // SECOND, self.rule.interval * 3600
        place = (min(second, LATEST) - self.begin) // step + 1
        while place >= 0:
            hour = self._hour(place)
            if hour is None:
                place -= 1
                continue
            day, time = divmod(hour + stretch_at(self.zone, hour).offset, 86_400)
            gone = self.recurrence.day_back(day)
            if gone is None:
                return None
            if gone < day:
                place = min(place - 1, (beginning(self.zone, gone + 1) // SECOND - self.begin) // step + 1)
                continue
            if not self.rule.hours or time // 3600 in self.rule.hours:
                for each in reversed(self.times):
                    if self.first <= hour + each <= second:
                        return Instant((hour + each) * SECOND)
            place -= 1
        return None

    def _hour(self, place: int) -> int | None:
        """The second with which a period begins; None past the year 9999."""
        at = self.begin + place * self.rule.interval * 3600
        return at if at < LATEST - 86_400 else None


def _hourly(rule: Rule, recurrence: Recurrence, zone: str, second: int) -> Slots:
    inside = (second + stretch_at(zone, second).offset) % 3600
    times = [
        minute * 60 + each for minute in rule.minutes or (inside // 60,) for each in rule.seconds or (inside % 60,)
    ]
    if rule.positions:
        places = {each - 1 if each > 0 else len(times) + each for each in rule.positions}
        times = [times[place] for place in sorted(places) if 0 <= place < len(times)]
    if not times:
        raise BadSchedule("the recurrence rule never matches", why="BYSETPOS names none of its times of an hour",
                          next="change BYSETPOS")
    slots = HourlySlots(recurrence, zone, rule, second - inside, second, tuple(times))
    if rule.count is None:
        return slots
    if rule.count > _MOST_COUNTED:
        raise BadSchedule(f"COUNT={rule.count} is too much to be counted through",
                          why=f"{_MOST_COUNTED} are the most of an hourly rule with BY parts",
                          next="write UNTIL instead")
    last: int = second * SECOND - 1
    for _ in range(rule.count):
        found = slots.next(last)
        if found is None:
            break
        last = found
    return BoundedSlots(slots, Bounds(end=Instant(last)), zone)
