"""Loops go on whatever happens in them, and blocking work keeps nobody waiting."""

from __future__ import annotations

import asyncio
import threading

import pytest
from desks import until

from nightporter.engine.loops import aside, every
from nightporter.errors import StoreLocked


@pytest.mark.parametrize("error", [ValueError("a surprise"), StoreLocked("for too long"), OSError("no descriptors")])
async def test_a_loop_goes_on_after_whatever_a_turn_raised(error: Exception) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        turns += 1
        raise error

    loop = asyncio.create_task(every(0.001, turn, "a test"))
    await until(lambda: turns > 3)
    assert not loop.done()
    loop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loop


async def test_what_is_done_aside_is_waited_for_and_the_loop_goes_on_meanwhile() -> None:
    go = threading.Event()
    work = asyncio.create_task(aside(lambda: go.wait(30)))
    await asyncio.sleep(0)
    go.set()
    assert await work
    with pytest.raises(ZeroDivisionError):
        await aside(lambda: 1 // 0)


async def test_whoever_stops_waiting_is_let_go_and_the_program_may_end() -> None:
    here, go = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def stands() -> None:
        threads.append(threading.current_thread())
        here.set()
        go.wait(30)

    work = asyncio.create_task(aside(stands))
    await until(here.is_set)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    [thread] = threads
    assert thread.is_alive()
    assert thread.daemon
    go.set()
    await until(lambda: not thread.is_alive())
