"""The accounts are held to account: a desk with a bug dies where the bug tells, and is found by whom it should be."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from fire.deaths import Death, at_any_moment, dies_at
from fire.desk import BURST
from fire.house import House, a_house, until
from fire.recorder import a_world
from fire.seeded import BUGS, put
from fire.storms import storm

PATIENCE = {"late-row": 2.0}
"""Seconds, where the bug is that something never ends."""


def with_a_child_at_work(house: House, _: random.Random) -> list[str]:
    desk = house.open(house.world).ready()
    desk.tell("call", "heir")
    until(lambda: house.lines("starts"), "its child is at work")
    house.kill(desk)
    return []


def with_a_result_in_its_hand(house: House, _: random.Random) -> list[str]:
    """Frozen when a result is there, until another desk has declared it dead; then it goes on."""
    frozen = house.open(house.world, fault="result-computed:5:freeze").ready()
    house.open(house.world).ready()
    frozen.frozen()
    until(lambda: house.ledger.count(f"worker WHERE id = '{frozen.worker}' AND ended_how = 'dead'"), "it is dead")
    frozen.thaw()
    until(lambda: house.ledger.count(f"worker WHERE pid = {frozen.process.pid}") > 1, "it comes back")
    return []


def after_a_full_disk(house: House, _: random.Random) -> list[str]:
    desk = house.open(house.world, arrivals=0.02).ready()
    desk.tell("full")
    until(lambda: any(n < BURST for n in _bursts(house).values()), "a burst is answered in part")
    house.kill(desk)
    return []


def _bursts(house: House) -> Counter[str]:
    book = house.folder / "told"
    told = [json.loads(line)["id"] for line in book.read_text().splitlines()] if book.exists() else []
    return Counter(each.rpartition("-")[0] for each in told if each.startswith("wrk_"))


CAUGHT: dict[str, tuple[Death, int, str, str]] = {
    "slot-early": (dies_at("after-commit:2"), 1, "house", "has no line"),
    "no-fence": (with_a_result_in_its_hand, 1, "house", "audit I-"),
    "answered-early": (dies_at("before-arrival-commit:3:late"), 1, "house", "the ledger has None"),
    "lost-savepoint": (after_a_full_disk, 1, "house", "the ledger has None"),
    "late-row": (at_any_moment, 1, "house", "nothing goes on any more"),
    "orphans": (with_a_child_at_work, 1, "errands", "had begun"),
}
"""For each bug a death that shows it, how many of it, where, and a word of the finding."""


@pytest.mark.parametrize("bug", BUGS)
def test_a_seeded_bug_is_caught(bug: str, tmp_path: Path) -> None:
    death, rounds, where, finding = CAUGHT[bug]
    store = str(tmp_path / "ledger.db")
    with a_world(tmp_path) as outside, a_house(
        tmp_path, store, outside, world=where, bug=bug, patience=PATIENCE.get(bug, 30.0)
    ) as house:
        found: list[str] = []
        for seed in range(1, 4):  # on a busy machine a death may come where there is nothing to be seen of the bug
            _, some = storm(house, rounds=rounds, seed=seed, deaths={death: 1})
            found += some
            if any(finding in one for one in found):
                return
        raise AssertionError(found)


def test_a_seeded_bug_that_no_longer_fits_the_engine_says_so() -> None:
    with pytest.raises(AttributeError, match="no longer fits"):
        put(Death, "a function that is gone", None)
