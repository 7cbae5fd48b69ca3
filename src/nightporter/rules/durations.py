"""Durations as people write them: `90s`, `15m`, `1h30m`, `500ms`, `PT15M`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from nightporter.errors import BadSchedule

_UNITS: Final = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
}
"""Microseconds of each unit, the longest first."""

_NUMBER: Final = r"[0-9]{1,15}(?:\.[0-9]{1,6})?"
_SHORT: Final = re.compile(r"\s*".join(f"(?:({_NUMBER}){unit}(?![a-z]))?" for unit in _UNITS))
_ISO: Final = re.compile(
    rf"P(?=[0-9T])(?:({_NUMBER})W)?(?:({_NUMBER})D)?(?:T(?=[0-9])(?:({_NUMBER})H)?(?:({_NUMBER})M)?(?:({_NUMBER})S)?)?"
)
_LONGEST: Final = 36_525 * _UNITS["d"]


def parse_duration(text: str) -> timedelta:
    """The duration that is written, zero or more and a hundred years at most. Raises BadSchedule.

    Units are `ms s m h d w`, the longest first, or an ISO 8601 duration without years and months.
    """
    written = text.strip()
    match = _ISO.fullmatch(written) or _SHORT.fullmatch(written)
    if match is None or not any(match.groups()):
        raise _not_a_duration(written)
    micros = sum(
        _times(number, unit) for number, unit in zip(match.groups(), _UNITS.values(), strict=False) if number
    )
    if micros > _LONGEST:
        raise BadSchedule(
            f"the duration {written[:40]!r} is too long", why="a hundred years is the most", next="write a shorter one"
        )
    return timedelta(microseconds=micros)


def format_duration(duration: timedelta) -> str:
    """The shortest text that `parse_duration` reads as this duration; a minus in front when it is negative."""
    micros = (duration.days * 86_400 + duration.seconds) * 1_000_000 + duration.microseconds
    if micros < 0:
        return "-" + format_duration(-duration)
    if micros == 0:
        return "0s"
    if micros % _UNITS["w"] == 0:
        return f"{micros // _UNITS['w']}w"
    parts: list[str] = []
    for unit, length in list(_UNITS.items())[1:]:
        count, micros = divmod(micros, length)
        if unit == "ms" and micros:
            parts.append(f"{count}.{micros:03}".rstrip("0") + unit)
        elif count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def _times(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


def _not_a_duration(written: str) -> BadSchedule:
    what = f"{written[:40]!r} is not a duration" if written else "the duration is empty"
    if re.fullmatch(r"[0-9]{1,9}", written):
        return BadSchedule(
            what, why="a number alone names no unit", next=f"write {written}s, {written}m or {written}h"
        )
    if re.search(r"[0-9]\s*(?:mo|month|y|year)|P[0-9]+[YM]", written, re.IGNORECASE):
        return BadSchedule(
            what,
            why="months and years have no fixed length",
            next="count in days (30d), or use a cron expression such as 0 9 1 * *",
        )
    return BadSchedule(
        what,
        why="the units are ms, s, m, h, d and w, the longest first",
        next="write something like 90s, 15m, 1h30m, 1d or PT15M",
    )
