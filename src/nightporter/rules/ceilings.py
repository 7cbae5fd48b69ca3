"""ceilings: whether an automation's own schedule fires more often than its hourly ceiling lets through. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice

from nightporter.clock import DAY, HOUR, Instant
from nightporter.rules.schedule import count_between, next_due
from nightporter.words import Definition, Schedule

HORIZON = 7 * DAY
"""How far ahead is looked: most schedules repeat within a week."""
LOOKED_AT = 5000
"""Slots at most."""
COUNTED = 10_000


def beyond_the_ceiling(definition: Definition, now: Instant) -> int | None:
    """How many slots the schedule has in an hour for which that is more than `limits.per_hour` allows; None where it
    has no such hour, as far as is looked."""
    ceiling = definition.limits.per_hour
    schedules = [t.schedule for t in definition.triggers if t.schedule is not None and t.enabled]
    if ceiling is None or not schedules:
        return None
    window: deque[Instant] = deque(maxlen=ceiling + 1)
    for slot in islice(merge(*(_slots(schedule, now) for schedule in schedules)), max(LOOKED_AT, ceiling + 1)):
        window.append(slot)
        if len(window) > ceiling and slot - window[0] < HOUR:
            return _in_the_hour_from(schedules, window[0])
    return None


def _slots(schedule: Schedule, now: Instant) -> Iterator[Instant]:
    slot = next_due(schedule, now)
    while slot is not None and slot <= now + HORIZON:
        yield slot
        slot = next_due(schedule, slot)


def _in_the_hour_from(schedules: Sequence[Schedule], first: Instant) -> int:
    return sum(count_between(s, Instant(first - 1), Instant(first + HOUR - 1), cap=COUNTED)[0] for s in schedules)
