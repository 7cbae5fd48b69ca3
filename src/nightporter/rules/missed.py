"""missed: which policy holds for the slots of a schedule that passed, and which of these are the newest. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from nightporter.clock import HOUR, Instant, micros
from nightporter.rules.schedule import count_between, next_due, previous_due, slots_between
from nightporter.words import Missed, MissedPolicy, Schedule

NOT_MISSED: Final = 120_000_000
"""Microseconds: a slot answered this late or less is merely late."""
CARDS: Final = 20
"""Missed slots of one trigger that wait for a person at most."""
MOST: Final = 480
"""Slots of one trigger that are enumerated at most; beyond that a count is a lower bound."""

_DAY_AT_LEAST: Final = 23 * HOUR
"""Between two slots of what is daily: one day of the year has no more."""
_LOOKED_AT: Final = 5
"""Slots that tell how often a schedule fires."""
_FIRST: Final = Instant(1_704_067_200_000_000)
"""2024-01-01: from when on they are looked at, so that the answer does not change with the day."""


def policy_of_missed(schedule: Schedule, chosen: Missed | None) -> Missed:
    """What holds for missed slots: what was chosen, or the default of the schedule. A one-shot is put before a person,
    what is daily or more seldom runs once, and what is more frequent is skipped."""
    return chosen if chosen is not None else _default(schedule)


@lru_cache(maxsize=4096)
def _default(schedule: Schedule) -> Missed:
    if schedule.kind == "at":
        return Missed(MissedPolicy.REVIEW)
    return Missed(MissedPolicy.RUN_ONCE if is_daily_or_slower(schedule) else MissedPolicy.SKIP)


def is_daily_or_slower(schedule: Schedule) -> bool:
    """Whether a day at least lies between two slots, as far as its first ones tell."""
    slot = next_due(schedule, _FIRST)
    for _ in range(_LOOKED_AT - 1):
        following = None if slot is None else next_due(schedule, slot)
        if slot is None or following is None:
            return True
        if following - slot < _DAY_AT_LEAST:
            return False
        slot = following
    return True


def reach_of(missed: Missed) -> int | None:
    """How old a slot may be that is caught up or put before a person, in microseconds; None: any age."""
    return None if missed.reach is None else micros(missed.reach)


def newest(schedule: Schedule, after: Instant, until: Instant, most: int) -> list[Instant]:
    """The newest slots strictly after `after` and at or before `until`, ascending; `most` of them at most. What is cut
    is the old end."""
    if after >= until:
        return []
    count, exact = count_between(schedule, after, until, cap=most)
    if exact and count <= most:
        return list(slots_between(schedule, after, until))
    found: list[Instant] = []
    slot = previous_due(schedule, until)
    while slot is not None and slot > after and len(found) < most:
        found.append(slot)
        slot = previous_due(schedule, Instant(slot - 1))
    return found[::-1]
