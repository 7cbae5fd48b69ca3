"""The store is ill for seconds: connections are cut again and again, or somebody else holds the lock. Nothing is lost,
nothing doubled, and no work is blamed for it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import apsw
import psycopg

from fire.house import a_house
from fire.recorder import a_world
from fire.recovered import adds_up, goes_on

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
        goes_on(house)
        adds_up(house, desk)


def test_a_desk_whose_store_somebody_else_holds_for_seconds(tmp_path: Path) -> None:
    store = str(tmp_path / "ledger.db")
    with a_world(tmp_path) as world, a_house(tmp_path, store, world) as house:
        desk = house.open(arrivals=ARRIVALS).ready()
        goes_on(house)
        with contextlib.closing(apsw.Connection(store)) as careless:
            careless.set_busy_timeout(5000)
            careless.execute("BEGIN IMMEDIATE")
            time.sleep(3)
            careless.execute("ROLLBACK")
        goes_on(house)
        adds_up(house, desk)
