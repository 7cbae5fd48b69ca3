"""A desk dies at each named line between reading what is due and recording what was delivered; the next one goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from fire.accounts import findings
from fire.house import BOOT_LIMIT, House, a_house
from fire.points import POINTS
from fire.recorder import a_world

IN_A_SWEEP = [name for name in POINTS if name.startswith("sweep-")]
IN_A_DESK = [name for name in POINTS if name not in IN_A_SWEEP]
BY_ARRIVAL = {"before-arrival-commit": 0.01, "arrival-committed": 0.01}
"""Points that are passed only when a program fires."""
NTH = {"child-born": 3, "child-recorded": 3, "run-started": 3}
"""Where the first to pass may be one that is allowed to repeat."""


@pytest.mark.parametrize("point", IN_A_DESK)
def test_nothing_is_lost_or_doubled_by_a_death_at(point: str, store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        dies_at(house, point)
        house.settle()
        assert findings(house) == []
        assert max(house.boots()) < BOOT_LIMIT


@pytest.mark.parametrize("point", IN_A_SWEEP)
def test_a_sweep_that_dies_is_finished_by_the_next_one_at(point: str, store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        dies_at(house, "run-started")
        dies_at(house, point)
        house.settle()
        assert findings(house) == []
        assert max(house.boots()) < BOOT_LIMIT


def dies_at(house: House, point: str) -> None:
    how = "late" if point.startswith("before-") else ""
    desk = house.open(fault=f"{point}:{NTH.get(point, 1)}:{how}", arrivals=BY_ARRIVAL.get(point, 0.0))
    assert desk.gone() == -9, desk.log()
    house.kills += 1
