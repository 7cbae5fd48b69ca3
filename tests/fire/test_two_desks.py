"""Two desks on one store: a leader that dies, leaders that contend, and one that stands still past its own death."""

from __future__ import annotations

from pathlib import Path

import pytest

from fire.accounts import findings
from fire.house import Desk, House, a_house, until
from fire.recorder import a_world
from nightporter.clock import SystemClock

SECOND = 1_000_000
TAKE_OVER = 3.0


def test_two_desks_that_start_at_once_make_each_automation_once(store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        desks = [house.open("errands", fault="name-looked-up:1:slow") for _ in range(2)]
        for desk in desks:
            desk.ready()
        assert house.ledger.rows("SELECT name FROM automation ORDER BY name") == [
            ("heir",), ("long",), ("long-again",), ("one-by-one",), ("short",), ("unhurried",)
        ]


def test_a_standby_takes_over_from_a_leader_that_is_killed(store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        leader, standby = house.open("crowd").ready(), house.open("crowd").ready()
        assert (leader.leading, standby.leading) == (True, False)
        _seconds_pass(house, 4)
        waited, killed = standby.stood_in_line(), SystemClock().now()
        house.kill(leader)
        until(lambda: house.ledger.count(f"firing WHERE arrived_at > {killed}"), "slots are answered again")
        [(answered,)] = house.ledger.rows(f"SELECT min(arrived_at) FROM firing WHERE arrived_at > {killed}")
        assert (answered - killed) / SECOND - (standby.stood_in_line() - waited) < TAKE_OVER
        house.open("crowd").ready()
        _seconds_pass(house, 4)
        standby.tell("quiet")
        house.idle()
        assert findings(house, alive=True) == []


def test_desks_that_all_lead_answer_each_slot_once(store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        # Each thinks about what is due for long enough that the other reads the same.
        desks = [house.open("crowd", all_lead=True, fault="due-read:1:slow") for _ in range(2)]
        for desk in desks:
            assert desk.ready().leading
        _seconds_pass(house, 4)
        house.kill(desks[0])
        desks[0] = house.open("crowd", all_lead=True, fault="due-read:1:slow").ready()
        _seconds_pass(house, 3)
        for desk in desks:
            desk.tell("quiet")
        house.idle()
        assert house.ledger.count("firing WHERE verdict = 'repeated'") == 0
        assert findings(house, alive=True) == []


@pytest.mark.parametrize(("point", "notices"), [
    ("after-commit:2", ""), ("effect-called:2", "dispatch.lost_claim"), ("child-recorded:2", "dispatch.lost_claim"),
    ("result-computed:5", "dispatch.lost_claim"), ("delivery-sent:3", "delivery.lost_claim"),
])
def test_a_desk_that_stood_still_past_its_death_changes_nothing(
    point: str, notices: str, store_url: str, tmp_path: Path
) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        frozen = house.open(fault=f"{point}:freeze", all_lead=True).ready()
        other = house.open(all_lead=True).ready()
        frozen.frozen()
        until(lambda: _ended(house, frozen), "the one that stands still is declared dead")
        other.tell("quiet")
        house.idle()
        before = house.ledger.dump()
        frozen.thaw()
        until(lambda: _joined_again(house, frozen), "it comes back under another name")
        assert house.ledger.dump() == before
        assert notices in frozen.log()
        frozen.tell("call", "arrive")
        house.idle()
        assert findings(house, alive=True) == []


def _seconds_pass(house: House, seconds: int) -> None:
    """Wait until so many more slots of one clock have a line."""
    one = "firing WHERE source = 'clock' AND trigger_id = (SELECT min(id) FROM trigger WHERE kind = 'clock')"
    before = house.ledger.count(one)
    until(lambda: house.ledger.count(one) >= before + seconds, f"{seconds} slots are answered")


def _ended(house: House, desk: Desk) -> int:
    return house.ledger.count(f"worker WHERE id = '{desk.worker}' AND ended_how = 'dead'")


def _joined_again(house: House, desk: Desk) -> int:
    return house.ledger.count(f"worker WHERE pid = {desk.process.pid} AND id <> '{desk.worker}'")
