"""Processes of their own on one store: from a firing in one to the start in another; and four desks beside one.

`python -m benchmarks.apart hand FOLDER STORE` executes what others fire, and `crowd FOLDER STORE RUNS` fires and
executes when it is told to `go`. Both say `ready`, and end with their standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.books import Books, Miscount
from benchmarks.figures import Row, Target, percentile, rounds
from benchmarks.options import Options

CALLERS = 64
"""In each process of a crowd."""
CROWD = 4
CORES_FOR_A_CROWD = 8
"""Processors at which four desks, and the server they wait for, are not in each other's way."""
PAUSE = 0.05
"""Seconds between two firings, so that each finds everybody idle."""
AUTOMATION = "handled"


def waits(home: Path, store: str | None, starts: int) -> list[float]:
    """Milliseconds from each firing in this process to the first line of the function in another."""
    from nightporter import operations
    from nightporter.clock import SystemClock
    from nightporter.config import Config
    from nightporter.store import store_of

    clock = SystemClock()
    with _process("hand", home, store) as _, Books(store or home / "nightporter.sqlite") as books:
        opened = store_of(Config.from_environment({}, home=str(home), store=store), clock)
        try:
            asked: dict[str, int] = {}
            time.sleep(2 * PAUSE)
            automation = str(books.rows(f"SELECT id FROM automation WHERE name = '{AUTOMATION}'")[0][0])
            for n in range(starts):
                now = clock.now()
                answer = opened.write(partial(
                    operations.fire, automation_id=automation, trigger="call", external_id=f"{now}-{n}", now=now
                ))
                asked[str(answer.run_id)] = now
                time.sleep(PAUSE)
            _wait_until_none_is_open(books)
            first = min(asked)
            begun = {str(run): int(text) for run, text in books.rows(
                f"SELECT run_id, text FROM run_output WHERE run_id >= '{first}'") if str(run) in asked}
        finally:
            opened.close()
    if begun.keys() != asked.keys():
        raise Miscount(f"{len(begun)} runs of {len(asked)} firings")
    return [(begun[run] - at) / 1000 for run, at in asked.items()]


def crowd(home: Path, store: str, runs: int, processes: int) -> float:
    """Durable runs a second of so many desks together, `runs` in all."""
    each = runs // processes
    with ExitStack() as stack, Books(store) as books:
        desks = [stack.enter_context(_process("crowd", home, store, str(each))) for _ in range(processes)]
        _wait_until_none_is_open(books)
        before, start = books.one("SELECT count(*) FROM run WHERE state = 'succeeded'"), time.perf_counter()
        for desk in desks:
            _say(desk, "go")
        for desk in desks:
            _hear(desk, "fired")
        _wait_until_none_is_open(books)
        spent = time.perf_counter() - start
        done = books.one("SELECT count(*) FROM run WHERE state = 'succeeded'") - before
    if done != each * processes:
        raise Miscount(f"{done} runs of {each * processes}")
    return done / spent


def _wait_until_none_is_open(books: Books) -> None:
    while books.open_runs():
        time.sleep(0.005)


def rows_of_a_start(options: Options, home: Path, store: str | None, database: str, target: float) -> list[Row]:
    """fire() in one process -> handler in another."""
    home.mkdir(parents=True, exist_ok=True)
    (found,) = rounds(options.rounds, partial(waits, home, store, options.apart))
    return [
        Row(f"fire.apart.{database.lower()}.{name}", f"fire() -> handler of another process, {database}, {name}", "ms",
            tuple(percentile(values, share) for values in found), more_is_better=False, targets=targets,
            details={"starts_a_round": options.apart})
        for name, share, targets in (("p50", 0.5, ()), ("p99", 0.99, (Target("value", "<", target),)))
    ]


def rows_of_a_crowd(options: Options, home: Path, store: str) -> list[Row]:
    """Four desks on one PostgreSQL server, beside one."""
    home.mkdir(parents=True, exist_ok=True)
    many, one = rounds(
        options.rounds, partial(crowd, home, store, options.runs, CROWD), partial(crowd, home, store, options.runs, 1)
    )
    cores = os.cpu_count() or 1
    targets = (Target("ratio", ">=", 2.5),) if cores >= CORES_FOR_A_CROWD else ()
    return [Row(
        "runs.postgres.four", f"durable runs, PostgreSQL, {CROWD} processes of {CALLERS} callers", "runs/s",
        tuple(many), "one process", tuple(one), targets=targets,
        details={"processors": cores, "runs_a_round": options.runs},
    )]


@contextmanager
def _process(kind: str, home: Path, store: str | None, *more: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.apart", kind, str(home), store or "", *more], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent,
    ) as process:
        try:
            _hear(process, "ready")
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def _say(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdin is not None
    print(word, file=process.stdin, flush=True)


def _hear(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    if (said := process.stdout.readline().strip()) != word:
        raise RuntimeError(f"a process said {said!r} instead of {word!r}")


def _run(kind: str, home: Path, store: str | None, runs: int) -> None:
    import asyncio
    import logging

    from benchmarks.desk import NO_CEILINGS, fire, porter
    from nightporter.clock import SystemClock

    logging.getLogger("nightporter").setLevel(logging.WARNING)
    sys.setswitchinterval(0.0005)
    desk, clock = porter(home, store), SystemClock()

    @desk.automation(name=AUTOMATION, deliver=["silent"], limits=NO_CEILINGS)
    async def handled() -> str:
        return str(clock.now())

    async def main() -> None:
        async with desk.running():
            print("ready", flush=True)
            while await asyncio.to_thread(sys.stdin.readline):
                await fire(desk, runs, CALLERS)
                print("fired", flush=True)

    asyncio.run(main())


if __name__ == "__main__":
    _run(sys.argv[1], Path(sys.argv[2]), sys.argv[3] or None, int(sys.argv[4]) if len(sys.argv) > 4 else 0)
