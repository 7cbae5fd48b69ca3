"""S-12, S-13, S-15 once more, with a desk in a process of its own: what happens to its clock is noticed within seconds,
and what was missed is told once."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

from fire.accounts import audited
from fire.house import House, a_house, until
from fire.recorder import a_world
from nightporter import operations
from nightporter.clock import HOUR, SECOND, Instant, SystemClock
from nightporter.rules.schedule import parse
from nightporter.store import open_store
from nightporter.words import Definition, Limits, Missed, MissedPolicy, Target, TriggerSpec

SOON = 5.0
"""Seconds within which a desk has noticed."""
EVERY = 900 * SECOND


def define(house: House, now: Instant) -> None:
    """Every quarter of an hour, from five minutes ago on: none comes by itself while the test looks."""
    for name, policy in (("caught-up", MissedPolicy.RUN_ONCE), ("asked", MissedPolicy.REVIEW)):
        quarter = parse("every", "15m", "UTC", anchor=Instant(now - 300 * SECOND))
        definition = Definition(
            name, Target("echo", {"text": "hello"}), (TriggerSpec("clock", "clock", quarter, missed=Missed(policy)),),
            limits=Limits(per_hour=None),
        )
        with contextlib.closing(open_store(house.store, now=now)) as store:
            store.write(lambda tx, d=definition: operations.define(tx, d, truth="store", by="test", now=now))  # type: ignore[misc]


def rows(house: House, sql: str) -> list[tuple[Any, ...]]:
    return house.ledger.rows(sql)


def late(house: House) -> list[tuple[Any, ...]]:
    """Runs that caught up and have ended: late, all of them."""
    return rows(house, "SELECT scheduled_for FROM run WHERE catchup = 1 AND ran_late = 1 AND state = 'succeeded' "
                "ORDER BY scheduled_for")


def test_a_desk_whose_clock_is_set_or_whose_machine_sleeps_goes_on_right(tmp_path: Path) -> None:
    store = str(tmp_path / "ledger.db")
    with a_world(tmp_path) as world, a_house(tmp_path, store, world) as house:
        desk = house.open("empty").ready()
        now = SystemClock().now()
        define(house, now)

        desk.tell("set", str(3 * 3600))
        since = time.monotonic()
        until(lambda: len(late(house)) == 1, "one run makes up for what the clock jumped over", SOON)
        until(lambda: rows(house, "SELECT 1 FROM gap WHERE kind = 'step_forward'"), "the jump is written down", SOON)
        assert time.monotonic() - since < SOON
        assert len(rows(house, "SELECT 1 FROM missed_card WHERE state = 'pending'")) == 12
        assert rows(house, "SELECT slots FROM firing WHERE verdict = 'collapsed'") == [(11,)]

        desk.tell("set", "0")
        until(lambda: rows(house, "SELECT 1 FROM gap WHERE kind = 'step_back'"), "and back", SOON)
        before = rows(house, "SELECT id FROM firing ORDER BY id")
        time.sleep(0.3)
        assert rows(house, "SELECT id FROM firing ORDER BY id") == before, "no slot is answered twice"
        [(armed,)] = rows(house, "SELECT DISTINCT next_fire_at FROM trigger WHERE next_fire_at IS NOT NULL")
        assert now + 3 * HOUR < armed <= now + 3 * HOUR + EVERY

        desk.freeze()
        desk.ask("sleep", str(8 * 3600))
        desk.thaw()
        desk.hear("sleep")
        until(lambda: len(late(house)) == 2, "what it slept through is caught up with", SOON)
        until(lambda: rows(house, "SELECT 1 FROM gap WHERE kind = 'sleep'"), "the sleep is written down", SOON)
        [(slot,)] = late(house)[1:]
        assert now + 8 * HOUR - EVERY <= slot <= now + 8 * HOUR
        assert len(rows(house, "SELECT 1 FROM missed_card WHERE state = 'pending'")) == 20, "the newest of both"

        until(lambda: len(rows(house, "SELECT 1 FROM inbox WHERE kind = 'missed'")) == 2, "each gap is told once", SOON)
        desk.kill()
        again = house.open("empty", also={}).ready()
        again.tell("set", str(8 * 3600))
        assert len(late(house)) == 2
        assert len(rows(house, "SELECT 1 FROM inbox WHERE kind = 'missed'")) == 2
        assert audited(house) == []
