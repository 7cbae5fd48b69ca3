"""Slots that a schedule leaves out: each is answered, nothing runs, and the line says which day or window it was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from armed import armed_at, at, cron, every, tick_all

from nightporter.clock import Instant, Kick, ManualClock
from nightporter.ledger.audit import audit
from nightporter.sources.clock import ClockSource
from nightporter.store import Store
from nightporter.words.bounds import Bounds, Days, Season, Window
from words import rows

TODAY = Bounds(days=(Days("2026-03-27", "2026-03-27", "Founding Day"),))
NIGHT = Bounds(windows=(Window(22 * 60, 6 * 60, (), "night"),))


@pytest.fixture
def source(store: Store, clock: ManualClock) -> ClockSource:
    return ClockSource(store, clock, Kick())


def lines(store: Store) -> list[tuple[Any, ...]]:
    """`(verdict, reason, detail, first slot, last slot, how many)`, in the order of the slots."""
    return rows(
        store, "SELECT verdict, reason, detail, coalesce(scheduled_for, slot_from), coalesce(scheduled_for, slot_to), "
        "slots FROM firing ORDER BY coalesce(scheduled_for, slot_from)"
    )


def is_right(store: Store, now: Instant) -> bool:
    report = store.read(lambda tx: audit(tx, now=now))
    assert not report.findings
    return report.counts["slots"] > 0


def test_a_day_that_is_left_out_leaves_a_line_that_names_it(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock, bounds=TODAY)
    nine = at(2026, 3, 27, 9)
    assert armed_at(store) == nine
    clock.advance(timedelta(hours=1))
    tick_all(source)
    assert lines(store) == [("skipped", "excluded", "27 March 2026 (Founding Day)", nine, nine, None)]
    assert armed_at(store) == at(2026, 3, 28, 9)
    clock.advance(timedelta(days=1))
    tick_all(source)
    assert [line[:2] for line in lines(store)] == [("skipped", "excluded"), ("admitted", None)]
    assert is_right(store, clock.now())


def test_slots_left_out_one_after_another_are_one_line_where_they_are_answered_at_once(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "1s", bounds=TODAY)
    clock.advance(timedelta(seconds=90))
    tick_all(source)
    [(verdict, reason, _, first, last, count)] = lines(store)
    assert (verdict, reason, first, last, count) == (
        "collapsed", "excluded", at(2026, 3, 27, 8, 0, 1), at(2026, 3, 27, 8, 1, 30), 90
    )
    assert is_right(store, clock.now())


def test_what_was_left_out_while_nothing_ran_is_told_apart_from_what_was_missed(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "1h", bounds=NIGHT)
    clock.advance(timedelta(hours=48, minutes=30))
    tick_all(source)
    assert [(line[1], line[3], line[5]) for line in lines(store)] == [
        ("missed_policy", at(2026, 3, 27, 9), 13),
        ("excluded", at(2026, 3, 27, 22), 8),
        ("missed_policy", at(2026, 3, 28, 6), 16),
        ("excluded", at(2026, 3, 28, 22), 8),
        ("missed_policy", at(2026, 3, 29, 6), 3),
    ]
    assert is_right(store, clock.now())


def test_a_year_of_nights_is_not_a_line_each(store: Store, clock: ManualClock, source: ClockSource) -> None:
    every(store, clock, "1h", bounds=NIGHT)
    clock.advance(timedelta(days=365, minutes=30))
    tick_all(source)
    found = lines(store)
    assert len(found) <= 21
    assert sum(line[5] for line in found) == 365 * 24
    assert is_right(store, clock.now())


def test_out_of_season_and_after_its_end_there_is_no_slot_at_all(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    summer = Bounds(start=at(2026, 4, 20), end=at(2027, 4, 16, 9), seasons=(Season((4, 15), (10, 31)),))
    cron(store, clock, bounds=summer)
    slots = []
    while (slot := armed_at(store)) is not None:
        slots.append(slot)
        clock.advance(timedelta(microseconds=slot - clock.now()))
        tick_all(source)
    assert slots[0] == at(2026, 4, 20, 9)
    assert slots[-3:] == [at(2026, 10, 31, 9), at(2027, 4, 15, 9), at(2027, 4, 16, 9)]
    assert [line[0] for line in lines(store)] == ["admitted"] + ["skipped"] * (len(slots) - 1)  # the overlap's
    assert {line[1] for line in lines(store)} == {None, "overlap"}
    assert is_right(store, clock.now())
