"""A flight whose runs are cut short: because somebody asked, or because the desk is drained."""

from __future__ import annotations

import asyncio

import pytest
from desks import until
from flights import Fly, Gate, ToldRunner, ask_to_cancel, done, landed, launched, told

from nightporter.clock import ManualClock
from nightporter.store import Store
from nightporter.words import Desk, Ended, Reason, Work
from words import fire, rows, run_row, states

# -- cancelled ------------------------------------------------------------------------------------------------------


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
