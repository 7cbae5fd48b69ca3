"""Storms: a house whose desk is killed again and again, at moments that a seed chooses."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from fire.accounts import audited, findings
from fire.house import House

IN_A_BOOT = 0.2
"""The share of kills that do not wait until the desk is ready."""
BY_THE_DEAD = 0.3
"""The share of deaths after which the ledger is audited as it was left. The others keep it untouched for the next
desk, the log that SQLite has not yet folded back included."""
LONGEST_BOOT = 0.45
LONGEST_LIFE = 1.2
ARRIVALS = 0.02
"""Seconds from one thing that a program fires to the next."""


@dataclass(frozen=True)
class Figures:
    """What a storm came to."""

    rounds: int
    kills: int
    boots: tuple[float, ...]
    runs: int
    slots: int
    deliveries: int
    received: int
    effects: int

    def __str__(self) -> str:
        boots = sorted(self.boots)
        return (
            f"{self.rounds} rounds, {self.kills} kills, "
            f"boots p50 {boots[len(boots) // 2]:.2f} s max {boots[-1]:.2f} s, "
            f"{self.slots} slots, {self.runs} runs, {self.deliveries} webhooks received {self.received} times, "
            f"{self.effects} effects"
        )


def storm(house: House, *, rounds: int, seed: int) -> tuple[Figures, list[str]]:
    """Kill `rounds` desks, then let one finish what they began; what an audit found meanwhile and all accounts at the
    end."""
    chance = random.Random(seed)
    found: list[str] = []
    for number in range(1, rounds + 1):
        desk = house.open("storm", arrivals=ARRIVALS)
        if chance.random() < IN_A_BOOT:
            time.sleep(chance.uniform(0.0, LONGEST_BOOT))  # the moment of death is what is being varied
        else:
            desk.ready()
            begun = time.monotonic()
            found += [f"round {number}, beside the desk: {one}" for one in audited(house)]
            time.sleep(max(0.0, chance.uniform(0.0, LONGEST_LIFE) - (time.monotonic() - begun)))
        house.kill(desk)
        if chance.random() < BY_THE_DEAD:
            found += [f"round {number}, by the dead desk: {one}" for one in audited(house)]
    house.settle("storm")
    return figures(house, rounds), found + findings(house)


def figures(house: House, rounds: int) -> Figures:
    received = house.world.deliveries()
    return Figures(
        rounds=rounds, kills=house.kills, boots=tuple(house.boots()), runs=house.ledger.count("run"),
        slots=house.ledger.count("firing WHERE source = 'clock'"), deliveries=len(received),
        received=sum(map(len, received.values())), effects=len(house.world.effects()),
    )
