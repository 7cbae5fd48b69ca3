"""A commit is made, and the desk that asked for it hears an error: it goes on without losing or doubling anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from fire.accounts import findings
from fire.house import a_house, until
from fire.recorder import a_world


@pytest.mark.parametrize("point", ["after-commit", "claimed", "after-end-commit", "after-retry-commit",
                                   "delivery-claimed", "delivery-recorded"])
def test_nothing_is_lost_or_doubled_by_a_lost_answer_to_the_commit(point: str, store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        desk = house.open(fault=f"{point}:2:cut").ready()
        until(lambda: "the answer to a commit was lost" in desk.log(), "the answer is lost")
        until(lambda: house.ledger.count("firing WHERE source = 'clock'") > 12, "the desk goes on")
        desk.tell("quiet")
        house.idle()
        assert desk.stop() == 0, desk.log()
        assert findings(house) == []
