"""One desk leads: it takes over when nobody does, whatever goes wrong on the way, and steps down when it is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from desks import until
from engines import Engines

from nightporter.engine import Engine
from nightporter.sources.clock import ClockSource
from nightporter.store.postgres import PostgresStore
from words import a_clock_trigger, an_automation, rows


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
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines()
    await engine.start()
    before = engine._sources._thread
    assert before is not None
    real = engine.store.lead
    monkeypatch.setattr(engine.store, "lead", lambda: False)
    await until(lambda: not engine.leading)
    await until(lambda: not before.is_alive())
    assert not looks(engine)
    monkeypatch.setattr(engine.store, "lead", real)
    await until(lambda: engine.leading and looks(engine))
    assert engine._sources._thread is not before


async def test_a_lead_that_went_with_its_connection_is_noticed(
    migrated_postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL the lock is the connection's, and another desk may have it then."""
    engines = Engines(tmp_path, migrated_postgres_url, monkeypatch)
    first, second = engines(), engines()
    for engine in (first, second):
        await engine.start()
    store = first.store
    assert isinstance(store, PostgresStore)
    assert store._leading is not None
    before = store._leading
    await asyncio.to_thread(rows, store, "SELECT pg_terminate_backend(?)", before.info.backend_pid)
    await until(lambda: store._leading is not before)
    await until(lambda: first.leading != second.leading)
    await until(lambda: (looks(first), looks(second)) == (first.leading, second.leading))
    await engines.close()


@pytest.mark.parametrize("loop", ["_whats_due", "_beat"])
async def test_what_one_turn_raises_ends_no_loop_of_the_desk(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, loop: str
) -> None:
    engine = engines()
    real = getattr(Engine, loop)
    calls = 0

    def sometimes(self: Engine, *of: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise RuntimeError("one surprise")
        return real(self, *of)

    monkeypatch.setattr(Engine, loop, sometimes)
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
