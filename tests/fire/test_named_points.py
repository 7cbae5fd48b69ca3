"""A desk dies at each named line between reading what is due and recording what was delivered; the next one goes on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fire.accounts import findings
from fire.house import BOOT_LIMIT, House, a_house, until
from fire.points import POINTS
from fire.recorder import a_world

IN_A_SWEEP = [name for name in POINTS if name.startswith("sweep-")]
IN_A_LOOK = [name for name in POINTS if name.startswith("look-")]
IN_A_DESK = [name for name in POINTS if name not in (*IN_A_SWEEP, *IN_A_LOOK)]
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


@pytest.mark.parametrize("point", IN_A_LOOK)
def test_no_look_forgets_or_repeats_what_it_saw_when_its_desk_dies_at(
    point: str, store_url: str, tmp_path: Path
) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        desk = house.open("watched", fault=f"{point}:2")
        assert desk.gone() == -9, desk.log()
        house.kills += 1
        next_one = house.open("watched").ready()
        until(lambda: len(_read_of(house)) > 3, "what lay there is read")
        assert next_one.stop() == 0, next_one.log()
        house.settle("watched")
        assert findings(house) == []
        read = _read_of(house)
        assert [name for name, times in read.items() if times > 1] == [], "each was work once"
        [(last,)] = house.ledger.rows("SELECT max(r.started_at) FROM run r JOIN automation a ON a.id = r.automation_id "
                                      "WHERE a.name = 'reads' AND r.ended_at IS NOT NULL")
        counted = [int(text) for (text,) in house.ledger.rows(
            "SELECT l.text FROM run_look l JOIN run r ON r.id = l.run_id JOIN automation a ON a.id = r.automation_id "
            "WHERE a.name = 'doubts' AND r.state = 'succeeded' ORDER BY r.ended_at")]
        assert counted == list(range(2, 2 * len(counted) + 1, 2)), "each saw what the one before had kept"
        lay = {path.name for path in (house.folder / "post").iterdir() if path.stat().st_mtime_ns // 1000 < last}
        assert lay - read.keys() == set(), "and none was left out"


def _read_of(house: House) -> Counter[str]:
    """How often each was found by the look of a run that succeeded."""
    found: Counter[str] = Counter()
    for (text,) in house.ledger.rows(
        "SELECT l.text FROM run_look l JOIN run r ON r.id = l.run_id JOIN automation a ON a.id = r.automation_id "
        "WHERE a.name = 'reads' AND r.state = 'succeeded' AND l.answer = 'something'"
    ):
        found.update(Path(line).name for line in text.splitlines())
    return found


def dies_at(house: House, point: str) -> None:
    how = "late" if point.startswith("before-") else ""
    desk = house.open(fault=f"{point}:{NTH.get(point, 1)}:{how}", arrivals=BY_ARRIVAL.get(point, 0.0))
    assert desk.gone() == -9, desk.log()
    house.kills += 1
