"""Times of day as people say them, and the morning, noon and night that tell which half is meant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from nightporter.errors import BadSchedule
from nightporter.rules.plain.tokens import Piece


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day. `said` is how: `am` or `pm`; `exact` (noon, 2026-12-24T18:00); `padded` (09:00); `bare` (9, 9:30),
    which is on the 24-hour clock; `midnight`; or the part of the day that stood beside it."""

    hour: int
    minute: int = 0
    second: int = 0
    said: str = "exact"

    @property
    def of_day(self) -> int:
        """Seconds since midnight."""
        return self.hour * 3600 + self.minute * 60 + self.second

    @property
    def shown(self) -> str:
        """`09:00`, or `09:00:30`."""
        return f"{self.hour:02}:{self.minute:02}" + (f":{self.second:02}" if self.second else "")

    @property
    def half_is_open(self) -> bool:
        """It could be meant of either half of the day, where something beside it says so."""
        return self.said == "bare" and 1 <= self.hour <= 12


_PARTS: Final = {
    "morning": {**{hour: hour for hour in range(1, 12)}},
    "afternoon": {12: 12, **{hour: hour + 12 for hour in range(1, 7)}, **{hour: hour for hour in range(13, 19)}},
    "evening": {**{hour: hour + 12 for hour in range(5, 12)}, **{hour: hour for hour in range(17, 24)}},
    "night": {**{hour: hour + 12 for hour in range(8, 12)}, 12: 0, **{hour: hour for hour in range(6)},
              **{hour: hour for hour in range(20, 24)}},
}
"""The hours that are said with each part of the day, and which they are on the 24-hour clock."""


def time_of(tokens: list[Piece]) -> Time:
    """The time that `7`, `7:30pm`, `noon` or `7 in the evening` is. Raises BadSchedule for one that does not exist."""
    shift = tokens[0].value if tokens[0].kind == "PASTHOUR" else 0
    token = tokens[bool(shift)]
    if token.kind == "HOUR":
        found = Time(token.value, said="bare")
    else:
        hour, minute, second, said = token.value
        found = Time(hour, minute, second, said)
        if said in ("am", "pm"):
            if not 1 <= hour <= 12:
                raise _no_time(f"{hour}{said}", "with am and pm the hour goes from 1 to 12")
            found = replace(found, hour=hour % 12 + 12 * (said == "pm"))
    if found.hour > 23 or found.minute > 59 or found.second > 59:
        midnight = found.hour == 24 and not found.minute
        raise _no_time(found.shown, "the hours go from 00:00 to 23:59" + (
            "; the midnight that ends a day is 00:00 of the next one" if midnight else ""))
    if shift:
        if found.minute or found.second:
            raise _no_time(found.shown, "half past and quarter to are said of an hour")
        minutes = (found.hour * 60 + shift) % 1440
        found = replace(found, hour=minutes // 60, minute=minutes % 60)
    parts = [each.value for each in tokens if each.kind == "PART"]
    return in_part(found, parts[0]) if parts else found


def in_part(time: Time, part: str) -> Time:
    """The time, in that part of the day. Raises BadSchedule where it does not lie there."""
    hours = _PARTS[part]
    if time.said in ("am", "pm", "exact", "padded", "midnight"):
        if time.hour in hours.values() or (time.said == "midnight" and part == "night"):
            return time
    elif time.hour in hours:
        return replace(time, hour=hours[time.hour], said=part)
    raise BadSchedule(f"{time.shown} is not in the {part}",
        why="the time and the part of the day contradict each other",
                      next="write one of them, such as `at 19:00`")


def one_clock(times: list[Time]) -> None:
    """Refuse a list in which am or pm stands at one time and not at another that could be either."""
    marked = [time for time in times if time.said in ("am", "pm", *_PARTS)]
    open_ = [time for time in times if time.half_is_open]
    if marked and open_:
        first = open_[0]
        other = replace(first, hour=(first.hour + 12) % 24)
        raise BadSchedule(
            f"{first.hour}{f':{first.minute:02}' if first.minute else ''} beside {marked[0].shown} is ambiguous",
                why=f"it may be {first.shown} or {other.shown}",
            next=f"write {first.shown} or {other.shown}",
        )


def _no_time(shown: str, why: str) -> BadSchedule:
    return BadSchedule(f"{shown} is not a time of day", why=why, next="write it like 09:00, 21:30 or 9:30pm")
