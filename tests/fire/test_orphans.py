"""The children of a desk that was killed are ended, by its guard or by the next desk, before their runs go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from fire.house import Desk, House, a_house, until
from fire.recorder import a_world
from nightporter.outside.groups import living


@pytest.mark.parametrize("guarded", [True, False], ids=["its guard", "the next desk"])
def test_a_child_is_ended_before_its_run_is_started_again_by(guarded: bool, store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        children = _orphan(house, house.open("errands").ready(), "long-again", guarded=guarded)
        after = house.open("errands", drain=0.1).ready()
        until(lambda: _beats(house, 2), "its second attempt is at work")
        assert [living(*child) for child in children] == [[]]
        assert house.lines("beats") == [*_beats(house, 1), *_beats(house, 2)], "two attempts were at work at once"
        assert after.stop() == 0, after.log()


@pytest.mark.parametrize("guarded", [True, False], ids=["its guard", "the next desk"])
def test_a_child_that_may_not_be_started_again_is_ended_and_shown_by(
    guarded: bool, store_url: str, tmp_path: Path
) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        children = _orphan(house, house.open("errands").ready(), "long", guarded=guarded)
        after = house.open("errands").ready()
        assert [living(*child) for child in children] == [[]]
        assert house.ledger.rows("SELECT state, attempt FROM run") == [("review", 1)]
        assert house.ledger.rows("SELECT kind FROM inbox ORDER BY kind") == [("restart",), ("review",)]
        assert after.stop() == 0, after.log()


def _orphan(house: House, desk: Desk, name: str, *, guarded: bool) -> list[tuple[int, int]]:
    """Kill a desk in the middle of a run; the child's group and birth. Without a guard it lives on."""
    desk.tell("call", name)
    until(lambda: _beats(house, 1), "its first attempt is at work")
    children = [(group, birth) for group, birth in house.ledger.rows("SELECT process_group, started FROM child")]
    if not guarded:
        os.kill(desk.guard, signal.SIGKILL)
    house.kill(desk)
    if not guarded:
        count = len(_beats(house, 1))
        until(lambda: len(_beats(house, 1)) > count + 3, "the child outlives its desk")
    return children


def _beats(house: House, attempt: int) -> list[str]:
    return [line for line in house.lines("beats") if line.endswith(f" {attempt}")]
