"""Two desks on one store: a leader that hangs is succeeded, and stands by when it comes back; a clock that is set back
answers nothing twice."""

from __future__ import annotations

from pathlib import Path

from fire.accounts import findings
from fire.house import Desk, House, a_house, until
from fire.recorder import a_world
from nightporter.clock import SystemClock
from nightporter.ledger import status
from nightporter.store import open_store

SECOND = 1_000_000


def test_a_leader_that_hangs_is_succeeded_and_stands_by_when_it_comes_back(store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        hangs = house.open("house", fault="after-commit:4:freeze").ready()
        standby = house.open("house").ready()
        assert (hangs.leading, standby.leading) == (True, False)
        hangs.frozen()
        until(lambda: leader(house) == standby.worker, "the standby leads")
        slots_go_on(house)
        hangs.thaw()
        until(lambda: joined_again(house, hangs), "the one that hung joins under another name")
        assert leader(house) == standby.worker
        assert hangs.log().count("desk.was_declared_dead") == 1
        assert hangs.log().count("desk.lost_the_lead") == 1
        slots_go_on(house)
        store = open_store(store_url, now=SystemClock().now())
        told = store.read(lambda tx: status(tx, SystemClock().now()))
        assert (told.leader, told.standby, told.healthy) == (standby.worker, 1, True)
        store.close()
        for desk in (hangs, standby):
            desk.tell("quiet")
        house.idle()
        assert findings(house, alive=True) == []


def test_a_clock_that_is_set_back_while_runs_are_under_way_answers_no_slot_twice(
    store_url: str, tmp_path: Path
) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        desk = house.open("house").ready()
        slots_go_on(house)
        desk.tell("set", "-4")
        slots_go_on(house)
        desk.tell("quiet")
        house.idle()
        assert findings(house, alive=True) == []


def leader(house: House) -> str | None:
    found = house.ledger.rows("SELECT w.id FROM setting s JOIN worker w ON w.id = s.value AND w.ended_at IS NULL "
                              "WHERE s.key = 'leader'")
    return found[0][0] if found else None


def slots_go_on(house: House, slots: int = 2) -> None:
    """Wait until so many more slots of one clock have a line."""
    one = "firing WHERE source = 'clock' AND trigger_id = (SELECT min(id) FROM trigger WHERE kind = 'clock')"
    before = house.ledger.count(one)
    until(lambda: house.ledger.count(one) >= before + slots, f"{slots} slots are answered")


def joined_again(house: House, desk: Desk) -> int:
    return house.ledger.count(f"worker WHERE pid = {desk.process.pid} AND id <> '{desk.worker}'")
