"""A flight beside a store that refuses or loses what it is told: every end is written, and nothing begins twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from desks import until
from flights import FREE, Fly, Gate, ToldRunner, ask_to_cancel, done, fire_in, landed, launched, told
from turns import held

import nightporter.air
import nightporter.dispatch.flight
from nightporter.clock import SECOND, ManualClock
from nightporter.dispatch import Flight, end
from nightporter.errors import StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store import Store, Tx
from nightporter.words import Desk, Ended, Ending, ErrorClass, Work
from words import an_automation, fire, rows, run_row, states

# -- endings that cannot be written -----------------------------------------------------------------------------------


async def test_an_ending_is_written_when_the_store_is_well_again(
    store: Store, clock: ManualClock, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightporter.air, "RETRY_WRITE", 0.001)
    ill = 3
    in_the_air: list[int] = []

    def sometimes(*of: Any, **rest: Any) -> Any:
        nonlocal ill
        if ill:
            ill -= 1
            in_the_air.append(flight.in_the_air)
            raise StoreUnwritable("the disk is full")
        return end(*of, **rest)

    monkeypatch.setattr(nightporter.dispatch.flight, "end", sometimes)
    flight = fly(ToldRunner(done))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state") == ("succeeded",)
    assert in_the_air == [1, 1, 1]


@pytest.mark.parametrize("unkept", ["nul \0 inside", "half a pair \ud83d inside"], ids=["nul", "surrogate"])
async def test_what_no_store_holds_is_replaced_and_the_result_is_kept(
    store: Store, clock: ManualClock, fly: Fly, unkept: str
) -> None:
    async def told_so(work: Work, desk: Desk) -> Ended:
        return Ended(Ending.OK, text=unkept, error=unkept, log=unkept, data={unkept: [unkept, 1, None]})

    flight = fly(ToldRunner(told_so))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    kept = f"{unkept.split()[0]} \ufffd inside" if "\0" in unkept else "half a pair \ufffd inside"
    assert run_row(store, run, "state") == ("succeeded",)
    assert rows(store, "SELECT text, log FROM run_output") == [(kept, kept)]
    [(data,)] = rows(store, "SELECT data FROM run_output")
    assert json.loads(data) == {kept: [kept, 1, None]}


@pytest.mark.parametrize(
    "ended",
    [Ended.ok("", data=object()), Ended.ok("fine", exit_code=1 << 70), Ended.ok(None),  # type: ignore[arg-type]
     Ended(Ending.TIMEOUT, data=object())],
    ids=["data", "code", "text", "timeout"],
)
async def test_a_result_that_cannot_be_written_ends_its_run_and_nobody_elses(
    store: Store, clock: ManualClock, fly: Fly, ended: Ended
) -> None:
    async def told_so(work: Work, desk: Desk) -> Ended:
        return ended if work.text == "bad" else Ended.ok("fine")

    flight = fly(ToldRunner(told_so))
    brief = told(store, clock)
    with held(store.writer):
        for n, text in enumerate(("good", "bad", "good")):
            store.writer.post(
                lambda tx, n=n, text=text: fire_in(tx, brief, f"e-{n}", text, clock),  # type: ignore[misc]
                lambda upshot: None,
            )
    await landed(store, flight)
    found = rows(store, "SELECT p.text, r.state, r.error FROM run r JOIN firing_payload p ON p.firing_id = r.firing_id")
    assert sorted(state for text, state, _ in found if text == "good") == ["succeeded"] * 2
    [(state, error)] = [(state, error) for text, state, error in found if text == "bad"]
    assert state == ("timed_out" if ended.ending is Ending.TIMEOUT else "failed")
    assert "could not be written" in error
    assert flight.in_the_air == 0


async def test_an_end_whose_consequences_cannot_be_written_is_written_alone_and_named(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    """A zone that is no zone: the month of the run cannot be told."""
    flight = fly(ToldRunner(done))
    brief = told(store, clock)
    rows(store, "UPDATE automation_version SET definition = replace(definition, '\"UTC\"', '\"Mars/Base\"')")
    good = told(store, clock, name="good")
    with held(store.writer):
        for automation in (good, brief, good):
            store.writer.post(
                lambda tx, of=automation: fire_in(tx, of, f"e-{of}", "", clock),  # type: ignore[misc]
                lambda upshot: None,
            )
    await landed(store, flight)
    assert states(store, good) == ["succeeded"]
    [(run, state, reason, error, dead)] = rows(
        store, "SELECT id, state, reason, error, dead_at FROM run WHERE automation_id = ?", brief)
    assert (state, reason, dead) == ("failed", "unreadable", clock.now())
    assert "Mars/Base" in error
    assert rows(store, "SELECT subject, key, error FROM quarantine") == [("run", run, error)]
    assert rows(store, "SELECT kind, run_id FROM inbox") == [("dead_letter", run)]
    assert flight.in_the_air == 0
    fire(store, good, now=clock.now())
    await landed(store, flight)
    assert states(store, good) == ["succeeded"] * 2


async def test_an_end_that_can_be_written_in_no_form_holds_up_nobody_and_is_not_run_again(
    store: Store, clock: ManualClock, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*of: Any, **rest: Any) -> Any:
        raise ValueError("not today")

    monkeypatch.setattr(nightporter.dispatch.flight, "end", refused)
    monkeypatch.setattr(nightporter.dispatch.flight, "end_alone", refused)
    flight = fly(ToldRunner(done))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    assert store.write(flight.take_back) == 0, "it was executed"
    assert run_row(store, run, "state") == ("running",), "until somebody finds this worker dead"


async def test_an_ending_whose_claim_was_lost_is_only_noted(store: Store, clock: ManualClock, fly: Fly) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await gate.reached.wait()
    store.write(lambda tx: tx.lose([(str(run), 1)]))
    gate.open.set()
    await landed(store, flight)
    assert run_row(store, run, "state") == ("lost",)


async def test_a_worker_that_was_declared_dead_claims_nothing(store: Store, clock: ManualClock, fly: Fly) -> None:
    store.write(lambda tx: tx.join("wrk_1", role="desk", host="here", pid=1, lock_path="", now=clock.now()))
    fly(ToldRunner(done))
    brief = told(store, clock)
    store.write(lambda tx: tx.end_worker("wrk_1", "dead", now=clock.now()))
    fire(store, brief, now=clock.now())
    await launched(store)
    assert states(store) == ["queued"]


# -- nothing was started --------------------------------------------------------------------------------------------


async def lets_a_child_go(work: Work, desk: Desk) -> Ended:
    await desk.child_started(work, 42, 7)
    return Ended.ok("done")


async def test_a_child_that_could_not_be_written_down_costs_no_attempt_and_is_started_again(
    store: Store, clock: ManualClock, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*of: Any, **rest: Any) -> None:
        raise StoreLocked("another process holds the store")

    flight = fly(ToldRunner(lets_a_child_go, opaque=True, launches=True))
    with monkeypatch.context() as patched:
        patched.setattr(Tx, "write_child", locked)
        run = fire(store, told(store, clock), now=clock.now()).run_id
        await landed(store, flight)
    assert run_row(store, run, "state", "reason", "attempt", "dead_at") == ("queued", "not_started", 0, None)
    assert run_row(store, run, "run_after") == (clock.now() + SECOND,)
    flight.look()
    await landed(store, flight)
    assert run_row(store, run, "state") == ("queued",), "not at once"
    clock.advance(timedelta(seconds=1))
    flight.look()
    await landed(store, flight)
    assert run_row(store, run, "state", "attempt") == ("succeeded", 1)


async def test_a_child_that_the_store_refuses_is_not_started_for_ever(
    store: Store, clock: ManualClock, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*of: Any, **rest: Any) -> None:
        raise StoreRefused("it is there already")

    monkeypatch.setattr(Tx, "write_child", refused)
    flight = fly(ToldRunner(lets_a_child_go, opaque=True, launches=True))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason") == ("failed", "exception")


@pytest.mark.parametrize("opaque", [False, True])
async def test_a_claim_whose_answer_was_lost_is_given_back_and_costs_no_attempt(
    store: Store, clock: ManualClock, fly: Fly, opaque: bool
) -> None:
    runner = ToldRunner(done, opaque=opaque)
    flight = fly(runner)
    brief = told(store, clock)
    with lost(flight, "_claimed_on_writer"):
        unheard = fire(store, brief, now=clock.now()).run_id
        flight.look()
        await launched(store)
    gate = Gate()
    runner.behave = gate
    going = fire(store, brief, now=clock.now()).run_id
    await gate.reached.wait()
    assert states(store) == ["running"] * 2
    assert flight.in_the_air == 1
    assert store.write(flight.take_back) == 1
    assert run_row(store, unheard, "state", "reason", "attempt") == ("queued", "not_started", 0)
    assert run_row(store, going, "state") == ("running",)
    assert store.write(flight.take_back) == 0
    gate.open.set()
    clock.advance(timedelta(seconds=1))
    flight.look()
    await landed(store, flight)
    assert states(store) == ["succeeded"] * 2
    assert rows(store, "SELECT 1 FROM effect WHERE state = 'intended'") == []


async def test_a_claim_whose_commit_was_not_answered_is_asked_back_without_waiting_for_a_sweep(
    store: Store, clock: ManualClock, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightporter.air, "RETRY_WRITE", 0.001)
    runner = ToldRunner(done)
    flight = fly(runner)
    transactions = store.writer._transactions
    commit, answers = transactions.commit, iter([True, False])  # that of the write that holds the writer, and the claim

    def committed() -> None:
        commit()
        if not next(answers, True):
            raise StoreUnwritable("the answer was lost")

    run = fire(store, told(store, clock, name="blocked", cooldown=timedelta(0)), now=clock.now()).run_id
    await landed(store, flight)
    with held(store.writer):
        store.writer.post(lambda tx: fire_in(tx, "aut_default_blocked", "again", "", clock), lambda upshot: None)
        monkeypatch.setattr(transactions, "commit", committed)
    await until(lambda: sorted(states(store)) == ["queued", "succeeded"])
    assert len(runner.works) == 1
    clock.advance(timedelta(seconds=1))
    flight.look()
    await until(lambda: states(store) == ["succeeded"] * 2)
    assert run_row(store, run, "attempt") == (1,)


async def test_a_claim_in_the_same_commit_is_not_taken_for_one_that_was_lost(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    brief = told(store, clock)
    fire(store, brief, now=clock.now())
    gate = Gate()
    flight = fly(ToldRunner(gate))
    with held(store.writer):
        flight.look()
        store.writer.post(flight.take_back, lambda upshot: None)
    await gate.reached.wait()
    assert states(store) == ["running"]
    gate.open.set()


async def test_a_run_that_is_given_back_and_nobody_wants_any_more_is_cancelled(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    flight = fly(ToldRunner(done))
    with lost(flight, "_claimed_on_writer"):
        run = fire(store, told(store, clock), now=clock.now()).run_id
    ask_to_cancel(store, clock, run)
    assert store.write(flight.take_back) == 1
    assert run_row(store, run, "state", "reason") == ("cancelled", "cancelled_by")


@contextmanager
def lost(flight: Flight, answer: str) -> Iterator[None]:
    """What the writer has to tell the flight does not arrive."""
    setattr(flight, answer, lambda claimed: None)
    rider = flight._store.writer._riders["queued"]
    flight._store.writer.ride("queued", rider.work, lambda claimed: None, taker=rider.taker)
    try:
        yield
    finally:
        delattr(flight, answer)
        flight._store.writer.ride("queued", rider.work, rider.done, rider.doubted, rider.taker)


async def test_what_may_have_happened_already_is_set_aside_for_a_person(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    async def mails(work: Work, desk: Desk) -> Ended:
        await desk.effect_intended(work, "mail", "k")
        if work.attempt == 1:
            return Ended.failed(ErrorClass.TRANSIENT, "503", retry_after=timedelta(minutes=1))
        raise AssertionError

    flight = fly(ToldRunner(mails))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    clock.advance(timedelta(minutes=2))
    flight.look()
    await landed(store, flight)
    assert run_row(store, run, "state", "reason", "dead_at") == ("review", "may_have_acted", None)
    assert "effect 'mail'" in run_row(store, run, "error")[0]
    [(text,)] = rows(store, "SELECT text FROM inbox WHERE kind = 'review'")
    assert "effect 'mail'" in text
    assert f"nightporter review {run} retry" in text


# -- a store that does not come back --------------------------------------------------------------------------------


async def test_a_drain_leaves_what_cannot_be_written_to_whoever_finds_the_worker_dead(
    store: Store, clock: ManualClock, fly: Fly, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightporter.air, "RETRY_WRITE", 0.001)
    tries = 0

    def ill(*of: Any, **rest: Any) -> Any:
        nonlocal tries
        tries += 1
        raise StoreUnwritable("the disk is full")

    monkeypatch.setattr(nightporter.dispatch.flight, "end", ill)
    flight = fly(ToldRunner(done))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await until(lambda: tries > 2)
    assert await flight.drain(0, grace=0.01) == 1
    left = tries
    for _ in range(20):
        await launched(store)
    assert tries <= left + 1, "one may have been under way"
    assert run_row(store, run, "state") == ("running",)


async def test_a_drain_does_not_wait_for_a_store_that_another_process_holds(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await gate.reached.wait()
    with held(store.writer):
        assert await flight.drain(0, grace=0.01) == 1
        assert gate.cancelled == 1, "the work is ended all the same"
    await launched(store)
    assert run_row(store, run, "state") == ("queued",), "what was on its way to the store arrives"


async def test_nothing_begins_that_was_claimed_when_the_drain_had_given_up(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    runner = ToldRunner(done)
    flight = fly(runner)
    brief = told(store, clock)
    with held(store.writer):
        store.writer.post(lambda tx: fire_in(tx, brief, "e-1", "", clock), lambda upshot: None)
        assert await flight.drain(0, grace=0) == 0
    await launched(store)
    assert runner.works == []
    assert states(store) == ["queued"]


@pytest.mark.parametrize("forgotten", [False, True])
async def test_a_child_that_ends_after_its_worker_was_declared_dead_says_nothing_of_its_run(
    store: Store, clock: ManualClock, fly: Fly, forgotten: bool
) -> None:
    """Whoever declares a worker dead ends its children: one that still lives must not take that for their end."""
    store.write(lambda tx: tx.join("wrk_1", role="desk", host="", pid=1, lock_path="", now=clock.now()))
    brief = an_automation(store, now=clock.now(), runner="told", limits=FREE)
    gate = Gate(Ended.failed(ErrorClass.NONZERO_EXIT, "it was killed"))
    flight = fly(ToldRunner(gate, launches=True))
    run = fire(store, brief, now=clock.now()).run_id
    await launched(store)
    await gate.reached.wait()
    store.write(lambda tx: tx.end_worker("wrk_1", "dead", now=clock.now()))
    if forgotten:
        rows(store, "DELETE FROM worker")
    gate.open.set()
    await landed(store, flight)
    assert run_row(store, run, "state", "token") == ("running", 1), "it is left to whoever declared the worker dead"


async def test_what_ended_beside_such_a_child_is_written_where_its_claim_is_current(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    store.write(lambda tx: tx.join("wrk_1", role="desk", host="", pid=1, lock_path="", now=clock.now()))
    killed = Gate(Ended.failed(ErrorClass.NONZERO_EXIT, "it was killed"))
    gates = {"child": killed, "told": Gate(), "lost": Gate()}
    flight = fly(*(ToldRunner(gate, kind=kind, launches=kind == "child") for kind, gate in gates.items()))
    run = {}
    for kind in gates:
        automation = an_automation(store, now=clock.now(), name=kind, runner=kind, limits=FREE)
        run[kind] = str(fire(store, automation, now=clock.now()).run_id)
    await launched(store)
    for gate in gates.values():
        await gate.reached.wait()
    store.write(lambda tx: tx.end_worker("wrk_1", "dead", now=clock.now()))
    store.write(lambda tx: tx.lose([(run["lost"], 1)]))
    with held(store.writer):
        for gate in gates.values():
            gate.open.set()
        await until(lambda: not flight._flying)
    await landed(store, flight)
    assert {kind: run_row(store, run[kind], "state")[0] for kind in run} == {
        "child": "running", "told": "succeeded", "lost": "lost"
    }
