"""What a look's answer means: something, nothing and "it cannot be said" are three things."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.rules.looks import (
    ROWS,
    STATE_LIMIT,
    TEXT_LIMIT,
    bounded,
    ended_by,
    failed,
    nothing,
    of_output,
    of_rows,
    of_value,
    of_watermark,
    something,
)
from nightporter.words import Ending, ErrorClass, Outcome, Reason, Seen, Sight


@pytest.mark.parametrize("printed", ["", "\n", "  \n\t", "{}", '{"wake": false}', '{"wake": false, "text": "three"}'])
def test_a_program_that_printed_nothing_or_said_so_found_nothing(printed: str) -> None:
    assert of_output(printed).sight is Sight.NOTHING


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ("three new\n", "three new\n"), ("false", "false"), ("null", "null"), ("[]", "[]"), ("0", "0"),
        ('{"wake": true, "text": "three"}', "three"), ('{"wake": true}', ""),
        ('{"wake": true, "items": [1]}', '{"items": [1]}'), ('{"items": [1]}', '{"items": [1]}'),
        ('{"wake": true, "text": ["a"]}', '["a"]'),
    ],
)
def test_a_program_that_printed_something_is_told_as_it_said(printed: str, text: str) -> None:
    assert (of_output(printed).sight, of_output(printed).text) == (Sight.SOMETHING, text)


@pytest.mark.parametrize(
    "printed", ['{"wake": false', "{wake: false}", '{"wake": "no"}', '{"wake": 0}', '{"wake": null}', "{" * 5000]
)
def test_what_begins_as_json_and_is_none_is_neither_nothing_nor_something(printed: str) -> None:
    assert of_output(printed).sight is Sight.FAILED


def test_state_is_kept_whether_there_was_something_or_not() -> None:
    assert of_output('{"wake": true, "text": "x", "state": {"last": 7}}').state == {"last": 7}
    assert of_output('{"wake": false, "state": 7}').state == 7
    assert of_output("x").state is None


@pytest.mark.parametrize("value", [None, False, 0, "", {}, [], {"wake": False}])
def test_a_function_that_returned_what_is_empty_found_nothing(value: Any) -> None:
    assert of_value(value).sight is Sight.NOTHING


@pytest.mark.parametrize(
    ("value", "text"), [(True, ""), ("two", "two"), ({"n": 2}, '{"n": 2}'), ([1], "[1]"), (3, "3")]
)
def test_a_function_that_returned_anything_else_found_that(value: Any, text: str) -> None:
    assert (of_value(value).sight, of_value(value).text) == (Sight.SOMETHING, text)


@pytest.mark.parametrize("rows", [[], [(0,)], [(None,)], [(0.0,)], [(Decimal(0),)], [(-1,)], [(False,)]])
def test_a_count_of_none_and_no_rows_are_nothing(rows: list[tuple[Any, ...]]) -> None:
    assert of_rows(["n"] * (len(rows[0]) if rows else 1), rows).sight is Sight.NOTHING


def test_a_count_and_rows_are_something_and_are_told() -> None:
    assert of_rows(["n"], [(3,)]).text == "3"
    assert of_rows(["n"], [(Decimal(2),)]).text == "2"
    assert of_rows(["id", "n"], [(1, "a"), (0, None)]).text == '{"id": 1, "n": "a"}\n{"id": 0, "n": null}'
    assert of_rows(["n"], [("",)]).sight is Sight.SOMETHING, "a row is a row"


def test_more_rows_than_are_told_are_said_to_be_there() -> None:
    full, more = ([(n, n) for n in range(count)] for count in (ROWS, ROWS + 1))
    assert of_rows(["a", "b"], full).text.count("\n") == ROWS - 1
    assert of_rows(["a", "b"], more).text.endswith("[cut here: more than 100 rows]")


# -- watermarks ----------------------------------------------------------------------------------------------------


def test_the_first_look_takes_down_what_it_finds_and_wakes_only_where_that_is_asked() -> None:
    now = {"mark": "a"}
    assert of_watermark(None, now, "page", first_wakes=False) == nothing(now)
    assert of_watermark(None, now, "page", first_wakes=True) == something("page", now)


@pytest.mark.parametrize("first_wakes", [True, False])
def test_another_mark_is_something_and_the_same_one_is_nothing(first_wakes: bool) -> None:
    other = of_watermark({"mark": "a"}, {"mark": "b"}, "page", first_wakes=first_wakes)
    assert other == something("page", {"mark": "b"})
    assert of_watermark({"mark": "a"}, {"mark": "a"}, "page", first_wakes=first_wakes) == nothing()


def test_what_else_is_known_of_the_same_page_is_kept_anew() -> None:
    assert of_watermark({"mark": "a", "etag": "1"}, {"mark": "a", "etag": "2"}, "", first_wakes=False) == nothing(
        {"mark": "a", "etag": "2"})


@pytest.mark.parametrize("before", [17, "text", [], {"other": 1}])
def test_what_is_kept_and_makes_no_sense_is_a_first_look(before: Any) -> None:
    assert of_watermark(before, {"mark": "a"}, "", first_wakes=False).sight is Sight.NOTHING


# -- bounds, and what follows ------------------------------------------------------------------------------------------


def test_a_long_text_is_cut_within_a_character_and_says_so() -> None:
    cut = bounded(something("é" * TEXT_LIMIT)).text
    assert cut == "é" * (TEXT_LIMIT // 2) + f"\n[cut here: {TEXT_LIMIT} more bytes]"
    assert bounded(something("x" * TEXT_LIMIT)).text == "x" * TEXT_LIMIT


def test_what_wants_to_keep_too_much_has_failed() -> None:
    assert bounded(something("x", "y" * (STATE_LIMIT - 2))).sight is Sight.SOMETHING
    too_much = bounded(something("x", "y" * (STATE_LIMIT - 1)))
    assert (too_much.sight, too_much.error) == (Sight.FAILED, "it wants to keep 16385 bytes; 16384 are the most")


def test_what_no_store_takes_is_replaced_before_it_is_told() -> None:
    assert bounded(something("a\0b\ud800")).text == "a\ufffdb\ufffd"
    assert bounded(nothing(float("nan"))).sight is Sight.FAILED


def test_each_answer_ends_an_attempt_in_its_own_way() -> None:
    assert ended_by(something("x")) is None
    assert ended_by(Seen(Sight.SKIPPED)) is None
    quiet = ended_by(nothing())
    assert quiet is not None
    assert (quiet.ending, quiet.reason, quiet.outcome) == (Ending.OK, Reason.PRECONDITION_UNMET, Outcome.NOOP)
    bad = ended_by(failed(ErrorClass.TRANSIENT, "no route"))
    assert bad is not None
    assert (bad.ending, bad.reason, bad.error_class, bad.error) == (
        Ending.ERROR, Reason.CHECK_FAILED, ErrorClass.TRANSIENT, "no route")


@given(st.text())
def test_whatever_a_program_prints_is_one_of_the_three(printed: str) -> None:
    seen = bounded(of_output(printed))
    assert seen.sight in (Sight.SOMETHING, Sight.NOTHING, Sight.FAILED)
    assert len(seen.text.encode()) <= TEXT_LIMIT + 40
