"""Another process holds the store's lock: what falls due comes late, nothing fires from memory, no run is blamed."""

from __future__ import annotations

from pathlib import Path

from fire.accounts import findings
from fire.house import a_house, until
from fire.recorder import a_world
from ill.locked import hold, wrong


def test_what_falls_due_while_the_store_is_held_comes_late(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, str(tmp_path / "ledger.db"), world) as house:
        desk = house.open(arrivals=0.05, patience=1.0).ready()
        until(lambda: house.ledger.count("firing WHERE source = 'clock'") > 6, "slots are answered")
        held = hold(house, 3.5)  # longer than the desk's patience
        assert list(wrong(house, held)) == []
        desk.tell("quiet")
        house.idle()
        assert list(wrong(house, held)) == []
        assert desk.stop() == 0, desk.log()
        assert findings(house) == []
