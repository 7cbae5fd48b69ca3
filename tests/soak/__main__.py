"""`make soak`: all parts, or one. Ends with 1 when any of them found something."""

from __future__ import annotations

import argparse
import importlib
import shutil
import signal
import sys
import time
from pathlib import Path

from soak.order import Order

PARTS = {
    "kills": ("fire.kills", "500 kills of a desk's process group at random moments, on each database"),
    "seeded": ("fire.proof", "six seeded bugs, each to be caught by the kill storm within 100 kills"),
    "property": ("model.soak", "10,000 random nights of the whole ledger against a plain account; 1,000 on PostgreSQL"),
    "previews": ("previews.life", "1,000 lives of a dozen random schedules around a change of the clock; restarts"),
    "two-desks": ("group.pair", "ten minutes of two desks on one SQLite file, 200 triggers, kills and hangs"),
    "ill": ("ill.soak", "100 power losses, hostile values in every column, a held lock, 50 cut commits and crashes"),
    "group": ("group.soak", "ten minutes of three desks and four workers on PostgreSQL, lost in every way"),
    "retention": ("retention.soak", "45 days of 1,000 runs an hour: sizes, locks and months, on each database"),
}
"""Each part: the module whose `soak(order)` returns its findings, and what it does."""


SHOWN = 20
"""Findings that are shown at the end, at most."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make soak", description="Proofs that take long, each a named part.")
    parser.add_argument("--part", default="all", choices=["all", *PARTS])
    parser.add_argument("--seed", type=int, default=1, help="the same seed does the same again, as far as time allows")
    parser.add_argument("--rounds", type=int, default=0, help="how much; what a round is, the part says")
    parser.add_argument("--store", default="both", choices=["sqlite", "postgres", "both"])
    parser.add_argument("--results", type=Path, default=Path(".soak"), help="where figures, and what was found, stay")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # whoever lives in a house is ended with it
    wrong = 0
    for part in PARTS if given.part == "all" else [given.part]:
        folder = given.results / f"{part}-{given.seed}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        order = Order(part, given.seed, given.rounds, given.store, folder.resolve(), given.results.resolve())
        wrong += bool(_one(order, *PARTS[part]))
    return min(wrong, 1)


def _one(order: Order, module: str, what: str) -> list[str]:
    print(f"{order.part}: {what}; seed {order.seed}", flush=True)
    begun = time.monotonic()
    found: list[str] = importlib.import_module(module).soak(order)
    print(f"{order.part}: {len(found)} findings in {time.monotonic() - begun:.0f} s", flush=True)
    if found:
        print(*found[:SHOWN], sep="\n", flush=True)
        print(f"kept in {order.folder}; again: {order.replay(seed=order.seed, rounds=order.rounds)}", flush=True)
    else:
        shutil.rmtree(order.folder)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
