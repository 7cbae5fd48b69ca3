"""Another release of the zone data: each local occurrence has one answer, and the account of it stays right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from builders import SAID, Night

from nightporter.clock import HOUR, Instant, ManualClock, instant, rfc3339
from nightporter.ledger.audit import enumeration
from nightporter.operations import arm, define
from nightporter.rules import schedule, zones
from nightporter.rules.zones import TZDATA
from nightporter.sources import clock as clock_module
from nightporter.sources import rezoning
from nightporter.store import Store
from nightporter.words import Overlap, TriggerSpec
from words import a_clock_trigger

ZONE = "America/Vancouver"
UNDER = {"seven": "Etc/GMT+7", "eight": "Etc/GMT+8"}
"""What two releases say of the zone: seven hours behind UTC, or eight."""

Release = Callable[[str], None]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Release]:
    """Installs one of two releases of the zone data."""
    real = zones.zone

    def forget() -> None:
        for cached in (zones._block, schedule._slots):
            cached.cache_clear()

    def install(name: str) -> None:
        monkeypatch.setattr(zones, "zone", lambda of: real(UNDER[name] if of == ZONE else of))
        for module in (clock_module, rezoning, arm, define, enumeration):
            monkeypatch.setattr(module, "TZDATA", name, raising=False)
        forget()

    yield install
    monkeypatch.undo()
    forget()


def at(day: int, hour: int, minute: int = 0) -> Instant:
    return instant(datetime(2026, 10, day, hour, minute, tzinfo=UTC))


@pytest.fixture
def night(store: Store) -> Night:
    return Night(store, ManualClock(at(5, 20)))


def brief(night: Night, expression: str = "0 9 * * *", **rest: Any) -> str:
    return night.define(
        "brief", a_clock_trigger(expression, timezone=ZONE, overlap=Overlap.PARALLEL, **rest)
    )


def until(night: Night, then: Instant) -> None:
    """Time passes up to then; the desk is awake at each hour and runs what there is. Then the account is right."""
    while night.now < then:
        night.tick(microseconds=min(then - night.now, HOUR - night.now % HOUR))
        night.work(SAID)
    assert night.found() == {}


def fired(night: Night) -> list[str | None]:
    return [rfc3339(Instant(slot)) for (slot,) in night.sql(
        "SELECT scheduled_for FROM firing WHERE verdict = 'admitted' ORDER BY scheduled_for")]


def told(night: Night) -> list[tuple[Any, ...]]:
    """`(verdict, first slot)` of the lines, in the order in which they were written."""
    found = night.sql("SELECT verdict, coalesce(scheduled_for, slot_from) FROM firing ORDER BY id")
    return [(verdict, rfc3339(Instant(slot))) for verdict, slot in found]


def test_an_occurrence_that_fired_and_is_to_come_again_by_the_new_rules_does_not_fire_again(
    night: Night, release: Release
) -> None:
    release("seven")
    brief(night)
    until(night, at(6, 16, 30))
    release("eight")
    assert night.source.rezone() == 1
    until(night, at(7, 19))
    assert fired(night) == ["2026-10-06T16:00:00Z", "2026-10-07T17:00:00Z"]


def test_the_other_way_round_none_is_left_out(night: Night, release: Release) -> None:
    release("eight")
    brief(night)
    until(night, at(6, 17, 30))
    release("seven")
    assert night.source.rezone() == 1
    until(night, at(7, 19))
    assert fired(night) == ["2026-10-06T17:00:00Z", "2026-10-07T16:00:00Z"]


def test_one_that_is_past_by_the_new_rules_and_had_not_fired_has_its_line(night: Night, release: Release) -> None:
    release("eight")
    brief(night)
    until(night, at(7, 16, 30))
    release("seven")
    assert night.source.rezone() == 1
    until(night, at(9, 0))
    assert told(night) == [
        ("admitted", "2026-10-06T17:00:00Z"), ("admitted", "2026-10-07T16:00:00Z"),
        ("admitted", "2026-10-08T16:00:00Z"),
    ]


def test_one_that_is_just_due_by_the_new_rules_fires(night: Night, release: Release) -> None:
    release("eight")
    brief(night)
    until(night, at(7, 15, 59))
    release("seven")
    night.pass_time(seconds=90)
    night.source.rezone()
    night.tick()
    assert fired(night) == ["2026-10-06T17:00:00Z", "2026-10-07T16:00:00Z"]
    assert night.found() == {}


@pytest.mark.parametrize("gone", [False, True], ids=["while the desk runs", "while it is stopped"])
def test_occurrences_an_hour_apart_are_told_apart(night: Night, release: Release, gone: bool) -> None:
    """By the new rules, ten o'clock is where eleven was: the nearest slot is that of another occurrence."""
    release("seven")
    brief(night, "0 9,10,11 * * *")
    until(night, at(6, 17, 30))
    assert fired(night) == ["2026-10-06T16:00:00Z", "2026-10-06T17:00:00Z"]
    release("eight")
    if gone:
        night.pass_time(hours=1)
    night.source.rezone()
    until(night, at(7, 17, 30))
    assert [line for line in told(night) if line[1] not in ("2026-10-06T16:00:00Z", "2026-10-06T17:00:00Z")] == [
        ("admitted", "2026-10-06T19:00:00Z"), ("admitted", "2026-10-07T17:00:00Z")
    ]


