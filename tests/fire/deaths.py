"""Deaths: the ways in which the desks of a storm end, each at a moment that chance gives."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable

from fire.accounts import audited
from fire.house import PATIENCE, Desk, House, until
from fire.points import POINTS

ARRIVALS = 0.02
"""Seconds from one thing that a program fires to the next."""
LONGEST_BOOT = 0.45
LONGEST_LIFE = 1.2
LONGEST_DRAIN = 0.5
AROUND_A_SLOT = (-0.003, 0.03)
"""Seconds from a full one, which is when most is written."""
LOOKED_AT = 0.3
"""The share of lives beside which an audit is made."""
UNTIL_A_POINT = 2.5
"""Seconds after which a desk that did not come by the point is killed where it is."""

Death = Callable[[House, random.Random], list[str]]
"""Opens one desk or two on the house and kills them; what was found meanwhile."""


def in_its_boot(house: House, chance: random.Random) -> list[str]:
    desk = house.open(house.world, arrivals=ARRIVALS)
    time.sleep(chance.uniform(0.0, LONGEST_BOOT))  # the moment of death is what is being varied
    house.kill(desk)
    return []


def at_any_moment(house: House, chance: random.Random) -> list[str]:
    desk = house.open(house.world, arrivals=ARRIVALS).ready()
    begun, life = time.monotonic(), chance.uniform(0.0, LONGEST_LIFE)
    found = [f"beside the desk: {one}" for one in audited(house)] if chance.random() < LOOKED_AT else []
    time.sleep(max(0.0, life - (time.monotonic() - begun)))
    house.kill(desk)
    return found


def around_a_slot(house: House, chance: random.Random) -> list[str]:
    desk = house.open(house.world, arrivals=ARRIVALS).ready()
    time.sleep(max(0.0, -time.time() % 1 + chance.uniform(*AROUND_A_SLOT)))
    house.kill(desk)
    return []


def at_a_point(house: House, chance: random.Random) -> list[str]:
    """At the first, or one of the next passes of a named point, or a moment after it."""
    point, nth = chance.choice(sorted(POINTS)), chance.randint(1, 4)
    how = "late" if point.startswith("before-") else ""
    return dies_at(f"{point}:{nth}:{how}", UNTIL_A_POINT)(house, chance)


def in_its_drain(house: House, chance: random.Random) -> list[str]:
    desk = house.open(house.world, arrivals=ARRIVALS).ready()
    time.sleep(chance.uniform(0.0, LONGEST_LIFE))
    desk.process.terminate()
    time.sleep(chance.uniform(0.0, LONGEST_DRAIN))
    house.kill(desk)
    return []


def after_its_death(house: House, chance: random.Random) -> list[str]:
    """It stands still until another has declared it dead, or for some seconds; goes on; and both are killed."""
    desks = [house.open(house.world, arrivals=ARRIVALS) for _ in range(2)]
    for desk in desks:
        desk.ready()
        desk.alone = False
    frozen = desks[0]
    time.sleep(chance.uniform(0.0, LONGEST_LIFE))
    frozen.freeze()
    with contextlib.suppress(AssertionError):  # it may hold what the other needs: then it is let go on
        until(lambda: _is_dead(house, frozen), "it is declared dead", 2.5)
    frozen.thaw()
    time.sleep(chance.uniform(0.0, LONGEST_DRAIN))
    for desk in desks:
        house.kill(desk)
    return []


def on_a_full_disk(house: House, chance: random.Random) -> list[str]:
    """The store's file cannot grow for a while; the desk is killed meanwhile, or some time after. Only SQLite's can."""
    desk = house.open(house.world, arrivals=ARRIVALS, also={"between": 1}).ready()
    time.sleep(chance.uniform(0.0, LONGEST_LIFE / 2))
    full, after = chance.uniform(0.2, 0.8), chance.choice([0.0, chance.uniform(0.0, LONGEST_LIFE)])
    if not house.store.startswith("postgresql:"):
        desk.ask("full")
    time.sleep(full)
    if after and not house.store.startswith("postgresql:"):
        desk.ask("room")
    time.sleep(after)
    house.kill(desk)
    return []


def on_a_slow_disk(house: House, chance: random.Random) -> list[str]:
    """Each commit takes its time, so that most moments are in one."""
    desk = house.open(house.world, arrivals=ARRIVALS, slow=chance.uniform(0.02, 0.1)).ready()
    time.sleep(chance.uniform(0.0, LONGEST_LIFE))
    house.kill(desk)
    return []


def beside_somebody_else(house: House, chance: random.Random) -> list[str]:
    """Somebody has the store's lock for longer than the desk waits for it; the desk is killed meanwhile, or after."""
    desk = house.open(house.world, arrivals=ARRIVALS, patience=0.15).ready()
    time.sleep(chance.uniform(0.0, LONGEST_LIFE))
    with house.ledger.held():
        time.sleep(chance.uniform(0.0, LONGEST_LIFE))
        if chance.random() < 0.5:
            house.kill(desk)
    if not desk.ended:
        time.sleep(chance.uniform(0.0, LONGEST_DRAIN))
        house.kill(desk)
    return []


def dies_at(fault: str, within: float = PATIENCE) -> Death:
    def death(house: House, _: random.Random) -> list[str]:
        desk = house.open(house.world, fault=fault, arrivals=ARRIVALS)
        with contextlib.suppress(AssertionError):
            desk.gone(within)
        house.kill(desk)
        return []

    return death


def _is_dead(house: House, desk: Desk) -> int:
    return house.ledger.count(f"worker WHERE id = '{desk.worker}' AND ended_how = 'dead'")


DEATHS: dict[Death, int] = {
    in_its_boot: 15, at_any_moment: 15, around_a_slot: 15, at_a_point: 18, in_its_drain: 7, after_its_death: 7,
    on_a_full_disk: 7, beside_somebody_else: 5, on_a_slow_disk: 11,
}
"""Of a hundred."""
