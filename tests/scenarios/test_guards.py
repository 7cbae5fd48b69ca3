"""When not to start: each guard on a whole night at the desk, with what the ledger, `explain` and an audit say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from builders import SAID, Night
from scenes import UNAVAILABLE, a_night, at, slots, until

from nightporter.clock import HOUR, Instant
from nightporter.ledger import automation_detail, explain
from nightporter.sources.clock import settle
from nightporter.sources.missed import slot_key
from nightporter.store import Store
from nightporter.store.tx_clock import schedule_from
from nightporter.words import (
    Answer,
    Coalesce,
    Limits,
    Overlap,
    QuietHours,
    Threshold,
    TriggerSpec,
)
from words import a_clock_trigger, an_incident

QUARTERS = a_clock_trigger("*/15 * * * *")
NIGHT = QuietHours(("22:00-07:00",))
GATHERS = Coalesce(timedelta(seconds=30), timedelta(minutes=2))


def called(**options: Any) -> TriggerSpec:
    return TriggerSpec("call", "call", **options)


def said(night: Night, subject: str) -> str:
    return night.store.read(lambda tx: explain(tx, subject, night.now)).text


def became(answer: Answer) -> str:
    return str(answer.reason or answer.verdict)


# -- quiet hours ------------------------------------------------------------------------------------------------------


def test_in_quiet_hours_slots_are_answered_and_programs_may_ask_again(store: Store) -> None:
    night = a_night(store, "21:40")
    automation = night.define("brief", QUARTERS, quiet_hours=NIGHT)
    until(night, "21:45")
    night.work()
    until(night, "22:15")
    assert slots(night, "verdict", "reason", "detail", "dedupe_key") == [
        ("21:45", "admitted", None, "", "2026-06-10T21:45:00Z"),
        ("22:00", "skipped", "quiet_hours", "until 2026-06-11T07:00:00Z", "2026-06-10T22:00:00Z"),
        ("22:15", "skipped", "quiet_hours", "until 2026-06-11T07:00:00Z", "2026-06-10T22:15:00Z"),
    ]
    first = night.fire(automation, "order-17")
    assert became(first) == "quiet_hours"
    assert "hours in which it does not start by itself (until 2026-06-11T07:00:00Z)" in said(night, first.firing_id)
    assert became(night.fire(automation, trigger="manual")) == "admitted"
    night.work()
    night.pass_time(hours=9)
    assert became(night.fire(automation, "order-17")) == "admitted"
    assert night.found() == {}


def test_without_quiet_hours_the_same_night_is_an_ordinary_one(store: Store) -> None:
    night = a_night(store, "21:40")
    night.define("brief", QUARTERS)
    for time in ("21:45", "22:00", "22:15"):
        until(night, time)
        night.work()
    assert [verdict for _, verdict in slots(night, "verdict")] == ["admitted"] * 3


# -- thresholds -------------------------------------------------------------------------------------------------------


def test_every_third_arrival_is_a_run_and_what_is_told_twice_is_not_counted(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(threshold=Threshold(3)))
    assert [became(night.fire(automation, key)) for key in ("a", "b", "b")] == [
        "threshold", "threshold", "suppressed_duplicate"]
    assert became(night.fire(automation, "m", trigger="manual")) == "admitted", "and it is not counted"
    assert [became(night.fire(automation, key)) for key in "cdef"] == ["admitted", "threshold", "threshold", "admitted"]
    assert {("1 of 3",), ("2 of 3",)} < set(night.lines("detail", source="call"))
    night.work()
    assert night.found() == {}


def test_a_count_begins_anew_where_the_first_of_it_came_too_long_ago(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(threshold=Threshold(2, timedelta(hours=1))))
    found = []
    for minutes in (0, 61, 60, 1, 59):
        night.pass_time(minutes=minutes)
        found.append(became(night.fire(automation)))
        night.work()
    assert found == ["threshold", "threshold", "admitted", "threshold", "admitted"]
    assert night.found() == {}


def test_every_other_monday_is_a_threshold_of_a_schedule(store: Store) -> None:
    night = a_night(store, "10:00")
    night.define("brief", replace(a_clock_trigger("0 9 * * mon"), threshold=Threshold(2)))
    for _ in range(4):
        [(monday,)] = night.sql("SELECT next_fire_at FROM trigger WHERE kind = 'clock'")
        night.tick(microseconds=monday - night.now)
        night.work()
    assert night.lines("verdict", "reason") == [("skipped", "threshold"), ("admitted", None)] * 2
    assert night.found() == {}


# -- a number of runs -------------------------------------------------------------------------------------------------


def test_three_runs_of_a_schedule_and_it_is_completed_whatever_else_runs(store: Store) -> None:
    """S-41 (b)."""
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=3))
    for time, ended in (("10:00", UNAVAILABLE), ("10:15", SAID), ("10:30", SAID)):
        night.run(automation, trigger="manual")
        night.run(automation)
        until(night, time)
        night.work(ended)
        night.pass_time(minutes=1)
        night.work()
    row = night.row(automation)
    assert (row.state, row.state_reason) == ("completed", "its schedules have started as many runs as they may")
    assert night.sql("SELECT next_fire_at FROM trigger WHERE kind = 'clock'") == [(None,)]
    until(night, "12:00")
    assert [verdict for _, verdict in slots(night, "verdict")] == ["admitted"] * 3
    assert "is completed: its schedules have started as many runs as they may" in said(night, automation)
    assert became(night.fire(automation, trigger="manual")) == "admitted"
    night.work()
    assert night.found() == {}


def test_a_completed_one_begins_a_new_count_when_it_is_enabled(store: Store) -> None:
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=1))
    until(night, "10:00")
    night.work()
    until(night, "11:05")
    night.enable(automation)
    assert night.lines("verdict", "reason", "slots")[1:] == [("collapsed", "max_runs", 4)]
    until(night, "11:15")
    night.work()
    assert night.row(automation).state == "completed"
    assert night.sql("SELECT count(*) FROM run") == [(2,)]
    assert night.found() == {}


def test_a_higher_number_lets_it_go_on_and_any_other_change_does_not(store: Store) -> None:
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=2))
    until(night, "10:15")
    night.work()
    until(night, "10:20")
    assert night.row(automation).state == "active", "the second slot met the first run"
    until(night, "10:30")
    night.work()
    assert night.row(automation).state == "completed"
    night.define("brief", QUARTERS, limits=Limits(max_runs=2), description="as before")
    assert night.row(automation).state == "completed"
    assert night.found() == {}
    night.define("brief", QUARTERS, limits=Limits(max_runs=3))
    assert night.row(automation).state == "active"
    until(night, "11:00")
    night.work()
    assert night.row(automation).state == "completed"
    assert night.sql("SELECT count(*) FROM run") == [(3,)]
    assert night.found() == {}


def test_slots_that_come_together_with_the_last_run_say_so(store: Store) -> None:
    night = a_night(store, "09:50")
    twice = [replace(QUARTERS, name=name, overlap=Overlap.PARALLEL) for name in ("one", "two")]
    automation = night.define("brief", *twice, limits=Limits(max_runs=3))
    until(night, "10:15")
    assert slots(night, "verdict", "reason", "detail")[:2] == [("10:00", "admitted", None, "")] * 2
    assert sorted(slots(night, "verdict", "reason", "detail")[2:]) == [
        ("10:15", "admitted", None, ""), ("10:15", "skipped", "max_runs", "the limit is 3")]
    assert night.row(automation).state == "completed"
    night.work()
    assert night.found() == {}


def test_a_crash_between_the_fire_and_the_count_neither_loses_nor_doubles(store: Store) -> None:
    """They are one transaction: what is undone is undone together."""
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=2))
    night.pass_time(minutes=10)

    def dies(tx: Any) -> None:
        settle(tx, automation, now=night.now)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(dies)
    assert night.sql("SELECT counted_runs, state FROM automation") == [(0, "active")]
    night.tick()
    assert night.sql("SELECT counted_runs, state FROM automation") == [(1, "active")]
    night.tick()
    assert night.sql("SELECT count(*) FROM firing") == [(1,)]
    night.work()
    until(night, "10:15")
    assert night.sql("SELECT counted_runs, state FROM automation") == [(2, "completed")]
    assert night.found() == {}


# -- stagger -----------------------------------------------------------------------------------------------------------


def test_a_staggered_schedule_is_armed_shown_and_fired_with_its_offset(store: Store) -> None:
    night = a_night(store, "09:50")
    hourly = replace(a_clock_trigger("0 * * * *"), stagger=timedelta(minutes=5))
    automation = night.define("brief", hourly)
    [(text,)] = night.sql("SELECT schedule FROM trigger WHERE kind = 'clock'")
    offset = schedule_from(text).offset
    ten = Instant(at("10:00") + offset)
    assert offset
    detail = store.read(lambda tx: automation_detail(tx, automation, now=night.now))
    assert [fire.at for fire in detail.next_fires[:2]] == [ten, ten + HOUR]
    until(night, "10:00")
    assert slots(night) == []
    until(night, "10:06")
    assert night.lines("scheduled_for", "external_id", "verdict") == [(ten, slot_key(ten), "admitted")]
    night.work()
    night.define("brief", replace(a_clock_trigger("0 * * * *"), stagger=timedelta(minutes=5)), description="as before")
    night.define("brief", a_clock_trigger("0 * * * *"))
    until(night, "11:00")
    assert slots(night)[1:] == [("11:00",)]
    night.work()
    night.define("brief", hourly)
    until(night, "11:10")
    assert len(slots(night)) == 2, "eleven had its answer"
    until(night, "12:06")
    assert night.lines("scheduled_for")[2:] == [(ten + 2 * HOUR,)]
    night.work()
    assert night.found() == {}


# -- a person's own hand -----------------------------------------------------------------------------------------------


EVERY_GUARD: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cooldown": ({"cooldown": timedelta(hours=1)}, {}),
    "hourly_ceiling": ({"limits": Limits(per_hour=1)}, {}),
    "queue_full": ({"limits": Limits(queued=1)}, {}),
    "overlap": ({}, {"overlap": Overlap.SKIP}),
    "threshold": ({}, {"threshold": Threshold(2)}),
    "quiet_hours": ({"quiet_hours": QuietHours(("07:00-12:00",))}, {}),
    "max_runs": ({"limits": Limits(max_runs=1)}, {}),
    "coalesce": ({}, {"coalesce": GATHERS}),
}


@pytest.mark.parametrize("guard", EVERY_GUARD)
def test_runs_by_hand_pass_each_guard_and_use_nothing_of_it(store: Store, guard: str) -> None:
    """What comes by itself meets the same with and without them."""
    options, of_trigger = EVERY_GUARD[guard]
    found: dict[bool, list[str]] = {}
    for by_hand in (False, True):
        night = a_night(store, "10:00")
        name = f"{guard.replace('_', '-')}-{by_hand}".lower()
        automation = night.define(name, called(**of_trigger), replace(QUARTERS, overlap=Overlap.PARALLEL), **options)

        def hands(night: Night = night, automation: str = automation, by_hand: bool = by_hand) -> None:
            for _ in range(3 * by_hand):
                run = night.run(automation, trigger="manual")
                assert night.sql("SELECT state FROM run WHERE id = ?", run) == [("succeeded",)]

        hands()
        arrived = []
        for _ in range(2):
            arrived.append(became(night.fire(automation)))
            hands()
        until(night, "10:30")
        lines = night.sql("SELECT verdict, reason FROM firing WHERE automation_id = ? AND source = 'clock' "
                          "ORDER BY scheduled_for", automation)
        found[by_hand] = [*arrived, *(reason or verdict for verdict, reason in lines), night.row(automation).state]
        hands()
        night.pass_time(minutes=1)
        night.work()
        assert night.found() == {}
    assert found[True] == found[False]
    objected = {"coalesce": "merged", "max_runs": "completed"}.get(guard, guard)
    assert objected in found[False]


# -- incidents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("incident", "hold", "held"),
    [
        ({}, True, True), ({}, False, False), ({"state": "acknowledged"}, True, False),
        ({"kind": "delivery"}, True, False),
    ],
    ids=["open", "open, and nobody asked", "acknowledged", "of a receiver"],
)
def test_an_open_incident_holds_what_starts_by_itself(
    store: Store, incident: dict[str, str], hold: bool, held: bool
) -> None:
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, hold_on_incident=hold)
    an_incident(store, automation, **incident)
    until(night, "10:00")
    answers = [night.fire(automation), night.fire(automation, trigger="manual")]
    assert slots(night, "reason", "detail") == [("10:00", *(("incident_hold", "inc_1") if held else (None, "")))]
    assert [became(answer) for answer in answers] == ["incident_hold" if held else "admitted", "admitted"]
