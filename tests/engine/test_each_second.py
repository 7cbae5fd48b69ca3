"""What a desk looks at each second beside the work: pauses that end, and a stop of everything."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
from desks import until
from engines import Engines

from nightporter import operations
from nightporter.clock import micros
from nightporter.dispatch import claim
from nightporter.engine import Engine
from nightporter.engine.sweeper import Seen
from nightporter.errors import StoreLocked
from nightporter.store import Tx
from words import a_definition, an_automation, fire, states


async def a_short_pause(engine: Engine) -> str:
    """Its end is long before the next sweep."""
    automation = an_automation(engine.store, a_definition(), now=engine.clock.now())
    await engine.write(lambda tx: operations.pause(
        tx, automation, by="ann", reason="lunch", now=engine.clock.now(),
        until=engine.clock.now() + micros(timedelta(milliseconds=50)),  # type: ignore[arg-type]  # an instant
    ))
    return automation


async def test_a_pause_is_over_when_its_end_comes_and_not_when_a_sweep_does(engines: Engines) -> None:
    engine = engines()
    await engine.start()
    automation = await a_short_pause(engine)
    await until(lambda: engine.store.write(lambda tx: tx.lock_automation(automation)).state == "active")  # type: ignore[union-attr]


async def test_a_pause_that_cannot_be_ended_is_tried_once_and_left_to_the_sweep(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engines()
    await engine.start()
    tried: list[int] = []
    monkeypatch.setattr(engine._sweeper, "upkeep", lambda: tried.append(1))
    turns = 0
    look = engine._sweeper.look

    def counted(tx: Tx) -> Seen:
        nonlocal turns
        turns += 1
        return look(tx)

    monkeypatch.setattr(engine._sweeper, "look", counted)
    await a_short_pause(engine)
    await until(lambda: tried)
    turns = 0
    await until(lambda: turns > 5)
    assert tried == [1]


async def test_a_stop_of_everything_and_its_end_are_told_by_a_line_each(
    engines: Engines, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[str]:
        return [r.getMessage().split()[0] for r in caplog.records if "desk.work" in r.getMessage()]

    caplog.set_level(logging.INFO, logger="nightporter")
    engine = engines()
    await engine.start()
    await engine.write(lambda tx: operations.stop(tx, by="ann", reason="a fire", now=engine.clock.now()))
    await until(lambda: told() == ["desk.work_stopped"])
    [line] = [r.getMessage() for r in caplog.records if "work_stopped" in r.getMessage()]
    assert "by=ann  reason=a fire" in line
    await engine.write(operations.lift)
    await until(lambda: told() == ["desk.work_stopped", "desk.work_goes_on"])


@pytest.mark.parametrize("failures", [1, 2, 5])
async def test_work_that_could_not_be_claimed_is_looked_for_again_though_nobody_writes_anything(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    left = [failures]

    def ill(*of: Any, **rest: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise StoreLocked("somebody has it")
        return claim(*of, **rest)

    engine = engines(settings={"beat": timedelta(hours=1), "lease": timedelta(hours=4)})
    await engine.start()
    brief = await asyncio.to_thread(an_automation, engine.store, now=engine.clock.now(), runner="noop")
    monkeypatch.setattr("nightporter.dispatch.flight.claim", ill)
    await asyncio.to_thread(fire, engine.store, brief, now=engine.clock.now())
    await until(lambda: states(engine.store) == ["succeeded"])
    assert left == [0]
