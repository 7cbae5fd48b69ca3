"""Fixtures of the upgrades: a release, and the home that it left."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from upgrade.homes import Home, Welcoming
from upgrade.loading import RELEASES, load, rows


@pytest.fixture
def world() -> Iterator[str]:
    """The address of a world that takes everything."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Welcoming)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(params=RELEASES, ids=lambda release: release.name)
def release(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path, release: Path, world: str) -> Home:
    """What the release left on this machine: its desk is dead, and its lock is free."""
    store = str(tmp_path / "nightporter.sqlite") if request.param == "sqlite" else (
        str(request.getfixturevalue("postgres_url")))
    load(release, store, home=tmp_path, host=socket.gethostname(), world=world)
    for (lock,) in rows(store, "SELECT lock_path FROM worker"):
        Path(str(lock)).parent.mkdir(exist_ok=True)
        Path(str(lock)).touch()
    return Home(tmp_path, store)
