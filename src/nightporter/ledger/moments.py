"""Instants and durations as people and programs read them."""

from __future__ import annotations

import re

from nightporter.clock import SECOND, Instant, has_date, micros, moment, rfc3339
from nightporter.errors import BadSchedule
from nightporter.rules.durations import parse_duration
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import zone

_LONG_AGO = Instant(-62_000_000_000 * SECOND)


def local(at: Instant | None, timezone: str) -> str | None:
    """RFC 3339 with the offset of a zone: `2026-03-27T09:00:00+01:00`. None stays None."""
    if at is None:
        return None
    try:
        return moment(at).astimezone(zone(timezone)).isoformat()
    except (BadSchedule, OverflowError):  # a zone that a newer release has dropped, an instant beyond the calendar
        return rfc3339(at)


def spoken(at: Instant, timezone: str) -> str:
    """`2026-03-27 09:00 Europe/Berlin`, with seconds only where there are any."""
    try:
        there = moment(at).astimezone(zone(timezone))
    except (BadSchedule, OverflowError):
        if not has_date(at):
            return str(rfc3339(at))
        there, timezone = moment(at), "UTC"
    seconds = there.second or there.microsecond
    return f"{there:%Y-%m-%d %H:%M:%S} {timezone}" if seconds else f"{there:%Y-%m-%d %H:%M} {timezone}"


def seconds(duration: int | None) -> float | None:
    """Microseconds as seconds."""
    return None if duration is None else duration / SECOND


def lasting(duration: int) -> str:
    """A length of time in words, as exact as it is worth: `40 ms`, `3.2 s`, `5 min 12 s`, `2 h 3 min`, `4 d 6 h`."""
    whole = abs(duration)
    if whole < SECOND:
        return f"{whole / 1000:.0f} ms"
    if whole < 60 * SECOND:
        return f"{whole / SECOND:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(round(whole / SECOND), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")


def asked_moment(text: str, timezone: str, now: Instant, *, ahead: bool = False) -> Instant:
    """The instant somebody means: `2026-11-03T07:30`, in the zone unless it has an offset; or `07:30`, `07:30:15`: the
    last one that has come, or `ahead` the next one. Raises BadSchedule."""
    written = text.strip()
    clock = _CLOCK.fullmatch(written)
    if clock is not None and int(clock[1]) < 24 and int(clock[2]) < 60 and int(clock[3] or 0) < 60:
        daily = parse("cron", f"{int(clock[2])} {int(clock[1])} * * *", timezone)
        beyond = int(clock[3] or 0) * SECOND
        found = next_due(daily, Instant(now - beyond - (0 if ahead else 49 * 3600 * SECOND)))
        while not ahead and found is not None:
            later = next_due(daily, found)
            if later is None or later + beyond > now:
                break
            found = later
        if found is not None:
            return Instant(found + beyond)
    try:
        found = next_due(parse("at", written, timezone), _LONG_AGO)
    except BadSchedule as error:
        raise BadSchedule(error.what, why=error.why, next=_MOMENTS) from error
    if found is None:
        raise BadSchedule(f"{written!r} is out of reach", next=_MOMENTS)
    return found


_MOMENTS = "write a time of day like 07:30, or an instant like 2026-11-03T07:30"


def asked_span(text: str, timezone: str, now: Instant, *, ahead: bool = False) -> Instant:
    """As `asked_moment`, or a span from now: `2h` ago, `ahead` in 2h. Raises BadSchedule."""
    try:
        span = micros(parse_duration(text))
    except BadSchedule:
        try:
            return asked_moment(text, timezone, now, ahead=ahead)
        except BadSchedule as error:
            raise BadSchedule(error.what, why=error.why, next=f"{_MOMENTS}, or a span like 2h") from error
    return Instant(now + span if ahead else now - span)
