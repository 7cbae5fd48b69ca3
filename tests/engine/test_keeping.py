"""A desk keeps its lease whatever else it does, and mends one thing whatever becomes of another."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from datetime import timedelta
from typing import Any

import pytest
from desks import until
from engines import Engines

import nightporter.engine.sweeper
from nightporter.dispatch import Definitions, claim
from nightporter.engine import Engine
from nightporter.errors import StoreError
from nightporter.store import Tx
from words import an_automation, fire, rows, states

OFTEN = {"sweep": timedelta(milliseconds=20)}


def beats(engine: Engine) -> int:
    """Of its lease; 0 before it has joined."""
    return sum(beat for (beat,) in rows(engine.store, "SELECT beat FROM worker WHERE id = ?", engine.worker))


@pytest.mark.parametrize("part", ["prune", "tidy"])
async def test_a_desk_that_sweeps_or_prunes_for_long_goes_on_beating(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    here, go = threading.Event(), threading.Event()

    def long(*of: Any, **rest: Any) -> bool:
        here.set()
        go.wait(30)
        return False

    monkeypatch.setattr(nightporter.engine.sweeper, part, long)
    engine = engines(settings=OFTEN)
    await engine.start()
    await until(here.is_set)
    before = beats(engine)
    await until(lambda: beats(engine) > before + 3)
    go.set()


async def test_what_goes_wrong_in_one_part_of_a_sweep_does_not_keep_the_others_from_their_turn(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def raises(*of: Any, **rest: Any) -> None:
        raise KeyError("no such thing")

    monkeypatch.setattr(nightporter.engine.sweeper, "tidy", raises)
    monkeypatch.setattr(nightporter.engine.sweeper, "name_what_nobody_runs", lambda *of: done.append("named"))
    monkeypatch.setattr(nightporter.engine.sweeper, "prune", lambda *of, **rest: done.append("pruned"))
    engine = engines(settings=OFTEN)
    await engine.start()
    await until(lambda: {"named", "pruned"} <= set(done))


async def test_a_desk_deletes_for_as_long_as_there_is_more(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    left = 5

    def some(*of: Any, **rest: Any) -> bool:
        nonlocal left
        left = max(left - 1, 0)
        return left > 0

    monkeypatch.setattr(nightporter.engine.sweeper, "prune", some)
    engine = engines(settings={"sweep": timedelta(milliseconds=50)})
    await engine.start()
    await until(lambda: left == 0)


async def test_only_the_desk_that_leads_deletes(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (engines(settings={"sweep": timedelta(milliseconds=20)}) for _ in range(2))
    pruned: list[object] = []
    swept: list[object] = []
    monkeypatch.setattr(nightporter.engine.sweeper, "prune", lambda store, **rest: pruned.append(store))
    monkeypatch.setattr(nightporter.engine.sweeper, "tidy", lambda store, state: swept.append(store))
    await first.start()
    await second.start()
    await until(lambda: swept.count(second.store) > 3)
    assert second.store not in pruned
    await first.stop()
    await until(lambda: second.store in pruned)


async def test_a_desk_that_was_declared_dead_joins_anew_and_goes_on(engines: Engines) -> None:
    engine = engines()
    await engine.start()
    before = engine.worker
    await engine.write(lambda tx: tx.end_worker(before, "dead", now=engine.clock.now()))
    await until(lambda: engine.worker != before and beats(engine) > 0)
    brief = await asyncio.to_thread(an_automation, engine.store, now=engine.clock.now(), runner="noop")
    await asyncio.to_thread(fire, engine.store, brief, now=engine.clock.now())
    await until(lambda: states(engine.store) == ["succeeded"])


async def test_a_desk_that_cannot_know_whether_it_joined_joins_until_it_does(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines()
    await engine.start()
    before, joins, join = engine.worker, iter([False, False]), Tx.join

    def joined(tx: Tx, *of: Any, **rest: Any) -> None:
        join(tx, *of, **rest)
        if not next(joins, True):
            monkeypatch.setattr(engine.store.writer._transactions, "commit", no_answer, raising=False)

    commit = engine.store.writer._transactions.commit

    def no_answer() -> None:
        monkeypatch.setattr(engine.store.writer._transactions, "commit", commit)
        commit()
        raise StoreError("the commit got no answer")

    monkeypatch.setattr(Tx, "join", joined)
    await engine.write(lambda tx: tx.end_worker(before, "dead", now=engine.clock.now()))
    await until(lambda: engine.worker != before and beats(engine) > 0)
    assert next(joins, True), "nobody doubted"
    brief = await asyncio.to_thread(an_automation, engine.store, now=engine.clock.now(), runner="noop")
    await asyncio.to_thread(fire, engine.store, brief, now=engine.clock.now())
    await until(lambda: states(engine.store) == ["succeeded"])


async def test_a_desk_that_drains_goes_on_beating_once_the_store_is_well_again(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines()
    await engine.start()
    beat, asked = Tx.beat, iter(["ill", "ill"])

    def ill_twice(tx: Tx, worker: str) -> bool:
        if next(asked, ""):
            raise StoreError("the store is ill")
        return beat(tx, worker)

    task = asyncio.create_task(engine._membership.beat_on())
    monkeypatch.setattr(Tx, "beat", ill_twice)
    before = beats(engine)
    await until(lambda: next(asked, "") == "" and beats(engine) > before)
    assert not task.done()
    task.cancel()


async def test_a_desk_that_was_declared_dead_waits_for_nobody_who_will_not_end(engines: Engines) -> None:
    begun, leave = asyncio.Event(), asyncio.Event()

    async def holds_on() -> None:
        begun.set()
        while not leave.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await leave.wait()

    engine = engines(functions={"brief": holds_on})
    await engine.start()
    brief = await asyncio.to_thread(
        an_automation, engine.store, now=engine.clock.now(), runner="function", config={"name": "brief"})
    await asyncio.to_thread(fire, engine.store, brief, now=engine.clock.now())
    await asyncio.wait_for(begun.wait(), 10)
    before = engine.worker
    await engine.write(lambda tx: tx.end_worker(before, "dead", now=engine.clock.now()))
    await until(lambda: engine.worker != before and beats(engine) > 0)
    leave.set()


async def test_a_sweep_takes_back_what_stands_under_a_claim_nobody_heard_of(engines: Engines) -> None:
    engine = engines(settings=OFTEN)
    await engine.start()
    brief = await asyncio.to_thread(an_automation, engine.store, now=engine.clock.now(), runner="noop")

    def claimed_and_forgotten(tx: Tx) -> None:
        claim(tx, worker=engine.worker, room=1, now=engine.clock.now(), runners=engine.runners,
              definitions=Definitions())

    await engine.flight.drain(0)  # it claims nothing itself from now on
    await asyncio.to_thread(fire, engine.store, brief, now=engine.clock.now())
    await engine.write(claimed_and_forgotten)
    await until(lambda: states(engine.store) == ["queued"])
    assert rows(engine.store, "SELECT reason, attempt FROM run") == [("not_started", 0)]
