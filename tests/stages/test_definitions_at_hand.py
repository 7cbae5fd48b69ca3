"""Definitions at hand: one that was committed is read once; one that never was is not kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from acting import a_worker
from flights import ToldRunner, done, landed
from turns import held

from nightporter.admission import admit
from nightporter.clock import ManualClock
from nightporter.dispatch import Definitions, Flight, Runners, at_hand, claim
from nightporter.errors import StoreUnwritable
from nightporter.runners.echo import Echo
from nightporter.store import Store, Tx
from nightporter.store.sql_port import Row
from nightporter.words import AutomationId, Desk, Ended, Work
from words import a_definition, a_firing, fire, insert_automation, rows, run_row

BRIEF = AutomationId("aut_default_brief")


@pytest.fixture(autouse=True)
def joined(store: Store, clock: ManualClock) -> None:
    """The worker of these tests is there."""
    a_worker(store, clock.now(), name="wrk_1")


def define(said: str, clock: ManualClock) -> Callable[[Tx], object]:
    return lambda tx: insert_automation(tx, a_definition(runner="told", config={"say": said}), now=clock.now())


def said(tx: Tx, known: Definitions) -> Any:
    return known.get(tx, BRIEF, 1)[1].target.config["say"]


def asked(store: Store, known: Definitions, work: Callable[[Tx, Definitions], Any]) -> Any:
    """What it answers in a transaction that is committed."""
    transactions = []

    def within(tx: Tx) -> Any:
        transactions.append(tx)
        return work(tx, known)

    answer = store.write(within)
    known.keep(transactions[-1])
    return answer


@contextmanager
def undone(tx: Tx) -> Iterator[None]:
    """What is written inside is taken back, as the writer does with a write that fails among others."""
    tx.sql._connection.execute("SAVEPOINT one")  # type: ignore[attr-defined]
    mark = tx.mark()
    yield
    tx.forget_since(mark)
    tx.sql._connection.execute("ROLLBACK TO one")  # type: ignore[attr-defined]


def test_what_is_read_in_a_transaction_that_is_rolled_back_is_read_again(store: Store, clock: ManualClock) -> None:
    known = Definitions()

    def fails(tx: Tx) -> None:
        define("never", clock)(tx)
        assert said(tx, known) == "never"
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  any
        store.write(fails)
    store.write(known.keep)  # what came after it was committed
    store.write(define("hello", clock))
    assert store.write(lambda tx: said(tx, known)) == "hello"


def test_what_was_undone_is_not_at_hand_for_those_that_share_its_transaction(
    store: Store, clock: ManualClock
) -> None:
    known = Definitions()

    def both(tx: Tx) -> Any:
        with undone(tx):
            define("never", clock)(tx)
            assert said(tx, known) == "never"
        define("hello", clock)(tx)
        return said(tx, known)

    assert store.write(both) == "hello"


def test_what_was_committed_is_read_once(store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Definitions()
    read: list[tuple[str, int]] = []
    definitions = Tx.definitions

    def counted(tx: Tx, keys: Sequence[tuple[str, int]]) -> list[Row]:
        read.extend(keys)
        return definitions(tx, keys)

    store.write(define("hello", clock))
    monkeypatch.setattr(Tx, "definitions", counted)
    for _ in range(3):
        assert asked(store, known, said) == "hello"
    assert read == [(BRIEF, 1)]


def test_where_not_all_can_be_kept_those_in_use_are(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Definitions(limit=2)
    read: list[str] = []
    definitions = Tx.definitions

    def counted(tx: Tx, keys: Sequence[tuple[str, int]]) -> list[Row]:
        read.extend(automation for automation, _ in keys)
        return definitions(tx, keys)

    busy, *others = [store.write(lambda tx, name=name: insert_automation(tx, a_definition(name), now=clock.now()))  # type: ignore[misc]
                     for name in ("busy", "second", "third", "fourth")]
    def first_version(automation: str) -> Callable[[Tx, Definitions], object]:
        return lambda tx, known: known.get(tx, automation, 1)

    monkeypatch.setattr(Tx, "definitions", counted)
    for other in others:
        for automation in (busy, other):
            asked(store, known, first_version(automation))
    assert read == [busy, *others]


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


# -- whom nobody here serves ------------------------------------------------------------------------------------------


class Choosy(ToldRunner):
    """Serves those that say hello."""

    def serves(self, automation: str, config: Mapping[str, Any]) -> bool:
        return bool(config["say"] == "hello")


RUNNERS: Runners = {"told": Choosy(done), "echo": Echo()}


def claims(clock: ManualClock, room: int = 4) -> Callable[[Tx, Definitions], list[str]]:
    """The automations whose runs are claimed."""
    return lambda tx, known: [c.work.automation for c in claim(
        tx, worker="wrk_1", room=room, now=clock.now(), runners=RUNNERS, definitions=known
    )]


def arrives(clock: ManualClock, say: str, name: str = "brief") -> Callable[[Tx], object]:
    """An automation is defined, and fires."""
    def work(tx: Tx) -> object:
        automation = insert_automation(tx, a_definition(name, runner="told", config={"say": say}), now=clock.now())
        return admit(tx, [a_firing(automation)], now=clock.now())

    return work


def test_whom_nobody_serves_by_what_is_rolled_back_is_looked_at_again(store: Store, clock: ManualClock) -> None:
    known = Definitions()

    def fails(tx: Tx) -> None:
        arrives(clock, "never")(tx)
        assert claims(clock)(tx, known) == []
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  any
        store.write(fails)
    store.write(arrives(clock, "hello"))
    assert asked(store, known, claims(clock)) == ["brief"]


def test_whom_nobody_serves_by_what_is_undone_is_looked_at_again_in_the_same_transaction(
    store: Store, clock: ManualClock
) -> None:
    known = Definitions()

    def both(tx: Tx) -> list[str]:
        with undone(tx):
            arrives(clock, "never")(tx)
            assert claims(clock)(tx, known) == []
        arrives(clock, "hello")(tx)
        return claims(clock)(tx, known)

    assert store.write(both) == ["brief"]


def test_what_was_read_before_a_commit_that_failed_is_not_kept_by_the_next(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Definitions()
    transactions = store.writer._transactions
    commit = transactions.commit

    def full() -> None:
        monkeypatch.setattr(transactions, "commit", commit)
        raise StoreUnwritable("the disk is full")

    def arrive_and_claim(tx: Tx, known: Definitions) -> None:
        arrives(clock, "never")(tx)
        assert claims(clock)(tx, known) == []

    monkeypatch.setattr(transactions, "commit", full)
    with pytest.raises(StoreUnwritable):
        asked(store, known, arrive_and_claim)
    asked(store, known, lambda tx, known: None)
    store.write(arrives(clock, "hello"))
    assert asked(store, known, claims(clock)) == ["brief"]
    assert store.write(lambda tx: said(tx, known)) == "hello"


async def test_a_look_that_finds_nothing_to_do_here_remembers_that(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    read: list[tuple[str, int]] = []
    definitions = Tx.definitions

    def counted(tx: Tx, keys: Collection[tuple[str, int]]) -> Any:
        read.extend(keys)
        return definitions(tx, keys)

    store.write(arrives(clock, "never"))
    monkeypatch.setattr(Tx, "definitions", counted)
    flight = Flight(store, clock, RUNNERS, worker="wrk_1", slots=4, scratch=tmp_path)
    for _ in range(3):
        flight.look()
        await landed(store, flight)
    assert read == [(BRIEF, 1)]
    assert not store.read(flight.work_waiting)
    await flight.drain(0)


@pytest.mark.parametrize("strangers", [2, 3, 4, 5, 30])
def test_whoever_waits_behind_many_that_nobody_serves_is_claimed(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, strangers: int
) -> None:
    """Also where they are too many to be named, and each is read once."""
    monkeypatch.setattr(at_hand, "STRANGERS", 4)
    known = Definitions()
    read: list[tuple[str, int]] = []
    definitions = Tx.definitions

    def counted(tx: Tx, keys: Collection[tuple[str, int]]) -> Any:
        read.extend(keys)
        return definitions(tx, keys)

    monkeypatch.setattr(Tx, "definitions", counted)
    for n in range(strangers):
        store.write(arrives(clock, "never", f"stranger-{n}"))
    store.write(arrives(clock, "hello", "served"))
    other = store.write(lambda tx: insert_automation(tx, a_definition("other"), now=clock.now()))
    fire(store, other, now=clock.now())
    claimed = [asked(store, known, claims(clock, room=2)) for _ in range(3)]
    assert [sorted(names) for names in claimed] == [["other", "served"], [], []]
    assert len(read) == len(set(read)) == strangers + 2
    assert not store.read(lambda tx: tx.work_waiting(clock.now(), known.able(RUNNERS, tx, asks=False)))
    store.write(arrives(clock, "hello", "later"))
    assert store.read(lambda tx: tx.work_waiting(clock.now(), known.able(RUNNERS, tx, asks=False)))
    assert asked(store, known, claims(clock)) == ["later"]


async def test_whoever_comes_beside_many_that_nobody_serves_is_run(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(at_hand, "STRANGERS", 4)
    for n in range(9):
        store.write(arrives(clock, "never", f"stranger-{n}"))
    flight = Flight(store, clock, RUNNERS, worker="wrk_1", slots=4, scratch=tmp_path)
    flight.look()
    for name in ("first", "second"):
        store.write(arrives(clock, "hello", name))
        await landed(store, flight)
    assert rows(store, "SELECT automation_id FROM run WHERE state = 'succeeded' ORDER BY 1") == [
        ("aut_default_first",), ("aut_default_second",)
    ]
    await flight.drain(0)


def test_of_many_that_nobody_serves_those_are_run_that_come_to_be_served(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_hand, "STRANGERS", 2)
    known = Definitions()
    for n in range(5):
        store.write(arrives(clock, "never", f"stranger-{n}"))
    assert asked(store, known, claims(clock)) == []
    monkeypatch.setattr(Choosy, "serves", lambda self, automation, config: automation == "stranger-3")
    assert asked(store, known, claims(clock)) == ["stranger-3"]


def test_many_that_nobody_serves_are_forgotten_once_they_do_not_wait_any_more(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_hand, "STRANGERS", 2)
    known = Definitions()
    for n in range(3):
        store.write(arrives(clock, "never", f"stranger-{n}"))
    assert asked(store, known, claims(clock)) == []
    rows(store, "UPDATE run SET state = 'cancelled', ended_at = 1")
    store.write(arrives(clock, "hello"))
    assert asked(store, known, claims(clock)) == ["brief"]
