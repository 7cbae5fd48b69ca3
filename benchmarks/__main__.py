"""`python -m benchmarks`: measure, print the table, keep the JSON, say what moved."""

from __future__ import annotations

import argparse
import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import structlog

from benchmarks import apart, durable, herd, history, report, resting, schedules, startup, stored, wakes
from benchmarks.bare import BareSqlite, batches
from benchmarks.figures import Row
from benchmarks.options import Options
from benchmarks.place import file_system, place, syncs_per_second
from benchmarks.server import postgres
from nightporter.clock import SystemClock, rfc3339

SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter: as the desk sets it where the process is its own."""


def main() -> int:
    asked = _arguments()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    sys.setswitchinterval(SWITCH_SECONDS)
    began = time.perf_counter()
    rows: list[Row] = []
    with place(asked.dir) as folder:
        options = Options.of(folder, quick=asked.quick, rounds=asked.rounds, ledger=asked.ledger)
        facts = _facts(options)
        for name, measure in PARTS.items():
            if asked.only and name not in asked.only:
                continue
            _say(f"{name} ...")
            rows += measure(options)
        facts["syncs_per_second_after"] = round(syncs_per_second(folder))
    print(report.table(rows))
    print(f"""
{options.rounds} rounds. ratio: the median in parts of its limit's median.
disk: {facts["syncs_per_second"]:,} durable pages/s before, {facts["syncs_per_second_after"]:,} after.
bare batches without callers: {facts["bare_batches_per_second"]:,} jobs/s.
load of the machine before: {facts["load_before"]}; whatever else it did, it did not do for these figures.
{time.perf_counter() - began:.0f} s in all.""")
    if asked.only:
        return 0
    _compare(rows, facts)
    report.save(report.document(rows, facts), report.REFERENCE if asked.keep else report.LATEST)
    return 0


def _on_sqlite(options: Options) -> list[Row]:
    home = options.folder / "sqlite"
    home.mkdir()
    history.fill(str(home / "nightporter.sqlite"), options.ledger)
    durable.pace(home, None, durable.CALLERS, durable.CALLERS)
    return durable.on_sqlite(options, home)


def _on_postgres(options: Options) -> list[Row]:
    home = options.folder / "postgres"
    with postgres(options.folder / "server") as (url, settings):
        history.fill(url, options.ledger)
        durable.pace(home, url, durable.CALLERS, durable.CALLERS)
        return durable.on_postgres(options, home, url, settings)


def _apart(options: Options) -> list[Row]:
    home = options.folder / "apart"
    found = apart.rows_of_a_start(options, home / "sqlite", None, "SQLite", 60.0)
    with postgres(options.folder / "apart-server") as (url, _):
        return [*found, *apart.rows_of_a_start(options, home / "postgres", url, "PostgreSQL", 15.0),
                *apart.rows_of_a_crowd(options, home / "postgres", url)]


PARTS: dict[str, Callable[[Options], list[Row]]] = {
    "sqlite": _on_sqlite,
    "postgres": _on_postgres,
    "wakes": lambda options: wakes.rows(options, options.folder / "wakes"),
    "herd": lambda options: herd.rows(options, options.folder / "herd"),
    "apart": _apart,
    "stored": lambda options: stored.rows(options, options.folder / "stored"),
    "schedules": schedules.rows,
    "resting": lambda options: resting.rows(options, options.folder / "resting"),
    "startup": lambda options: startup.rows(options, options.folder / "resting"),
}


def _facts(options: Options) -> dict[str, object]:
    bare = BareSqlite(options.folder)
    try:
        without_callers = batches(bare, 4 * options.runs, durable.CALLERS)
    finally:
        bare.close()
    return {
        "taken_at": rfc3339(SystemClock().now()), "quick": options.quick, "rounds": options.rounds,
        "ledger": options.ledger, "processors": os.cpu_count(), "machine": platform.machine(),
        "system": platform.system(), "file_system": file_system(options.folder),
        "python": platform.python_version(), "sqlite": apsw.sqlite_lib_version(),
        "syncs_per_second": round(syncs_per_second(options.folder)),
        "load_before": round(os.getloadavg()[0], 1), "bare_batches_per_second": round(without_callers),
        "switch_seconds": SWITCH_SECONDS,
    }


def _compare(rows: list[Row], facts: dict[str, object]) -> None:
    reference = report.load(report.REFERENCE)
    if reference is None:
        print("no reference to compare with; --keep makes this one")
        return
    unlike = [name for name in ("quick", "ledger", "processors") if reference.get(name) != facts[name]]
    but = f" (taken with another {', '.join(unlike)})" if unlike else ""
    print(f"against the reference of {reference['taken_at']}{but}:")
    print("\n".join(report.moved(rows, reference)) or f"nothing moved by more than {report.MOVED:.0%} and its spread")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of each: under a minute")
    parser.add_argument("--dir", type=Path, default=Path.cwd(), help="where to put the stores; a real disk")
    parser.add_argument("--ledger", type=int, help="lines that the ledger holds before runs are measured")
    parser.add_argument("--rounds", type=int, help="how often each is measured (3)")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), help="only these parts; nothing is kept")
    parser.add_argument("--keep", action="store_true", help="keep the result as the reference")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
