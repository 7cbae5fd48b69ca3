"""A desk that has nothing to do: what it takes of a processor and of memory with a thousand triggers, none due.

`python -m benchmarks.resting desk|bare FOLDER` is the process that is looked at: it says `ready` and rests until its
standard input ends.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.figures import Row, Target, rounds
from benchmarks.memory import processor_seconds, resident_mb
from benchmarks.options import Options
from benchmarks.process import process

TRIGGERS = 1000
SETTLE = 1.0
"""Seconds after the start that do not count."""
DESK, BARE = "desk", "bare"


@dataclass(frozen=True, slots=True)
class Rest:
    """A process at rest."""

    share: float
    """Per cent of one processor."""
    resident: float
    """Megabytes."""


def rests(home: Path, folder: Path, seconds: float) -> tuple[Rest, Rest]:
    """Look at a desk and a bare process, both at rest, for so long. Raises RuntimeError when one does not come up."""
    us = "benchmarks.resting"
    with process(us, DESK, str(home)) as desk, process(us, BARE, str(folder)) as bare:
        pids = (desk.pid, bare.pid)
        time.sleep(SETTLE)
        before, start = [processor_seconds(pid) for pid in pids], time.perf_counter()
        time.sleep(seconds)
        used = [processor_seconds(pid) - was for pid, was in zip(pids, before, strict=True)]
        spent = time.perf_counter() - start
        found = [Rest(100 * share / spent, resident_mb(pid)) for pid, share in zip(pids, used, strict=True)]
        return found[0], found[1]


def prepare(home: Path) -> None:
    """Store the triggers, each due at another time of another day."""
    from nightporter import operations
    from nightporter.clock import DAY, MINUTE, SystemClock, moment
    from nightporter.rules.schedule import parse
    from nightporter.store import Tx, open_store
    from nightporter.words import Definition, TriggerSpec
    from nightporter.words import Target as Work

    now = SystemClock().now()

    def define(tx: Tx) -> None:
        for n in range(TRIGGERS):
            day = moment(type(now)(now + 2 * DAY + n * 7 * MINUTE))
            schedule = parse("cron", f"{day.minute} {day.hour} {day.day} * *", "Europe/Berlin")
            operations.define(
                tx, Definition(f"resting-{n}", Work("noop"), (TriggerSpec("clock", "clock", schedule),)), truth="code",
                by="benchmarks", now=now,
            )

    home.mkdir(parents=True, exist_ok=True)
    store = open_store(str(home / "nightporter.sqlite"), now=now)
    try:
        store.write(define)
    finally:
        store.close()


def rows(options: Options, home: Path) -> list[Row]:
    """Processor and memory, beside a process that has a loop, a thread and the same database open."""
    if not home.exists():
        prepare(home)
    (both,) = rounds(options.rounds, partial(rests, home, options.folder, options.idle_seconds))
    title = f"idle desk, {TRIGGERS:,} triggers"
    limit = "bare loop, thread and database, looking each second"
    return [
        Row("resting.processor", f"{title}: processor", "%", tuple(d.share for d, _ in both), limit,
            tuple(b.share for _, b in both), more_is_better=False, targets=(Target("value", "<", 0.5),)),
        Row("resting.memory", f"{title}: memory", "MB", tuple(d.resident for d, _ in both), limit,
            tuple(b.resident for _, b in both), more_is_better=False, targets=(Target("value", "<", 100),)),
    ]


def _desk(home: Path) -> None:
    import asyncio

    from nightporter import Porter

    async def main() -> None:
        async with Porter(home=home).running(watch_files=True):
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())


def _bare(folder: Path) -> None:
    import asyncio
    import threading

    from benchmarks.bare import connect

    connection = connect(folder / "rest.sqlite")
    connection.execute("CREATE TABLE IF NOT EXISTS job (at INTEGER PRIMARY KEY)")
    bell = threading.Condition()
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            connection.execute("SELECT min(at) FROM job").fetchall()
            with bell:
                bell.wait(1.0)

    async def main() -> None:
        thread = threading.Thread(target=look)
        thread.start()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        ended.set()
        with bell:
            bell.notify()
        thread.join()

    asyncio.run(main())


if __name__ == "__main__":
    {DESK: _desk, BARE: _bare}[sys.argv[1]](Path(sys.argv[2]))
