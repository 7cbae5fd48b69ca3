"""Flight: claimed runs are run, bounded, cancelled, drained, and their ends are written whatever happens."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desks import until
from flights import Gate, ToldRunner, landed, launched
from turns import held

import nightporter.air
import nightporter.dispatch.flight
from nightporter.clock import SECOND, ManualClock
from nightporter.dispatch import Flight, end
from nightporter.errors import StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store import Store, Tx
from nightporter.words import (
    Desk,
    Ended,
    Ending,
    ErrorClass,
    Limits,
    QuickRunner,
    Reason,
    RunId,
    Runner,
    Work,
)
from words import a_definition, an_automation, fire, rows, run_row, states

FREE = Limits(per_hour=None, queued=None, concurrent=None, timeout=None)

Fly = Callable[..., Flight]


class Quick:
    """Runs in place."""

    kind = "quick"
    opaque = False

    def __init__(self, ended: Ended | Exception) -> None:
        self.ended = ended

    def run_now(self, work: Work) -> Ended:
        if isinstance(self.ended, Exception):
            raise self.ended
        return self.ended


@pytest.fixture
async def fly(store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Fly]:
    """Makes a flight with the runners it is given; at the end it is brought down."""
    flights: list[Flight] = []

    def make(*runners: Runner | QuickRunner, slots: int = 16, only: RunId | None = None) -> Flight:
        flight = Flight(
            store, clock, {r.kind: r for r in runners}, worker="wrk_1", slots=slots, scratch=tmp_path / "scratch",
            only=only,
        )
        flights.append(flight)
        return flight

    yield make
    for flight in flights:
        await flight.drain(0)


async def done(work: Work, desk: Desk) -> Ended:
    return Ended.ok("done")


def told(store: Store, clock: ManualClock, **of: Any) -> str:
    """An automation whose runs are told what to do."""
    return an_automation(
        store, a_definition(runner="told", **{"limits": FREE, **of}), now=clock.now()
    )


# -- the ordinary way -----------------------------------------------------------------------------------------------


async def test_a_firing_is_run_and_ended_without_anybody_looking(store: Store, clock: ManualClock, fly: Fly) -> None:
    runner = ToldRunner(done)
    flight = fly(runner)
    brief = told(store, clock, config={"say": "hi"})
    run = fire(store, brief, now=clock.now(), payload='{"a": 1}').run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "worker", "attempt") == ("succeeded", "wrk_1", 1)
    [work] = runner.works
    assert (work.run_id, work.config, work.payload, work.scratch) == (run, {"say": "hi"}, {"a": 1}, None)
    assert flight.in_the_air == 0


async def test_a_run_is_claimed_in_the_commit_that_queued_it(store: Store, clock: ManualClock, fly: Fly) -> None:
    fly(ToldRunner(Gate()))
    brief = told(store, clock)
    fire(store, brief, now=clock.now())
    assert states(store) == ["running"], "before the loop had a turn"


async def test_a_run_that_was_queued_before_is_found_by_looking(store: Store, clock: ManualClock, fly: Fly) -> None:
    brief = told(store, clock)
    fire(store, brief, now=clock.now())
    flight = fly(ToldRunner(done))
    flight.look()
    await landed(store, flight)
    assert states(store) == ["succeeded"]


async def test_a_retry_is_run_when_its_time_has_come(store: Store, clock: ManualClock, fly: Fly) -> None:
    async def second_time(work: Work, desk: Desk) -> Ended:
        return Ended.ok("x") if work.attempt == 2 else Ended.failed(
            ErrorClass.TRANSIENT, "503", retry_after=timedelta(minutes=1))

    flight = fly(ToldRunner(second_time))
    brief = told(store, clock)
    fire(store, brief, now=clock.now())
    await landed(store, flight)
    flight.look()
    await landed(store, flight)
    assert states(store) == ["queued"]
    clock.advance(timedelta(minutes=2))
    flight.look()
    await landed(store, flight)
    assert states(store) == ["succeeded"]


async def test_a_runner_that_needs_no_waiting_runs_in_place(store: Store, clock: ManualClock, fly: Fly) -> None:
    flight = fly(Quick(Ended.ok("swift")))
    brief = an_automation(store, now=clock.now(), runner="quick")
    fire(store, brief, now=clock.now())
    await landed(store, flight)
    assert rows(store, "SELECT text FROM run_output") == [("swift",)]


async def test_one_named_run_is_run_and_no_other(store: Store, clock: ManualClock, fly: Fly) -> None:
    brief = told(store, clock)
    fire(store, brief, now=clock.now())
    wanted = fire(store, brief, now=clock.now()).run_id
    assert wanted is not None
    flight = fly(ToldRunner(done), only=wanted)
    flight.look()
    await landed(store, flight)
    assert run_row(store, wanted, "state") == ("succeeded",)
    assert sorted(states(store)) == ["queued", "succeeded"]


# -- slots ----------------------------------------------------------------------------------------------------------


async def test_no_more_run_at_once_than_there_are_slots_and_all_have_their_turn(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    async def a_turn_of_the_loop(work: Work, desk: Desk) -> Ended:
        await asyncio.sleep(0)
        return Ended.ok("x")

    brief = told(store, clock)
    for _ in range(25):
        fire(store, brief, now=clock.now())
    runner = ToldRunner(a_turn_of_the_loop)
    flight = fly(runner, slots=3)
    flight.look()
    await until(lambda: len(runner.works) == 25)
    await landed(store, flight)
    assert states(store) == ["succeeded"] * 25
    assert runner.most == 3


async def test_looks_and_kicks_that_share_a_commit_claim_no_more_than_there_are_slots(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    brief = told(store, clock)
    for _ in range(20):
        fire(store, brief, now=clock.now())
    gate = Gate()
    runner = ToldRunner(gate)
    flight = fly(runner, slots=4)
    with held(store.writer):
        for _ in range(3):
            flight.look()
        store.writer.post(lambda tx: tx.kick("queued"), lambda result, error: None)
    await launched(store)
    assert flight.in_the_air == 4
    assert states(store).count("running") == 4
    gate.open.set()


async def test_a_claim_that_was_rolled_back_takes_no_slot(store: Store, clock: ManualClock, fly: Fly) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate), slots=1)
    brief = told(store, clock)

    def kicks_and_fails(tx: Any) -> None:
        tx.kick("queued")
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  any
        store.write(kicks_and_fails)
    fire(store, brief, now=clock.now())
    await launched(store)
    assert flight.in_the_air == 1
    gate.open.set()
    await landed(store, flight)
    fire(store, brief, now=clock.now())
    await landed(store, flight)
    assert states(store) == ["succeeded"] * 2


# -- what goes wrong ------------------------------------------------------------------------------------------------


async def raises(work: Work, desk: Desk) -> Ended:
    raise KeyError("no such thing")


async def test_a_runner_that_raises_has_failed(store: Store, clock: ManualClock, fly: Fly) -> None:
    flight = fly(ToldRunner(raises))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "error_class", "error") == ("failed", "exception", "KeyError: 'no such thing'")


async def test_a_runner_in_place_that_raises_has_failed(store: Store, clock: ManualClock, fly: Fly) -> None:
    flight = fly(Quick(KeyError("no such thing")))
    run = fire(store, an_automation(store, now=clock.now(), runner="quick"), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "error") == ("failed", "KeyError: 'no such thing'")


async def test_a_run_whose_runner_nobody_has_here_waits_for_somebody_who_has_it(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    here = fly(ToldRunner(done))
    strange = an_automation(store, now=clock.now(), name="strange", runner="strange", limits=FREE)
    runs = [fire(store, strange, now=clock.now()).run_id for _ in range(20)]
    behind = fire(store, told(store, clock), now=clock.now()).run_id
    here.look()
    await landed(store, here)
    assert {run_row(store, run, "state", "attempt") for run in runs} == {("queued", 0)}
    assert run_row(store, behind, "state") == ("succeeded",), "nobody waits behind what cannot be run here"
    assert store.read(lambda tx: tx.queued_by_kind()) == [("strange", 20, clock.now())]
    assert not store.read(here.work_waiting)
    there = fly(ToldRunner(done, kind="strange"))
    assert store.read(there.work_waiting)
    there.look()
    await until(lambda: set(states(store)) == {"succeeded"})


@dataclass
class Choosy(ToldRunner):
    """Serves what it knows by name."""

    known: set[str] = field(default_factory=set)

    def serves(self, automation: str, config: Mapping[str, Any]) -> bool:
        return config.get("name", automation) in self.known


async def test_a_run_that_the_runner_here_does_not_serve_waits_until_one_does(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    runner = Choosy(done, known={"mine"})
    flight = fly(runner, slots=2)
    theirs = told(store, clock, name="theirs")
    other = told(store, clock, name="other", config={"name": "mine"})
    runs = [fire(store, theirs, now=clock.now()).run_id for _ in range(5)]
    mine = [fire(store, other, now=clock.now()).run_id for _ in range(3)]
    flight.look()
    await until(lambda: {run_row(store, run, "state") for run in mine} == {("succeeded",)})
    assert {run_row(store, run, "state", "attempt") for run in runs} == {("queued", 0)}
    assert not store.read(flight.work_waiting)
    runner.known.add("theirs")
    assert store.read(flight.work_waiting)
    flight.look()
    await until(lambda: set(states(store)) == {"succeeded"})


async def test_a_definition_that_cannot_be_read_fails_its_run_also_where_the_runner_is_choosy(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    flight = fly(Choosy(done))
    brief = told(store, clock)
    rows(store, "UPDATE automation_version SET definition = '{}'")
    run = fire(store, brief, now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason") == ("failed", "configuration")


async def test_a_run_that_a_person_wants_here_is_tried_here_and_says_what_is_missing(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    run = fire(store, an_automation(store, now=clock.now(), runner="strange"), now=clock.now()).run_id
    flight = fly(ToldRunner(done), only=run)
    flight.look()
    await landed(store, flight)
    assert run_row(store, run, "state", "reason", "error") == (
        "failed", "configuration", "no runner is called 'strange' here"
    )


async def test_a_definition_that_cannot_be_read_fails_its_run(store: Store, clock: ManualClock, fly: Fly) -> None:
    flight = fly(ToldRunner(done))
    brief = told(store, clock)
    rows(store, "UPDATE automation_version SET definition = '{}'")
    run = fire(store, brief, now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason") == ("failed", "configuration")


async def test_a_run_that_takes_too_long_is_ended_and_timed_out(store: Store, clock: ManualClock, fly: Fly) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate))
    brief = told(store, clock, limits=Limits(timeout=timedelta(milliseconds=20)))
    run = fire(store, brief, now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason", "error") == (
        "timed_out", "timeout", "it ran longer than its timeout of 0:00:00.020000"
    )
    assert gate.cancelled == 1, "the work itself was ended"


async def test_a_timeout_of_something_inside_is_an_error_and_not_the_runs_timeout(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    async def the_network_was_slow(work: Work, desk: Desk) -> Ended:
        raise TimeoutError("connect timed out")

    flight = fly(ToldRunner(the_network_was_slow))
    run = fire(store, told(store, clock, limits=Limits(timeout=timedelta(hours=1))), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason", "error") == (
        "failed", "exception", "TimeoutError: connect timed out"
    )


async def test_work_that_cancels_itself_has_failed_and_is_not_run_for_ever(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    async def cancels_itself(work: Work, desk: Desk) -> Ended:
        raise asyncio.CancelledError

    runner = ToldRunner(cancels_itself)
    flight = fly(runner)
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    flight.look()
    await landed(store, flight)
    assert len(runner.works) == 1
    assert run_row(store, run, "state", "reason") == ("failed", "exception")


# -- cancelled ------------------------------------------------------------------------------------------------------


def ask_to_cancel(store: Store, clock: ManualClock, run: str | None) -> None:
    store.write(lambda tx: tx.ask_to_cancel([(str(run), "cancelled_by", "ada")], now=clock.now()))


async def test_a_run_that_somebody_asked_to_cancel_is_ended(store: Store, clock: ManualClock, fly: Fly) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await gate.reached.wait()
    ask_to_cancel(store, clock, run)
    await asyncio.to_thread(flight.cancel_asked)
    await landed(store, flight)
    assert gate.cancelled == 1
    assert run_row(store, run, "state", "reason", "error") == ("cancelled", "cancelled_by", "cancelled by ada")


async def test_only_what_was_asked_for_is_ended(store: Store, clock: ManualClock, fly: Fly) -> None:
    gate = Gate()
    runner = ToldRunner(gate)
    flight = fly(runner)
    brief = told(store, clock)
    runs = [fire(store, brief, now=clock.now()).run_id for _ in range(2)]
    await until(lambda: runner.now == 2)
    ask_to_cancel(store, clock, runs[0])
    await asyncio.to_thread(flight.cancel_asked)
    await until(lambda: runner.now == 1)
    gate.open.set()
    await landed(store, flight)
    assert [run_row(store, r, "state")[0] for r in runs] == ["cancelled", "succeeded"]


async def test_a_run_that_is_cancelled_before_its_first_step_ends_all_the_same(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    runner = ToldRunner(Gate())
    flight = fly(runner)
    run = fire(store, told(store, clock), now=clock.now()).run_id
    ask_to_cancel(store, clock, run)
    # Both wait for the loop's next turn: the launch first, and at once behind it the cancel.
    asyncio.get_running_loop().call_soon(flight._cancel, (str(run), 1), Reason.CANCELLED_BY, "ada")
    await landed(store, flight)
    assert run_row(store, run, "state", "reason") == ("cancelled", "cancelled_by")
    assert runner.works == []


async def test_a_runner_that_ends_its_own_work_when_cancelled_keeps_what_it_has(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    reached = asyncio.Event()

    async def gives_what_it_has(work: Work, desk: Desk) -> Ended:
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Ended.cancelled("", text="half a report")
        raise AssertionError

    flight = fly(ToldRunner(gives_what_it_has))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await reached.wait()
    ask_to_cancel(store, clock, run)
    await asyncio.to_thread(flight.cancel_asked)
    await landed(store, flight)
    assert run_row(store, run, "state", "error") == ("cancelled", "cancelled by ada")
    assert rows(store, "SELECT text FROM run_output") == [("half a report",)]


async def test_work_that_is_being_ended_is_not_disturbed_in_its_tidying_up(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    reached, ending, tidied = asyncio.Event(), asyncio.Event(), asyncio.Event()
    tidy = asyncio.Event()

    async def tidies_up(work: Work, desk: Desk) -> Ended:
        reached.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await tidy.wait()
            tidied.set()
        raise AssertionError

    flight = fly(ToldRunner(tidies_up))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await reached.wait()
    ask_to_cancel(store, clock, run)
    await asyncio.to_thread(flight.cancel_asked)
    await ending.wait()
    draining = asyncio.create_task(flight.drain(0))
    for _ in range(10):  # more turns than the drain takes to come to the point of ending what is left
        await launched(store)
    tidy.set()
    await draining
    assert tidied.is_set()
    assert run_row(store, run, "state", "reason") == ("cancelled", "cancelled_by")


# -- drained --------------------------------------------------------------------------------------------------------


async def test_a_drain_waits_for_what_is_in_the_air_and_claims_no_more(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate))
    brief = told(store, clock)
    fire(store, brief, now=clock.now())
    await gate.reached.wait()
    draining = asyncio.create_task(flight.drain(60))
    await launched(store)
    fire(store, brief, now=clock.now())
    flight.look()
    gate.open.set()
    await draining
    assert sorted(states(store)) == ["queued", "succeeded"]


@pytest.mark.parametrize(("opaque", "becomes"), [(False, ("queued", 0)), (True, ("review", 1))])
async def test_a_drain_that_takes_too_long_gives_back_what_may_repeat_and_sets_the_rest_aside(
    store: Store, clock: ManualClock, fly: Fly, opaque: bool, becomes: tuple[str, int]
) -> None:
    gate = Gate()
    flight = fly(ToldRunner(gate, opaque=opaque))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await gate.reached.wait()
    await flight.drain(0.01)
    assert gate.cancelled == 1
    assert run_row(store, run, "state", "attempt") == becomes
    assert run_row(store, run, "reason") == ("shutdown",)


async def test_a_run_that_was_claimed_as_the_drain_began_is_not_left_behind(
    store: Store, clock: ManualClock, fly: Fly
) -> None:
    runner = ToldRunner(Gate())
    flight = fly(runner)
    run = fire(store, told(store, clock), now=clock.now()).run_id  # claimed; the loop has not heard of it yet
    await flight.drain(0)
    assert run_row(store, run, "state", "attempt") == ("queued", 0)


async def test_with_nothing_in_the_air_a_drain_is_done(store: Store, clock: ManualClock, fly: Fly) -> None:
    await fly(ToldRunner(done)).drain(60)


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
                lambda result, error: None,
            )
    await landed(store, flight)
    found = rows(store, "SELECT p.text, r.state, r.error FROM run r JOIN firing_payload p ON p.firing_id = r.firing_id")
    assert sorted(state for text, state, _ in found if text == "good") == ["succeeded"] * 2
    [(state, error)] = [(state, error) for text, state, error in found if text == "bad"]
    assert state == ("timed_out" if ended.ending is Ending.TIMEOUT else "failed")
    assert "could not be written" in error
    assert flight.in_the_air == 0


def fire_in(tx: Any, automation: str, external: str, text: str, clock: ManualClock) -> None:
    from nightporter.admission import admit
    from words import a_firing

    admit(tx, [a_firing(automation, external, text=text)], now=clock.now())


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
                lambda result, error: None,
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


# -- folders --------------------------------------------------------------------------------------------------------


async def test_a_runner_that_launches_children_has_a_folder_for_as_long_as_it_runs(
    store: Store, clock: ManualClock, fly: Fly, tmp_path: Path
) -> None:
    async def uses_it(work: Work, desk: Desk) -> Ended:
        assert work.scratch is not None
        assert {folder.stat().st_mode & 0o777 for folder in (work.scratch, work.scratch.parent)} == {0o700}
        (work.scratch / "note").write_text("x")
        return Ended.ok("x")

    flight = fly(ToldRunner(uses_it, launches=True))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "error") == ("succeeded", "")
    assert list((tmp_path / "scratch").iterdir()) == []


async def test_a_folder_that_cannot_be_made_is_tried_again_like_anything_that_passes(
    store: Store, clock: ManualClock, fly: Fly, tmp_path: Path
) -> None:
    (tmp_path / "scratch").write_text("in the way")
    runner = ToldRunner(done, launches=True)
    flight = fly(runner)
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason", "error_class", "attempt") == ("queued", "not_started", "resource", 1)
    assert "folder could not be made" in run_row(store, run, "error")[0]
    assert runner.works == []
    (tmp_path / "scratch").unlink()
    clock.advance(timedelta(minutes=1))
    flight.look()
    await landed(store, flight)
    assert run_row(store, run, "state") == ("succeeded",)


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
        store.writer.post(lambda tx: fire_in(tx, "aut_default_blocked", "again", "", clock), lambda result, error: None)
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
        store.writer.post(flight.take_back, lambda result, error: None)
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
        store.writer.post(lambda tx: fire_in(tx, brief, "e-1", "", clock), lambda result, error: None)
        assert await flight.drain(0, grace=0) == 0
    await launched(store)
    assert runner.works == []
    assert states(store) == ["queued"]


async def test_a_hold_is_told_by_the_runner_and_kept_by_the_run(store: Store, clock: ManualClock, fly: Fly) -> None:
    async def busy(work: Work, desk: Desk) -> Ended:
        return Ended(Ending.HOLD, retry_after=timedelta(minutes=3))

    flight = fly(ToldRunner(busy))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    state, run_after = run_row(store, run, "state", "run_after")
    assert state == "held"
    assert clock.now() + 180_000_000 <= run_after < clock.now() + 225_000_000




async def test_a_child_that_ends_after_its_worker_was_declared_dead_says_nothing_of_its_run(
    store: Store, clock: ManualClock, fly: Fly
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
    gate.open.set()
    await landed(store, flight)
    assert run_row(store, run, "state", "token") == ("running", 1), "it is left to whoever declared the worker dead"
