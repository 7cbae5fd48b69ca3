"""A bounded number of nights, the same ones each time. `make soak PART=property` has as many as you like."""

from __future__ import annotations

import itertools
import signal
import sys
import time
from typing import ClassVar
from unittest.mock import Mock, patch

import pytest
from databases import Databases

from model.asking import COMPARED
from model.nights import run_nights
from model.seeded import SEEDED, found_after
from model.soak import SqliteMachine, a_machine
from nightporter import admission
from nightporter.clock import Instant, SystemClock
from nightporter.store import Store

pytestmark = pytest.mark.timeout(900)
"""Nights are work for the processor, and what is found is made as small as can be: a slow machine takes its time."""

SLOW_TO_FIND = {"the cooldown counts from a success", "what a spring night leaves out is not made up"}
"""They are left to the soak."""


@pytest.mark.parametrize(("kind", "nights"), [("sqlite", 100), ("postgres", 8)])
def test_whatever_happens_the_ledger_is_what_the_account_says(kind: str, nights: int, databases: Databases) -> None:
    with a_machine(kind, databases) as machine:
        run_nights(machine, examples=nights)


@pytest.mark.parametrize("bug", sorted(SEEDED.keys() - SLOW_TO_FIND))
def test_a_bug_that_is_put_into_the_engine_is_found(bug: str) -> None:
    night, said = found_after(bug, SqliteMachine)
    assert night, said


@pytest.mark.parametrize("raised", [KeyError("a fall"), AssertionError("of something that is no check of the model")])
def test_what_no_check_says_is_not_taken_for_a_bug_that_was_found(
    raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SEEDED, "a fall", lambda: [patch.object(admission, "_keeps_key", Mock(side_effect=raised))])
    with pytest.raises(type(raised)):
        found_after("a fall", SqliteMachine)


def test_nights_are_the_same_again_however_busy_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def ledgers() -> list[list[str]]:
        class NotingMachine(SqliteMachine):
            seen: ClassVar[list[list[str]]] = []

            def leave_store(self, store: Store) -> None:
                self.seen.append(store.read(lambda tx: [
                    f"{table}: {row}" for table in COMPARED
                    for row in tx.sql._connection.execute(f"SELECT * FROM {table}")]))  # type: ignore[attr-defined]
                super().leave_store(store)

        run_nights(NotingMachine, examples=6, from_seed=7)
        return NotingMachine.seen

    at_rest, busy = ledgers(), itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: float(next(busy)))
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: next(busy) * 1_000_000)
    assert at_rest == ledgers()


def test_who_is_ended_in_a_night_goes_at_once_and_has_found_nothing() -> None:
    class EndedMachine(SqliteMachine):
        def a_store(self, start: Instant) -> Store:
            if self.examples == 3:
                signal.raise_signal(signal.SIGTERM)
            return super().a_store(start)

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with pytest.raises(SystemExit):
            run_nights(EndedMachine, examples=9, from_seed=7)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert EndedMachine.examples == 3
