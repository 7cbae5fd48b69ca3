"""Another release of the zone data: what is armed moves to where that has it, and no occurrence fires twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from armed import armed_at, at, cron, every, lines, tick_all

from nightporter.clock import DAY, HOUR, SECOND, Instant, Kick, ManualClock
from nightporter.rules.zones import TZDATA
from nightporter.sources.clock import ClockSource
from nightporter.store import Store
from words import rows, trigger_of


@pytest.fixture
def source(store: Store, clock: ManualClock) -> ClockSource:
    return ClockSource(store, clock, Kick())


def armed_elsewhere(store: Store, automation: str, slot: Instant) -> None:
    """The slot as another release of the zone data had it."""
    trigger = trigger_of(automation, "clock")
    rows(store, "UPDATE trigger SET next_fire_at = ?, tzdata = 'old' WHERE id = ?", slot, trigger)


NINE_IN_BERLIN = at(2026, 6, 1, 7)
"""By today's rules; under others it may have been an hour earlier or later."""


@pytest.mark.parametrize("was", [NINE_IN_BERLIN - HOUR, NINE_IN_BERLIN + HOUR])
def test_a_slot_that_is_still_to_come_moves_to_where_the_rules_now_have_it(store: Store, was: Instant) -> None:
    clock = ManualClock(at(2026, 6, 1, 5))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, was)
    source = ClockSource(store, clock, Kick())
    assert source.rezone() == 1
    assert armed_at(store, brief) == NINE_IN_BERLIN
    assert source.rezone() == 0


def test_an_occurrence_that_the_new_rules_have_passed_already_is_answered_and_not_lost(store: Store) -> None:
    clock = ManualClock(at(2026, 5, 31, 20))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, Instant(NINE_IN_BERLIN + HOUR))
    clock.advance(timedelta(hours=11, minutes=30))
    source = ClockSource(store, clock, Kick())
    source.rezone()
    tick_all(source)
    assert lines(store) == [("admitted", None, NINE_IN_BERLIN, None)], "it is caught up"
    assert armed_at(store, brief) == NINE_IN_BERLIN + DAY


def test_an_occurrence_that_has_fired_under_the_old_rules_does_not_fire_again(store: Store) -> None:
    clock = ManualClock(at(2026, 6, 1, 6, 30))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, Instant(NINE_IN_BERLIN - HOUR + DAY))
    rows(store, "UPDATE trigger SET last_fired_at = ?", NINE_IN_BERLIN - HOUR)  # today's, half an hour ago
    source = ClockSource(store, clock, Kick())
    source.rezone()
    assert armed_at(store, brief) == NINE_IN_BERLIN + DAY
    clock.advance(timedelta(hours=2))
    assert tick_all(source) == 0


@pytest.mark.parametrize("was", [NINE_IN_BERLIN - HOUR, NINE_IN_BERLIN + HOUR])
def test_an_occurrence_that_came_due_while_nobody_ran_is_answered_once(store: Store, was: Instant) -> None:
    clock = ManualClock(at(2026, 6, 1, 5))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, was)
    clock.advance(timedelta(hours=6))
    source = ClockSource(store, clock, Kick())
    source.rezone()
    tick_all(source)
    assert lines(store) == [("missed", "missed_policy", NINE_IN_BERLIN, 1)]
    clock.advance(timedelta(hours=12))
    assert tick_all(source) == 0


def test_a_grid_and_a_moment_with_an_offset_stay_where_they_are(store: Store, clock: ManualClock) -> None:
    grid = every(store, clock, "15m", name="grid")
    moment = cron(store, clock, "2026-03-27T12:00+02:00", kind="at", timezone="Europe/Berlin", name="moment")
    before = [armed_at(store, a) for a in (grid, moment)]
    rows(store, "UPDATE trigger SET tzdata = 'old' WHERE next_fire_at IS NOT NULL")
    assert ClockSource(store, clock, Kick()).rezone() == 0
    assert [armed_at(store, a) for a in (grid, moment)] == before
    assert rows(store, "SELECT DISTINCT tzdata FROM trigger WHERE next_fire_at IS NOT NULL") == [(TZDATA,)]


@pytest.mark.parametrize("was", [at(2026, 11, 1, 5, 30), at(2026, 11, 1, 4, 30)], ids=["second half", "first half"])
def test_half_past_midnight_comes_twice_in_havana_and_is_answered_once_whichever_of_them_was_armed(
    store: Store, was: Instant
) -> None:
    """S-18: another release had the night of the change end an hour later, or in another week."""
    clock = ManualClock(at(2026, 10, 31, 16))
    brief = cron(store, clock, "30 0 * * *", timezone="America/Havana")
    armed_elsewhere(store, brief, was)
    source = ClockSource(store, clock, Kick())
    source.rezone()
    for _ in range(4):
        clock.advance(timedelta(hours=12))
        tick_all(source)
    assert [slot for _, _, slot, _ in lines(store)] == [at(2026, 11, 1, 4, 30), at(2026, 11, 2, 4, 30)]


def test_a_zone_that_is_in_no_release_any_more_stops_its_trigger_visibly_and_no_other(store: Store) -> None:
    """S-18."""
    clock = ManualClock(at(2026, 6, 1, 5))
    gone, good = (cron(store, clock, timezone="Europe/Berlin", name=name) for name in ("gone", "good"))
    for automation in (gone, good):
        armed_elsewhere(store, automation, Instant(NINE_IN_BERLIN + HOUR))
    rows(store, "UPDATE trigger SET schedule = replace(schedule, 'Europe/Berlin', 'Europe/Atlantis') WHERE id = ?",
         trigger_of(gone, "clock"))
    source = ClockSource(store, clock, Kick())
    source.rezone()
    clock.advance(timedelta(hours=4))
    tick_all(source)
    assert lines(store) == [("admitted", None, NINE_IN_BERLIN, None)]
    [(key, error)] = rows(store, "SELECT key, error FROM quarantine")
    assert key == trigger_of(gone, "clock")
    assert "Europe/Atlantis" in error


def test_a_trigger_that_cannot_be_read_does_not_stop_the_others_from_moving(store: Store) -> None:
    clock = ManualClock(at(2026, 6, 1, 5))
    bad, good = (cron(store, clock, timezone="Europe/Berlin", name=name) for name in ("bad", "good"))
    for automation in (bad, good):
        armed_elsewhere(store, automation, Instant(NINE_IN_BERLIN + HOUR))
    rows(store, "UPDATE trigger SET schedule = '{' WHERE id = ?", trigger_of(bad, "clock"))
    assert ClockSource(store, clock, Kick()).rezone() == 1
    assert armed_at(store, good) == NINE_IN_BERLIN
    assert rows(store, "SELECT key FROM quarantine") == [(trigger_of(bad, "clock"),)]


def test_what_the_zones_clock_shows_at_a_slot_is_kept_where_the_schedule_goes_by_it(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock, "30 10 * * *", timezone="Europe/Berlin", name="local")
    cron(store, clock, "* * * * *", timezone="Europe/Berlin", name="elapsed")
    cron(store, clock, "30 9 * * *", name="utc")
    every(store, clock, "1h", name="grid")
    clock.advance(timedelta(hours=2))
    tick_all(source)
    local = at(2026, 3, 28, 10, 30) // SECOND
    assert rows(
        store, "SELECT automation_id, wall FROM trigger WHERE next_fire_at IS NOT NULL ORDER BY wall IS NULL, id"
    ) == [
        ("aut_default_local", local), ("aut_default_elapsed", None), ("aut_default_grid", None),
        ("aut_default_utc", None),
    ]
