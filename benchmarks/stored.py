"""A million stored triggers of which a hundred come due each second: how late their runs start, and what it takes.

Each repeats so that the load is the same however many there are, and all slots lie evenly, one every ten milliseconds.
The rows are copies of those of one that was defined, put there in bulk; they are made once and used in every round, by
a desk whose clock is ahead: each round goes on at the second where the one before ended.

`python -m benchmarks.stored FOLDER AHEAD` is the desk that is looked at: it says `ready`, and ends with its standard
input.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.figures import Row, Target, percentile, rounds
from benchmarks.memory import processor_seconds, resident_mb
from benchmarks.options import Options
from benchmarks.process import process

A_SECOND = 100
"""Triggers that come due in a second."""
FEW = 1_000
"""How many there are in the desk that the other is compared with."""
OF_ONE = 10
"""Triggers of one automation."""
CHUNK = 50_000
LEAD = 2.0
"""Seconds from the start of a desk to the first slot that counts."""
AFTER = 1.0
"""Seconds that the last runs get to end."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A store with many triggers, and how far its slots have been answered."""

    home: Path
    triggers: int
    begin: int
    """The first slot of all."""


@dataclass(frozen=True, slots=True)
class Night:
    """One round."""

    starts: tuple[float, ...]
    """Milliseconds from each slot to the start of its run."""
    ready: float
    """Seconds from the start of the process until its sources ran."""
    share: float
    """Per cent of one processor."""
    resident: float
    """Megabytes."""


