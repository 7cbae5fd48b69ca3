"""A desk that is told to stop drains: what ends in time ends, the rest is given back or set aside, its code is 0."""

from __future__ import annotations

import time
from pathlib import Path

from fire.accounts import audited
from fire.house import House, a_house, until
from fire.recorder import a_world
from nightporter.outside.groups import living

DRAIN = 4.0


def test_a_drain_ends_what_is_short_gives_back_what_may_repeat_and_sets_aside_the_rest(
    store_url: str, tmp_path: Path
) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        desk = house.open("errands", drain=DRAIN).ready()
        desk.tell("call", "long", "long-again", "one-by-one", "one-by-one", "one-by-one", "short")
        until(lambda: len(house.lines("starts")) == 4, "four programs are at work")
        children = house.ledger.rows("SELECT process_group, started FROM child")
        told = time.monotonic()
        desk.process.terminate()
        until(lambda: _is(house, "short", "succeeded"), "what is short ends during the drain")
        desk.process.terminate()
        assert desk.gone() == 0, desk.log()
        assert time.monotonic() - told >= DRAIN, "a second signal cuts the drain short"

        assert _runs(house) == [
            ("long", "review", 1, "shutdown"), ("long-again", "queued", 0, "shutdown"),
            ("one-by-one", "queued", 0, None), ("one-by-one", "queued", 0, None),
            ("one-by-one", "review", 1, "shutdown"), ("short", "succeeded", 1, None),
        ]
        assert len(world.deliveries()) == 1
        assert [living(group, birth) for group, birth in children] == [[], [], [], []]
        assert house.ledger.rows("SELECT kind FROM inbox ORDER BY kind") == [("review",), ("review",)]
        assert house.ledger.rows("SELECT ended_how FROM worker") == [("stopped",)]
        assert audited(house) == []

        after = house.open("errands", drain=0.1).ready()
        until(lambda: _is(house, "long-again", "running"), "what was given back goes on")
        assert after.stop() == 0, after.log()
        assert house.ledger.count("inbox WHERE kind = 'restart'") == 0


def test_another_desk_takes_nothing_from_one_that_drains_for_longer_than_its_lease(
    store_url: str, tmp_path: Path
) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        leaving, staying = (
            house.open("errands", lease=1.5, beat=0.1, sweep=0.1, drain=30.0).ready() for _ in range(2)
        )
        leaving.tell("call", "unhurried")
        until(lambda: house.lines("starts"), "it is at work")
        assert leaving.stop() == 0, leaving.log()
        assert _runs(house) == [("unhurried", "succeeded", 1, None)]
        assert house.ledger.rows("SELECT ended_how FROM worker WHERE ended_at IS NOT NULL") == [("stopped",)]
        assert staying.stop() == 0, staying.log()


def test_what_is_claimed_at_the_very_moment_of_the_signal_still_runs(store_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, store_url, world) as house:
        desk = house.open("errands", fault="claimed:1:hold").ready()
        desk.ask("call", "short")
        desk.hear("held")
        assert desk.stop() == 0, desk.log()
        assert _runs(house) == [("short", "succeeded", 1, None)]
        assert audited(house) == []


def _runs(house: House) -> list[tuple[object, ...]]:
    return house.ledger.rows(
        "SELECT a.name, run.state, run.attempt, run.reason FROM run JOIN automation a ON a.id = run.automation_id "
        "ORDER BY 1, 2"
    )


def _is(house: House, name: str, state: str) -> bool:
    return any(row[:2] == (name, state) for row in _runs(house))
