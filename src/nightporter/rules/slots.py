"""The slots of one checked schedule: which instant comes next, in microseconds UTC.

Cron is matched on the wall of its zone, stretch by stretch of one UTC offset:

    fixed job, wall jumps forward   once, at the first instant after the gap, unless the jump is 3 h or more
    fixed job, wall goes back       what the wall shows a second time is passed over
    wildcard job                    every match of every stretch: it follows elapsed time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nightporter.clock import DAY, SECOND, Instant
from nightporter.rules.cron import Cron
from nightporter.rules.zones import DAY_SECONDS, EARLIEST, LATEST, stretch_at

_CORRECTION: Final = 3 * 3600
"""A jump of so many seconds is no summer time but a correction: what it leaves out is not made up."""

_LOOK_BACK: Final = 100 * 366 * DAY
"""How far `previous` looks."""


@dataclass(frozen=True, slots=True)
class CronSlots:
    """A cron expression in its zone."""

    cron: Cron
    zone: str

    def next(self, after: int) -> Instant | None:
        """The first slot strictly after; None when there is none before the end of the year 9999."""
        cron, zone = self.cron, self.zone
        fixed = not cron.wild
        # The stretch is that of the second before: what a gap left out may be due at the very next one.
        inside = max(after // SECOND, EARLIEST)
        second = inside + 1
        while inside < LATEST:
            _, end, offset, fresh = stretch_at(zone, inside)
            if fixed and second < fresh:
                if fresh >= end:
                    inside = second = end
                    continue
                second = fresh
            wall = cron.first_from(second + offset)
            if wall is None:
                return None
            found = wall - offset
            if found < end:
                return Instant(found * SECOND)
            if end - second > 2 * DAY_SECONDS and found - end > 4 * DAY_SECONDS:
                # Nothing matches in between: no fold reaches back to before `second`, and no gap holds a match.
                inside = second = found - 2 * DAY_SECONDS
                continue
            jump = stretch_at(zone, end).offset - offset
            if fixed and found < end + jump and jump < _CORRECTION:
                return Instant(end * SECOND)
            inside = second = end
        return None

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before; None when there is none within a hundred years."""
        reach = SECOND
        while reach < 4 * _LOOK_BACK:
            reach *= 8
            low = self.next(before - min(reach, _LOOK_BACK))
            if low is not None and low <= before:
                return self._last_between(low, before)
        return None

    def _last_between(self, slot: Instant, before: int) -> Instant:
        """The last slot at or before `before`, when `slot` is one of them."""
        beyond = before + 1
        while (following := self.next(slot)) is not None and following <= before:
            slot = following
            middle = (slot + beyond) // 2
            later = self.next(middle)
            if later is not None and later <= before:
                slot = later
            else:
                beyond = middle
        return slot


@dataclass(frozen=True, slots=True)
class EverySlots:
    """A grid of elapsed time; the anchor is its first slot."""

    period: int
    """Microseconds."""
    anchor: int

    def next(self, after: int) -> Instant:
        """The first slot strictly after."""
        if after < self.anchor:
            return Instant(self.anchor)
        return Instant(after + self.period - (after - self.anchor) % self.period)

    def previous(self, before: int) -> Instant | None:
        """The last slot at or before; None before the anchor."""
        return None if before < self.anchor else Instant(before - (before - self.anchor) % self.period)

    def count(self, after: int, until: int) -> int:
        """How many slots there are after, and until or at the end."""
        return max(0, self._up_to(until) - self._up_to(after))

    def _up_to(self, instant: int) -> int:
        return 0 if instant < self.anchor else (instant - self.anchor) // self.period + 1


@dataclass(frozen=True, slots=True)
class AtSlot:
    """One instant."""

    instant: Instant

    def next(self, after: int) -> Instant | None:
        """The slot when it lies strictly after."""
        return self.instant if after < self.instant else None

    def previous(self, before: int) -> Instant | None:
        """The slot when it lies at or before."""
        return self.instant if self.instant <= before else None
