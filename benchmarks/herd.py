"""Ten thousand triggers due at one instant: how long until all are admitted and all have ended, how long a single
firing waits meanwhile, and what it takes of memory."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.bare import BareSqlite, bulk
from benchmarks.books import Books, Miscount
from benchmarks.desk import NAME, SLOTS, all_ended, porter
from benchmarks.figures import Row, Target, percentile, rounds
from benchmarks.memory import resident_mb
from benchmarks.options import Options
from nightporter import Porter, operations
from nightporter.clock import DAY, SECOND, Instant, SystemClock, moment
from nightporter.rules.schedule import parse
from nightporter.sources.clock import CHUNK
from nightporter.store import Tx, open_store
from nightporter.words import Definition, Destination, TriggerSpec
from nightporter.words import Target as Work

PAUSE = 0.005
"""Seconds between two firings of the caller that is not part of the herd."""


@dataclass(frozen=True, slots=True)
class Herd:
    """One instant at which everything was due."""

    admitted: float
    """Seconds from the instant until the last of them was admitted, durably."""
    ended: float
    """Seconds from the instant until the last of them had ended."""
    waits: tuple[float, ...]
    """Milliseconds that each firing from elsewhere waited for its answer until then."""
    grown: float
    """Megabytes of memory more than before the instant."""


class AheadClock(SystemClock):
    """The machine's clock, so much ahead: the instant that everything waits for need not be waited for."""

    def __init__(self, ahead: int) -> None:
        self._ahead = ahead

    def now(self) -> Instant:
        return Instant(super().now() + self._ahead)


def gather(home: Path, triggers: int) -> Instant:
    """Store automations with one daily trigger each, all at one second of the day. That second, next time."""
    clock = SystemClock()
    at = Instant((clock.now() // SECOND + 3600) * SECOND)
    home.mkdir(parents=True, exist_ok=True)
    store = open_store(str(home / "nightporter.sqlite"), now=clock.now())
    try:
        for first in range(0, triggers, CHUNK):
            numbers = range(first, min(first + CHUNK, triggers))
            store.write(partial(_define, numbers=numbers, at=at, now=clock.now()))
    finally:
        store.close()
    return at


def _define(tx: Tx, numbers: range, at: Instant, now: Instant) -> None:
    for n in numbers:
        operations.define(tx, _daily(f"herd-{n}", at), truth="code", by="benchmarks", now=now)


def _daily(name: str, at: Instant) -> Definition:
    day = moment(at)
    schedule = parse("cron", f"{day.second} {day.minute} {day.hour} * * *", "UTC")
    return Definition(
        name=name, target=Work("noop"), triggers=(TriggerSpec("clock", "clock", schedule),),
        deliver=(Destination("silent", "silent"),),
    )


def herd(home: Path, triggers: int, at: Instant) -> Herd:
    """A desk that so many triggers wait for, all due at that instant. Raises Miscount unless each has its run."""
    return asyncio.run(_herd(home, triggers, at))


async def _herd(home: Path, triggers: int, at: Instant) -> Herd:
    clock = AheadClock(at - 2 * SECOND - SystemClock().now())
    desk = porter(home, clock=clock)
    waits: list[float] = []
    over = asyncio.Event()
    async with desk.running():
        with Books(home / "nightporter.sqlite") as books:
            await desk.fire(NAME)
            await all_ended(desk, books)
            before = resident_mb()
            if clock.now() >= at:
                raise Miscount("the desk was not ready before the instant it was to be measured at")
            await asyncio.sleep((at - clock.now()) / SECOND - 0.005)
            since = Instant(min(clock.now(), at))  # runs bear the time of their slot, however late we woke
            alone = asyncio.get_running_loop().create_task(_fire_alone(desk, waits, over))
            while books.rows(f"SELECT 1 FROM trigger WHERE next_fire_at <= {at} LIMIT 1"):
                await asyncio.sleep(0.005)
            admitted = (clock.now() - at) / SECOND
            while books.rows("SELECT 1 FROM run WHERE state IN ('queued', 'running') AND source = 'clock' LIMIT 1"):
                await asyncio.sleep(0.005)
            ended = (clock.now() - at) / SECOND
            grown = resident_mb() - before
            over.set()
            await alone
            await all_ended(desk, books)
            books.check(since, triggers + len(waits))
    return Herd(admitted, ended, tuple(waits), grown)


async def _fire_alone(desk: Porter, waits: list[float], over: asyncio.Event) -> None:
    while not over.is_set():
        asked = time.perf_counter()
        await desk.fire(NAME)
        waits.append((time.perf_counter() - asked) * 1000)
        await asyncio.sleep(PAUSE)


def rows(options: Options, home: Path) -> list[Row]:
    """Admitted, ended, waited meanwhile, memory."""
    number = options.due_at_once
    began = time.perf_counter()
    first = gather(home, number)
    days = iter(range(options.rounds))
    details = {"triggers": number, "defined_in_seconds": round(time.perf_counter() - began, 1), "slots": SLOTS,
               "chunk": CHUNK}
    bare = BareSqlite(options.folder)
    try:
        herds, limit = rounds(
            options.rounds, lambda: herd(home, number, Instant(first + next(days) * DAY)),
            partial(bulk, bare, number, CHUNK),
        )
    finally:
        bare.close()
    title = f"{number:,} due at one instant"
    inserts = "bare insert of as many rows"
    return [
        Row("herd.admitted", f"{title}: all admitted", "s", tuple(h.admitted for h in herds), inserts, tuple(limit),
            more_is_better=False, targets=(Target("value", "<", 1.5),), details=details),
        Row("herd.ended", f"{title}: all ended", "s", tuple(h.ended for h in herds), inserts, tuple(limit),
            more_is_better=False, details=details),
        Row("herd.waits.p99", f"{title}: one firing meanwhile waits, p99", "ms",
            tuple(percentile(h.waits, 0.99) for h in herds), more_is_better=False, targets=(Target("value", "<", 50),),
            details={"p50_ms": [round(percentile(h.waits, 0.5), 2) for h in herds],
                     "firings": [len(h.waits) for h in herds]}),
        Row("herd.memory", f"{title}: memory grown by", "MB", tuple(h.grown for h in herds), more_is_better=False,
            details=details),
    ]
