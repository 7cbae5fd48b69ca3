"""A desk to measure: a real one in this process, with callers that fire and a way to know that all has ended."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.books import Books
from nightporter import Porter
from nightporter.clock import Clock

SLOTS = 500
"""Runs in the air at once: what a desk for short work would set. The default is 64."""
NO_CEILINGS: dict[str, Any] = {"per_hour": "none", "queued": "none", "concurrent": "none"}
"""So that every firing becomes a run: a ceiling would refuse most of what a measurement throws at it."""
NAME = "measured"


def porter(home: Path, store: str | None = None, *, clock: Clock | None = None) -> Porter:
    """A desk with one automation NAME: it does nothing, and its result is delivered without a word."""
    desk = Porter(home=home, store=store, clock=clock, slots=SLOTS)
    desk.define(NAME, {"noop": {}}, deliver=["silent"], limits=NO_CEILINGS)
    return desk


async def fire(desk: Porter, total: int, in_flight: int, name: str = NAME) -> None:
    """`total` firings by `in_flight` callers, each of which waits for the answer before it fires again."""
    left = iter(range(total))

    async def caller() -> None:
        for _ in left:
            await desk.fire(name)

    await asyncio.gather(*(caller() for _ in range(in_flight)))


async def all_ended(desk: Porter, books: Books) -> float:
    """Wait until nothing is queued or in the air. The `time.perf_counter` of when the last ending was durable."""
    while True:
        while desk.engine.flight.in_the_air:
            await asyncio.sleep(0.001)
        at = time.perf_counter()
        if not books.open_runs():
            return at
        await asyncio.sleep(0.001)


@contextmanager
def busy_thread() -> Iterator[None]:
    """A thread of the process that never waits: a user's own loop over numbers."""
    ended = False

    def work() -> None:
        number = 0
        while not ended:
            number = (number * 31 + 7) % 1_000_003

    thread = threading.Thread(target=work, name="busy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended = True
        thread.join()
