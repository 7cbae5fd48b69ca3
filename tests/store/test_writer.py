"""The writer: durable before anybody is told, and one function's fault is nobody else's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar, cast

import pytest
from turns import held

from nightporter.clock import Instant
from nightporter.errors import StoreEntangled, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store import Store, Tx
from nightporter.store.sql_port import Sql
from nightporter.store.tx_admission import Arrival, NewRun
from nightporter.store.upshot import Upshot, Written
from nightporter.store.writer import Writer

T = TypeVar("T")


class Faults:
    """Transactions that keep a log of what happened to them, and fail where a test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fail: dict[str, int] = {}
        """What is to fail, and how many times more."""
        self.error: type[StoreError] = StoreUnwritable
        self.gone = False

    def _do(self, what: str) -> None:
        self.log.append(what)
        if self.fail.get(what, 0) > 0:
            self.fail[what] -= 1
            raise self.error(f"{what} failed")

    def begin(self) -> Tx:
        self.gone = False
        self._do("begin")
        return Tx(cast(Sql, None), "sqlite")

    def savepoint(self) -> None:
        self._do("savepoint")

    def release(self) -> None:
        self._do("release")

    def rollback_to(self) -> None:
        self._do("rollback_to")

    def commit(self) -> None:
        self._do("commit")

    def rollback(self) -> None:
        self.log.append("rollback")

    def alive(self) -> bool:
        return not self.gone

    def wrote(self) -> bool:
        return True

    def translate(self, error: Exception) -> Exception:
        return error

    def close(self) -> None:
        self.log.append("close")


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def kicked() -> list[frozenset[str]]:
    return []


@pytest.fixture
def writer(faults: Faults, kicked: list[frozenset[str]]) -> Iterator[Writer]:
    made = Writer(lambda: faults, kicked.append, group=10)
    yield made
    made.close()


def post(
    writer: Writer, work: Callable[[Tx], T], log: list[str] | None = None, *, patient: bool = False
) -> Future[T]:
    """Post a write function; the future is settled when it is answered."""
    future: Future[T] = Future()

    def answer(upshot: Upshot[T]) -> None:
        if log is not None:
            log.append("answer")
        if isinstance(upshot, Written):
            future.set_result(upshot.result)
        else:
            future.set_exception(upshot.error)

    writer.post(work, answer, patient=patient)
    return future


def fails(tx: Tx) -> None:
    raise ValueError("this one is bad")


# -- the order of things ------------------------------------------------------------------------------------------


def test_nobody_is_answered_before_the_commit(writer: Writer, faults: Faults) -> None:
    post(writer, lambda tx: 1, faults.log).result(10)
    assert faults.log == ["begin", "savepoint", "release", "commit", "answer"]


def test_functions_that_wait_together_share_one_commit(writer: Writer, faults: Faults) -> None:
    with held(writer):
        faults.log.clear()
        told = [post(writer, lambda tx, n=n: n, faults.log) for n in range(3)]  # type: ignore[misc]
    assert [t.result(10) for t in told] == [0, 1, 2]
    writer.close()
    assert faults.log[faults.log.index("commit") + 1 :] == [
        "begin", *["savepoint", "release"] * 3, "commit", "answer", "answer", "answer", "close",
    ]


def test_a_group_has_a_limit(writer: Writer, faults: Faults) -> None:
    with held(writer):
        told = [post(writer, lambda tx: None) for _ in range(25)]
    for t in told:
        t.result(10)
    assert faults.log.count("commit") == 1 + 3


def test_a_function_that_raises_costs_only_itself(writer: Writer, faults: Faults) -> None:
    with held(writer):
        before, bad, after = post(writer, lambda tx: 1), post(writer, fails), post(writer, lambda tx: 2)
    assert (before.result(10), after.result(10)) == (1, 2)
    assert isinstance(bad.exception(10), ValueError)
    assert faults.log.count("rollback_to") == 1
    assert faults.log.count("commit") == 2


def test_what_a_function_kicked_before_it_raised_is_not_rung(
    writer: Writer, kicked: list[frozenset[str]]
) -> None:
    def bad(tx: Tx) -> None:
        tx.kick("cancel")
        raise ValueError

    with held(writer):
        one, other = post(writer, lambda tx: tx.kick("due")), post(writer, bad)
    one.result(10)
    assert isinstance(other.exception(10), ValueError)
    writer.close()
    assert kicked == [frozenset({"due"})]


def test_kicks_ring_after_the_commit(faults: Faults) -> None:
    writer = Writer(lambda: faults, lambda topics: faults.log.append("kick"), group=10)
    writer.write(lambda tx: tx.kick("due"))
    writer.close()
    assert faults.log == ["begin", "savepoint", "release", "commit", "kick", "close"]


