"""Durable runs a second: fired, admitted, claimed, run, ended, delivered; beside a bare queue on the same disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from benchmarks.bare import Bare, BarePostgres, BareSqlite, bulk
from benchmarks.books import Books
from benchmarks.callers import jobs_of_callers
from benchmarks.desk import SLOTS, all_ended, busy_thread, fire, porter
from benchmarks.figures import Pace, Row, Target, rounds
from benchmarks.options import Options
from nightporter.clock import SystemClock

CALLERS = 256
MANY_CALLERS = 1000
LIMIT = "bare queue, same callers"
PAST_CHUNK = 10_000
"""Rows a commit when the bare queue is given as long a past as the ledger's."""


def pace(home: Path, store: str | None, total: int, in_flight: int, *, busy: bool = False) -> Pace:
    """`total` runs through a desk of its own on that store. Raises Miscount when the store does not hold them all."""
    return asyncio.run(_pace(home, store, total, in_flight, busy))


async def _pace(home: Path, store: str | None, total: int, in_flight: int, busy: bool) -> Pace:
    desk = porter(home, store)
    async with desk.running():
        with Books(store or home / "nightporter.sqlite") as books:
            await fire(desk, 2 * in_flight, in_flight)
            await all_ended(desk, books)
            await asyncio.sleep(0.002)  # ids are stamped in milliseconds: what is counted begins in a new one
            since = SystemClock().now()
            with busy_thread() if busy else nullcontext():
                start, used = time.perf_counter(), time.process_time()
                await fire(desk, total, in_flight)
                spent = await all_ended(desk, books) - start
                used = time.process_time() - used
            books.check(since, total)
    return Pace(total / spent, used / total * 1e6)


def on_sqlite(options: Options, home: Path) -> list[Row]:
    """Rows for one process on SQLite, and beside a busy thread."""
    with Books(home / "nightporter.sqlite") as books:
        before = books.lines()
    bare = BareSqlite(options.folder)
    try:
        bulk(bare, options.ledger, PAST_CHUNK)
        plain, many, limit, limit_many, beside = rounds(
            options.rounds,
            partial(pace, home, None, options.runs, CALLERS),
            partial(pace, home, None, options.runs, MANY_CALLERS),
            partial(jobs_of_callers, bare, options.runs, CALLERS),
            partial(jobs_of_callers, bare, options.runs, MANY_CALLERS),
            partial(pace, home, None, options.runs // 2, CALLERS, busy=True),
        )
    finally:
        bare.close()
    details = {"ledger_lines_before": before, "runs_a_round": options.runs, "slots": SLOTS}
    return [
        _row("runs.sqlite", "SQLite", CALLERS, plain, limit, (Target("value", ">=", 10_000),
             Target("ratio", ">=", 0.25)), details),
        _row("runs.sqlite.many", "SQLite", MANY_CALLERS, many, limit_many, (Target("ratio", ">=", 0.25),), details),
        _processor("runs.sqlite.processor", "SQLite", plain, limit),
        Row("runs.sqlite.busy", f"the same beside a busy thread, {CALLERS} callers", "runs/s",
            tuple(p.a_second for p in beside), "without the thread", tuple(p.a_second for p in plain),
            targets=(Target("ratio", ">=", 0.25),), details=details),
    ]


def on_postgres(options: Options, home: Path, url: str, settings: dict[str, str]) -> list[Row]:
    """Rows for one process on PostgreSQL."""
    with Books(url) as books:
        before = books.lines()
    bare = BarePostgres(url)
    try:
        bulk(bare, options.ledger, PAST_CHUNK)
        plain, many, limit, limit_many = rounds(
            options.rounds,
            partial(pace, home, url, options.runs, CALLERS),
            partial(pace, home, url, options.runs, MANY_CALLERS),
            partial(jobs_of_callers, bare, options.runs, CALLERS),
            partial(jobs_of_callers, bare, options.runs, MANY_CALLERS),
        )
    finally:
        bare.close()
    details = {"ledger_lines_before": before, "runs_a_round": options.runs, "slots": SLOTS, "settings": settings}
    return [
        _row("runs.postgres", "PostgreSQL", CALLERS, plain, limit, (Target("value", ">=", 8_000),), details),
        _row("runs.postgres.many", "PostgreSQL", MANY_CALLERS, many, limit_many, (), details),
        _processor("runs.postgres.processor", "PostgreSQL", plain, limit),
    ]


def _row(
    key: str, database: str, callers: int, paces: list[Pace], limit: list[Pace], targets: tuple[Target, ...],
    details: Mapping[str, object],
) -> Row:
    return Row(key, f"durable runs, {database}, {callers:,} callers", "runs/s",
               tuple(p.a_second for p in paces), LIMIT, tuple(p.a_second for p in limit), targets=targets,
               details=details)


def _processor(key: str, database: str, paces: list[Pace], limit: list[Pace]) -> Row:
    return Row(key, f"processor time of a run, {database}, {CALLERS:,} callers", "us",
               tuple(p.processor for p in paces), LIMIT, tuple(p.processor for p in limit), more_is_better=False)


__all__ = ["Bare", "on_postgres", "on_sqlite", "pace"]
