"""The writer: durable before anybody is told, and one function's fault is nobody else's."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import pytest
from faults import Faults, fails, post
from turns import held

from nightporter.errors import StoreEntangled, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store import Tx
from nightporter.store.writer import Writer

# -- the order of things ------------------------------------------------------------------------------------------

pytest_plugins = ["writers"]


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
