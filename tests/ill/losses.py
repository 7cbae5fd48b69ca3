"""Power losses: a house whose desk is killed, and whose disk loses what was not synced, again and again."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from fire.accounts import audited, findings
from fire.house import House, a_house
from fire.recorder import World
from ill.lossy import Loss, power_loss

WARD = Path(__file__).with_name("ward.py")
ARRIVALS = 0.01
IN_A_WRITE = 0.6
"""The share of losses that come in the middle of a write or a sync, the others at any time."""
IN_A_BOOT = 0.2
"""The share of losses that do not wait until the desk is ready."""
LONGEST_BOOT = 0.6
LONGEST_LIFE = 0.9
LOOKED_AT = 0.5
"""The share of losses after which the store is looked at as it was left; the others are for the next desk to open."""


@contextlib.contextmanager
def a_ward(folder: Path, store: str, world: World) -> Iterator[House]:
    """A house whose desks have a disk that can be ill."""
    with a_house(folder, store, world, program=WARD) as house:
        yield house


@dataclass(frozen=True)
class Figures:
    """What a season of losses came to."""

    losses: int
    sectors: int
    cut: int
    gone: int
    answers: int
    """Facts that were answered as done, and looked for afterwards."""

    def __str__(self) -> str:
        return (f"{self.losses} power losses took {self.sectors} sectors, cut {self.cut} files and lost the names of "
                f"{self.gone}; {self.answers} answers looked for")


def power_losses(house: House, *, rounds: int, seed: int, careless: bool = False) -> tuple[Figures, list[str]]:
    """Lose the power so often; what was answered and is not there, and what does not add up."""
    chance = random.Random(seed)
    lost: list[Loss] = []
    found: list[str] = []
    for number in range(1, rounds + 1):
        how: dict[str, Any] = {"ill": "lossy", "careless": careless}
        if chance.random() < IN_A_WRITE:
            how["dies"] = chance.choice([("sync", chance.randint(1, 150)), ("write", chance.randint(1, 1500))])
        _live_and_die(house, number, how, chance)
        lost.append(power_loss(Path(house.store), chance))
        if chance.random() < LOOKED_AT:
            found += [f"loss {number}: {one}" for one in missing(house)]
            if careless and found:
                break
    found += [f"in the end: {one}" for one in missing(house)]
    if not careless:
        house.settle("ward")
        found += findings(house)
    return Figures(len(lost), sum(one.sectors for one in lost), sum(one.cut for one in lost),
                   sum(one.gone for one in lost), len(answers(house))), found


def _live_and_die(house: House, number: int, how: dict[str, Any], chance: random.Random) -> None:
    desk = house.open("ward", arrivals=ARRIVALS, also=how)
    if "dies" in how:
        with contextlib.suppress(AssertionError, OSError):  # it may be before it is ready
            desk.ready()
            desk.ask("add", f"added-{number}")
        assert desk.gone() == -9, desk.log()
        house.kills += 1
        return
    if chance.random() < IN_A_BOOT:
        time.sleep(chance.uniform(0.0, LONGEST_BOOT))  # the moment is what is being varied
    else:
        desk.ready()
        desk.ask("add", f"added-{number}")
        time.sleep(chance.uniform(0.05, LONGEST_LIFE))
    house.kill(desk)


def answers(house: House) -> list[list[Any]]:
    """What the desks said is done."""
    return [["told", one["id"], one["run"]] for one in _lines(house, "told")] + _lines(house, "answered")


def missing(house: House) -> list[str]:
    """What was answered and is not in the store, and what is wrong with the store itself."""
    if not Path(house.store).exists():
        return ["the store is gone"] if answers(house) else []
    with contextlib.closing(apsw.Connection(house.store)) as connection:
        said = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        if said != ["ok"]:
            return [f"the store is damaged: {said}"]
        if not list(connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'setting'")):
            return ["the store is empty"] if answers(house) else []
    return [*_not_there(house), *audited(house)]


def _not_there(house: House) -> Iterator[str]:
    rows = house.ledger.rows
    there = {
        "told": set(rows("SELECT external_id, run_id FROM firing WHERE source = 'call'")),
        "added": set(rows("SELECT name FROM automation")),
        "effect": set(rows("SELECT run_id, key FROM effect WHERE state = 'done'")),
        "ended": set(rows("SELECT id, state FROM run")),
        "delivered": set(rows("SELECT event_id FROM delivery WHERE state = 'delivered'")),
    }
    for kind, *what in answers(house):
        if tuple(what) not in there[kind]:
            yield f"{kind} {' '.join(what)} was answered, and is not there"


def _lines(house: House, name: str) -> list[Any]:
    read = []
    for line in house.lines(name):
        with contextlib.suppress(ValueError):  # the death of the desk cut it short: nobody heard it
            read.append(json.loads(line))
    return read
