"""While a store is brought forward: what dies, what is full, and who else is at work on it."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

from nightporter.clock import Instant
from nightporter.errors import StoreLocked, StoreNewer
from nightporter.store import open_store
from nightporter.store.locks import FileLock
from upgrade import steps
from upgrade.loading import RELEASES, counts, load, rows
from upgrade.steps import FATES, NEXT, STEPS

NOW = Instant(1_796_000_000_000_000)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """What the first release left, on another machine: nobody can ask for its lock."""
    url = str(tmp_path / "desk.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    load(RELEASES[0], url, home=tmp_path, host="elsewhere", world="http://127.0.0.1:9")
    _bring_up_to_date(url)
    return url


@pytest.fixture
def file(tmp_path: Path) -> str:
    """The same in a file; the room of a PostgreSQL database is the server's business."""
    path = str(tmp_path / "desk.db")
    load(RELEASES[0], path, home=tmp_path, host="elsewhere", world="http://127.0.0.1:9")
    _bring_up_to_date(path)
    return path


def _bring_up_to_date(store: str) -> None:
    """By the migrations there are, so that the next ones are what a test is about; no backup is left of that."""
    open_store(store, now=NOW, lease=0.05).close()
    for copy in backups(store):
        if store.startswith("postgresql:"):
            with psycopg.connect(store) as postgres:
                postgres.execute(f'DROP SCHEMA "{copy}" CASCADE'.encode())
        else:
            Path(copy).unlink()


def schema(store: str) -> int:
    return int(rows(store, "SELECT value FROM setting WHERE key = 'schema_version'")[0][0])


def backups(store: str) -> list[str]:
    """What was copied before: files, or schemas."""
    if store.startswith("postgresql:"):
        return [name for (name,) in rows(
            store, "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'nightporter_before%' ORDER BY 1")]
    return sorted(str(path) for path in Path(store).parent.glob(f"{Path(store).name}.before-*"))


def go_back(store: str) -> str:
    """Take up the backup, as the pages say; where the store is then."""
    [copy] = backups(store)
    if not store.startswith("postgresql:"):
        return copy
    with psycopg.connect(store) as postgres:
        postgres.execute("ALTER SCHEMA public RENAME TO forward")
        postgres.execute(f'ALTER SCHEMA "{copy}" RENAME TO public'.encode())
    return store


def migrate_in_a_process(store: str, fate: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, steps.__file__, store, fate], capture_output=True, text=True, timeout=60)


def is_whole(store: str, before: dict[str, int]) -> None:
    """Both migrations were made, each once, and nothing else changed."""
    assert schema(store) == STEPS[-1][0]
    assert rows(store, "SELECT DISTINCT note FROM run") == [("noted",)]
    assert rows(store, "SELECT count(*) FROM shelf JOIN run ON run.id = shelf.run_id AND run.attempt + 1000 = shelf.n"
                ) == [(before["run"],)]
    after = counts(store)
    assert {table: after[table] for table in before} == {**before, "firing_payload": 0}


# -- death ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fate", FATES)
def test_a_process_that_dies_while_it_migrates_leaves_nothing_half_and_the_next_one_goes_on(
    store: str, fate: str
) -> None:
    before = counts(store)
    died = migrate_in_a_process(store, fate)
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    first_was_made = fate in (f"committed:{NEXT}", "DELETE FROM firing_payload", f"applied:{NEXT + 1}")
    assert schema(store) == (NEXT if first_was_made else NEXT - 1)
    steps.opened(store, lease=0.1).close()
    is_whole(store, before)
    if store.startswith("postgresql:"):
        found = rows(store, f"SELECT value FROM {backups(store)[0]}.setting WHERE key = 'schema_version'")
        assert found == [(str(NEXT - 1),)]
    else:
        assert schema(backups(store)[0]) == NEXT - 1
        assert not list(Path(store).parent.glob("*.part"))


