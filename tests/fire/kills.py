"""The kill storm of `make soak`: houses of 50 kills each, on either database, until there were as many as asked for.

The seed of each house is printed; one with findings is kept with its store, its books and the logs of its desks.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from fire.accounts import counts
from fire.figures import Figures
from fire.house import House, a_house
from fire.recorder import a_world
from fire.storms import storm
from soak.order import Order

ROUNDS = 50
"""Deaths in one house."""
KILLS = 500
"""On each database."""


def soak(order: Order) -> list[str]:
    """Let desks die at random moments. A round is one death, on each database asked for."""
    rounds = order.rounds or KILLS
    found: list[str] = []
    with order.postgres() as databases:
        for kind in order.stores:
            total: Figures | None = None
            wrong: list[str] = []
            for number in range(-(-rounds // ROUNDS)):
                seed, some = order.seed + number, min(ROUNDS, rounds - number * ROUNDS)
                folder = order.folder / f"{kind}-{seed}"
                folder.mkdir()
                name = f"soak_{seed}"
                store = str(folder / "ledger.db") if kind == "sqlite" else databases.create(name, migrated=False)
                with a_world(folder) as world, a_house(folder, store, world) as house:
                    figures, said = storm(house, rounds=some, seed=seed)
                    print(f"{kind}, seed {seed}: {figures}", flush=True)
                    if said:
                        _keep(house, folder, said)
                        print(f"  kept in {folder}; again: {order.replay(seed=seed, rounds=some, store=kind)}")
                        wrong += [f"{kind}, seed {seed}: {one}" for one in said]
                    else:
                        shutil.rmtree(folder)
                if kind == "postgres":
                    databases.drop(name)
                total = figures if total is None else total + figures
            if total is not None:
                order.publish({**total.published(), **counts(wrong), "first_seed": order.seed, "store": kind}, kind)
                print(f"{kind}, in all: {total}, {counts(wrong)}", flush=True)
            found += wrong
    return found


def _keep(house: House, folder: Path, said: list[str]) -> None:
    """What a server takes with it when it goes: every row, in a file."""
    (folder / "findings.txt").write_text("\n".join(said) + "\n")
    with (folder / "ledger.jsonl").open("w") as file:
        for table, rows in house.ledger.dump().items():
            for row in rows:
                file.write(json.dumps([table, *row], default=str) + "\n")
