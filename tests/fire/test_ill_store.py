"""The store is ill for seconds: connections are cut again and again, or somebody else holds the lock. Nothing is lost,
nothing doubled, and no work is blamed for it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import apsw
import psycopg

from fire.accounts import findings
from fire.house import House, a_house, until
from fire.recorder import a_world

ARRIVALS = 0.05
CUTS = 25


def test_a_desk_whose_connections_are_cut_again_and_again(migrated_postgres_url: str, tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_house(tmp_path, migrated_postgres_url, world) as house:
        desk = house.open(arrivals=ARRIVALS).ready()
        with psycopg.connect(migrated_postgres_url, autocommit=True) as surgeon:
            for _ in range(CUTS):
                surgeon.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                "WHERE datname = current_database() AND pid <> pg_backend_pid()")
                time.sleep(0.11)  # not in step with anything that the desk does by the second
        _goes_on(house)
        desk.tell("quiet")
        house.idle()
        assert house.ledger.rows("SELECT id, error FROM run WHERE state = 'failed'") == []
        assert desk.stop() == 0, desk.log()
        assert findings(house) == []


def test_a_desk_whose_store_somebody_else_holds_for_seconds(tmp_path: Path) -> None:
    store = str(tmp_path / "ledger.db")
    with a_world(tmp_path) as world, a_house(tmp_path, store, world) as house:
        desk = house.open(arrivals=ARRIVALS).ready()
        _goes_on(house)
        with contextlib.closing(apsw.Connection(store)) as careless:
            careless.set_busy_timeout(5000)
            careless.execute("BEGIN IMMEDIATE")
            time.sleep(3)
            careless.execute("ROLLBACK")
        _goes_on(house)
        desk.tell("quiet")
        house.idle()
        assert house.ledger.rows("SELECT id, error FROM run WHERE state = 'failed'") == []
        assert desk.stop() == 0, desk.log()
        assert findings(house) == []


def _goes_on(house: House) -> None:
    lines = house.ledger.count("firing WHERE source = 'clock'")
    until(lambda: house.ledger.count("firing WHERE source = 'clock'") > lines + 6, "slots are answered")
