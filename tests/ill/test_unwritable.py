"""The store takes nothing for a while, in the middle of everything: its disk is full, or read-only. Arrivals are
refused and none is lost, nothing starts from memory, what ends is written later, and whoever asks is told."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from shell import Shell

from fire.house import Desk, House, until
from fire.recorder import a_world
from fire.recovered import adds_up, goes_on
from ill.losses import a_ward

pytest_plugins = ["homes"]

ARRIVALS = 0.02
ILL_FOR = 2.0


@pytest.mark.parametrize("illness", ["full wal db", "limit", "read_only"])
def test_a_store_that_takes_nothing_loses_nothing(illness: str, nobodys_place: Path, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_ward(tmp_path, str(tmp_path / "ledger.db"), world) as house:
        desk = house.open("ward", arrivals=ARRIVALS).ready()
        goes_on(house)
        desk.tell("ill", *illness.split())
        shell = Shell(house.home, house.store)
        until(lambda: "cannot write" in shell("status").out, "status says that the desk cannot write")
        assert shell("status").code == 1
        assert "cannot_write" in {finding["code"] for finding in shell("doctor", "--json").json["items"]}
        if illness == "limit":  # the room that was too little for one write may do for smaller ones
            until(lambda: _stands_still(house), "nothing is taken any more")
        else:
            assert _stands_still(house)
        assert shell("list").code == 0
        assert desk.process.poll() is None
        desk.tell("ill")
        goes_on(house)
        until(lambda: "cannot write" not in shell("status").out, "status says no more that it cannot")
        adds_up(house, desk)
        assert _most_said(desk) <= 3


def _stands_still(house: House) -> bool:
    before = _taken(house)
    time.sleep(ILL_FOR)
    return _taken(house) == before


def _taken(house: House) -> tuple[int, int, int, int]:
    """Arrivals that were taken, lines, starts, and acts outside."""
    return (len(house.lines("told")), house.ledger.count("firing"),
            house.ledger.count("transition WHERE to_state = 'running'"), len(house.outside.effects()))


def _most_said(desk: Desk) -> int:
    """How often the desk said the same of its trouble."""
    said = Counter(
        (line["event"], line.get("of", ""), line.get("error", ""))
        for line in map(json.loads, desk.whole_log().splitlines()) if line["level"] in ("warning", "error")
    )
    return max(said.values(), default=0)
