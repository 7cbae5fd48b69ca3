"""Definitions at hand: one that was committed is read once; one that never was is not kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flights import ToldRunner, landed
from turns import held

from nightporter.admission import admit
from nightporter.clock import ManualClock
from nightporter.dispatch import Definitions, Flight
from nightporter.errors import StoreUnwritable
from nightporter.store import Store, Tx
from nightporter.words import AutomationId, Desk, Ended, Work
from words import a_definition, a_firing, insert_automation, run_row

BRIEF = AutomationId("aut_default_brief")


def define(said: str, clock: ManualClock) -> Callable[[Tx], object]:
    return lambda tx: insert_automation(tx, a_definition(runner="told", config={"say": said}), now=clock.now())


def said(tx: Tx, known: Definitions) -> Any:
    return known.get(tx, BRIEF, 1)[1].target.config["say"]


def test_what_is_read_in_a_transaction_that_is_rolled_back_is_read_again(store: Store, clock: ManualClock) -> None:
    known = Definitions()

    def fails(tx: Tx) -> None:
        define("never", clock)(tx)
        assert said(tx, known) == "never"
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  any
        store.write(fails)
    known.keep()  # what shared its commit was committed
    store.write(define("hello", clock))
    assert store.write(lambda tx: said(tx, known)) == "hello"


def test_what_was_undone_is_not_at_hand_for_those_that_share_its_transaction(
    store: Store, clock: ManualClock
) -> None:
    known = Definitions()

    def both(tx: Tx) -> Any:
        tx.sql._connection.execute("SAVEPOINT one")  # type: ignore[attr-defined]  # as the writer does
        mark = tx.mark()
        define("never", clock)(tx)
        assert said(tx, known) == "never"
        tx.forget_since(mark)
        tx.sql._connection.execute("ROLLBACK TO one")  # type: ignore[attr-defined]
        define("hello", clock)(tx)
        return said(tx, known)

    assert store.write(both) == "hello"


def test_what_was_committed_is_read_once(store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Definitions()
    read: list[tuple[str, int]] = []
    definition = Tx.definition

    def counted(tx: Tx, automation_id: str, version: int) -> tuple[str, str]:
        read.append((automation_id, version))
        return definition(tx, automation_id, version)

    store.write(define("hello", clock))
    monkeypatch.setattr(Tx, "definition", counted)
    for _ in range(3):
        assert store.write(lambda tx: said(tx, known)) == "hello"
        known.keep()
    assert read == [(BRIEF, 1)]


async def test_a_run_is_not_handed_a_definition_that_a_full_disk_took_back(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    async def behave(work: Work, desk: Desk) -> Ended:
        return Ended.ok(work.config["say"])

    flight = Flight(store, clock, {"told": ToldRunner(behave)}, worker="wrk_1", slots=4, scratch=tmp_path)
    transactions = store.writer._transactions
    commit = transactions.commit

    def full() -> None:
        raise StoreUnwritable("the disk is full")

    def arrives(text: str) -> Callable[[Tx], str | None]:
        def work(tx: Tx) -> str | None:
            define(text, clock)(tx)
            return admit(tx, [a_firing(BRIEF)], now=clock.now())[0].run_id
        return work

    with held(store.writer):
        store.writer.post(arrives("never"), lambda upshot: monkeypatch.setattr(transactions, "commit", commit))
        monkeypatch.setattr(transactions, "commit", full)
    run = store.write(arrives("hello"))
    await landed(store, flight)
    assert run_row(store, run, "state") == ("succeeded",)
    assert store.read(lambda tx: tx.sql._connection.execute("SELECT text FROM run_output").fetchall()) == [("hello",)]  # type: ignore[attr-defined]
    await flight.drain(0)