# -- the backup -------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_store_that_the_older_program_opens_and_writes_to(store: str) -> None:
    before = counts(store)
    steps.opened(store, lease=0.1).close()
    copy = go_back(store)
    opened = open_store(copy, now=NOW)  # by the program that does not know the two
    try:
        opened.write(lambda tx: tx.put_setting("schema_version", str(tx.schema())))
        assert opened.read(lambda tx: len(tx.workers())) == 1
    finally:
        opened.close()
    assert counts(copy) == before


def test_where_the_backup_finds_no_room_nothing_is_migrated_and_nothing_is_left(file: str) -> None:
    before = Path(file).read_bytes()
    said = migrate_in_a_process(file, f"small:{len(before) // 2}").stdout
    assert said.startswith("store_unwritable the backup of the store")
    assert "nothing was changed" in said
    assert Path(file).read_bytes() == before
    assert backups(file) == []


def test_where_a_migration_finds_no_room_the_store_is_as_it_was_and_the_backup_makes_room_again(file: str) -> None:
    before = counts(file)
    # The copy fits; what the migration adds does not.
    size = Path(file).stat().st_size
    said = migrate_in_a_process(file, f"small:{size + 8192}").stdout
    assert said.startswith("store_unwritable"), said
    assert (schema(file), counts(file), backups(file)) == (NEXT - 1, before, [])
    steps.opened(file, lease=0.1).close()
    is_whole(file, before)


# -- others at work ---------------------------------------------------------------------------------------------------


def test_nothing_is_migrated_while_a_desk_of_this_machine_holds_its_lock(store: str, tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "held.lock")
    assert lock.take()
    _put_worker(store, socket.gethostname(), str(lock.path))
    before = counts(store)
    began = time.monotonic()
    with pytest.raises(StoreLocked, match=f"desk .* on {socket.gethostname()}") as refused:
        steps.opened(store, lease=60.0)
    assert time.monotonic() - began < 10, "there is nothing to wait for"
    assert "stop it" in refused.value.next
    assert (schema(store), counts(store), backups(store)) == (NEXT - 1, before, [])
    lock.let_go()
    steps.opened(store, lease=60.0).close()
    assert schema(store) == NEXT + 1


def test_nothing_is_migrated_while_a_worker_of_another_machine_renews_its_lease(store: str) -> None:
    before = counts(store)
    stop = threading.Event()

    old = open_store(store, now=NOW)
    [(worker, *_)] = old.read(lambda tx: tx.workers())

    def beat() -> None:
        while not stop.wait(0.05):
            old.write(lambda tx: tx.beat(worker))

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        with pytest.raises(StoreLocked, match="on elsewhere"):
            steps.opened(store, lease=60.0)
    finally:
        stop.set()
        beating.join()
        old.close()
    assert (schema(store), counts(store), backups(store)) == (NEXT - 1, before, [])


def test_a_worker_whose_lease_stands_still_is_waited_for_and_then_holds_nobody_up(store: str) -> None:
    began = time.monotonic()
    steps.opened(store, lease=0.5).close()
    assert time.monotonic() - began >= 0.5
    assert schema(store) == NEXT + 1


def _put_worker(store: str, host: str, lock: str) -> None:
    old = open_store(store, now=NOW)
    try:
        [(worker, *_)] = old.read(lambda tx: tx.workers())
        old.write(lambda tx: tx.end_worker(worker, "dead", now=NOW))
        old.write(lambda tx: tx.join("wrk_old", role="desk", host=host, pid=4711, lock_path=lock, now=NOW))
    finally:
        old.close()


# -- an older program that is there already -------------------------------------------------------------------------


def test_what_has_a_store_open_that_is_brought_forward_writes_to_it_no_more(store: str) -> None:
    old = open_store(store, now=NOW)
    try:
        old.write(lambda tx: tx.put_setting("a", "before"))
        steps.opened(store, lease=0.1).close()
        for _ in range(2):
            with pytest.raises(StoreNewer):
                old.write(lambda tx: tx.put_setting("a", "after"))
    finally:
        old.close()
    assert rows(store, "SELECT value FROM setting WHERE key = 'a'") == [("before",)]
