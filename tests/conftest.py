"""Fixtures that every part of the suite shares. A store is a real one: an SQLite file, and a PostgreSQL database."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from acting import a_worker
from databases import Databases, shared_server
from engines import Engines
from flights import Fly

from nightporter.clock import Instant, ManualClock, instant
from nightporter.dispatch import Flight
from nightporter.store import Store, open_store
from nightporter.words import QuickRunner, RunId, Runner

START = instant(datetime(2026, 3, 27, 8, 0, tzinfo=UTC))
"""A Friday; both database fixtures and `clock` begin here."""

_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def interrupts() -> None:
    """A command that a test starts can be interrupted, also where the tests themselves run in the background: a shell
    has those ignore it, and they pass that on."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """The PostgreSQL server. That it cannot start is an error, never a skip."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    base = tmp_path_factory.getbasetemp()
    with shared_server(base.parent if worker else base, worker or "only", START) as server:
        yield server


@pytest.fixture
def postgres_url(databases: Databases) -> Iterator[str]:
    """A fresh, empty database."""
    name = f"empty_{databases.worker}_{next(_numbers)}"
    try:
        yield databases.create(name, migrated=False)
    finally:
        databases.drop(name)


@pytest.fixture
def migrated_postgres_url(databases: Databases) -> Iterator[str]:
    """An empty database with the newest schema: what a store opens fastest."""
    name = databases.lend()
    try:
        yield databases.url(name)
    finally:
        databases.give_back(name)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty file with the newest schema, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "ledger.db"
    open_store(str(path), now=START).close()
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, migrated_file: Path) -> str:
    """Where a store may be opened, on each database in turn. Two stores opened on it share one ledger."""
    if request.param == "sqlite":
        return str(shutil.copy(migrated_file, tmp_path / "ledger.db"))
    return str(request.getfixturevalue("migrated_postgres_url"))


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An empty store on each database in turn; closed at the end."""
    opened = open_store(store_url, now=START, patience=5.0)
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands at `START` until the test moves it."""
    return ManualClock(Instant(START))


@pytest.fixture
async def engines(tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engines]:
    """Makes engines that share a home and a ledger; those that run at the end are stopped."""
    made = Engines(tmp_path, store_url, monkeypatch)
    yield made
    await made.close()


@pytest.fixture
async def fly(store: Store, clock: ManualClock, tmp_path: Path) -> AsyncIterator[Fly]:
    """Makes a flight with the runners it is given; at the end it is brought down."""
    flights: list[Flight] = []

    def make(*runners: Runner | QuickRunner, slots: int = 16, only: RunId | None = None) -> Flight:
        flight = Flight(
            store, clock, {r.kind: r for r in runners}, worker=a_worker(store, clock.now(), name="wrk_1"), slots=slots,
            scratch=tmp_path / "scratch", only=only,
        )
        flights.append(flight)
        return flight

    yield make
    for flight in flights:
        await flight.drain(0)
