"""One desk leads: it takes over when nobody does, whatever goes wrong on the way, and steps down when it is told."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from desks import until
from engines import Engines

from conftest import START
from nightporter.engine import Engine
from nightporter.engine.membership import Membership
from nightporter.sources.clock import ClockSource
from nightporter.store import open_store
from words import a_clock_trigger, a_firing, an_automation, rows


def looks(engine: Engine) -> bool:
    """Whether its clock's loop runs."""
    thread = engine._sources._thread
    return thread is not None and thread.is_alive()


async def test_a_desk_that_begins_alone_leads_and_the_next_one_waits(engines: Engines) -> None:
    first, second = engines(), engines()
    await first.start()
    await second.start()
    assert (first.leading, second.leading) == (True, False)
    assert looks(first)
    await first.stop()
    await until(lambda: second.leading and looks(second))


async def test_a_take_over_that_fails_half_way_is_begun_again(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = engines(), engines()
    await first.start()
    await second.start()
    failures = 3
    rezone = ClockSource.rezone

    def fails(self: ClockSource) -> int:
        nonlocal failures
        if failures:
            failures -= 1
            assert not second.leading
            raise OSError("one surprise")
        return rezone(self)

    monkeypatch.setattr(ClockSource, "rezone", fails)
    await first.stop()
    await until(lambda: second.leading and looks(second))
    assert failures == 0


async def test_a_clocks_loop_that_died_is_started_again(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    class Death(BaseException):
        """Nothing catches it."""

    deaths = 2
    run = ClockSource.run

    def dies(self: ClockSource) -> None:
        nonlocal deaths
        if deaths:
            deaths -= 1
            raise Death
        run(self)

    monkeypatch.setattr(ClockSource, "run", dies)
    monkeypatch.setattr("threading.excepthook", lambda _: None)
    engine = engines()
    await engine.start()
    await until(lambda: deaths == 0 and looks(engine))
    assert engine.leading


async def test_a_desk_that_lost_the_lead_stops_its_sources_and_starts_them_when_it_has_it_again(
    engines: Engines,
) -> None:
    engine = engines()
    await engine.start()
    before = engine._sources._thread
    assert before is not None
    await engine.write(lambda tx: tx.put_setting("leader", "wrk_another"))
    await engine.write(lambda tx: tx.join("wrk_another", role="desk", host="afar", pid=1, lock_path="", now=START))
    await until(lambda: not engine.leading)
    await until(lambda: not before.is_alive())
    assert not looks(engine)
    await engine.write(lambda tx: tx.end_worker("wrk_another", "stopped", now=START))
    await until(lambda: engine.leading and looks(engine))
    assert engine._sources._thread is not before


async def test_a_leader_that_was_declared_dead_lets_go_says_so_once_and_stands_by(
    engines: Engines, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = engines(), engines()
    await first.start()
    await second.start()
    before = first.worker
    await second.write(lambda tx: tx.end_worker(before, "dead", now=START) and tx.take_lead(second.worker))
    await until(lambda: second.leading and looks(second))
    await until(lambda: first.worker != before and not first.leading and not looks(first))
    assert [r.getMessage().split()[0] for r in caplog.records].count("desk.lost_the_lead") == 1
    assert await first.read(lambda tx: tx.leader()) == second.worker


async def test_a_draining_leader_hands_its_lead_over_before_its_runs_have_ended(engines: Engines) -> None:
    held = asyncio.Event()

    async def wait() -> None:
        await held.wait()

    first = engines(settings={"drain": timedelta(seconds=60)}, functions={"wait": wait})
    second = engines()
    await first.start()
    await second.start()
    await asyncio.to_thread(
        an_automation, first.store, now=first.clock.now(), runner="function", config={"name": "wait"}, name="slow",
        state="active",
    )
    await first.fire(a_firing("aut_default_slow", trigger="call"))
    await until(lambda: first.flight.in_the_air)
    leaving = asyncio.create_task(first.stop())
    await until(lambda: second.leading and looks(second))
    assert not leaving.done()
    held.set()
    await leaving


async def test_who_may_lead_is_decided_once_however_many_ask(store_url: str) -> None:
    names = [f"wrk_{n}" for n in range(8)]
    stores = [open_store(store_url, now=START) for _ in names]
    store = stores[0]
    for name in names:
        store.write(lambda tx, name=name: tx.join(  # type: ignore[misc]  # bound per turn
            name, role="desk", host="", pid=1, lock_path="", now=START))
    asked = await asyncio.gather(*(
        asyncio.to_thread(each.write, lambda tx, name=name: tx.take_lead(name))
        for each, name in zip(stores, names, strict=True)
    ))
    assert sum(asked) == 1
    winner = names[asked.index(True)]
    assert store.read(lambda tx: tx.leader()) == winner
    assert store.write(lambda tx: tx.take_lead(winner)), "it still leads"
    store.write(lambda tx: tx.leave_lead("wrk_nobody"))
    store.write(lambda tx: tx.end_worker(winner, "dead", now=START))
    assert store.read(lambda tx: tx.leader()) is None
    assert not store.write(lambda tx: tx.take_lead(winner)), "the dead do not come back"
    other = next(name for name in names if name != winner)
    assert store.write(lambda tx: tx.take_lead(other))
    store.write(lambda tx: tx.leave_lead(other))
    assert store.read(lambda tx: tx.leader()) is None
    for each in stores:
        each.close()


@pytest.mark.parametrize(("whose", "turn"), [(Engine, "_whats_due"), (Membership, "beat")])
async def test_what_one_turn_raises_ends_no_loop_of_the_desk(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, whose: type, turn: str
) -> None:
    engine = engines()
    real = getattr(whose, turn)
    calls = 0

    def sometimes(self: Any, *of: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise RuntimeError("one surprise")
        return real(self, *of)

    monkeypatch.setattr(whose, turn, sometimes)
    await engine.start()
    await until(lambda: calls > 4)


async def test_a_slot_is_answered_by_whoever_leads(engines: Engines) -> None:
    engine = engines()
    await engine.start()
    await asyncio.to_thread(
        an_automation, engine.store, now=engine.clock.now(), runner="noop",
        triggers=[a_clock_trigger("* * * * * *")], state="active",
    )
    engine._kick.ring()
    await until(lambda: rows(engine.store, "SELECT 1 FROM firing"))
