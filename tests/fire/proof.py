"""The harness is proven: `make soak PART=seeded` makes a storm over desks with a bug, and sees that it is caught."""

from __future__ import annotations

import json
import re
import shutil

from fire.accounts import ACCOUNTS
from fire.house import a_house
from fire.recorder import a_world
from fire.seeded import BUGS, SQLITE_ONLY
from fire.storms import storm
from soak.order import Order

KILLS = 100
"""Within which each bug is to be caught."""
ROUNDS = 5
"""Deaths between two looks into the accounts."""
PATIENCE = 8.0
"""Seconds that a desk with a bug gets to end what it began."""
_ACCOUNT = re.compile(rf"(?:^|: )(audit [A-Z]-\d+\w?|settling|{'|'.join(each.__name__ for each in ACCOUNTS)}): ")


def soak(order: Order) -> list[str]:
    """Kill desks with a bug until the accounts find it. Rounds are deaths, at the most, for each bug and database."""
    most = order.rounds or KILLS
    missed: list[str] = []
    with order.postgres() as databases:
        for bug in BUGS:
            for kind in order.stores:
                if kind == "postgres" and bug in SQLITE_ONLY:
                    continue
                kills, said, number = 0, list[str](), 0
                while kills < most and not said:
                    seed, number = order.seed + number, number + 1
                    folder = order.folder / f"{bug}-{kind}-{seed}"
                    folder.mkdir()
                    name = f"{bug}_{seed}"
                    store = str(folder / "ledger.db") if kind == "sqlite" else databases.create(name, migrated=True)
                    with a_world(folder) as world, a_house(folder, store, world, bug=bug, patience=PATIENCE) as house:
                        figures, said = storm(house, rounds=ROUNDS, seed=seed)
                    kills += figures.kills
                    if kind == "postgres":
                        databases.drop(name)
                    shutil.rmtree(folder)
                by = sorted({account for one in said for account in _ACCOUNT.findall(one)})
                order.publish({"kills": kills, "caught": bool(said), "by": by, "first": said[:3]}, f"{bug}-{kind}")
                print(f"{bug}, {kind}: " + (f"caught within {kills} kills by {json.dumps(by)}; {said[0]}" if said
                                            else f"not caught in {kills} kills"), flush=True)
                if not said or kills > KILLS:
                    missed.append(f"{bug} on {kind} was not caught in {kills} kills")
    return missed
