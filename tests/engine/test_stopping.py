"""A desk that stops is gone soon, whatever its store does; what it could not write is the next boot's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from desks import until
from engines import Engines

from nightporter import operations
from nightporter.engine import Engine
from words import a_definition, rows, states

SOON = 3.0
"""Seconds; with these tests' intervals it takes less than one."""


@contextlib.contextmanager
def taken(store_url: str) -> Iterator[None]:
    """Another process holds the store: nobody can write."""
    if "://" not in store_url:
        with contextlib.closing(apsw.Connection(store_url)) as careless:
            careless.set_busy_timeout(5000)
            careless.execute("BEGIN IMMEDIATE")
            yield
            careless.execute("ROLLBACK")
        return
    with psycopg.connect(store_url) as greedy:
        greedy.execute("LOCK TABLE run, worker, setting IN EXCLUSIVE MODE")
        yield
        greedy.rollback()


async def begun(engine: Engine, gate: asyncio.Event) -> None:
    """A function of the program is running in it."""
    now = engine.clock.now()
    definition = a_definition("brief", runner="function", config={"name": "brief"}, idempotent=True)

    def defined_and_fired(tx: Any) -> None:
        made = operations.define(tx, definition, truth="code", by="test", now=now, path="a program")
        operations.fire(tx, made.automation_id, trigger="manual", external_id="1", now=now)

    await engine.write(defined_and_fired)
    await gate.wait()


async def test_a_desk_leaves_the_ledger_and_its_lock_when_it_stops(engines: Engines, tmp_path: Path) -> None:
    engine = engines()
    await engine.start()
    await engine.stop()
    after = engines()
    await after.start()
    assert rows(after.store, "SELECT ended_how FROM worker WHERE id = ?", engine.worker) == [("stopped",)]
    assert [path.stem for path in (tmp_path / "home" / "locks").iterdir()] == [after.worker]


async def test_a_desk_does_not_wait_for_a_store_that_somebody_holds_and_the_next_boot_takes_up_what_it_left(
    engines: Engines, store_url: str, tmp_path: Path
) -> None:
    running, cut = asyncio.Event(), asyncio.Event()

    async def brief() -> str:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()
        return "never"

    engine = engines(functions={"brief": brief})
    await engine.start()
    await begun(engine, running)
    with taken(store_url):
        began = time.monotonic()
        await engine.stop()
        assert time.monotonic() - began < SOON
        assert cut.is_set(), "what it ran is ended"
    assert (tmp_path / "home" / "locks" / f"{engine.worker}.lock").exists(), "it proves the death"

    async def at_last() -> str:
        return "done"

    after = engines(functions={"brief": at_last})
    await after.start()
    await until(lambda: states(after.store) == ["succeeded"])


async def test_a_desk_whose_sweep_waits_for_the_store_stops_all_the_same(
    engines: Engines, store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = engines(settings={"sweep": timedelta(milliseconds=5)})
    await engine.start()
    with taken(store_url):
        before = engine.clock.monotonic()
        await until(lambda: engine.clock.monotonic() - before > 50_000)  # a sweep and a beat are waiting by now
        began = time.monotonic()
        await engine.stop()
        assert time.monotonic() - began < SOON


async def test_a_boot_that_fails_leaves_nothing_running(engines: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engines()

    def fails(self: Engine, push: int) -> None:
        raise RuntimeError("one surprise")

    monkeypatch.setattr(Engine, "_lead", fails)
    with pytest.raises(RuntimeError):
        await engine.start()
    monkeypatch.undo()
    after = engines()
    await after.start()
    assert after.leading
    assert rows(after.store, "SELECT ended_how FROM worker WHERE id = ?", engine.worker) == [("stopped",)]
