"""The kill storm of `make soak`: houses of 25 kills each, on either database, until there were as many as asked for.

A round is one kill. The seed of each house is printed; one with findings is kept, but for a PostgreSQL database, which
goes with its server.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from fire.house import a_house
from fire.recorder import a_world
from fire.storms import storm
from soak.order import Order

ROUNDS = 25
"""Kills in one house."""
KILLS = 500
"""On each database."""


def soak(order: Order) -> list[str]:
    """Kill desks at random moments. A round is one kill, on each database asked for."""
    found: list[str] = []
    with order.postgres() as databases:
        for number in range(-(-(order.rounds or KILLS) // ROUNDS)):
            seed = order.seed + number
            for kind in order.stores:
                folder = order.folder / f"{kind}-{seed}"
                folder.mkdir()
                name = f"soak_{seed}"
                store = str(folder / "ledger.db") if kind == "sqlite" else databases.create(name, migrated=True)
                house = _one(folder, store, kind, seed)
                found += house
                if not house:
                    shutil.rmtree(folder)
    return found


def _one(folder: Path, store: str, kind: str, seed: int) -> list[str]:
    with a_world(folder) as world, a_house(folder, store, world) as house:
        figures, found = storm(house, rounds=ROUNDS, seed=seed)
    print(f"{kind}, seed {seed}: {figures}", *found, sep="\n  ", flush=True)
    return [f"{kind}, seed {seed}: {one}" for one in found]
