"""Stagger: schedules that are due together start a little apart, each always by the same offset."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.clock import DAY, HOUR, MINUTE, SECOND, Instant
from nightporter.rules.schedule import count_between, next_due, previous_due, sentence, slots_between
from nightporter.rules.stagger import MOST, staggered
from nightporter.store.tx_clock import schedule_from, schedule_text
from nightporter.words import Definition, Schedule
from words import a_clock_trigger, a_definition

FIVE = timedelta(minutes=5)
NINE = a_clock_trigger("0 9 * * *", timezone="Europe/Berlin")
NOW = Instant(1_774_598_400_000_000)


def schedule_of(definition: Definition) -> Schedule:
    found = staggered(definition).triggers[0].schedule
    assert found is not None
    return found


def offset(name: str = "brief", *, runner: str = "echo", **options: object) -> int:
    trigger = replace(NINE, **options)  # type: ignore[arg-type]  # fields of a trigger
    return schedule_of(a_definition(name, runner=runner, triggers=[trigger])).offset


def test_an_offset_is_a_fixed_function_of_the_names_below_what_is_said() -> None:
    offsets = {name: offset(name, stagger=FIVE) for name in map(str, range(200))}
    assert all(0 <= each < MOST and each % SECOND == 0 for each in offsets.values())
    assert len(set(offsets.values())) > 100
    assert offsets == {name: offset(name, stagger=FIVE) for name in offsets}
    assert all(offset(name, stagger=timedelta(seconds=1)) == 0 for name in list(offsets)[:5])


def test_what_does_not_ask_for_it_is_not_staggered() -> None:
    plain = a_definition(triggers=[NINE])
    assert staggered(plain) is plain
    assert offset() == 0 != offset(stagger=FIVE)


@pytest.mark.parametrize(
    ("expression", "moves"), [("0 9 * * *", True), ("@hourly", True), ("30 9 * * *", False), ("*/15 * * * *", False)],
)
def test_what_a_model_works_on_at_the_top_of_an_hour_is_staggered_unless_it_says_exact(
    expression: str, moves: bool
) -> None:
    trigger = a_clock_trigger(expression, timezone="Asia/Kolkata")
    model = a_definition("brief", runner="agent", triggers=[trigger])
    assert bool(schedule_of(model).offset) is moves
    assert schedule_of(replace(model, triggers=(replace(trigger, exact=True),))).offset == 0
    assert schedule_of(replace(model, target=replace(model.target, kind="script"))).offset == 0


def test_a_moment_is_kept_exactly() -> None:
    moment = a_clock_trigger("2026-06-10T09:00", kind="at")
    assert schedule_of(a_definition(runner="agent", triggers=[moment])).offset == 0


def test_to_stagger_twice_is_to_stagger_once() -> None:
    once = staggered(a_definition(triggers=[replace(NINE, stagger=FIVE)]))
    assert staggered(once) == once
    assert staggered(replace(once, triggers=(replace(once.triggers[0], stagger=None),))).triggers == (NINE,)


@given(st.sampled_from(["0 9 * * *", "*/7 * * * *", "30 2 * * *"]), st.integers(1, 299), st.integers(0, 400))
def test_every_slot_is_later_by_the_offset_and_none_is_lost(expression: str, seconds: int, days: int) -> None:
    plain = a_clock_trigger(expression, timezone="Europe/Berlin").schedule
    assert plain is not None
    later = replace(plain, offset=seconds * SECOND)
    since = Instant(NOW + days * DAY)
    shifted = list(islice(slots_between(later, since, Instant(since + 3 * DAY)), 50))
    assert [slot - later.offset for slot in shifted] == list(islice(
        slots_between(plain, Instant(since - later.offset), Instant(since + 3 * DAY - later.offset)), 50))
    assert next_due(later, since) == shifted[0]
    assert previous_due(later, shifted[0]) == shifted[0]
    assert count_between(later, since, shifted[-1]) == (len(shifted), True)


def test_a_fixed_interval_is_counted_with_its_offset() -> None:
    hours = a_clock_trigger("1h", kind="every", anchor=NOW).schedule
    assert hours is not None
    later = replace(hours, offset=2 * MINUTE)
    assert count_between(later, NOW, Instant(NOW + HOUR)) == (1, True)
    assert count_between(hours, NOW, Instant(NOW + HOUR)) == (1, True)
    assert count_between(later, NOW, Instant(NOW + HOUR + 2 * MINUTE)) == (2, True)


def test_a_recurrence_rule_is_staggered_too() -> None:
    plain = a_clock_trigger("FREQ=WEEKLY;BYDAY=MO", kind="rrule", anchor=NOW)
    later = schedule_of(a_definition(triggers=[replace(plain, stagger=FIVE)]))
    assert plain.schedule is not None
    assert later.offset > 0
    first = next_due(plain.schedule, NOW)
    assert first is not None
    assert next_due(later, NOW) == first + later.offset
    assert next_due(later, Instant(first + later.offset)) == first + 7 * DAY + later.offset


def test_it_is_said_and_kept() -> None:
    plain = NINE.schedule
    assert plain is not None
    later = replace(plain, offset=137 * SECOND)
    assert sentence(later) == sentence(plain) + ", 2m17s later"
    assert schedule_from(schedule_text(later)) == later
    assert schedule_text(plain) == '["cron","0 9 * * *","Europe/Berlin",null]'
    definition = staggered(a_definition(triggers=[replace(NINE, stagger=FIVE)]))
    assert Definition.from_json(definition.as_json()) == definition
