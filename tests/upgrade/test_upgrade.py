"""A store of a released program, with everything under way, is brought forward; what was begun there ends here."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

import nightporter.store
from nightporter.clock import SystemClock
from nightporter.operations import fire
from nightporter.store import open_store
from nightporter.store.named import migrations
from upgrade.loading import RELEASES, counts, load, released_migrations, rows
from upgrade.recording import Outside

NIGHTPORTER = "from nightporter.surfaces.cli import main; raise SystemExit(main())"
SETTINGS = {"SWEEP": "400ms", "BEAT": "200ms", "LEASE": "1s", "KEEP_RUNS": "36500d", "KEEP_LEDGER": "36500d"}
"""A desk that notices within a second what takes a minute by default, and that prunes nothing of long ago."""


class Welcoming(Outside):
    """The world is well again."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._answer(200)

    do_GET = do_POST


@pytest.fixture
def world() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Welcoming)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


class Home:
    """A home and a store that a release left, and today's program."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self.store = store
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NIGHTPORTER_")},
            **{f"NIGHTPORTER_{name}": value for name, value in SETTINGS.items()},
        }

    def _command(self, *words: str) -> list[str]:
        return [sys.executable, "-c", NIGHTPORTER, *words, "--home", str(self.folder), "--store", self.store]

    def ask(self, *words: str) -> str:
        done = subprocess.run(self._command(*words), env=self._environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def desk(self) -> Iterator[None]:
        """The desk is up for the time of the block, and then stops in order."""
        with (self.folder / "desk.log").open("ab") as log:
            process = subprocess.Popen(self._command("up"), env=self._environment, stdout=log, stderr=log)
            try:
                yield
                process.terminate()
                assert process.wait(60) == 0, (self.folder / "desk.log").read_text()
            finally:
                process.kill()
                process.wait()

    def until_none(self, sql: str) -> None:
        limit = time.monotonic() + 60
        while found := rows(self.store, sql):
            assert time.monotonic() < limit, f"{found}\n{(self.folder / 'desk.log').read_text()[-6000:]}"
            time.sleep(0.05)


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


def test_what_a_release_left_has_runs_in_every_state_and_everything_that_hangs_on_them(home: Home) -> None:
    def words(sql: str) -> set[object]:
        return {row[0] for row in rows(home.store, sql)}

    # A run is `lost` only within the transaction that decides about it; `waiting` comes with a later release.
    assert words("SELECT state FROM run") == {
        "queued", "running", "held", "review", "succeeded", "failed", "timed_out", "cancelled", "skipped"}
    assert {None, "time", "overlap", "concurrency"} <= words("SELECT blocked FROM run WHERE state = 'queued'")
    assert words("SELECT state FROM delivery") == {"pending", "sending", "delivered", "given_up"}
    assert words("SELECT state FROM effect") == {"intended", "done"}
    assert words("SELECT verdict FROM firing") == {"admitted", "repeated", "skipped"}
    assert words("SELECT state FROM automation") == {"active", "paused", "removed"}
    there = counts(home.store)
    assert [table for table, count in there.items() if not count] == []
    assert words("SELECT count(*) FROM worker WHERE ended_at IS NULL") == {1}
    assert rows(home.store, "SELECT 1 FROM trigger WHERE next_fire_at IS NOT NULL")
    assert rows(home.store, "SELECT 1 FROM firing WHERE dedupe_key IS NOT NULL AND source = 'call'")


def test_a_store_with_everything_under_way_is_brought_forward_and_nothing_of_it_is_lost(home: Home) -> None:
    before = counts(home.store)
    ended = "SELECT * FROM run WHERE ended_at IS NOT NULL ORDER BY id"
    as_it_was = rows(home.store, ended)
    home.ask("runs")
    assert rows(home.store, "SELECT value FROM setting WHERE key = 'schema_version'") == [(str(migrations()[-1][0]),)]
    after = counts(home.store)
    assert {table: after[table] for table in before} == before
    assert [row[: len(was)] for row, was in zip(rows(home.store, ended), as_it_was, strict=True)] == as_it_was
    home.ask("audit")


def test_what_was_under_way_is_taken_back_and_ended_by_todays_desk(home: Home) -> None:
    before = counts(home.store)
    under_way = {row[0] for row in rows(home.store, "SELECT id FROM run WHERE ended_at IS NULL")}
    with home.desk():
        home.ask("enable", "asleep")
        home.until_none("SELECT id, state FROM run WHERE state IN ('queued', 'running', 'held', 'lost')")
        home.until_none("SELECT id, state FROM delivery WHERE state IN ('pending', 'sending')")
    home.ask("audit")
    ended = dict(rows(home.store, "SELECT id, state FROM run"))
    names = dict(rows(home.store, "SELECT r.id, a.name FROM run r JOIN automation a ON a.id = r.automation_id"))
    assert {names[run] for run in under_way if ended[run] == "review"} == {"cut", "acting"}, "a person decides"
    assert {ended[run] for run in under_way} == {"review", "succeeded", "skipped"}
    assert rows(home.store, "SELECT DISTINCT state FROM delivery WHERE destination IN ('busy', 'hang')") == [
        ("delivered",)]
    after = counts(home.store)
    assert all(after[table] >= count for table, count in before.items() if table != "child")


def test_what_was_told_to_the_release_is_a_repeat_today(home: Home) -> None:
    [(key, trigger)] = rows(
        home.store, "SELECT f.dedupe_key, f.trigger_id FROM firing f JOIN automation a ON a.id = f.automation_id "
                    "WHERE a.name = 'letter' AND f.verdict = 'admitted'")
    clock = SystemClock()
    store = open_store(home.store, now=clock.now())
    try:
        answer = store.write(lambda tx: fire(
            tx, str(trigger).partition("/")[0], trigger="call", external_id=str(key), now=clock.now()))
    finally:
        store.close()
    assert answer.verdict == "repeated"


def test_a_released_migration_is_never_changed(release: Path) -> None:
    folder = Path(nightporter.store.__file__).parent / "sql" / "migrations"
    now = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.sql")}
    released = released_migrations(release)
    assert {name: now.get(name) for name in released} == released