def fill(home: Path, triggers: int) -> Stored:
    """A store with so many."""
    import apsw

    from nightporter import operations
    from nightporter.clock import SECOND, SystemClock
    from nightporter.rules.schedule import parse
    from nightporter.rules.zones import TZDATA
    from nightporter.store import open_store
    from nightporter.words import Definition, Destination, Limits, TriggerSpec
    from nightporter.words import Target as Work

    clock = SystemClock()
    now = clock.now()
    begin = (now // SECOND + 3600) * SECOND
    period = triggers // A_SECOND
    definition = Definition(
        "template", Work("noop"), (TriggerSpec("each", "clock", parse("every", f"{period}s", "UTC")),),
        deliver=(Destination("silent", "silent"),), limits=Limits(per_hour=None, queued=None, concurrent=None),
    )
    home.mkdir(parents=True)
    store = open_store(str(home / "nightporter.sqlite"), now=now)
    try:
        template = store.write(lambda tx: operations.define(tx, definition, truth="code", by="benchmarks", now=now))
        store.write(lambda tx: tx.put_setting("tzdata", TZDATA))  # as any desk leaves it that has run once
    finally:
        store.close()
    connection = apsw.Connection(str(home / "nightporter.sqlite"))
    # Nothing need survive on the way: the checkpoint at the end makes it durable.
    for pragma in ("synchronous=OFF", "temp_store=MEMORY", "cache_size=-262144", "wal_autocheckpoint=4000"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    slot = f"{begin} + (i * 7919 % {triggers}) * {SECOND // A_SECOND}"
    schedule = f"""'["every","{period}s","UTC",' || ({slot} - {period * SECOND}) || ']'"""
    automation = f"'aut_default_stored-' || (i / {OF_ONE})"
    trigger = f"{automation} || '/each-' || (i % {OF_ONE})"
    copies: tuple[tuple[str, str, bool, dict[str, str]], ...] = (
        ("automation", "id", False, {"id": automation, "name": f"'stored-' || (i / {OF_ONE})"}),
        ("automation_version", "automation_id", False, {"automation_id": automation}),
        ("trigger", "id", True, {"id": trigger, "automation_id": automation, "name": f"'each-' || (i % {OF_ONE})",
                                 "schedule": schedule, "next_fire_at": slot}),
        ("trigger_version", "trigger_id", True, {"trigger_id": trigger, "schedule": schedule,
                                                 "valid_from": f"{begin} - {SECOND}"}),
    )
    for first in range(0, triggers, CHUNK):
        connection.execute("BEGIN")
        for table, key, each, put in copies:
            of = f"{template.automation_id}/each" if each else template.automation_id
            _copy(connection, table, put, f"{key} = '{of}'", first, min(first + CHUNK, triggers), 1 if each else OF_ONE)
        connection.execute("COMMIT")
    connection.execute(f"DELETE FROM trigger WHERE automation_id = '{template.automation_id}'")
    for last in ("PRAGMA synchronous=FULL", "PRAGMA wal_checkpoint(TRUNCATE)"):
        connection.execute(last).fetchall()
    connection.close()
    return Stored(home, triggers, begin)


def _copy(connection: Any, table: str, put: dict[str, str], which: str, first: int, end: int, step: int) -> None:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(put.get(column, f"of.{column}") for column in columns)
    connection.execute(
        f"WITH RECURSIVE series(i) AS (SELECT {first} UNION ALL SELECT i + {step} FROM series "
        f"WHERE i + {step} < {end}) INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM series, "
        f"(SELECT * FROM {table} WHERE {which}) AS of"
    )


def night(stored: Stored, nth: int, seconds: float) -> Night:
    """The `nth` round. Raises Miscount unless each slot has its run."""
    from benchmarks.books import Books, Miscount
    from nightporter.clock import SECOND, SystemClock

    length = int((LEAD + seconds + AFTER) * SECOND)
    opens = stored.begin - int(LEAD * SECOND) + nth * length
    first, end = opens + int(LEAD * SECOND), opens + int((LEAD + seconds) * SECOND)
    start = time.perf_counter()
    with process("benchmarks.stored", str(stored.home), str(opens - SystemClock().now())) as desk:
        ready = time.perf_counter() - start
        time.sleep(max(LEAD - ready, 0.0))
        before, began = processor_seconds(desk.pid), time.perf_counter()
        time.sleep(seconds)
        share = 100 * (processor_seconds(desk.pid) - before) / (time.perf_counter() - began)
        resident = resident_mb(desk.pid)
        # Until its clock is where the next round's begins.
        time.sleep(max(start + length / SECOND - time.perf_counter(), 0.0))
    with Books(stored.home / "nightporter.sqlite") as books:
        starts = [row[0] / 1000 for row in books.rows(
            f"SELECT started_at - scheduled_for FROM run WHERE scheduled_for >= {first} AND scheduled_for < {end} "
            "AND state = 'succeeded'"
        )]
    if len(starts) != (due := round(seconds * A_SECOND)):
        raise Miscount(f"{len(starts)} runs of {due} slots")
    return Night(tuple(starts), ready, share, resident)


def rows(options: Options, home: Path) -> list[Row]:
    """Slot -> start, processor, memory and readiness, beside the same load with few triggers."""
    began = time.perf_counter()
    many = fill(home / "many", options.stored)
    details: dict[str, Any] = {"triggers": options.stored, "a_second": A_SECOND, "seconds": options.stored_seconds,
                               "stored_in_seconds": round(time.perf_counter() - began, 1)}
    few = fill(home / "few", FEW)
    turns, beside = iter(range(options.rounds)), iter(range(options.rounds))
    nights, limit = rounds(
        options.rounds, lambda: night(many, next(turns), options.stored_seconds),
        lambda: night(few, next(beside), options.stored_seconds),
    )
    title, with_few = f"{options.stored:,} triggers, {A_SECOND} due a second", f"{FEW:,} triggers, the same load"
    row = partial(Row, limit_title=with_few, more_is_better=False, details=details)
    return [
        *(row(f"stored.started.{name}", f"{title}: slot -> started_at, {name}", "ms",
              tuple(percentile(n.starts, share) for n in nights),
              limit=tuple(percentile(n.starts, share) for n in limit), targets=targets)
          for name, share, targets in (("p50", 0.5, ()), ("p99", 0.99, (Target("value", "<", 10),)))),
        row("stored.processor", f"{title}: processor", "%", tuple(n.share for n in nights),
            limit=tuple(n.share for n in limit), targets=(Target("value", "<", 25),)),
        row("stored.memory", f"{title}: memory", "MB", tuple(n.resident for n in nights),
            limit=tuple(n.resident for n in limit), targets=(Target("value", "<", 120),)),
        row("stored.ready", f"{title}: ready after", "s", tuple(n.ready for n in nights),
            limit=tuple(n.ready for n in limit), targets=(Target("value", "<", 1),)),
    ]


def _run(home: Path, ahead: int) -> None:
    import asyncio
    import logging

    from benchmarks.herd import AheadClock
    from nightporter import Porter

    logging.getLogger("nightporter").setLevel(logging.WARNING)

    async def main() -> None:
        async with Porter(home=home, clock=AheadClock(ahead)).running():
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())


if __name__ == "__main__":
    _run(Path(sys.argv[1]), int(sys.argv[2]))
