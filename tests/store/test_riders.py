"""Riders: who rides in the commit of another is told after it, and costs nobody else theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from faults import Faults, fails, post
from turns import held

from nightporter.clock import Instant
from nightporter.errors import StoreUnwritable
from nightporter.store import Tx
from nightporter.store.tx_admission import Arrival, NewRun
from nightporter.store.writer import Writer

pytest_plugins = ["writers"]


def test_a_rider_rides_in_the_commit_of_whoever_kicked(writer: Writer, faults: Faults) -> None:
    writer.ride("queued", lambda tx: faults.log.append("rides"), lambda _: faults.log.append("told"))
    post(writer, lambda tx: tx.kick("queued"), faults.log).result(10)
    assert faults.log == ["begin", "savepoint", "release", "savepoint", "rides", "release", "commit", "told", "answer"]


def test_a_rider_waits_for_its_own_topic(writer: Writer) -> None:
    rode: list[int] = []
    writer.ride("queued", lambda tx: rode.append(1), lambda _: None)
    writer.write(lambda tx: tx.kick("due"))
    assert rode == []
    writer.unride("queued")
    writer.write(lambda tx: tx.kick("queued"))
    assert rode == []


def test_a_rider_that_fails_costs_nobody_else_their_commit(writer: Writer, faults: Faults) -> None:
    told: list[object] = []
    writer.ride("queued", fails, told.append)
    writer.write(lambda tx: tx.kick("queued"))
    assert told == []
    assert faults.log[-2:] == ["rollback_to", "commit"]


def test_a_rider_that_takes_the_transaction_with_it_is_left_behind(writer: Writer, faults: Faults) -> None:
    def full(tx: Tx) -> None:
        faults.gone = True
        raise StoreUnwritable("the disk is full")

    writer.ride("queued", full, lambda _: None)
    writer.write(lambda tx: tx.kick("queued"))
    assert faults.log[-1] == "commit"


def test_a_rider_of_a_commit_that_failed_is_not_told(writer: Writer, faults: Faults) -> None:
    told: list[object] = []
    writer.ride("queued", lambda tx: "rode", told.append)
    faults.fail["commit"] = 1
    with pytest.raises(StoreUnwritable):
        writer.write(lambda tx: tx.kick("queued"))
    assert told == []


class Took(NamedTuple):
    key: tuple[str, int]


class Taker:
    """Rides for `queued` and takes all it is offered."""

    def __init__(self, writer: Writer) -> None:
        self.told: list[list[str]] = []
        self.falls = 0
        writer.ride("queued", self._ride, self.told.append, taker=self._take)

    def _take(self, tx: Tx, arrivals: Sequence[Arrival], now: Instant) -> Sequence[str]:
        runs = [a.run.run_id for a in arrivals]
        tx.taken.setdefault("queued", []).extend(Took((run, 1)) for run in runs)
        return runs

    def _ride(self, tx: Tx) -> list[str]:
        if self.falls:
            self.falls -= 1
            raise ValueError("it cannot ride")
        return [took.key[0] for took in tx.taken.get("queued", ())]


def offers(run: str, tx: Tx) -> list[str]:
    """What is left of the run."""
    tx.kick("queued")
    new = NewRun(run, "", "", "", "", "", 1, "", None, 0, 0, 1, None, None, 0, None, 0, 0, 0, None)
    return [run] if run not in tx.offer("queued", [Arrival(new, None, 0, "", "", None)], now=Instant(0)) else []


def test_what_a_rider_takes_it_is_told_of_after_the_commit(writer: Writer) -> None:
    taker = Taker(writer)
    assert writer.write(lambda tx: offers("a", tx)) == []
    assert taker.told == [["a"]]


def test_what_was_taken_of_a_function_that_failed_is_forgotten(writer: Writer) -> None:
    taker = Taker(writer)

    def bad(tx: Tx) -> None:
        offers("b", tx)
        raise ValueError("this one is bad")

    with held(writer):
        before = post(writer, lambda tx: offers("a", tx))
        fell = post(writer, bad)
        after = post(writer, lambda tx: offers("c", tx))
    assert before.result(10) == after.result(10) == []
    with pytest.raises(ValueError, match="bad"):
        fell.result(10)
    writer.close()
    assert taker.told == [["a", "c"]]


def test_what_a_rider_took_and_cannot_answer_for_is_left_as_if_it_were_not_there(writer: Writer) -> None:
    taker = Taker(writer)
    taker.falls = 2
    assert writer.write(lambda tx: offers("a", tx)) == ["a"]
    assert taker.told == []
    assert writer.write(lambda tx: offers("b", tx)) == []
    assert taker.told == [["b"]]


def test_a_rider_that_leaves_while_it_takes_is_told_all_the_same(writer: Writer) -> None:
    taker = Taker(writer)

    def leaves(tx: Tx) -> list[str]:
        left = offers("a", tx)
        writer.unride("queued")
        return left

    assert writer.write(leaves) == []
    assert taker.told == [["a"]]
    assert writer.write(lambda tx: offers("b", tx)) == ["b"]


@pytest.mark.parametrize("who", ["rider", "answer", "listener"])
def test_whoever_is_told_and_raises_does_not_end_the_writer(faults: Faults, who: str) -> None:
    def breaks(*_: object) -> None:
        raise RuntimeError("its loop is closed")

    writer = Writer(lambda: faults, breaks if who == "listener" else lambda _: None, group=10)
    writer.ride("queued", lambda tx: 1, breaks if who == "rider" else lambda _: None)
    writer.post(lambda tx: tx.kick("queued"), breaks if who == "answer" else lambda upshot: None)
    for _ in range(2):  # the first may share the group of what breaks
        assert post(writer, lambda tx: "still there").result(10) == "still there"
    writer.close()
