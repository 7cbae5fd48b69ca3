"""The slots of a few kinds of schedules, found anew: slowly, and without anything of `nightporter.rules`."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MICRO = 1_000_000
HOUR = 3_600 * MICRO
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"s": MICRO, "m": 60 * MICRO, "h": HOUR}
_DAYS = 400
"""How far beyond its beginning a calendar is drawn up."""


class Slots:
    """The slots of one schedule; `anchor` is what an interval is counted from."""

    def __init__(self, kind: str, expression: str, zone: str, anchor: int) -> None:
        self._period, self._anchor, self._listed = 0, anchor, [0]
        if kind == "every":
            self._period = int(expression[:-1]) * _UNITS[expression[-1]]
        elif kind == "at":
            self._listed = [_micros(datetime.fromisoformat(expression))]
        elif expression == "*/20 * * * *":  # whatever the zone: their offsets are whole hours
            self._period, self._anchor = HOUR // 3, -(10**6) * HOUR
        else:
            self._listed = _calendar(expression, zone, anchor // (24 * HOUR) - 2)

    def next(self, after: int) -> int | None:
        """The first slot after an instant."""
        if self._period:
            return self._anchor + max(0, (after - self._anchor) // self._period + 1) * self._period
        at = bisect_right(self._listed, after)
        return self._listed[at] if at < len(self._listed) else None

    def count(self, after: int, until: int) -> int:
        """How many there are after an instant, until another or at it."""
        if self._period:
            return max(0, self._up_to(until) - self._up_to(after))
        return max(0, bisect_right(self._listed, until) - bisect_right(self._listed, after))

    def between(self, after: int, until: int) -> list[int]:
        """They themselves."""
        found, slot = [], self.next(after)
        while slot is not None and slot <= until:
            found.append(slot)
            slot = self.next(slot)
        return found

    def _up_to(self, instant: int) -> int:
        return 0 if instant < self._anchor else (instant - self._anchor) // self._period + 1

    def has(self, slot: int) -> bool:
        return self.next(slot - 1) == slot


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


@lru_cache(maxsize=256)
def _calendar(expression: str, zone: str, day: int) -> list[int]:
    minute, hours, _, _, weekdays = expression.split()
    tz = ZoneInfo(zone)
    if hours == "*/6":  # follows elapsed time: every hour whose number is on the wall
        first = (_EPOCH + timedelta(days=day))
        moments = [first + timedelta(hours=n, minutes=int(minute)) for n in range(24 * _DAYS)]
        return [_micros(m) for m in moments if m.astimezone(tz).hour % 6 == 0]
    found = set()
    for n in range(_DAYS):
        date = (_EPOCH + timedelta(days=day + n)).date()
        if weekdays == "mon-fri" and date.weekday() > 4:
            continue
        for hour in hours.split(","):
            found.add(_micros(_valid(datetime(date.year, date.month, date.day, int(hour), int(minute), tzinfo=tz))))
    return sorted(found)


def _valid(wall: datetime) -> datetime:
    """The first instant at which a zone's clock shows this; where it never does, the end of the gap."""
    moment = wall.replace(fold=0).astimezone(UTC)
    if moment.astimezone(wall.tzinfo).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return moment
    offset = moment.astimezone(wall.tzinfo).utcoffset()
    minute = timedelta(minutes=1)
    while (moment - minute).astimezone(wall.tzinfo).utcoffset() == offset:
        moment -= minute
    return moment


