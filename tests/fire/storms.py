"""Storms: a house whose desk is killed again and again, in ways and at moments that a seed chooses."""

from __future__ import annotations

import random
from collections.abc import Mapping

from fire.accounts import audited, findings
from fire.deaths import DEATHS, Death, in_its_boot
from fire.figures import Figures, figures, growth
from fire.house import House

BY_THE_DEAD = 0.2
"""The share of deaths after which the ledger is audited as it was left. The others keep it untouched for the next
desk, the log that SQLite has not yet folded back included."""
FIRST_BOOTS = 2
"""Deaths at the beginning that are in a boot, so that a store dies in the middle of being made."""


def storm(
    house: House, *, rounds: int, seed: int, deaths: Mapping[Death, int] = DEATHS
) -> tuple[Figures, list[str]]:
    """Let desks die `rounds` times, then let one finish what they began. What was found meanwhile, and by all accounts
    at the end."""
    chance = random.Random(seed)
    found: list[str] = []
    known: set[str] = set()
    for number in range(1, rounds + 1):
        early = deaths is DEATHS and number <= FIRST_BOOTS
        [death] = [in_its_boot] if early else chance.choices([*deaths], [*deaths.values()])
        try:
            said = death(house, chance)
        except AssertionError as error:
            said = [f"the desk: {error}"]
        if chance.random() < BY_THE_DEAD and any(desk.ready_at for desk in house.desks):
            said += [f"by the dead desk: {one}" for one in audited(house)]
        found += [f"round {number}, {death.__name__}: {one}" for one in said if one.partition(": ")[2] not in known]
        known.update(one.partition(": ")[2] for one in said)  # what is wrong once is found again in each round
        for desk in house.desks:
            if desk.process.poll() is None:
                house.kill(desk)
    try:
        house.settle(house.world)
    except AssertionError as error:
        found.append(f"settling: {error}")
        for desk in house.desks:
            if desk.process.poll() is None:
                desk.kill()
    counted = figures(house)
    return counted, found + findings(house) + growth(counted)
