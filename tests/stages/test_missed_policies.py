"""Missed slots become what their policy says: tests in pairs that differ in one option only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from armed import armed_at, at, cron, every, lines, tick_all

from nightporter.clock import HOUR, SECOND, Instant, Kick, ManualClock
from nightporter.ledger.audit import audit
from nightporter.sources.clock import ClockSource, Restart
from nightporter.store import Store
from nightporter.words import Missed, MissedPolicy, Overlap
from words import rows

ONCE, SKIP, REVIEW, ALL = (
    Missed(policy) for policy in (MissedPolicy.RUN_ONCE, MissedPolicy.SKIP, MissedPolicy.REVIEW, MissedPolicy.RUN_ALL)
)


@pytest.fixture
def source(store: Store, clock: ManualClock) -> ClockSource:
    return ClockSource(store, clock, Kick())


def away(source: ClockSource, clock: ManualClock, **span: float) -> None:
    """Nobody is there for so long; then what is due is answered."""
    clock.advance(timedelta(**span))
    tick_all(source)


def slots_of(store: Store, what: str) -> list[Instant]:
    return [slot for verdict, _, slot, _ in lines(store) if verdict == what]


def cards(store: Store, state: str = "pending") -> list[Instant]:
    return [r[0] for r in rows(store, "SELECT slot FROM missed_card WHERE state = ? ORDER BY slot", state)]


def waits(store: Store) -> list[tuple[Any, ...]]:
    """`(slot, seconds until its run may begin, what it waits for)`, the oldest slot first."""
    return rows(
        store, "SELECT scheduled_for, (run_after - queued_at) / 1000000, blocked FROM run ORDER BY scheduled_for"
    )


def is_right(store: Store, clock: ManualClock) -> bool:
    report = store.read(lambda tx: audit(tx, now=clock.now()))
    assert report.findings == ()
    return report.counts["slots"] > 0


# -- which policy ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "verdict"),
    [("0 8 * * *", "admitted"), ("0 8 * * mon-fri", "admitted"), ("0 8 1 * *", "admitted"), ("0 8,20 * * *", "missed")],
)
def test_what_is_daily_or_more_seldom_is_caught_up_and_what_is_more_frequent_is_skipped(
    store: Store, expression: str, verdict: str
) -> None:
    clock = ManualClock(at(2026, 4, 1, 7))
    cron(store, clock, expression)
    away(ClockSource(store, clock, Kick()), clock, hours=2)
    assert [each[0] for each in lines(store)] == [verdict]
    assert is_right(store, clock)


@pytest.mark.parametrize(("span", "verdicts"), [("24h", ["admitted"]), ("6h", ["collapsed"])])
def test_an_interval_too(store: Store, clock: ManualClock, source: ClockSource, span: str, verdicts: list[str]) -> None:
    every(store, clock, span)
    away(source, clock, hours=25)
    assert [verdict for verdict, *_ in lines(store)] == verdicts


# -- run_once ---------------------------------------------------------------------------------------------------------


def test_the_newest_missed_slot_runs_once_and_one_line_answers_the_others(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "15m", missed=ONCE)
    away(source, clock, hours=8, minutes=10)
    newest = at(2026, 3, 27, 16)
    assert lines(store) == [
        ("collapsed", "missed_policy", at(2026, 3, 27, 8, 15), 31), ("admitted", None, newest, None),
    ]
    assert rows(store, "SELECT scheduled_for, catchup, ran_late FROM run") == [(newest, 1, 0)], "it has not begun"
    assert armed_at(store) == at(2026, 3, 27, 16, 15)
    assert cards(store) == []
    assert is_right(store, clock)


def test_under_skip_none_runs(store: Store, clock: ManualClock, source: ClockSource) -> None:
    every(store, clock, "15m", missed=SKIP)
    away(source, clock, hours=8, minutes=10)
    assert lines(store) == [("collapsed", "missed_policy", at(2026, 3, 27, 8, 15), 32)]
    assert is_right(store, clock)


@pytest.mark.parametrize(("within", "verdict"), [(2, "admitted"), (1, "missed")])
def test_a_slot_older_than_its_reach_is_not_made_up_for(
    store: Store, clock: ManualClock, source: ClockSource, within: int, verdict: str
) -> None:
    cron(store, clock, missed=Missed(MissedPolicy.RUN_ONCE, timedelta(hours=within)))
    away(source, clock, hours=2, minutes=30)
    assert [each[:3] for each in lines(store)] == [
        (verdict, None if verdict == "admitted" else "missed_policy", at(2026, 3, 27, 9))]
    assert is_right(store, clock)


@pytest.mark.parametrize(("late", "verdicts"), [(119, ["collapsed", "admitted"]), (121, ["collapsed", "admitted"])])
def test_where_a_slot_is_only_late_nothing_older_is_made_up_for(
    store: Store, clock: ManualClock, source: ClockSource, late: int, verdicts: list[str]
) -> None:
    every(store, clock, "1h", missed=ONCE)
    away(source, clock, hours=5, seconds=late)
    assert [verdict for verdict, *_ in lines(store)] == verdicts
    assert rows(store, "SELECT catchup FROM run") == [(int(late > 120),)]
    assert slots_of(store, "admitted") == [at(2026, 3, 27, 13)]


# -- review -----------------------------------------------------------------------------------------------------------


def test_the_newest_twenty_wait_as_cards_and_one_line_answers_those_before(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "15m", missed=REVIEW)
    away(source, clock, hours=8, minutes=10)
    assert lines(store)[0] == ("collapsed", "missed_policy", at(2026, 3, 27, 8, 15), 12)
    assert cards(store) == slots_of(store, "missed") == [
        Instant(at(2026, 3, 27, 11, 15) + n * 900 * SECOND) for n in range(20)]
    assert rows(store, "SELECT 1 FROM run") == []
    assert is_right(store, clock)


def test_twenty_of_a_trigger_wait_at_most_and_newer_ones_take_the_place_of_older_ones(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "1h", missed=REVIEW)
    away(source, clock, hours=15, minutes=10)
    assert len(cards(store)) == 15
    away(source, clock, hours=8)
    assert cards(store) == [Instant(at(2026, 3, 27, 12) + n * HOUR) for n in range(20)]
    assert cards(store, "dismissed") == [Instant(at(2026, 3, 27, 9) + n * HOUR) for n in range(3)]
    assert {by for (by,) in rows(store, "SELECT decided_by FROM missed_card WHERE state = 'dismissed'")} == {"desk"}
    assert is_right(store, clock)


@pytest.mark.parametrize(("within", "count"), [(timedelta(hours=2), 2), (None, 8)])
def test_cards_may_be_held_to_a_reach(
    store: Store, clock: ManualClock, source: ClockSource, within: timedelta | None, count: int
) -> None:
    every(store, clock, "1h", missed=Missed(MissedPolicy.REVIEW, within))
    away(source, clock, hours=8, minutes=10)
    assert len(cards(store)) == count
    assert is_right(store, clock)


def test_the_cap_of_what_is_counted_cuts_the_old_end(store: Store, clock: ManualClock, source: ClockSource) -> None:
    cron(store, clock, "* * * * *", missed=REVIEW)
    away(source, clock, days=7, seconds=150)
    assert cards(store)[-1] == at(2026, 4, 3, 8)
    assert len(cards(store)) == 20
    [(slots, exact)] = rows(store, "SELECT slots, slots_exact FROM firing WHERE verdict = 'collapsed'")
    assert (slots, exact) == (480, 0)
    assert is_right(store, clock)


# -- run_all ----------------------------------------------------------------------------------------------------------


def test_each_missed_slot_within_reach_runs_in_order(store: Store, clock: ManualClock, source: ClockSource) -> None:
    every(store, clock, "1h", missed=ALL)
    away(source, clock, hours=8, minutes=10)
    assert lines(store)[0] == ("collapsed", "missed_policy", at(2026, 3, 27, 9), 5)
    assert slots_of(store, "admitted") == [at(2026, 3, 27, hour) for hour in (14, 15, 16)]
    assert waits(store) == [
        (at(2026, 3, 27, 14), 0, None), (at(2026, 3, 27, 15), 2, "overlap"), (at(2026, 3, 27, 16), 4, "overlap"),
    ]
    assert is_right(store, clock)


def test_they_may_run_beside_each_other_two_seconds_apart(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "1h", missed=ALL, overlap=Overlap.PARALLEL)
    away(source, clock, hours=8, minutes=10)
    assert [each[1:] for each in waits(store)] == [(0, None), (2, "time"), (4, "time")]


def test_no_more_than_480_run_and_they_are_the_newest(store: Store, clock: ManualClock, source: ClockSource) -> None:
    every(store, clock, "10s", missed=ALL, overlap=Overlap.PARALLEL)
    away(source, clock, hours=2, seconds=5)
    late = rows(store, "SELECT min(scheduled_for), max(scheduled_for), count(*) FROM run WHERE catchup = 1")
    assert late == [(clock.now() - 125 * SECOND - 479 * 10 * SECOND, clock.now() - 125 * SECOND, 480)]
    assert is_right(store, clock)


# -- a one-shot -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("missed", "hours", "verdict", "waiting"),
    [
        (None, 1, "missed", 1), (None, 100, "missed", 1), (ONCE, 1, "admitted", 0), (ALL, 1, "admitted", 0),
        (ONCE, 4, "missed", 1), (SKIP, 1, "missed", 0), (REVIEW, 1, "missed", 1),
    ],
)
def test_a_one_shot_is_put_before_a_person_unless_its_policy_runs_or_skips_it(
    store: Store, clock: ManualClock, source: ClockSource, missed: Missed | None, hours: int, verdict: str, waiting: int
) -> None:
    cron(store, clock, "2026-03-27T09:00", kind="at", missed=missed)
    away(source, clock, hours=1 + hours)
    assert [each[0] for each in lines(store)] == [verdict]
    assert len(cards(store)) == waiting
    assert armed_at(store) is None
    assert rows(store, "SELECT state FROM automation") == [("active" if verdict == "admitted" else "completed",)]
    assert is_right(store, clock)


# -- many at once -----------------------------------------------------------------------------------------------------


def test_what_catches_up_begins_two_seconds_apart_in_the_order_of_the_slots_whatever_the_automation(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    for name, hour in (("third", 11), ("first", 9), ("second", 10)):
        cron(store, clock, f"0 {hour} * * *", name=name)
    away(source, clock, hours=3, minutes=50)
    assert waits(store) == [
        (at(2026, 3, 27, 9), 0, None), (at(2026, 3, 27, 10), 2, "time"), (at(2026, 3, 27, 11), 4, "time"),
    ]
    cron(store, clock, "0 13 * * *", name="later")
    away(source, clock, hours=1, minutes=30)
    assert waits(store)[-1] == (at(2026, 3, 27, 13), 0, None), "that turn is long over"


def test_what_waits_for_its_turn_does_not_grow_stale_by_it(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    for n in range(3):
        cron(store, clock, name=f"brief-{n}")
    away(source, clock, hours=3, minutes=59)
    assert rows(store, "SELECT stale_at - scheduled_for FROM run ORDER BY run_after") == [
        ((3 * 3600 + 2 * n) * SECOND,) for n in range(3)]


@pytest.mark.parametrize(("push", "pushed"), [(0, False), (60 * SECOND, True)])
def test_after_a_restart_what_is_overdue_begins_a_little_later(
    store: Store, clock: ManualClock, source: ClockSource, push: int, pushed: bool
) -> None:
    cron(store, clock, "0 9 * * *", name="missed")
    cron(store, clock, "30 10 * * *", name="late")
    cron(store, clock, "2026-03-27T10:30", kind="at", name="once")
    clock.advance(timedelta(hours=2, minutes=30, seconds=20))
    while source.tick(Restart(push=push)):
        pass
    found = dict(rows(store, "SELECT automation_id, run_after - queued_at FROM run"))
    assert found["aut_default_once"] == 0, "it keeps its moment as well as it can"
    for name in ("missed", "late"):
        assert 0 <= found[f"aut_default_{name}"] <= push
        assert (found[f"aut_default_{name}"] > 0) is pushed
    assert is_right(store, clock)


# -- a store that was put back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hour", "verdict"), [(8, "admitted"), (10, "missed")])
def test_of_a_store_that_was_put_back_nothing_runs_that_may_have_run_before(
    store: Store, clock: ManualClock, source: ClockSource, hour: int, verdict: str
) -> None:
    cron(store, clock)
    clock.advance(timedelta(hours=2, minutes=30))
    while source.tick(Restart(doubtful=at(2026, 3, 27, hour))):
        pass
    assert [each[0] for each in lines(store)] == [verdict]
    assert len(cards(store)) == (verdict == "missed")


def test_not_even_one_that_would_only_be_late(store: Store, clock: ManualClock, source: ClockSource) -> None:
    cron(store, clock)
    clock.advance(timedelta(hours=1, seconds=30))
    while source.tick(Restart(doubtful=at(2026, 3, 27, 9))):
        pass
    assert [each[0] for each in lines(store)] == ["missed"]


# -- again ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missed", [ONCE, SKIP, REVIEW, ALL])
def test_a_second_boot_finds_nothing_to_answer(store: Store, clock: ManualClock, missed: Missed) -> None:
    every(store, clock, "15m", missed=missed)
    away(ClockSource(store, clock, Kick()), clock, hours=8, minutes=10)
    before = lines(store), cards(store), waits(store)
    away(ClockSource(store, clock, Kick()), clock, minutes=1)
    assert (lines(store), cards(store), waits(store)) == before
