"""Flight: claimed runs are run, bounded by slots and time, each for itself whatever goes wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desks import until
from flights import FREE, Fly, Gate, ToldRunner, done, landed, launched, told
from turns import held

from nightporter.clock import ManualClock
from nightporter.store import Store
from nightporter.words import Desk, Ended, Ending, ErrorClass, Limits, Work
from words import an_automation, fire, rows, run_row, states


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
        store.writer.post(lambda tx: tx.kick("queued"), lambda upshot: None)
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


async def test_a_hold_is_told_by_the_runner_and_kept_by_the_run(store: Store, clock: ManualClock, fly: Fly) -> None:
    async def busy(work: Work, desk: Desk) -> Ended:
        return Ended(Ending.HOLD, retry_after=timedelta(minutes=3))

    flight = fly(ToldRunner(busy))
    run = fire(store, told(store, clock), now=clock.now()).run_id
    await landed(store, flight)
    state, run_after = run_row(store, run, "state", "run_after")
    assert state == "held"
    assert clock.now() + 180_000_000 <= run_after < clock.now() + 225_000_000


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
