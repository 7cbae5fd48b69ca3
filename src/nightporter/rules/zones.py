"""Zones: IANA names out of the pinned `tzdata` package, cut into stretches of one UTC offset.

The machine's own zone files are never read: they differ between hosts and may be older than the release that
is recorded with each armed slot. The search path of `zoneinfo` is left alone, because a program that embeds
the engine may rely on it. All instants here are whole seconds since the epoch, UTC; a *wall* is what the clock
in the zone shows, counted in the same way.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import datetime
from functools import lru_cache
from importlib import import_module, resources
from itertools import pairwise
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from nightporter.clock import MINUTE, Instant, moment
from nightporter.errors import BadSchedule

TZDATA: Final[str] = str(import_module("tzdata").IANA_VERSION)
"""The release of the time zone database in use, for example `2026f`."""

DAY_SECONDS: Final = 86_400
EARLIEST: Final = -62_135_000_000
"""A second in January of the year 1; nothing is looked for before it."""
LATEST: Final = 253_401_000_000
"""A second in December of the year 9999; nothing is looked for after it."""

_BLOCK_BITS: Final = 25
"""Offsets are looked up and kept in blocks of 2**25 seconds, a little over a year."""

_STEP: Final = 2 * DAY_SECONDS


class Stretch(NamedTuple):
    """A time during which the zone's UTC offset does not change, or a part of one."""

    start: int
    end: int
    """The first second after it."""
    offset: int
    """Seconds to add to UTC."""
    fresh: int
    """From here on the wall shows what it has not shown before; later than `start` after a fold."""


@lru_cache(maxsize=1)
def names() -> frozenset[str]:
    """Every zone name of the release."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    # "Factory" is the release's own word for a machine on which nobody has set a zone.
    return frozenset(listed) - {"Factory"}


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """The zone of that IANA name, exactly as written. Raises BadSchedule for any other text."""
    if name not in names():
        raise _unknown(name)
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def stretch_at(name: str, second: int) -> Stretch:
    """The stretch of the zone that holds this second, which lies between EARLIEST and LATEST."""
    starts, stretches = _block(name, second >> _BLOCK_BITS)
    return stretches[bisect_right(starts, second) - 1]


def first_pass(name: str, wall: int) -> int:
    """The UTC second at which the wall of the zone first shows `wall`, or has just jumped over it.

    `wall` lies within the years 2 to 9998.
    """
    stretch = stretch_at(name, max(wall - 2 * DAY_SECONDS, EARLIEST))
    while wall - stretch.offset >= stretch.end:
        stretch = stretch_at(name, stretch.end)
    return max(wall - stretch.offset, stretch.start)


def month_at(at: Instant, timezone: str) -> str:
    """The month that it is in a zone: `2026-11`."""
    return _month(at // (15 * MINUTE), timezone)


@lru_cache(maxsize=1024)
def _month(quarter_hour: int, timezone: str) -> str:
    # No zone changes its offset within a quarter of an hour, so a month turns on one.
    return f"{moment(Instant(quarter_hour * 15 * MINUTE)).astimezone(zone(timezone)):%Y-%m}"


@lru_cache(maxsize=4096)
def _block(name: str, block: int) -> tuple[tuple[int, ...], tuple[Stretch, ...]]:
    rules = zone(name)
    low, high = block << _BLOCK_BITS, (block + 1) << _BLOCK_BITS
    low, high = max(low, EARLIEST - 4 * DAY_SECONDS), min(high, LATEST + 4 * DAY_SECONDS)
    # No zone ever went back by more than a day, so two days before the block settle what its walls have shown.
    edges = [low - 2 * DAY_SECONDS, *_changes(rules, low - 2 * DAY_SECONDS, high), high]
    stretches: list[Stretch] = []
    shown = edges[0] + _offset(rules, edges[0])
    for start, end in pairwise(edges):
        offset = _offset(rules, start)
        if end > low:
            start = max(start, low)
            stretches.append(Stretch(start, end, offset, max(start, shown - offset)))
        shown = max(shown, end + offset)
    return tuple(stretch.start for stretch in stretches), tuple(stretches)


def _changes(rules: ZoneInfo, low: int, high: int) -> list[int]:
    """The seconds after `low` and before `high` from which another offset holds."""
    found: list[int] = []
    before = _offset(rules, low)
    # Two changes within a step that cancel each other would be overlooked; the closest ever were a week apart.
    for start in range(low, high, _STEP):
        end = min(start + _STEP, high - 1)
        while before != (after := _offset(rules, end)):
            left, right = start, end
            while right - left > 1:
                middle = (left + right) // 2
                if _offset(rules, middle) == before:
                    left = middle
                else:
                    right = middle
            found.append(right)
            start, before = right, _offset(rules, right)
        before = after
    return found


def _offset(rules: ZoneInfo, second: int) -> int:
    shift = datetime.fromtimestamp(second, rules).utcoffset()
    if shift is None:
        raise ValueError(f"{rules} has no offset at {second}")
    return shift.days * DAY_SECONDS + shift.seconds


def _unknown(name: str) -> BadSchedule:
    from difflib import get_close_matches

    # Never offer Etc/GMT+5 to somebody who wrote GMT+5: its sign says the opposite.
    offerable = sorted(each for each in names() if not any(character.isdigit() for character in each))
    by_fold = {each.casefold(): each for each in offerable}
    by_city = {each.rsplit("/", 1)[-1].casefold(): each for each in offerable}
    asked = name.strip().replace(" ", "_").casefold()[:100]
    near = [by_fold[asked]] if asked in by_fold else []
    near += [by_fold[each] for each in get_close_matches(asked, by_fold, n=3, cutoff=0.75)]
    near += [by_city[each] for each in get_close_matches(asked, by_city, n=2, cutoff=0.8)]
    offered = list(dict.fromkeys(near))[:3]
    return BadSchedule(
        f"no time zone is named {name[:100]!r}" if asked else "no time zone is given",
        why=f"a zone is an IANA name of the release {TZDATA}, written exactly so; "
        "offsets and abbreviations name no place whose clock could be followed",
        next=f"did you mean {' or '.join(offered)}?" if offered else "write a name like Europe/Berlin, or UTC",
    )
