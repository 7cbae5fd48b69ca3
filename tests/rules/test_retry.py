"""Retry: what is worth another attempt, and how long the wait is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.rules.retry import (
    DELIVERY_TRIES,
    base_delay,
    delivery_delay,
    delivery_wait,
    draw,
    jittered,
    worth_another,
)
from nightporter.words import ErrorClass, Retry

ALL = Retry(on=frozenset({"transient", "nonzero_exit", "exception"}))


@pytest.mark.parametrize(
    ("error", "worth"),
    [
        (ErrorClass.TRANSIENT, True), (ErrorClass.RESOURCE, True), (ErrorClass.NONZERO_EXIT, False),
        (ErrorClass.EXCEPTION, False), (ErrorClass.TIMEOUT, False), (ErrorClass.CONFIGURATION, False),
        (ErrorClass.PERMISSION, False), (ErrorClass.WORKER_LOST, False),
    ],
)
def test_only_a_passing_error_is_tried_again_unless_more_is_declared(error: ErrorClass, worth: bool) -> None:
    assert worth_another(error, Retry()) is worth


@pytest.mark.parametrize("error", [ErrorClass.NONZERO_EXIT, ErrorClass.EXCEPTION])
def test_an_exit_code_and_an_exception_are_tried_again_where_that_is_declared(error: ErrorClass) -> None:
    assert worth_another(error, ALL)
    assert worth_another(error, Retry(on=frozenset({error})))


@pytest.mark.parametrize(
    "error", [ErrorClass.TIMEOUT, ErrorClass.CONFIGURATION, ErrorClass.PERMISSION, ErrorClass.WORKER_LOST]
)
def test_some_errors_are_never_tried_again_whatever_is_declared(error: ErrorClass) -> None:
    assert not worth_another(error, ALL)


def test_a_passing_error_is_not_tried_again_where_that_was_taken_away() -> None:
    assert not worth_another(ErrorClass.TRANSIENT, Retry(on=frozenset()))


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 30), (2, 60), (3, 300), (4, 300), (9, 300)])
def test_schedules_wait_longer_each_time_and_the_last_wait_repeats(attempt: int, seconds: int) -> None:
    assert base_delay(attempt, Retry(), interactive=False) == timedelta(seconds=seconds)


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 2), (2, 4), (3, 4)])
def test_where_a_person_waits_the_waits_are_short(attempt: int, seconds: int) -> None:
    assert base_delay(attempt, Retry(), interactive=True) == timedelta(seconds=seconds)


def test_the_delays_that_a_definition_names_are_used_for_everybody() -> None:
    named = Retry(delays=(timedelta(seconds=7),))
    assert base_delay(1, named, interactive=True) == base_delay(5, named, interactive=False) == timedelta(seconds=7)


def test_no_delays_is_no_wait() -> None:
    assert base_delay(1, Retry(delays=()), interactive=False) == timedelta(0)


def test_deliveries_wait_twice_as_long_each_time_up_to_four_hours() -> None:
    waits = [delivery_delay(n).total_seconds() for n in range(1, 16)]
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 14400, 14400]
    assert delivery_delay(50) == delivery_delay(10**9) == timedelta(hours=4)


def test_all_tries_of_a_delivery_take_three_days_whatever_is_drawn() -> None:
    assert sum((delivery_wait(n, 0.0) for n in range(1, DELIVERY_TRIES)), timedelta()) > timedelta(days=3)
    assert delivery_wait(3, 0.0) == timedelta(seconds=4) < delivery_wait(3, 0.9) < timedelta(seconds=8)


@given(st.timedeltas(timedelta(0), timedelta(days=1)), st.floats(0, 1, exclude_max=True))
def test_jitter_never_lengthens_a_wait_nor_shrinks_it_to_nothing(delay: timedelta, at: float) -> None:
    assert delay * 0.099 <= jittered(delay, at) <= delay


@given(st.lists(st.text(max_size=4) | st.integers(), max_size=3))
def test_a_draw_lies_between_nought_and_one_and_is_the_same_when_asked_again(parts: list[str | int]) -> None:
    assert 0 <= draw(*parts) < 1
    assert draw(*parts) == draw(*parts)


def test_draws_are_spread_like_chance() -> None:
    draws = [draw("run", n) for n in range(2000)]
    assert 0.45 < sum(draws) / len(draws) < 0.55
    assert min(draws) < 0.01
    assert max(draws) > 0.99
