"""Changes that follow one another so closely, or so late, that they meet: what a random night at the desk had found."""

from __future__ import annotations

import pytest
from acting import setting
from builders import EVERY_HOUR, SAID, Night

from nightporter import operations
from nightporter.admission import admit
from nightporter.clock import HOUR, ManualClock
from nightporter.states import AutomationState
from nightporter.store import Store
from nightporter.words import Firing, Limits, Overlap, TriggerId, TriggerSpec


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def test_what_is_made_in_the_instant_in_which_its_namesake_was_removed_is_another_automation(night: Night) -> None:
    first = night.define("brief", EVERY_HOUR)
    night.remove(first)
    second = night.define("brief", EVERY_HOUR)
    night.remove(second)
    third = night.define("brief", EVERY_HOUR)
    assert len({first, second, third}) == 3
    assert [night.row(a).state for a in (first, second, third)] == ["removed", "removed", "active"]
    assert night.found() == {}


def test_a_pause_that_begins_in_the_instant_of_another_one_has_its_own_reason(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.store.write(lambda tx: operations.vanish(tx, brief, reason="gone", now=night.now))
    night.enable(brief)
    night.pause(brief)
    night.define("brief", EVERY_HOUR)  # the program still defines it: that wakes what had vanished, and nothing else
    assert night.row(brief).state == AutomationState.PAUSED


def test_what_is_told_together_under_queue_starts_in_the_order_in_which_it_was_told(night: Night) -> None:
    brief = night.define("brief", TriggerSpec("hook", "call", overlap=Overlap.QUEUE))
    told = [Firing(TriggerId(f"{brief}/hook"), f"n-{n}") for n in range(12)]
    answers = night.store.write(lambda tx: admit(tx, told, now=night.now))
    started = []
    while claimed := night.begin(50):
        started += [c.work.run_id for c in claimed]
        night.finish(claimed, SAID)
    assert started == [a.run_id for a in answers]


def test_runs_that_wait_for_a_ceiling_go_on_when_it_is_raised(night: Night) -> None:
    narrow = night.define("brief", limits=Limits(concurrent=1))
    for _ in range(3):
        night.fire(narrow)
    assert len(night.begin(50)) == 1
    night.define("brief", limits=Limits(concurrent=2))
    assert len(night.begin(50)) == 1, "one more may run, and no run had to end for it"
    night.define("brief", limits=Limits(concurrent=None))
    assert len(night.begin(50)) == 1


@pytest.mark.parametrize("noticed", ["by the sweep", "by a person"])
def test_the_end_of_a_pause_that_is_noticed_late_leaves_no_slot_armed_that_has_passed(
    night: Night, noticed: str
) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.pause(brief, minutes=30)
    night.pass_time(hours=5)
    night.tick()
    setting(night.store, "due_evaluated_at", night.now)
    night.upkeep() if noticed == "by the sweep" else night.enable(brief)
    assert night.found() == {}
    [(armed,)] = night.sql("SELECT next_fire_at FROM trigger WHERE kind = 'clock'")
    assert night.now < armed <= night.now + HOUR
    assert night.lines("verdict", "reason", "slots") == [("collapsed", "missed_policy", 4), ("admitted", None, None)]
