"""Processes that share a ledger take what they can execute, and leave the rest to whoever can."""

from __future__ import annotations

import asyncio
from typing import Any

from desks import until
from engines import Engines

from nightporter import operations
from nightporter.engine import Engine
from words import a_definition, run_row, states


async def fired(engine: Engine, name: str, *, config: dict[str, Any] | None = None) -> str:
    """A run of a function's automation; its id."""
    now = engine.clock.now()
    definition = a_definition(name, runner="function", config=config or {"name": name})

    def define_and_fire(tx: Any) -> str:
        made = operations.define(tx, definition, truth="code", by="test", now=now, path="a program")
        return str(operations.fire(tx, made.automation_id, trigger="manual", external_id="1", now=now).run_id)

    return await engine.write(define_and_fire)


async def job() -> str:
    return "done"


async def test_a_worker_leaves_a_function_to_the_program_that_has_it(engines: Engines) -> None:
    worker = engines(role="worker")
    await worker.start()
    run = await fired(worker, "job")
    worker.flight.look()
    await worker.write(lambda tx: None)
    await worker.write(lambda tx: None)
    assert run_row(worker.store, run, "state", "attempt") == ("queued", 0)
    program = engines(functions={"job": job})
    await program.start()
    await until(lambda: states(program.store) == ["succeeded"])
    assert run_row(program.store, run, "worker", "attempt") == (program.worker, 1)


async def test_a_function_that_comes_later_is_run_then(engines: Engines) -> None:
    functions: dict[str, Any] = {}
    program = engines(functions=functions)
    await program.start()
    await fired(program, "job")
    program.flight.look()
    await program.write(lambda tx: None)
    assert states(program.store) == ["queued"]
    functions["job"] = job
    program.flight.look()
    await until(lambda: states(program.store) == ["succeeded"])


async def test_the_function_that_a_definition_names_counts_and_not_the_automations_name(engines: Engines) -> None:
    program = engines(functions={"job": job})
    await program.start()
    mine = await fired(program, "nightly", config={"name": "job"})
    theirs = await fired(program, "job", config={"name": "other"})
    await until(lambda: run_row(program.store, mine, "state") == ("succeeded",))
    assert run_row(program.store, theirs, "state") == ("queued",)


async def test_a_pass_over_what_is_due_ends_although_somebody_elses_work_waits(engines: Engines) -> None:
    engine = engines(role="tick")
    await engine.start()
    await fired(engine, "job")
    async with asyncio.timeout(30):
        await engine.one_pass()
    assert states(engine.store) == ["queued"]