# -- when the transaction goes away ---------------------------------------------------------------------------------


def test_a_lost_transaction_answers_nobody_and_each_runs_again_alone(writer: Writer, faults: Faults) -> None:
    runs: list[str] = []

    def fills_the_disk(tx: Tx) -> None:
        runs.append("full")
        faults.gone = True
        raise StoreUnwritable("the disk is full")

    with held(writer):
        faults.log.clear()
        first = post(writer, lambda tx: runs.append("first"), faults.log)
        full = post(writer, fills_the_disk, faults.log)
        last = post(writer, lambda tx: runs.append("last"), faults.log)
    first.result(10)
    last.result(10)
    assert isinstance(full.exception(10), StoreUnwritable)
    assert runs == ["first", "full", "first", "full", "last"]
    told = faults.log[faults.log.index("commit") + 1 :]
    assert told.index("rollback") < told.index("answer")
    assert told.count("commit") == 2


def test_a_commit_that_fails_makes_each_function_try_alone(writer: Writer, faults: Faults) -> None:
    with held(writer):
        told = [post(writer, lambda tx, n=n: n) for n in range(3)]  # type: ignore[misc]
        faults.fail["commit"] = 3  # the one that is under way, the group, and the first alone
    assert isinstance(told[0].exception(10), StoreUnwritable)
    assert [t.result(10) for t in told[1:]] == [1, 2]


def test_a_store_that_cannot_begin_tells_everybody_at_once(writer: Writer, faults: Faults) -> None:
    ran: list[int] = []
    with held(writer):
        told = [post(writer, lambda tx: ran.append(1)) for _ in range(5)]
        faults.fail["begin"] = 1  # a lock that another process holds for longer than our patience
    assert all(isinstance(t.exception(10), StoreUnwritable) for t in told)
    assert ran == []
    assert faults.log.count("begin") == 2  # each waiting for the lock by itself would take patience times five
    assert writer.write(lambda tx: "well again") == "well again"


# -- riders ---------------------------------------------------------------------------------------------------------


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
    new = NewRun(run, "", "", "", "", "", 1, "", None, 0, 0, 1, None, None, 0, None, 0)
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


# -- the ends -------------------------------------------------------------------------------------------------------


def test_closing_finishes_what_is_queued(writer: Writer, faults: Faults) -> None:
    with held(writer):
        told = [post(writer, lambda tx, n=n: n) for n in range(3)]  # type: ignore[misc]
        closing = threading.Thread(target=writer.close)
        closing.start()
    closing.join(10)
    assert [t.result(0) for t in told] == [0, 1, 2]
    assert faults.log[-1] == "close"


def test_a_closed_writer_says_so(writer: Writer) -> None:
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.write(lambda tx: None)


def test_a_write_inside_a_write_is_refused_rather_than_waited_for(writer: Writer) -> None:
    with pytest.raises(RuntimeError, match="wait for itself"):
        writer.write(lambda tx: writer.write(lambda inner: None))


def test_a_connection_that_cannot_be_made_is_the_callers_error() -> None:
    def connect() -> Faults:
        raise StoreUnwritable("no such disk")

    with pytest.raises(StoreUnwritable):
        Writer(connect, lambda topics: None, group=1)


# -- on the real ones -----------------------------------------------------------------------------------------------


def put(key: str, value: str) -> Callable[[Tx], None]:
    return lambda tx: tx.put_setting(key, value)


def settings(store: Store, *keys: str) -> list[str | None]:
    return store.read(lambda tx: [tx.setting(key) for key in keys])


def test_what_was_answered_is_in_the_store(store: Store) -> None:
    store.write(put("a", "1"))
    assert settings(store, "a") == ["1"]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
def test_what_a_bad_function_wrote_is_undone_and_its_neighbours_stand(store: Store, place: int) -> None:
    def bad(tx: Tx) -> None:
        tx.put_setting("b", "half")
        raise ValueError

    works = [put("a", "1"), put("c", "3")]
    works.insert(place, bad)
    with held(store.writer):
        posted = [post(store.writer, work) for work in works]
    assert isinstance(posted.pop(place).exception(10), ValueError)
    for one in posted:
        one.result(10)
    assert settings(store, "a", "b", "c") == ["1", None, "3"]


