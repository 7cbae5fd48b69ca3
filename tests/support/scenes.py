"""What scenarios share: a night that begins at a given time of a day in June, and time told as people tell it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from builders import Night

from nightporter.clock import Instant, ManualClock, instant, moment
from nightporter.store import Store
from nightporter.words import Destination, Ended, ErrorClass

DAY = datetime(2026, 6, 10, tzinfo=UTC)
HOOK = Destination("hook", "webhook", {"url": "https://one.example"})
UNAVAILABLE = Ended.failed(ErrorClass.TRANSIENT, "503")


def at(time: str) -> Instant:
    """`10:15` or `10:15:00.5` of that day."""
    hours, minutes, *seconds = time.split(":")
    return Instant(instant(DAY) + round((int(hours) * 3600 + int(minutes) * 60 + float(*seconds or ["0"])) * 1e6))


def told(instants: list[int]) -> list[str]:
    """The same the other way round, to the second."""
    return [f"{moment(Instant(each)):%H:%M:%S}".removesuffix(":00") for each in instants]


def a_night(store: Store, begin: str) -> Night:
    return Night(store, ManualClock(at(begin)))


def until(night: Night, time: str) -> None:
    """Time passes up to then, the clock awake at each slot on the way; nothing is run."""
    while night.now < at(time):
        [(upcoming,)] = night.sql("SELECT min(next_fire_at) FROM trigger WHERE next_fire_at > ?", night.now)
        night.tick(microseconds=min(upcoming or at(time), at(time)) - night.now)


def slots(night: Night, *columns: str) -> list[tuple[Any, ...]]:
    """`(slot, columns ...)` of the clock's lines, in their order."""
    return [(told([slot])[0], *rest) for slot, *rest in night.lines("scheduled_for", *columns)]


def armed(night: Night, automation: str) -> tuple[list[str], int]:
    """`(the next slot, the version of the schedule)` of its clock."""
    [(slot, version)] = night.sql(
        "SELECT next_fire_at, version FROM trigger WHERE automation_id = ? AND kind = 'clock'", automation)
    return told([slot]), version