def test_an_instant_that_has_its_answer_is_not_answered_again_for_another_occurrence(
    night: Night, release: Release
) -> None:
    """By the new rules, ten o'clock was when nine fired."""
    release("eight")
    brief(night, "0 9,10,11 * * *")
    until(night, at(6, 17, 30))
    release("seven")
    night.source.rezone()
    until(night, at(7, 19))
    assert fired(night) == [
        f"2026-10-06T{hour}:00:00Z" for hour in (17, 18)] + [f"2026-10-07T{hour}:00:00Z" for hour in (16, 17, 18)]


def test_what_was_never_answered_is_owed_from_its_beginning_on(night: Night, release: Release) -> None:
    night.pass_time(microseconds=at(6, 16, 30) - night.now)
    release("seven")
    brief(night)
    release("eight")
    night.source.rezone()
    until(night, at(7, 19))
    assert fired(night) == ["2026-10-06T17:00:00Z", "2026-10-07T17:00:00Z"]


def test_what_is_past_by_the_new_rules_and_came_before_the_schedule_is_not_owed(
    night: Night, release: Release
) -> None:
    night.pass_time(microseconds=at(6, 16, 30) - night.now)
    release("eight")
    brief(night)
    release("seven")
    night.source.rezone()
    until(night, at(7, 19))
    assert told(night) == [("admitted", "2026-10-07T16:00:00Z")]


@pytest.mark.parametrize(("old", "new"), [("seven", "eight"), ("eight", "seven")])
@pytest.mark.parametrize("minute", [10, 50])
@pytest.mark.parametrize("what", ["edit", "pause", "remove"])
def test_a_change_near_the_new_release_leaves_the_account_right(
    night: Night, release: Release, old: str, new: str, minute: int, what: str
) -> None:
    release(old)
    automation = brief(night)
    until(night, at(6, 16, minute))
    if minute == 10:
        _change(night, automation, what)
    release(new)
    night.source.rezone()
    if minute == 50:
        _change(night, automation, what)
    until(night, at(6, 17))
    until(night, at(6, 23))
    if what == "pause":
        night.enable(automation)
    until(night, at(7, 19))
    assert night.sql("SELECT count(*) FROM quarantine") == [(0,)]


STEPS = {
    "before it": ("change", "release", "move"),
    "before the desk has moved its slots": ("release", "change", "move"),
    "after that": ("release", "move", "change"),
}
"""When an automation is changed; ten minutes lie between one step and the next."""
PAUSES = ("pause for a moment", "pause until night", "edit while it is paused")
DAILY, ONCE = a_clock_trigger("0 9 * * *", timezone=ZONE), a_clock_trigger("2026-10-06T09:00", kind="at", timezone=ZONE)


@pytest.mark.parametrize(("spec", "old", "new", "what", "when"), [
    *[(DAILY, "seven", "eight", what, when) for what in (*PAUSES, "edit", "nothing") for when in STEPS],
    *[(DAILY, "eight", "seven", what, when) for what in (*PAUSES, "nothing") for when in STEPS],
    *[(DAILY, "eight", "seven", "edit", when) for when in STEPS if when != "before it"],
    *[(ONCE, "eight", "seven", what, "before it") for what in (*PAUSES[:2], "nothing")],
])
def test_each_occurrence_around_a_new_release_is_told_once_whatever_becomes_of_its_automation(
    night: Night, release: Release, old: str, new: str, spec: TriggerSpec, what: str, when: str
) -> None:
    release(old)
    automation = night.define("brief", spec)
    for minute, step in zip((20, 30, 40), STEPS[when], strict=True):
        until(night, at(6, 16, minute))
        if step == "release":
            release(new)
        elif step == "move":
            night.source.rezone()
        elif what == "edit":
            brief(night, "0 9,21 * * *")
        elif what in PAUSES:
            night.pause(automation)
    until(night, at(6, 16, 50))
    if what == "pause for a moment":
        night.enable(automation)
    elif what == "edit while it is paused":
        brief(night, "0 9,21 * * *")
    until(night, at(6, 23))
    if what in PAUSES[1:]:
        night.enable(automation)
    until(night, at(7, 19))
    told = {day: sum(slots or 1 for slot, slots in night.sql(
        "SELECT coalesce(scheduled_for, slot_from), slots FROM firing") if at(day, 15) < slot < at(day, 18)
    ) for day in (6, 7)}
    assert told == {6: 1, 7: 0 if spec is ONCE else 1}


def _change(night: Night, automation: str, what: str) -> None:
    if what == "edit":
        brief(night, "0 9,21 * * *")
    elif what == "pause":
        night.pause(automation)
    else:
        night.remove(automation)


def test_what_goes_by_elapsed_time_stays_where_it_is(night: Night, release: Release) -> None:
    release("seven")
    brief(night, "0 * * * *")
    until(night, at(5, 23, 10))
    release("eight")
    assert night.source.rezone() == 0
    until(night, at(6, 1))
    assert len(fired(night)) == 5


def test_the_release_that_is_recorded_is_the_one_in_use(night: Night, release: Release) -> None:
    release("seven")
    brief(night)
    release("eight")
    night.source.rezone()
    assert night.sql("SELECT tzdata FROM trigger WHERE next_fire_at IS NOT NULL") == [("eight",)]
    assert TZDATA not in ("seven", "eight")
    assert night.source.rezone() == 0
