"""The three machines: the table is all there is, what is final stays final, and a refusal says what is possible."""

from __future__ import annotations

from itertools import product

import pytest

from nightporter.errors import IllegalStep
from nightporter.states import (
    ACTIVE,
    AUTOMATION_TRANSITIONS,
    DELIVERY_TRANSITIONS,
    ENDED,
    TRANSITIONS,
    AutomationEvent,
    AutomationState,
    DeliveryState,
    RunEvent,
    RunState,
    step,
)


@pytest.mark.parametrize(("state", "event"), list(product(RunState, RunEvent)), ids=str)
def test_a_run_takes_the_steps_of_its_table_and_no_others(state: RunState, event: RunEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert step(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalStep):
            step(state, event)


def test_an_ended_run_stays_ended() -> None:
    assert {state for state, _ in TRANSITIONS} & ENDED == set()
    assert {state for state in RunState if state not in {s for s, _ in TRANSITIONS}} == ENDED | {RunState.WAITING}


def test_every_state_of_a_run_but_waiting_can_be_reached_from_queued() -> None:
    reached = {RunState.QUEUED}
    while more := {to for (state, _), to in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(RunState) - {RunState.WAITING}


def test_from_every_state_of_a_run_there_is_a_way_to_an_end() -> None:
    ways = set(ENDED)
    while more := {state for (state, _), to in TRANSITIONS.items() if to in ways} - ways:
        ways |= more
    assert ways == set(RunState) - {RunState.WAITING}


def test_a_timeout_is_never_tried_again() -> None:
    assert not [event for state, event in TRANSITIONS if state is RunState.TIMED_OUT]


def test_a_delivered_result_is_never_sent_again() -> None:
    assert not [event for state, event in DELIVERY_TRANSITIONS if state is DeliveryState.DELIVERED]


def test_a_removed_automation_stays_removed() -> None:
    assert not [event for state, event in AUTOMATION_TRANSITIONS if state is AutomationState.REMOVED]
    assert all((state, AutomationEvent.REMOVE) in AUTOMATION_TRANSITIONS
               for state in AutomationState if state is not AutomationState.REMOVED)


def test_what_waits_for_a_person_is_not_counted_as_going() -> None:
    assert {RunState.QUEUED, RunState.RUNNING, RunState.HELD, RunState.LOST} == ACTIVE


def test_a_refused_step_says_what_is_possible_instead() -> None:
    with pytest.raises(IllegalStep) as refused:
        step(RunState.REVIEW, RunEvent.CLAIM)
    assert refused.value.what == "a review run cannot claim"
    assert refused.value.why == "what it can: requeue, dismiss"


def test_a_step_out_of_a_final_state_says_that_it_is_final() -> None:
    with pytest.raises(IllegalStep, match="nothing, it is final"):
        step(RunState.SUCCEEDED, RunEvent.CLAIM)
