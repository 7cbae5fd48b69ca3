"""S-17: the night that has no two o'clock and the night that has one o'clock twice, lived through in New York."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pytest
from builders import Night

from nightporter.clock import HOUR, MINUTE, SECOND, Instant, ManualClock, instant, moment, rfc3339
from nightporter.rules.schedule import parse, slots_between
from nightporter.rules.zones import zone
from nightporter.store import Store, open_store
from nightporter.words import Overlap, Schedule, TriggerSpec

PLACE = "America/New_York"
SPRING, AUTUMN = date(2026, 3, 8), date(2026, 11, 1)


class Expected(NamedTuple):
    """How often a schedule fires on the local day, and when the first time."""

    times: int
    first: str


def schedules(of: date) -> dict[str, Schedule]:
    noon = instant(datetime(of.year, of.month, 1, 12, tzinfo=zone(PLACE)) - timedelta(days=10))
    return {
        "half-past-two": parse("cron", "30 2 * * *", PLACE),
        "each-hour": parse("cron", "0 * * * *", PLACE),
        "each-quarter": parse("cron", "*/15 * * * *", PLACE),
        "half-past-one": parse("cron", "30 1 * * *", PLACE),
        "each-day-at-noon": parse("every", "24h", PLACE, anchor=noon),
        "once": parse("at", f"{of}T02:30", PLACE),
    }


ON: dict[date, dict[str, Expected]] = {
    SPRING: {
        "half-past-two": Expected(1, "07:00"),
        "each-hour": Expected(23, "05:00"),
        "each-quarter": Expected(92, "05:00"),
        "half-past-one": Expected(1, "06:30"),
        "each-day-at-noon": Expected(1, "17:00"),
        "once": Expected(1, "07:00"),
    },
    AUTUMN: {
        "half-past-two": Expected(1, "07:30"),
        "each-hour": Expected(25, "04:00"),
        "each-quarter": Expected(100, "04:00"),
        "half-past-one": Expected(1, "05:30"),
        "each-day-at-noon": Expected(1, "16:00"),
        "once": Expected(1, "07:30"),
    },
}
"""By UTC. The grid of a day is of elapsed time: it was noon by the clock on the day that it is counted from."""


def midnight(day: date) -> Instant:
    return instant(datetime(day.year, day.month, day.day, tzinfo=zone(PLACE)).astimezone(UTC))


def live_through(night: Night, end: Instant) -> None:
    """The desk is awake at each slot, and a second before and after it, and runs what there is."""
    while night.now < end:
        [(upcoming,)] = night.sql("SELECT min(next_fire_at) FROM trigger WHERE next_fire_at > ?", night.now)
        for when in (upcoming - SECOND, upcoming, upcoming + SECOND):
            if night.now < when <= end:
                night.tick(microseconds=when - night.now)
                night.work()
        if upcoming > end:
            night.tick(microseconds=end - night.now)


def fires(night: Night, begin: Instant, end: Instant) -> dict[str, list[Instant]]:
    """Slots that became runs, by automation."""
    found: dict[str, list[Instant]] = {}
    for name, slot in night.sql(
        "SELECT a.name, f.scheduled_for FROM firing f JOIN automation a ON a.id = f.automation_id "
        "WHERE f.verdict = 'admitted' AND f.scheduled_for >= ? AND f.scheduled_for < ? ORDER BY f.scheduled_for",
        begin, end,
    ):
        found.setdefault(name, []).append(slot)
    return found


def begun_the_day_before(store: Store, day: date) -> tuple[Night, dict[str, list[Instant]]]:
    """The desk with all of them armed at noon of the day before, and what was said then of the day to come."""
    night = Night(store, ManualClock(Instant(midnight(day) - 12 * HOUR)))
    said = {}
    for name, schedule in schedules(day).items():
        night.define(name, TriggerSpec("clock", "clock", schedule, overlap=Overlap.PARALLEL))
        end = midnight(day + timedelta(days=1))
        said[name] = list(slots_between(schedule, Instant(midnight(day) - 1), Instant(end - 1)))
    return night, said


@pytest.mark.parametrize("day", [SPRING, AUTUMN], ids=["spring", "autumn"])
def test_what_fires_on_the_night_of_a_change_is_what_was_said_the_day_before(store: Store, day: date) -> None:
    night, said = begun_the_day_before(store, day)
    end = midnight(day + timedelta(days=1))
    live_through(night, end)
    lived = fires(night, midnight(day), end)
    assert {name: Expected(len(slots), f"{moment(slots[0]):%H:%M}") for name, slots in lived.items()} == ON[day]
    assert lived == said
    for (slot,) in night.sql("SELECT next_fire_at FROM trigger WHERE next_fire_at IS NOT NULL"):
        assert slot > night.now
    assert night.found() == {}


def test_a_desk_that_begins_anew_in_the_second_pass_of_an_hour_repeats_nothing_of_the_first(store_url: str) -> None:
    begin, restart = midnight(AUTUMN), Instant(midnight(AUTUMN) + 2 * HOUR + 10 * MINUTE)  # 06:10 UTC: 01:10 again
    first = open_store(store_url, now=Instant(begin - 12 * HOUR))
    night, said = begun_the_day_before(first, AUTUMN)
    live_through(night, restart)
    first.close()
    store = open_store(store_url, now=restart)
    again = Night(store, ManualClock(restart), worker="wrk_again")
    store.write(lambda tx: tx.join("wrk_again", role="desk", host="here", pid=1, lock_path="", now=again.now))
    again.tick()
    assert [rfc3339(slot) for (slot,) in again.sql(
        "SELECT t.next_fire_at FROM trigger t JOIN automation a ON a.id = t.automation_id "
        "WHERE a.name = 'half-past-one' AND t.kind = 'clock'")] == ["2026-11-02T06:30:00Z"]
    end = midnight(AUTUMN + timedelta(days=1))
    live_through(again, end)
    assert fires(again, begin, end) == said
    assert again.found() == {}
    store.close()
