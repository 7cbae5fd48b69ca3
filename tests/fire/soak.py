"""A storm for as long as you like: `PYTHONPATH=tests:tests/support python -m fire.soak --rounds 500 --seed 7`.

Houses of 25 kills each, on either database in turn. The seed of each house is printed; one with findings is kept, but
for a PostgreSQL database, which goes with its server.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

from databases import shared_server

from fire.house import a_house
from fire.recorder import a_world
from fire.storms import storm
from nightporter.clock import SystemClock

ROUNDS = 25
"""Kills in one house."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="fire.soak")
    parser.add_argument("--rounds", type=int, default=100, help="kills in all")
    parser.add_argument("--seed", type=int, default=1, help="of the first house; the next one has the next")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    wrong = 0
    with shared_server(folder, "soak", SystemClock().now()) as databases:
        for number in range(-(-given.rounds // ROUNDS)):
            seed = given.seed + number
            home = folder / f"seed-{seed}"
            home.mkdir()
            store = databases.create(f"soak_{seed}", migrated=True) if number % 2 else str(home / "ledger.db")
            found = _one(home, store, seed)
            wrong += bool(found)
            if not found:
                shutil.rmtree(home)
    print(f"{wrong} houses with findings, see {folder}" if wrong else "nothing lost, nothing doubled")
    if not wrong:
        shutil.rmtree(folder)
    return min(wrong, 1)


def _one(folder: Path, store: str, seed: int) -> list[str]:
    with a_world(folder) as world, a_house(folder, store, world) as house:
        figures, found = storm(house, rounds=ROUNDS, seed=seed)
    kind = "postgres" if store.startswith("postgresql:") else "sqlite"
    print(f"{kind}, seed {seed}: {figures}", *found, sep="\n  ", flush=True)
    return found


if __name__ == "__main__":
    raise SystemExit(main())
