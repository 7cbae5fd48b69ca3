"""A desk is killed at moments nobody chose, twenty times in all, and everything still adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from fire.house import BOOT_LIMIT, a_house
from fire.recorder import a_world
from fire.storms import storm

ROUNDS = 10


@pytest.mark.parametrize("seed", [20260327])
def test_nothing_is_lost_or_doubled_by_kills_at_random(seed: int, store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        figures, found = storm(house, rounds=ROUNDS, seed=seed)
        print(f"seed {seed}: {figures}")
        assert found == []
        assert max(house.boots()) < BOOT_LIMIT
        assert figures.slots >= ROUNDS
