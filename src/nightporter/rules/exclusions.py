"""Which slots of a schedule are left out, and why. Preview, the clock and the audit all ask here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nightporter.clock import DAY, Instant
from nightporter.rules.bounds import standing
from nightporter.rules.schedule import count_between, next_due, previous_due
from nightporter.words.automation import Schedule

MOST_ROWS: Final = 20
"""Rows that a span is told in at most; what came before them is one row."""
_MOST_PIECES: Final = 1500
"""Pieces of days that are looked through, one by one, for rows."""
_MOST_SKIPPED: Final = 400
"""Pieces that are left out and skipped at most in search of a slot that runs."""
_HORIZON: Final = 50 * 366 * DAY
_MOST_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Row:
    """Slots that follow each other and are all left out, or none of them."""

    first: Instant
    last: Instant
    count: int
    exact: bool
    """False: `count` is a lower bound."""
    excluded: str | None
    """Why they are left out, in words."""


def excluded(schedule: Schedule, slot: Instant) -> str | None:
    """Why nothing runs at a slot: the day or the window that leaves it out; None where it runs."""
    bounds = schedule.bounds
    if bounds is None or not bounds.leaves_out:
        return None
    return standing(bounds, schedule.timezone, slot).excluded


def next_running(schedule: Schedule, after: Instant) -> Instant | None:
    """The first slot strictly after `after` that is not left out; None where none is found within fifty years."""
    slot = next_due(schedule, after)
    bounds = schedule.bounds
    if bounds is None or not bounds.leaves_out:
        return slot
    for _ in range(_MOST_SKIPPED):
        if slot is None or slot > after + _HORIZON:
            return None
        found = standing(bounds, schedule.timezone, slot)
        if found.excluded is None:
            return slot
        slot = next_due(schedule, Instant(max(found.until - 1, slot)))
    return None


def rows(schedule: Schedule, after: Instant, until: Instant, *, cap: int = 480) -> list[Row]:
    """The slots strictly after `after` and at or before `until`, in rows that run or are left out, ascending.

    Where there would be more than 20 rows, or the span is too long to be looked through, the first row holds all slots
    before the others, whether they are left out or not, and says that it ran none of them for no such reason.
    """
    bounds = schedule.bounds
    if bounds is None or not bounds.leaves_out:
        return _row(schedule, after, until, None, cap)
    begin = after
    longest = _MOST_PIECES // (2 * len(bounds.windows) + 2) * DAY
    if until - begin > longest:
        begin = Instant(until - longest)
    found: list[tuple[Instant, Instant, list[str]]] = []  # after, until, why
    slot = next_due(schedule, begin)
    while slot is not None and slot <= until:
        now = standing(bounds, schedule.timezone, slot)
        why = [] if now.excluded is None else [now.excluded]
        if found and bool(found[-1][2]) == bool(why):
            found[-1] = (found[-1][0], Instant(now.until - 1), list(dict.fromkeys(found[-1][2] + why)))
        else:
            found.append((Instant(slot - 1), Instant(now.until - 1), why))
        slot = next_due(schedule, Instant(max(now.until - 1, slot)))
    shown = found[-MOST_ROWS:]
    told = _row(schedule, after, shown[0][0], None, cap) if shown else []
    for low, high, why in shown:
        told += _row(schedule, low, min(high, until), _in_words(why), cap)
    return told


def _row(schedule: Schedule, after: Instant, until: Instant, why: str | None, cap: int) -> list[Row]:
    first = next_due(schedule, after)
    if first is None or first > until:
        return []
    count, exact = count_between(schedule, after, until, cap=cap)
    return [Row(first, previous_due(schedule, until) or first, count, exact, why)]


def _in_words(why: list[str]) -> str | None:
    if not why:
        return None
    if len(why) <= _MOST_NAMED:
        return "; ".join(why)
    return "; ".join(why[:_MOST_NAMED]) + f" and {len(why) - _MOST_NAMED} more"
