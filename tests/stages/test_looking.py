"""Looking: a look is asked between the claim of its run and its runner, and is kept once the run has ended well."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from acting import a_worker, die
from desks import until
from flights import FREE, Gate, ToldRunner, ask_to_cancel, done, landed, launched

from nightporter.clock import ManualClock
from nightporter.dispatch import Flight
from nightporter.runners.echo import Echo
from nightporter.store import Store
from nightporter.words import (
    Definition,
    Destination,
    Ended,
    ErrorClass,
    Kept,
    Look,
    QuickRunner,
    Retry,
    Runner,
    Seen,
    Sight,
    Started,
    TriggerSpec,
    Work,
)
from words import a_definition, an_automation, fire, rows, run_row, states

LOOK = Look("told", {"at": "the inbox"})
MAIL = Seen(Sight.SOMETHING, "two mails", {"last": 2})
QUIET = Seen(Sight.NOTHING)
BROKEN = Seen(Sight.FAILED, error="no route", error_class=ErrorClass.NONZERO_EXIT)
Fly = Callable[..., Flight]


@dataclass
class ToldLook:
    """Answers as it is told, the last answer again and again; remembers what had been kept at each time."""

    answers: list[Seen] = field(default_factory=list)
    kind: str = "told"
    launches: bool = False
    before: list[Any] = field(default_factory=list)
    meanwhile: Callable[[Started], Awaitable[None]] | None = None

    async def look(self, config: Any, work: Work, before: Any, started: Started) -> Seen:
        self.before.append(before)
        if self.meanwhile is not None:
            await self.meanwhile(started)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
async def look_first(store: Store, clock: ManualClock, tmp_path: Path) -> Any:
    """Makes flights that ask this look."""
    flights: list[Flight] = []

    def make(look: ToldLook, *runners: Runner | QuickRunner, worker: str = "wrk_1") -> Flight:
        flights.append(Flight(
            store, clock, {r.kind: r for r in runners}, worker=a_worker(store, clock.now(), name=worker), slots=16,
            scratch=tmp_path / "scratch", lookers={"told": look},
        ))
        return flights[-1]

    yield make
    for flight in flights:
        await flight.drain(0)


def looking(**of: Any) -> Definition:
    """An automation that looks first."""
    return a_definition(**{"runner": "told", "look": LOOK, "limits": FREE, **of})


def kept(store: Store) -> list[tuple[Any, ...]]:
    return rows(store, "SELECT state, version FROM look_state ORDER BY look")


async def test_what_the_look_found_reaches_the_target(store: Store, clock: ManualClock, look_first: Fly) -> None:
    runner = ToldRunner(done)
    flight = look_first(ToldLook([MAIL]), runner)
    run = fire(store, an_automation(store, looking(), now=clock.now()), now=clock.now()).run_id
    await landed(store, flight)
    [work] = runner.works
    assert work.look == "two mails"
    assert work.environment["NIGHTPORTER_LOOK"] == "two mails"
    assert run_row(store, run, "state", "attempt") == ("succeeded", 1)
    assert rows(store, "SELECT run_id, kind, answer, text FROM run_look") == [(run, "told", "something", "two mails")]


async def test_a_run_without_a_look_has_no_word_of_one(store: Store, clock: ManualClock, look_first: Fly) -> None:
    runner = ToldRunner(done)
    flight = look_first(ToldLook([MAIL]), runner)
    fire(store, an_automation(store, looking(look=None), now=clock.now()), now=clock.now())
    await landed(store, flight)
    assert runner.works[0].look is None
    assert "NIGHTPORTER_LOOK" not in runner.works[0].environment
    assert rows(store, "SELECT * FROM run_look") == []


async def test_a_quick_target_is_told_too(store: Store, clock: ManualClock, look_first: Fly) -> None:
    flight = look_first(ToldLook([MAIL]), Echo())
    automation = an_automation(store, looking(runner="echo", config={"text": "News: {{look}}"}), now=clock.now())
    fire(store, automation, now=clock.now())
    await landed(store, flight)
    assert rows(store, "SELECT text FROM run_output") == [("News: two mails",)]


async def test_nothing_ends_the_run_well_and_without_a_word(store: Store, clock: ManualClock, look_first: Fly) -> None:
    runner = ToldRunner(done, opaque=True)
    flight = look_first(ToldLook([QUIET]), runner)
    definition = looking(deliver=[Destination("announce", "announce")])
    automation = an_automation(store, definition, now=clock.now())
    run = fire(store, automation, now=clock.now()).run_id
    await landed(store, flight)
    assert runner.works == []
    assert run_row(store, run, "state", "reason", "outcome", "dead_at") == (
        "skipped", "precondition_unmet", "noop", None)
    for table in ("delivery", "inbox", "effect", "child"):
        assert rows(store, f"SELECT * FROM {table}") == [], table
    assert rows(store, "SELECT errors_in_a_row, last_success_at FROM automation") == [(0, clock.now())]
    assert rows(store, "SELECT answer, text FROM run_look") == [("nothing", "")]


async def test_a_look_that_failed_fails_its_run_and_is_announced(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    runner = ToldRunner(done)
    flight = look_first(ToldLook([BROKEN]), runner)
    automation = an_automation(store, looking(), now=clock.now())
    run = fire(store, automation, now=clock.now()).run_id
    await landed(store, flight)
    assert runner.works == []
    assert run_row(store, run, "state", "reason", "outcome", "error_class", "error") == (
        "failed", "check_failed", "failed", "nonzero_exit", "no route")
    assert rows(store, "SELECT kind, run_id FROM inbox") == [("dead_letter", run)]
    assert rows(store, "SELECT errors_in_a_row FROM automation") == [(1,)]
    assert rows(store, "SELECT answer, text FROM run_look") == [("failed", "no route")]


@pytest.mark.parametrize(
    ("error_class", "on", "state"),
    [
        (ErrorClass.TRANSIENT, {"transient"}, "queued"), (ErrorClass.TRANSIENT, {"exception"}, "failed"),
        (ErrorClass.NONZERO_EXIT, {"transient"}, "failed"), (ErrorClass.NONZERO_EXIT, {"nonzero_exit"}, "queued"),
        (ErrorClass.TIMEOUT, {"transient", "nonzero_exit", "exception"}, "failed"),
    ],
)
async def test_a_look_that_failed_is_tried_again_as_its_definition_says(
    store: Store, clock: ManualClock, look_first: Fly, error_class: ErrorClass, on: set[str], state: str
) -> None:
    flight = look_first(ToldLook([Seen(Sight.FAILED, error="no", error_class=error_class)]), ToldRunner(done))
    automation = an_automation(store, looking(retry=Retry(on=frozenset(on))), now=clock.now())
    run = fire(store, automation, now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason") == (state, "check_failed")


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError("no room")])
async def test_a_look_that_raises_is_a_look_that_failed(
    store: Store, clock: ManualClock, look_first: Fly, error: Exception
) -> None:
    async def raises(started: Started) -> None:
        raise error

    flight = look_first(ToldLook([MAIL], meanwhile=raises), ToldRunner(done))
    run = fire(store, an_automation(store, looking(), now=clock.now()), now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "reason", "error") == (
        "failed", "check_failed", f"{type(error).__name__}: {error}")


async def test_a_look_of_a_kind_that_is_not_here_has_failed(store: Store, clock: ManualClock, look_first: Fly) -> None:
    flight = look_first(ToldLook([MAIL]), ToldRunner(done))
    automation = an_automation(store, looking(look=Look("seance")), now=clock.now())
    run = fire(store, automation, now=clock.now()).run_id
    await landed(store, flight)
    assert run_row(store, run, "state", "error_class", "error") == (
        "failed", "configuration", "no look is called 'seance' here")


async def test_a_triggers_own_look_stands_over_the_automations(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    look = ToldLook([MAIL])
    flight = look_first(look, ToldRunner(done))
    calls = TriggerSpec("call", "call", look=Look("told", {"at": "the door"}))
    automation = an_automation(store, looking(triggers=[calls]), now=clock.now())
    for trigger in ("call", "manual", "call"):
        fire(store, automation, trigger=trigger, now=clock.now())
        await landed(store, flight)
    assert look.before == [None, None, {"last": 2}], "each keeps what it keeps"


# -- what is kept ------------------------------------------------------------------------------------------------------


async def test_what_a_look_keeps_is_kept_once_its_run_has_succeeded(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    failing = [Ended.failed(ErrorClass.EXCEPTION, "no"), Ended.timed_out("long"), Ended.ok("done"), Ended.ok("done")]
    look = ToldLook([MAIL])

    async def behave(work: Work, desk: Any) -> Ended:
        return failing.pop(0)

    flight = look_first(look, ToldRunner(behave))
    automation = an_automation(store, looking(), now=clock.now())
    for _ in range(4):
        fire(store, automation, now=clock.now())
        await landed(store, flight)
    assert look.before == [None, None, None, {"last": 2}], "a run that failed sees the same again"
    assert kept(store) == [('{"last": 2}', 2)]


@pytest.mark.parametrize(("seen", "state"), [(Seen(Sight.NOTHING, state=7), [("7", 1)]), (QUIET, [])])
async def test_a_look_that_found_nothing_keeps_what_it_says(
    store: Store, clock: ManualClock, look_first: Fly, seen: Seen, state: list[tuple[Any, ...]]
) -> None:
    flight = look_first(ToldLook([seen]), ToldRunner(done))
    fire(store, an_automation(store, looking(), now=clock.now()), now=clock.now())
    await landed(store, flight)
    assert kept(store) == state


async def test_of_two_runs_that_saw_the_same_the_first_to_end_is_the_one_that_counts(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    gate = Gate()
    look = ToldLook([Seen(Sight.SOMETHING, "one", 1), Seen(Sight.SOMETHING, "two", 2)])

    async def behave(work: Work, desk: Any) -> Ended:
        return await gate(work, desk) if work.look == "one" else Ended.ok("done")

    flight = look_first(look, ToldRunner(behave))
    automation = an_automation(store, looking(), now=clock.now())
    fire(store, automation, now=clock.now())
    await gate.reached.wait()
    second = fire(store, automation, now=clock.now()).run_id
    await until(lambda: run_row(store, second, "state") == ("succeeded",))
    gate.open.set()
    await landed(store, flight)
    assert kept(store) == [("2", 1)]


async def test_an_older_version_of_what_is_kept_changes_nothing(store: Store, clock: ManualClock) -> None:
    def keep(state: int, version: int) -> None:
        store.write(lambda tx: tx.keep_looks([("aut_1", "key", state, version, "run_1")], now=clock.now()))

    keep(1, 0)
    keep(2, 0)
    assert kept(store) == [("1", 1)]
    keep(3, 1)
    keep(4, 1)
    assert kept(store) == [("3", 2)]
    assert store.read(lambda tx: tx.look_facts("run_2", "aut_1", "key")) == (Kept(3, 2), False)
    store.write(lambda tx: tx.forget_looks("aut_1", ()))
    keep(5, 2)
    assert kept(store) == [], "what was forgotten meanwhile does not come back"


# -- cut short ---------------------------------------------------------------------------------------------------------


class Slow(ToldLook):
    """A look that does not end, and has a child where it launches."""

    def __init__(self, *, launches: bool = False) -> None:
        super().__init__([MAIL], launches=launches, meanwhile=self.wait)
        self.reached = asyncio.Event()
        self.open = asyncio.Event()

    async def wait(self, started: Started) -> None:
        if self.launches:
            await started(4_000_000, 1)
        self.reached.set()
        await self.open.wait()


async def test_a_run_that_is_cancelled_while_it_looks_is_cancelled(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    look, runner = Slow(launches=True), ToldRunner(done)
    flight = look_first(look, runner)
    run = fire(store, an_automation(store, looking(), now=clock.now()), now=clock.now()).run_id
    await look.reached.wait()
    ask_to_cancel(store, clock, run)
    flight.cancel_asked()
    await landed(store, flight)
    assert run_row(store, run, "state", "reason") == ("cancelled", "cancelled_by")
    assert (runner.works, rows(store, "SELECT * FROM child"), kept(store)) == ([], [], [])


@pytest.mark.parametrize("launches", [False, True])
async def test_a_run_that_a_drain_finds_looking_is_given_back_whatever_its_target_is(
    store: Store, clock: ManualClock, look_first: Fly, launches: bool
) -> None:
    look, runner = Slow(launches=launches), ToldRunner(done, opaque=True, launches=launches)
    flight = look_first(look, runner)
    run = fire(store, an_automation(store, looking(on_crash="review"), now=clock.now()), now=clock.now()).run_id
    await look.reached.wait()
    await flight.drain(0)
    assert run_row(store, run, "state", "reason", "attempt") == ("queued", "shutdown", 0)
    assert rows(store, "SELECT * FROM child") == []


@pytest.mark.parametrize("launches", [False, True])
async def test_a_run_whose_worker_dies_while_it_looks_runs_again_whatever_its_target_is(
    store: Store, clock: ManualClock, look_first: Fly, launches: bool
) -> None:
    look, runner = Slow(launches=True), ToldRunner(done, kind="script", opaque=True, launches=launches)
    flight = look_first(look, runner)
    automation = an_automation(store, looking(runner="script", on_crash="review"), now=clock.now())
    run = fire(store, automation, now=clock.now()).run_id
    await look.reached.wait()
    assert rows(store, "SELECT look FROM child") == [(1,)]
    assert die(store, "wrk_1", clock.now())["requeued"] == 1
    assert states(store) == ["queued"]
    look.open.set()
    await landed(store, flight)
    assert (states(store), runner.works) == (["queued"], []), "who was declared dead goes no further"
    again = look_first(ToldLook([MAIL]), runner, worker="wrk_2")
    again.look()
    await until(lambda: run_row(store, run, "state") == ("succeeded",))
    assert len(runner.works) == 1


async def test_a_run_whose_worker_dies_behind_its_look_may_have_acted(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    gate = Gate()
    look_first(ToldLook([MAIL]), ToldRunner(gate, kind="script", opaque=True))
    run = fire(store, an_automation(store, looking(runner="script"), now=clock.now()), now=clock.now()).run_id
    await gate.reached.wait()
    assert die(store, "wrk_1", clock.now())["review"] == 1
    assert run_row(store, run, "state") == ("review",)


async def test_the_child_of_the_work_takes_the_line_of_the_looks(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    gate = Gate()

    async def behave(work: Work, desk: Any) -> Ended:
        await desk.child_started(work, 4_000_001, 2)
        return await gate(work, desk)

    look = Slow(launches=True)
    flight = look_first(look, ToldRunner(behave, opaque=True, launches=True))
    fire(store, an_automation(store, looking(), now=clock.now()), now=clock.now())
    await look.reached.wait()
    look.open.set()
    await gate.reached.wait()
    assert rows(store, "SELECT process_group, started, look FROM child") == [(4_000_001, 2, 0)]
    gate.open.set()
    await landed(store, flight)
    assert rows(store, "SELECT * FROM child") == []


async def test_a_run_that_a_person_wants_whatever_its_look_says_is_not_asked(
    store: Store, clock: ManualClock, look_first: Fly
) -> None:
    from nightporter import operations

    look, runner = ToldLook([QUIET]), ToldRunner(done)
    flight = look_first(look, runner)
    automation = an_automation(store, looking(), now=clock.now())
    for n, skip in enumerate((True, False)):
        store.write(lambda tx, n=n, skip=skip: operations.fire(  # type: ignore[misc]
            tx, automation, trigger="manual", external_id=f"e{n}", by="ana", now=clock.now(), skip_look=skip))
        await launched(store)
        await landed(store, flight)
    assert [work.look for work in runner.works] == [None]
    assert len(look.before) == 1
    assert sorted(rows(store, "SELECT answer, text FROM run_look")) == [("nothing", ""), ("skipped", "ana")]
    assert sorted(states(store)) == ["skipped", "succeeded"]