def test_a_statement_that_the_database_refuses_costs_only_its_function(store: Store) -> None:
    def twice(tx: Tx) -> None:
        tx.put_setting("b", "half")
        for _ in range(2):
            tx.join("wrk_1", role="desk", host="here", pid=1, lock_path="", now=cast(Any, 0))

    with held(store.writer):
        one, two = post(store.writer, put("a", "1")), post(store.writer, twice)
        three = post(store.writer, put("c", "3"))
    one.result(10)
    three.result(10)
    assert isinstance(two.exception(10), StoreError)
    assert settings(store, "a", "b", "c") == ["1", None, "3"]
    assert store.read(lambda tx: tx.workers()) == []


def test_a_riders_writes_are_in_the_commit_it_rode_in(store: Store) -> None:
    seen: list[list[str | None]] = []
    store.writer.ride("queued", put("rider", "here"), lambda _: seen.append(settings(store, "a", "rider")))

    def kick(tx: Tx) -> None:
        tx.put_setting("a", "1")
        tx.kick("queued")

    store.write(kick)
    assert seen == [["1", "here"]]


def test_a_riders_fault_is_undone_and_nobody_elses(store: Store) -> None:
    def bad(tx: Tx) -> None:
        tx.put_setting("rider", "half")
        raise ValueError

    store.writer.ride("queued", bad, lambda _: None)

    def kick(tx: Tx) -> None:
        tx.put_setting("a", "1")
        tx.kick("queued")

    store.write(kick)
    assert settings(store, "a", "rider") == ["1", None]


# -- who goes first -------------------------------------------------------------------------------------------------


def test_a_caller_waits_for_one_write_at_the_most_of_those_that_nobody_waits_for(
    writer: Writer, faults: Faults
) -> None:
    with held(writer):
        futures = [post(writer, lambda tx: faults.log.append("patient"), patient=True) for _ in range(3)]
        futures.append(post(writer, lambda tx: faults.log.append("caller")))
    for future in futures:
        future.result(10)
    asked = [what for what in faults.log if what in ("patient", "caller", "commit")]
    assert asked == ["commit", "patient", "commit", "caller", "commit", "patient", "patient", "commit"]


def test_a_caller_that_comes_meanwhile_waits_for_one_patient_write_and_not_for_its_group(
    writer: Writer, faults: Faults
) -> None:
    callers: list[Future[None]] = []

    def patient(tx: Tx) -> None:
        faults.log.append("patient")
        if not callers:
            callers.append(post(writer, lambda tx: faults.log.append("caller")))

    with held(writer):
        futures = [post(writer, patient, patient=True) for _ in range(3)]
    for future in [*futures, *callers]:
        future.result(10)
    asked = [what for what in faults.log if what in ("patient", "caller", "commit")]
    assert asked == ["commit", "patient", "commit", "caller", "commit", "patient", "patient", "commit"]


def test_what_nobody_waits_for_has_its_turn_however_many_call(writer: Writer) -> None:
    patient: list[Future[None]] = []
    called = 0

    def call(tx: Tx) -> None:
        nonlocal called
        called += 1
        if not patient:
            patient.append(post(writer, lambda tx: None, patient=True))
        if not patient[0].done():
            assert called < 100, "it has had no turn"
            post(writer, call)

    post(writer, call).result(10)
    patient[0].result(10)


def test_what_was_left_for_a_caller_is_written_once_though_the_commit_before_it_failed(
    writer: Writer, faults: Faults
) -> None:
    written: list[int] = []

    def patient(n: int) -> None:
        written.append(n)
        if len(written) == 1:
            faults.fail["commit"] = 1
            post(writer, lambda tx: None)

    with held(writer):
        futures = [post(writer, lambda tx, n=n: patient(n), patient=True) for n in range(3)]  # type: ignore[misc]
    assert isinstance(futures[0].exception(10), StoreUnwritable)
    assert [future.exception(10) for future in futures[1:]] == [None, None]
    assert written == [0, 1, 2]


def test_a_closing_writer_finishes_the_patient_ones_too(faults: Faults) -> None:
    made = Writer(lambda: faults, lambda _: None, group=1)
    with held(made):
        futures = [post(made, lambda tx: 1, patient=patient) for patient in (True, False, True)]
    made.close()
    assert [future.result(0) for future in futures] == [1, 1, 1]


@pytest.mark.parametrize(("error", "ill"), [
    (StoreUnwritable, True), (StoreLocked, True), (StoreRefused, False), (StoreEntangled, False),
])
def test_only_what_concerns_the_store_is_its_trouble(faults: Faults, error: type[StoreError], ill: bool) -> None:
    writer = Writer(lambda: faults, lambda _: None, group=10)
    faults.error, faults.fail = error, {"commit": 1000}
    with pytest.raises(error):
        writer.write(lambda tx: None)
    assert bool(writer.trouble) is ill
    faults.fail = {}
    writer.write(lambda tx: None)
    assert not writer.trouble
    writer.close()
