"""From due, or from fire(), to the start: what an idle desk adds to an instant; beside a bare thread that does the
least for it: wake at the instant, make one narrow row durable, call into the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from benchmarks.bare import Bare, BareSqlite, names
from benchmarks.books import Books
from benchmarks.desk import NO_CEILINGS, all_ended, porter
from benchmarks.figures import Row, Target, percentile, rounds
from benchmarks.options import Options
from nightporter import Porter, operations
from nightporter.clock import SECOND, Instant, SystemClock, instant
from nightporter.rules.schedule import parse
from nightporter.runners.context import Run
from nightporter.store import Tx
from nightporter.words import Definition, Destination, Limits, TriggerSpec
from nightporter.words import Target as Work

PER_SECOND = 20
"""Triggers that each come once a second, evenly spread: about one start every 50 ms, so the desk idles between."""
PAUSE = 0.02
"""Seconds between two calls of fire(), so that each finds the desk idle."""
NO_LIMITS = Limits(per_hour=None, queued=None, concurrent=None)


@dataclass(slots=True)
class Waits:
    """Milliseconds, one figure a start."""

    slot_to_started: list[float] = field(default_factory=list)
    slot_to_handler: list[float] = field(default_factory=list)
    fire_to_handler: list[float] = field(default_factory=list)


def waits(home: Path, seconds: float) -> Waits:
    """Starts of an idle desk that kept every promise about them. Raises Miscount otherwise."""
    return asyncio.run(_waits(home, seconds))


async def _waits(home: Path, seconds: float) -> Waits:
    clock = SystemClock()
    found = Waits()
    desk = porter(home)
    fired: dict[str, int] = {}

    async def handler(run: Run) -> str:
        now = clock.now()
        if run.scheduled_for is not None:
            found.slot_to_handler.append((now - instant(run.scheduled_for)) / 1000)
        else:
            fired[run.payload] = now
        return "noop"

    desk.functions["handled"] = handler
    desk.automation(name="called", deliver=["silent"], limits=NO_CEILINGS)(handler)
    async with desk.running():
        with Books(home / "nightporter.sqlite") as books:
            await desk.fire("called", payload="warm")
            since, begin = await _slots(desk, books, clock, seconds)
            count = int(seconds * PER_SECOND)
            found.slot_to_started = [row[0] / 1000 for row in books.rows(
                f"SELECT started_at - scheduled_for FROM run WHERE scheduled_for >= {begin}"
            )]
            books.check(since, count)
            since = await _millisecond(clock)
            asked = {}
            for n in range(count):
                asked[str(n)] = clock.now()
                await desk.fire("called", payload=str(n))
                await asyncio.sleep(PAUSE)
            await all_ended(desk, books)
            books.check(since, count)
            found.fire_to_handler = [(fired[n] - at) / 1000 for n, at in asked.items()]
    return found


async def _slots(desk: Porter, books: Books, clock: SystemClock, seconds: float) -> tuple[Instant, Instant]:
    """Let PER_SECOND triggers come for so long; `(since when to count, the first slot)`."""
    since = await _millisecond(clock)
    begin = Instant(clock.now() + SECOND // 2)

    def define(tx: Tx) -> list[str]:
        return [
            operations.define(
                tx, _every_second(f"each-{n}", Instant(begin + n * SECOND // PER_SECOND - SECOND)), truth="code",
                by="benchmarks", now=Instant(begin - 1),  # so that none has a slot before
            ).automation_id
            for n in range(PER_SECOND)
        ]

    def remove(tx: Tx, ids: list[str]) -> None:
        for automation in ids:
            operations.remove(tx, automation, by="benchmarks", now=clock.now())

    ids = await desk.engine.write(define)
    # Half a step past the last slot, so that none is under way when the triggers go.
    end = begin + int(seconds * SECOND) - SECOND // PER_SECOND // 2
    await asyncio.sleep((end - clock.now()) / SECOND)
    await desk.engine.write(partial(remove, ids=ids))
    await all_ended(desk, books)
    return since, begin


def _every_second(name: str, anchor: Instant) -> Definition:
    return Definition(
        name=name, target=Work("function", {"name": "handled"}), limits=NO_LIMITS,
        triggers=(TriggerSpec("clock", "clock", parse("every", "1s", "UTC", anchor=anchor)),),
        deliver=(Destination("silent", "silent"),),
    )


async def _millisecond(clock: SystemClock) -> Instant:
    """An instant in a millisecond of which nothing is stored yet."""
    await asyncio.sleep(0.002)
    return clock.now()


def bare_waits(bare: Bare, starts: int, *, by_slot: bool) -> list[float]:
    """The same starts with nothing but a thread, a commit and a call into the loop; milliseconds."""
    return asyncio.run(_bare_waits(bare, starts, by_slot))


async def _bare_waits(bare: Bare, starts: int, by_slot: bool) -> list[float]:
    loop = asyncio.get_running_loop()
    found: list[float] = []
    bell = threading.Condition()
    asked: list[float] = []
    step = 1 / PER_SECOND

    def started(since: float) -> None:
        found.append((time.perf_counter() - since) * 1000)

    def commit(since: float) -> None:
        bare.insert(names(1))
        loop.call_soon_threadsafe(started, since)

    def slots() -> None:
        for slot in [time.perf_counter() + (n + 1) * step for n in range(starts)]:
            with bell:
                while (left := slot - time.perf_counter()) > 0:
                    bell.wait(left)
            commit(slot)

    def calls() -> None:
        for _ in range(starts):
            with bell:
                while not asked:
                    bell.wait()
                since = asked.pop()
            commit(since)

    thread = threading.Thread(target=slots if by_slot else calls)
    thread.start()
    for _ in range(0 if by_slot else starts):
        with bell:
            asked.append(time.perf_counter())
            bell.notify()
        await asyncio.sleep(PAUSE)
    while len(found) < starts:
        await asyncio.sleep(PAUSE)
    thread.join()
    return found


def rows(options: Options, home: Path) -> list[Row]:
    """slot -> started, slot -> handler and fire() -> handler, each at the median and the 99th percentile."""
    bare = BareSqlite(options.folder)
    starts = int(options.latency_seconds * PER_SECOND)
    try:
        desk, by_slot, by_call = rounds(
            options.rounds, partial(waits, home, options.latency_seconds),
            partial(bare_waits, bare, starts, by_slot=True), partial(bare_waits, bare, starts, by_slot=False),
        )
    finally:
        bare.close()
    made: list[Row] = []
    kinds: tuple[tuple[str, str, Callable[[Waits], list[float]], list[list[float]]], ...] = (
        ("due.started", "slot -> started_at", lambda w: w.slot_to_started, by_slot),
        ("due.handler", "slot -> handler", lambda w: w.slot_to_handler, by_slot),
        ("fire.handler", "fire() -> handler", lambda w: w.fire_to_handler, by_call),
    )
    for key, title, of, limit in kinds:
        for name, share, target in (("p50", 0.5, 1.5), ("p99", 0.99, 10.0)):
            made.append(Row(
                f"{key}.{name}", f"{title}, idle desk, {name}", "ms",
                tuple(percentile(of(w), share) for w in desk), "bare thread, one commit",
                tuple(percentile(b, share) for b in limit), more_is_better=False,
                targets=(Target("value", "<", target),), details={"starts_a_round": [len(of(w)) for w in desk]},
            ))
    return made
