"""Ten thousand triggers are due at one instant; each has its outcome, also when desks die in the middle of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from fire.accounts import audited
from fire.house import BOOT_LIMIT, House, Ledger, a_house, until
from fire.recorder import a_world
from nightporter import operations
from nightporter.clock import SECOND, Instant, SystemClock, micros, rfc3339
from nightporter.rules.schedule import parse
from nightporter.store import open_store
from nightporter.words import Definition, Limits, Overlap, Target, TriggerSpec

AUTOMATIONS, TRIGGERS = 100, 100
HERD = AUTOMATIONS * TRIGGERS
IN_A_MOMENT = timedelta(seconds=4)
"""Time enough to write ten thousand triggers down and to start a desk. Should it not be, they are due at its boot."""
LINES_WITHIN = 10.0
"""Seconds after the instant, or after the boot, in which the last of them has its line."""


def test_ten_thousand_due_at_one_instant_are_all_accounted_for(store_url: str, tmp_path: Path) -> None:
    with _a_herd(tmp_path, store_url) as (house, due):
        desk = house.open("empty").ready()
        ready = max(due, SystemClock().now())
        _all_have_ended(house)
        [(line, start, end)] = house.ledger.rows(
            "SELECT (SELECT max(arrived_at) FROM firing), max(started_at), max(ended_at) FROM run")
        print(f"last line after {(line - due) / SECOND:.2f} s, start {(start - due) / SECOND:.2f} s, "
              f"end {(end - due) / SECOND:.2f} s")
        assert (line - ready) / SECOND - desk.stood_in_line() < LINES_WITHIN


def test_ten_thousand_due_at_one_instant_survive_desks_that_die_half_way(store_url: str, tmp_path: Path) -> None:
    with _a_herd(tmp_path, store_url) as (house, _):
        answering = house.open("empty")
        until(lambda: house.ledger.count("firing") > HERD * 3 // 10, "a part has its lines")
        house.kill(answering)
        assert house.ledger.count("firing") < HERD
        working = house.open("empty")
        until(lambda: house.ledger.count("run WHERE ended_at IS NOT NULL") > HERD // 2, "a half has ended")
        house.kill(working)
        assert house.ledger.count("run WHERE ended_at IS NOT NULL") < HERD
        house.open("empty").ready()
        _all_have_ended(house)
        assert max(house.boots()) < BOOT_LIMIT


def _all_have_ended(house: House) -> None:
    """Wait until ten thousand runs have ended, and see that each is the one outcome of its trigger's only slot."""
    until(lambda: house.ledger.count("run WHERE ended_at IS NOT NULL") >= HERD, "all runs have ended")
    house.idle()
    assert house.ledger.rows("SELECT verdict, count(*), count(DISTINCT trigger_id) FROM firing GROUP BY verdict") == [
        ("admitted", HERD, HERD)
    ]
    assert house.ledger.rows("SELECT state, count(*), count(DISTINCT firing_id) FROM run GROUP BY state") == [
        ("succeeded", HERD, HERD)
    ]
    assert house.ledger.count("automation WHERE state = 'completed'") == AUTOMATIONS
    assert audited(house) == []


@contextlib.contextmanager
def _a_herd(folder: Path, store: str) -> Iterator[tuple[House, Instant]]:
    """A house with ten thousand triggers, and the instant at which all of them are due."""
    due = Instant((SystemClock().now() + micros(IN_A_MOMENT)) // SECOND * SECOND)
    with a_world(folder) as world, a_house(folder, store, world) as house:
        _define(store, due)
        for table in ("automation", "automation_version", "trigger", "trigger_version"):
            _multiply(house.ledger, table)
        yield house, due


def _define(where: str, due: Instant) -> None:
    """The first automation, with its hundred triggers."""
    now = SystemClock().now()
    once = parse("at", rfc3339(due) or "", "UTC")
    triggers = tuple(TriggerSpec(f"t{n}", "clock", once, overlap=Overlap.PARALLEL) for n in range(TRIGGERS))
    one = Definition("herd-x", Target("echo", {"text": "here"}), triggers, deliver=(),
                     limits=Limits(per_hour=None, queued=None, concurrent=None))
    with contextlib.closing(open_store(where, now=now)) as store:
        store.write(lambda tx: operations.define(tx, one, truth="store", by="test", now=now))


def _multiply(ledger: Ledger, table: str) -> None:
    """Copy its rows for the others: ten thousand definitions one by one are no part of what is tested here."""
    [(first,)] = ledger.rows("SELECT id FROM automation WHERE name = 'herd-x'")
    rows = ledger.rows(f'SELECT * FROM "{table}"')
    ledger.insert(table, [
        tuple(
            cell.replace(first, f"{first}{n}").replace("herd-x", f"herd-{n}") if isinstance(cell, str) else cell
            for cell in row
        )
        for n in range(1, AUTOMATIONS) for row in rows
    ])
