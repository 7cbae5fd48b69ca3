"""The server hangs up while it commits, goes away, and comes back elsewhere: nothing is lost, nothing doubled."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg
import pytest

from fire.house import a_house, until
from fire.recorder import a_world
from fire.recovered import adds_up, goes_on
from ill.cutter import a_cutter
from ill.servers import own_server
from nightporter.errors import StoreCorrupt
from nightporter.store import open_store

ARRIVALS = 0.03
CUTS = 15


def test_commits_that_are_cut_before_or_after_they_are_made(migrated_postgres_url: str, tmp_path: Path) -> None:
    with (
        a_world(tmp_path) as world, a_cutter(migrated_postgres_url, seed=20261101) as cutter,
        a_house(tmp_path, migrated_postgres_url, world) as house,
    ):
        desk = house.open(arrivals=ARRIVALS, also={"store": cutter.url()}).ready()
        cutter.share = 0.1
        until(lambda: cutter.before + cutter.after >= CUTS, "so many commits are cut")
        cutter.share = 0.0
        goes_on(house)
        adds_up(house, desk)
        assert cutter.before > 2
        assert cutter.after > 2


def test_a_server_that_crashes_under_load_and_comes_back_elsewhere(tmp_path: Path) -> None:
    with own_server(tmp_path) as server:
        server.databases.create("night", migrated=True)
        with (
            a_world(tmp_path) as world, a_cutter(server.url("night"), seed=1) as cutter,
            a_house(tmp_path, cutter.url(), world) as house,
        ):
            desk = house.open(arrivals=ARRIVALS).ready()
            goes_on(house)
            server.crash()
            server.start(port=5433)
            cutter.server = server.url("night")
            goes_on(house)
            cutter.away = True
            cutter.hang_up()
            time.sleep(1.5)  # longer than a lease
            cutter.away = False
            goes_on(house)
            adds_up(house, desk)


@pytest.mark.parametrize("table", ["orders", "setting"])
def test_a_database_of_another_program_is_refused_and_left_alone(table: str, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as theirs:
        theirs.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, what text)".encode())
    with pytest.raises(StoreCorrupt, match="another program"):
        open_store(postgres_url, now=0)
    with psycopg.connect(postgres_url, autocommit=True) as theirs:
        tables = theirs.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [(table,)]
