"""What `make bench` says of a result beside the one that is kept: what moved, and nothing of mere noise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks import report
from benchmarks.figures import Row

ROUNDS = (10.0, 11.0, 10.5)


def a_row(*values: float, key: str = "runs", limit: tuple[float, ...] = (), more_is_better: bool = True) -> Row:
    return Row(key, f"the {key}", "runs/s", values or ROUNDS, "bare", limit, more_is_better=more_is_better)


def kept(*rows: Row) -> Any:
    """As it comes back from the file of the reference."""
    return json.loads(json.dumps(report.document(rows, {"taken_at": "2026-03-27T08:00:00Z"})))


def test_a_figure_that_fell_is_said_to_be_worse_by_how_much() -> None:
    assert report.moved([a_row(5.0, 5.5, 5.2)], kept(a_row())) == ["WORSE    the runs: figure 10.5 -> 5.2 (-50%)"]


def test_a_figure_that_rose_is_said_to_be_better() -> None:
    assert report.moved([a_row(20.0, 21.0, 22.0)], kept(a_row())) == ["better   the runs: figure 10.5 -> 21 (+100%)"]


def test_where_less_is_better_more_is_worse() -> None:
    [line] = report.moved([a_row(20.0, 21.0, 22.0, more_is_better=False)], kept(a_row(more_is_better=False)))
    assert line.startswith("WORSE")


@pytest.mark.parametrize("values", [(10.0, 11.0, 10.4), (9.0, 9.5, 9.2)], ids=["the same", "little"])
def test_a_small_move_is_not_told(values: tuple[float, ...]) -> None:
    assert report.moved([a_row(*values)], kept(a_row())) == []


def test_a_move_within_the_spread_of_the_rounds_is_noise() -> None:
    assert report.moved([a_row(5.0, 6.0, 11.0)], kept(a_row())) == []
    assert report.moved([a_row(14.0, 13.0, 14.5)], kept(a_row(8.0, 10.0, 14.0))) == []


def test_a_machine_that_is_slower_in_all_moves_nothing() -> None:
    before = a_row(100.0, 110.0, 105.0, limit=(400.0, 440.0, 420.0))
    now = a_row(50.0, 55.0, 51.0, limit=(200.0, 220.0, 204.0))
    assert report.moved([now], kept(before)) == []


def test_what_moved_beside_its_limit_is_told_as_a_ratio() -> None:
    before, now = a_row(100.0, 110.0, limit=(400.0, 440.0)), a_row(50.0, 55.0, limit=(400.0, 440.0))
    assert report.moved([now], kept(before)) == ["WORSE    the runs: ratio 0.25 -> 0.125 (-50%)"]


def test_a_row_that_is_new_and_one_that_is_missing_are_told() -> None:
    assert report.moved([a_row(key="herd")], kept(a_row(key="idle"))) == ["new      the herd", "missing  the idle"]


def test_the_reference_that_is_kept_can_be_compared_with() -> None:
    reference = report.load(report.REFERENCE)
    assert reference is not None
    assert report.moved([a_row(key="herd of cats")], reference)[0] == "new      the herd of cats"
