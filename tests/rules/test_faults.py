"""When two errors are the same fault: what changes from time to time is taken out of them, and nothing else."""

from __future__ import annotations

import pytest

from nightporter.rules.faults import LONGEST, signature

ALIKE = [
    ("exit code 1 after 12.5 s", "exit code 3 after 7 s"),
    ("run run_0198f3a2b11c0aa5d3 not found", "run run_01a0c4b5e77d1bb6e4 not found"),
    ("no lease at 2026-11-03T09:00:01.25Z", "no lease at 2027-01-01 10:00:00+02:00"),
    ("refused at 09:15", "refused at 23:59:59"),
    ("job 6f9619ff-8b86-d011-b42d-00cf4fc964ff broke", "job 3f2504e0-4f89-11d3-9a0c-0305e82c3301 broke"),
    ("core at 0x7ffd2a", "core at 0x55aa"),
    ("cannot read /scratch/run_018f-1/data.csv", "cannot read /scratch/run_0190-2/data.csv"),
    ("commit 9fceb02d0ae5 is gone", "commit 1a410efbd13b is gone"),
    ("HTTP/1.1  503\nplease wait", "http/1.1 503 please wait"),
    ("no answer from 10.0.0.7:8080", "no answer from 10.0.0.12:9090"),
]
APART = [
    ("503 Service Unavailable", "404 Not Found"),
    ("cannot read /data/in.csv", "cannot read /data/out.csv"),
    ("KeyError: 'name'", "KeyError: 'date'"),
    ("no answer from one.example", "no answer from two.example"),
    ("the deadbeat band", "the facade band"),
    ("", "x"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_errors_that_differ_in_what_changes_are_one_fault(one: str, other: str) -> None:
    assert signature(one) == signature(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_errors_that_say_something_else_are_two(one: str, other: str) -> None:
    assert signature(one) != signature(other)


def test_a_signature_is_its_own_and_bounded() -> None:
    for error in [e for pair in ALIKE + APART for e in pair] + ["a" * 100_000, "/x" * 50_000, "1" * 100_000]:
        found = signature(error)
        assert len(found) <= LONGEST
        assert signature(found) == found
