"""The harness is proven: `make soak PART=seeded` makes a storm over desks with a bug, and sees that it is caught."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping

from databases import Databases

from fire.accounts import ACCOUNTS
from fire.deaths import DEATHS, Death, after_its_death, on_a_full_disk
from fire.house import a_house
from fire.recorder import a_world
from fire.seeded import BUGS, SQLITE_ONLY
from fire.storms import storm
from soak.order import Order

KILLS = 100
"""Within which each bug is to be caught."""
ROUNDS = 5
"""Deaths between two looks into the accounts."""
PATIENCE = 20.0
"""Seconds that a desk with a bug gets to end what it began."""
TOLD_BY = {
    "slot-early": r"slots|audit I-03", "no-fence": r"audit I-(23|24|25|26|27|33|34|42)|effects",
    "answered-early": r"arrivals|effects|starts|work", "lost-savepoint": r"arrivals|effects|audit I-\d+",
    "late-row": r"deliveries", "orphans": r"starts",
}
"""Whose finding it takes: that something did not end in time is said by a slow machine too."""
SHOWS_IN = {"no-fence": after_its_death, "lost-savepoint": on_a_full_disk}
"""Deaths that a bug shows in, and that are few: those who look for it let them come as often as all others."""
_ACCOUNT = re.compile(rf"(?:^|: )(audit [A-Z]-\d+\w?|{'|'.join(each.__name__ for each in ACCOUNTS)}): ")


def soak(order: Order) -> list[str]:
    """Kill desks with a bug until the accounts find it. Rounds are deaths, at the most, for each bug and database."""
    missed: list[str] = []
    with order.postgres() as databases:
        for bug in BUGS:
            for kind in order.stores:
                if kind == "postgres" and bug in SQLITE_ONLY:
                    continue
                kills, found = _hunt(order, databases, bug, kind)
                by = sorted({account for one in found for account in _ACCOUNT.findall(one)})
                order.publish({"kills": kills, "by": by, "first": found[:3]}, f"{bug}-{kind}")
                print(f"{bug}, {kind}: " + (f"caught within {kills} kills by {', '.join(by)}; {found[0]}" if found
                                            else f"not caught in {kills} kills"), flush=True)
                if not found or kills > KILLS:
                    missed.append(f"{bug} on {kind} was not caught in {kills} kills")
    return missed


def _deaths(bug: str) -> Mapping[Death, int]:
    return {**DEATHS, SHOWS_IN[bug]: sum(DEATHS.values())} if bug in SHOWS_IN else DEATHS


def _hunt(order: Order, databases: Databases, bug: str, kind: str) -> tuple[int, list[str]]:
    """`(kills, what tells of the bug)`: none where it was not caught."""
    kills, number = 0, 0
    while kills < (order.rounds or KILLS):
        seed, number = order.seed + number, number + 1
        folder = order.folder / f"{bug}-{kind}-{seed}"
        folder.mkdir()
        name = f"{bug}_{seed}"
        store = str(folder / "ledger.db") if kind == "sqlite" else databases.create(name, migrated=True)
        with a_world(folder) as world, a_house(folder, store, world, bug=bug, patience=PATIENCE) as house:
            figures, said = storm(house, rounds=ROUNDS, seed=seed, deaths=_deaths(bug))
        kills += figures.kills
        if kind == "postgres":
            databases.drop(name)
        shutil.rmtree(folder)
        telling = [one for one in said
                   if any(re.fullmatch(TOLD_BY[bug], account) for account in _ACCOUNT.findall(one))]
        if telling:
            return kills, telling
    return kills, []
