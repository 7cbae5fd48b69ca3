"""Ending: what an attempt that has ended means for its run, and where the result goes."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.clock import MINUTE, SECOND, Instant, micros
from nightporter.rules.ending import (
    GIVEN_BACK_CAP,
    GIVEN_BACK_MOST,
    HOLD_DEFAULT,
    HOLD_LONGEST,
    Next,
    Traces,
    after_attempt,
    after_no_start,
    after_shutdown,
    destinations_for,
    for_a_person,
    lane_of,
    may_repeat,
    reason_of,
)
from nightporter.states import ENDED, RunEvent, RunState, step
from nightporter.words import Destination, Ended, Ending, ErrorClass, Outcome, Reason, Retry
from words import a_definition

NOW = Instant(1_774_598_400_000_000)


def after(
    ended: Ended, *, attempt: int = 1, attempts: int = 3, effects: int = 0, hand: bool = False, **of: Any
) -> Next:
    return after_attempt(
        ended, run_id="run_1", attempt=attempt, attempts=attempts, definition=a_definition(**of), interactive=hand,
        effects_done=effects, now=NOW,
    )


# -- what went well -----------------------------------------------------------------------------------------------


def test_a_report_is_a_success() -> None:
    became = after(Ended.ok("three things happened"))
    assert (became.state, became.outcome, became.reason, became.dead) == (
        RunState.SUCCEEDED, Outcome.REPORT, None, False
    )


def test_having_nothing_to_say_is_a_quiet_success_and_not_a_report() -> None:
    became = after(Ended.ok(""))
    assert (became.state, became.outcome, became.reason) == (RunState.SKIPPED, Outcome.NOOP, Reason.NO_OP)


def test_a_value_without_a_text_is_something_to_say() -> None:
    assert after(Ended.ok("", data=0)).outcome is Outcome.REPORT
    assert after(Ended.ok("", data=[])).state is RunState.SUCCEEDED


def test_touching_the_world_is_an_action_even_without_a_word() -> None:
    assert after(Ended.ok("", data=None), effects=1).outcome is Outcome.ACTION
    assert after(Ended.ok("done"), effects=2).outcome is Outcome.ACTION


def test_a_target_may_say_itself_what_it_amounts_to() -> None:
    assert after(Ended(Ending.OK, text="look", outcome=Outcome.NEEDS_YOU)).outcome is Outcome.NEEDS_YOU
    assert after(Ended(Ending.OK, outcome=Outcome.ACTION)).state is RunState.SUCCEEDED
    assert after(Ended(Ending.OK, text="chatter", outcome=Outcome.NOOP)).state is RunState.SKIPPED


def test_what_touched_the_world_is_no_quiet_success_whatever_it_says() -> None:
    assert after(Ended(Ending.OK, outcome=Outcome.NOOP), effects=1).state is RunState.SUCCEEDED


def test_a_target_that_says_it_failed_has_failed() -> None:
    became = after(Ended(Ending.OK, text="no", outcome=Outcome.FAILED, error="could not"))
    assert (became.state, became.dead, became.error) == (RunState.FAILED, True, "could not")


# -- errors -------------------------------------------------------------------------------------------------------


def test_a_passing_error_goes_back_to_the_line_with_a_time() -> None:
    became = after(Ended.failed(ErrorClass.TRANSIENT, "503"))
    assert (became.event, became.state) == (RunEvent.RETRY, RunState.QUEUED)
    assert (became.reason, became.error, became.dead) == (Reason.UNREACHABLE, "503", False)
    assert became.run_after is not None
    assert 3 * SECOND <= became.run_after - NOW <= 30 * SECOND


def test_where_a_person_waits_the_retry_is_soon() -> None:
    became = after(Ended.failed(ErrorClass.TRANSIENT, "503"), hand=True)
    assert became.run_after is not None
    assert became.run_after - NOW <= 2 * SECOND


def test_the_last_attempt_leaves_a_dead_letter() -> None:
    became = after(Ended.failed(ErrorClass.TRANSIENT, "503"), attempt=3)
    assert (became.state, became.outcome, became.dead, became.run_after) == (
        RunState.FAILED, Outcome.FAILED, True, None
    )


def test_a_receiver_that_names_a_later_time_is_heard() -> None:
    asked = Ended.failed(ErrorClass.TRANSIENT, "429", retry_after=timedelta(minutes=10))
    assert NOW + 10 * MINUTE <= (after(asked).run_after or 0) < NOW + 12.5 * MINUTE


def test_those_who_are_asked_to_come_back_at_one_time_come_back_at_many() -> None:
    for ended in (
        Ended.failed(ErrorClass.TRANSIENT, "429", retry_after=timedelta(minutes=10)),
        Ended(Ending.HOLD, retry_after=timedelta(minutes=10)),
    ):
        waits = [(after_attempt(
            ended, run_id=f"run_{n}", attempt=1, attempts=3, definition=a_definition(), interactive=False,
            effects_done=0, now=NOW,
        ).run_after or 0) - NOW for n in range(200)]
        assert min(waits) >= 10 * MINUTE
        assert max(waits) - min(waits) >= 2 * MINUTE, "a fifth of the wait lies between the first and the last"


def test_a_receiver_that_names_an_absurd_time_is_not() -> None:
    asked = Ended.failed(ErrorClass.TRANSIENT, "429", retry_after=timedelta.max)
    assert after(asked).run_after == NOW + micros(HOLD_LONGEST)


def test_a_retry_without_a_delay_is_still_later_than_now() -> None:
    became = after(Ended.failed(ErrorClass.TRANSIENT, "503"), retry=Retry(delays=()))
    assert became.run_after == NOW + 1


def test_an_error_without_a_class_counts_as_an_exception() -> None:
    became = after(Ended(Ending.ERROR, error="?"))
    assert (became.error_class, became.reason, became.dead) == (ErrorClass.EXCEPTION, Reason.EXCEPTION, True)


def test_the_runners_own_reason_stands() -> None:
    became = after(Ended(Ending.ERROR, error="x", error_class=ErrorClass.EXCEPTION, reason=Reason.UNREADABLE))
    assert became.reason is Reason.UNREADABLE


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_timeout_is_final_at_any_attempt(attempt: int) -> None:
    retry = Retry(on=frozenset({"transient", "nonzero_exit", "exception"}))
    became = after(Ended.timed_out("too long"), attempt=attempt, retry=retry)
    assert (became.state, became.outcome, became.dead) == (RunState.TIMED_OUT, Outcome.FAILED, True)


@pytest.mark.parametrize("error", ErrorClass)
def test_every_class_of_error_has_a_reason(error: ErrorClass) -> None:
    assert reason_of(error) in Reason


# -- cancelled and held -------------------------------------------------------------------------------------------


def test_a_cancelled_run_has_no_outcome_and_says_why() -> None:
    assert after(Ended.cancelled()).reason is Reason.CANCELLED_BY
    became = after(Ended(Ending.CANCELLED, reason=Reason.SUPERSEDED))
    assert (became.state, became.reason, became.outcome, became.dead) == (
        RunState.CANCELLED, Reason.SUPERSEDED, None, False
    )


@pytest.mark.parametrize(
    ("asked", "wait"),
    [(None, HOLD_DEFAULT), (timedelta(seconds=1), timedelta(seconds=1)), (timedelta(days=9), HOLD_LONGEST)],
)
def test_a_provider_that_asks_for_patience_gets_it_within_bounds(asked: timedelta | None, wait: timedelta) -> None:
    became = after(Ended(Ending.HOLD, retry_after=asked, error="busy"))
    assert (became.state, became.reason, became.dead) == (RunState.HELD, Reason.PROVIDER_UNAVAILABLE, False)
    assert NOW + micros(wait) <= (became.run_after or 0) <= NOW + micros(min(wait * 1.25, HOLD_LONGEST))


@given(
    st.sampled_from(Ending), st.none() | st.sampled_from(ErrorClass), st.none() | st.sampled_from(Outcome),
    st.text(max_size=2), st.integers(1, 4), st.integers(0, 1), st.none() | st.timedeltas(),
)
def test_every_ending_is_a_step_that_the_machine_has(
    ending: Ending, error_class: ErrorClass | None, outcome: Outcome | None, text: str, attempt: int, effects: int,
    asked: timedelta | None,
) -> None:
    ended = Ended(ending, text=text, error_class=error_class, outcome=outcome, retry_after=asked)
    became = after(ended, attempt=attempt, effects=effects)
    assert step(RunState.RUNNING, became.event) is became.state
    assert (became.run_after is not None) == (became.event in (RunEvent.RETRY, RunEvent.HOLD))
    if became.run_after is not None:
        assert NOW < became.run_after <= NOW + micros(HOLD_LONGEST)
    assert became.dead == (became.state in (RunState.FAILED, RunState.TIMED_OUT))
    assert (became.outcome is None) <= (became.state is RunState.CANCELLED or became.state not in ENDED)


# -- cut short ----------------------------------------------------------------------------------------------------

QUIET, ACTED, DONE = Traces(), Traces(acted=True), Traces(effects_done=1)
OPEN = Traces(acted=True, effects_done=1, effects_open=1)


@pytest.mark.parametrize(
    ("declared", "traces", "repeats"),
    [
        ({}, QUIET, True), ({}, ACTED, False), ({}, DONE, False), ({}, OPEN, False),
        ({"idempotent": True}, ACTED, True), ({"idempotent": True}, DONE, True), ({"idempotent": True}, OPEN, False),
        ({"on_crash": "retry"}, ACTED, True), ({"on_crash": "retry"}, OPEN, False),
        ({"on_crash": "review"}, QUIET, True), ({"on_crash": "review"}, ACTED, False),
        ({"on_crash": "review", "idempotent": True}, ACTED, False),
        ({"on_crash": "review", "idempotent": True}, DONE, False),
    ],
)
def test_an_attempt_that_was_cut_short_repeats_where_that_is_safe(
    declared: dict[str, Any], traces: Traces, repeats: bool
) -> None:
    assert may_repeat(a_definition(**declared), traces) is repeats


def test_a_shutdown_gives_back_what_may_repeat_and_sets_the_rest_aside() -> None:
    back = after_shutdown(a_definition(), QUIET)
    assert (back.event, back.state, back.reason) == (RunEvent.RELEASE, RunState.QUEUED, Reason.SHUTDOWN)
    aside = after_shutdown(a_definition(), ACTED)
    assert (aside.event, aside.state, aside.reason) == (RunEvent.SET_ASIDE, RunState.REVIEW, Reason.SHUTDOWN)
    assert "may have happened" in aside.error


# -- where it goes ------------------------------------------------------------------------------------------------

HOOK = Destination("hook", "webhook", {"url": "https://Hooks.example.org:8443/in?x=1"})
DESK = Destination("desk", "announce")


@pytest.mark.parametrize("outcome", [Outcome.REPORT, Outcome.ACTION, Outcome.NEEDS_YOU])
def test_a_result_goes_wherever_its_outcome_is_wanted(outcome: Outcome) -> None:
    quiet = Destination("quiet", "file", on=frozenset({"failed"}))
    assert destinations_for(a_definition(deliver=[HOOK, DESK, quiet]), outcome) == [HOOK, DESK]


@pytest.mark.parametrize("outcome", [None, Outcome.NOOP])
def test_nothing_to_say_goes_nowhere(outcome: Outcome | None) -> None:
    eager = Destination("eager", "file", on=frozenset({"noop", "report"}))
    assert destinations_for(a_definition(deliver=[eager]), outcome) == []


def test_a_failure_is_announced_once_as_a_dead_letter_and_not_as_a_result_too() -> None:
    assert destinations_for(a_definition(deliver=[HOOK, DESK]), Outcome.FAILED) == [HOOK]


def test_the_destination_none_is_nowhere() -> None:
    assert destinations_for(a_definition(deliver=[Destination("no", "none")]), Outcome.REPORT) == []


@pytest.mark.parametrize(
    ("destination", "lane"),
    [(HOOK, "webhook:hooks.example.org:8443"), (DESK, "announce"),
     (Destination("x", "webhook", {"url": 7}), "webhook"), (Destination("f", "file", {"path": "/x"}), "file")],
)
def test_deliveries_to_one_receiver_share_a_lane(destination: Destination, lane: str) -> None:
    assert lane_of(destination) == lane


def test_all_traces_are_weighed() -> None:
    for acted, done, still_open in product([False, True], [0, 1], [0, 1]):
        traces = Traces(acted, done, still_open)
        assert may_repeat(a_definition(), traces) is (traces == QUIET)


# -- attempts that are given back ---------------------------------------------------------------------------------


def held(given_back: int, retry_after: timedelta | None = timedelta(seconds=1)) -> Next:
    return after_attempt(
        Ended(Ending.HOLD, retry_after=retry_after, error="429"), run_id="run_1", attempt=1, attempts=3,
        definition=a_definition(), interactive=False, effects_done=0, now=NOW, given_back=given_back,
    )


def test_a_provider_that_asks_again_and_again_is_called_less_and_less_often() -> None:
    waits = [(held(n).run_after or 0) - NOW for n in range(GIVEN_BACK_MOST)]
    assert all(later >= 1.5 * before for before, later in pairwise(waits[:10]))
    assert SECOND <= waits[0] < 1.25 * SECOND
    assert micros(GIVEN_BACK_CAP) <= waits[-1] < 1.25 * micros(GIVEN_BACK_CAP)
    assert timedelta(hours=18) < timedelta(microseconds=sum(waits)) < timedelta(hours=30), "about a day in all"


def test_a_time_that_the_provider_names_stands_over_the_least_wait() -> None:
    assert (held(3, timedelta(hours=2)).run_after or 0) >= NOW + 120 * MINUTE


def test_a_run_is_not_held_for_ever() -> None:
    became = held(GIVEN_BACK_MOST)
    assert (became.state, became.reason, became.dead) == (RunState.FAILED, Reason.PROVIDER_UNAVAILABLE, True)
    assert became.error == "429; it was held 50 times, and no further"
    assert held(GIVEN_BACK_MOST - 1).state is RunState.HELD


def test_a_run_that_was_not_started_begins_again_by_and_by_and_the_attempt_does_not_count() -> None:
    became = after_no_start("the store is locked", given_back=2, now=NOW)
    assert (became.event, became.state, became.reason) == (RunEvent.RELEASE, RunState.QUEUED, Reason.NOT_STARTED)
    assert became.run_after == NOW + 4 * SECOND


def test_a_run_that_cannot_be_started_is_not_claimed_for_ever() -> None:
    became = after_no_start("the store is locked", given_back=GIVEN_BACK_MOST, now=NOW)
    assert (became.state, became.reason, became.dead) == (RunState.FAILED, Reason.NOT_STARTED, True)


def test_what_may_have_happened_already_is_a_persons_to_decide() -> None:
    became = for_a_person("effect 'mail' may have happened already")
    assert (became.state, became.reason, became.dead) == (RunState.REVIEW, Reason.MAY_HAVE_ACTED, False)
