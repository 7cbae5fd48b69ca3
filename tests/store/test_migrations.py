"""Migrations: forward only, a backup first, and a store of somebody else is left as it was."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from nightporter.clock import Instant
from nightporter.errors import StoreCorrupt, StoreError, StoreNewer
from nightporter.store import migrate, open_store
from nightporter.store.named import migrations
from nightporter.store.postgres_schema import PostgresSchema
from nightporter.store.sqlite_file import SqliteSchema

NOW = Instant(1_774_598_400_000_000)
NEWEST = migrations()[-1][0]
NEXT = NEWEST + 1
BACKUP_SCHEMA = f"nightporter_before_{NEXT:04d}_20260327t080000z"
FOLLOWING = "CREATE TABLE shelf (id TEXT NOT NULL PRIMARY KEY, n INTEGER NOT NULL) STRICT;"
"""What the next migration might be."""


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a store: nothing has been migrated there yet."""
    return str(tmp_path / "ledger.db") if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the program knows one migration more."""
    monkeypatch.setattr(migrate, "migrations", lambda: [*migrations(), (NEXT, FOLLOWING)])


def ask(store_url: str, sql: str) -> list[tuple[Any, ...]]:
    if store_url.startswith("postgres"):
        with psycopg.connect(store_url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []
    with closing(apsw.Connection(store_url)) as sqlite:
        return list(sqlite.execute(sql))


def schema_of(store_url: str) -> Any:
    """The class that brings a store of this kind forward."""
    return PostgresSchema if store_url.startswith("postgres") else SqliteSchema


def version(store_url: str) -> str:
    return str(ask(store_url, "SELECT value FROM setting WHERE key = 'schema_version'")[0][0])


def a_store_with_something_in_it(url: str) -> None:
    with closing(open_store(url, now=NOW)) as store:
        store.write(lambda tx: tx.put_setting("a", "1"))


def backed_up_versions(url: str) -> list[str]:
    """The schema of each backup there is."""
    if url.startswith("postgres"):
        return [v for (v,) in ask(url, f"SELECT value FROM {BACKUP_SCHEMA}.setting WHERE key = 'schema_version'")]
    return [version(str(backup)) for backup in Path(url).parent.glob("*.before-*")]


def contents(url: str) -> dict[str, Any]:
    """Everything there is, to compare."""
    if url.startswith("postgres"):
        tables = [t for (t,) in ask(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")]
        return {t: ask(url, f'SELECT * FROM "{t}" ORDER BY 1') for t in tables}
    return {"bytes": Path(url).read_bytes()}


# -- ahead ----------------------------------------------------------------------------------------------------------


def test_an_empty_place_gets_the_newest_schema(url: str) -> None:
    open_store(url, now=NOW).close()
    assert version(url) == str(migrations()[-1][0])


def test_opening_again_changes_nothing(url: str) -> None:
    a_store_with_something_in_it(url)
    before = contents(url)
    open_store(url, now=NOW).close()
    assert contents(url) == before


def test_an_older_store_is_brought_forward_and_keeps_what_it_held(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_store_with_something_in_it(url)
    monkeypatch.setattr(migrate, "migrations", lambda: [*migrations(), (NEXT, FOLLOWING)])
    with closing(open_store(url, now=NOW)) as store:
        assert store.read(lambda tx: tx.setting("a")) == "1"
    assert version(url) == str(NEXT)
    assert ask(url, "SELECT count(*) FROM shelf") == [(0,)]


@pytest.mark.usefixtures("newer")
def test_a_backup_is_taken_before(url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "migrations", migrations)
        a_store_with_something_in_it(url)
    open_store(url, now=NOW).close()
    if url.startswith("postgres"):
        kept = ask(url, f"SELECT key, value FROM {BACKUP_SCHEMA}.setting ORDER BY key")
        assert kept == [("a", "1"), ("schema_version", str(NEWEST))]
    else:
        backup = Path(f"{url}.before-{NEXT:04d}-20260327T080000Z")
        assert backup.stat().st_mode & 0o777 == 0o600
        assert version(str(backup)) == str(NEWEST)
        assert ask(str(backup), "SELECT value FROM setting WHERE key = 'a'") == [("1",)]


def test_a_new_store_has_nothing_to_back_up(url: str) -> None:
    open_store(url, now=NOW).close()
    if url.startswith("postgres"):
        assert ask(url, "SELECT 1 FROM pg_namespace WHERE nspname LIKE 'nightporter_before%'") == []
    else:
        assert not list(Path(url).parent.glob("*.before-*"))


def test_a_migration_that_fails_leaves_the_old_schema_and_can_be_tried_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_store_with_something_in_it(url)
    twice = f"{FOLLOWING}\nCREATE TABLE shelf (again INTEGER) STRICT;"
    monkeypatch.setattr(migrate, "migrations", lambda: [*migrations(), (NEXT, twice)])
    for _ in range(2):
        with pytest.raises(StoreError):
            open_store(url, now=NOW)
    assert version(url) == str(NEWEST)
    with pytest.raises((apsw.SQLError, psycopg.Error)):
        ask(url, "SELECT * FROM shelf")
    monkeypatch.setattr(migrate, "migrations", lambda: [*migrations(), (NEXT, FOLLOWING)])
    open_store(url, now=NOW).close()
    assert version(url) == str(NEXT)


# -- somebody else's ------------------------------------------------------------------------------------------------


def test_a_store_of_a_newer_program_is_refused_and_left_as_it_was(url: str) -> None:
    a_store_with_something_in_it(url)
    ask(url, "UPDATE setting SET value = '99' WHERE key = 'schema_version'")
    before = contents(url)
    with pytest.raises(StoreNewer) as refused:
        open_store(url, now=NOW)
    assert "99" in refused.value.what
    assert refused.value.next
    assert contents(url) == before


def test_a_file_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "cookies.db"
    with closing(apsw.Connection(str(path))) as other:
        other.execute("CREATE TABLE cookie (name TEXT); INSERT INTO cookie VALUES ('chocolate')")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="another program"):
        open_store(str(path), now=NOW)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["cookies.db"]


# -- at the same time -------------------------------------------------------------------------------------------------

OPENS = """
import sys
from nightporter.store import migrate, open_store
from nightporter.store.named import migrations
migrate.migrations = lambda: [*migrations(), (migrations()[-1][0] + 1, sys.argv[2])]
sys.stdin.readline()
store = open_store(sys.argv[1], now=int(sys.argv[3]))
print(store.read(lambda tx: tx.setting("a")), flush=True)
store.close()
"""


def open_at_once(url: str, how_many: int) -> list[str]:
    """What each of several processes read that opened the store in the same moment."""
    processes = [
        subprocess.Popen([sys.executable, "-c", OPENS, url, FOLLOWING, str(NOW)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(how_many)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate(timeout=60) for process in processes]
    assert [error for _, error in told if error] == []
    return [out for out, _ in told]


def test_processes_that_create_a_store_at_once_share_it(url: str) -> None:
    assert open_at_once(url, 3) == ["None\n"] * 3
    assert version(url) == str(NEXT)


def test_processes_that_migrate_a_store_at_once_share_it_and_its_backup_is_of_before(url: str) -> None:
    a_store_with_something_in_it(url)
    assert open_at_once(url, 3) == ["1\n"] * 3
    assert version(url) == str(NEXT)
    assert set(backed_up_versions(url)) == {str(NEWEST)}


@pytest.mark.usefixtures("newer")
def test_a_backup_is_never_made_of_a_store_that_somebody_migrated_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "migrations", migrations)
        a_store_with_something_in_it(url)

    back_up = schema_of(url).back_up

    def meanwhile(schema: Any, before: int) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schema_of(url), "back_up", back_up)
            open_store(url, now=NOW).close()
        return back_up(schema, before)

    monkeypatch.setattr(schema_of(url), "back_up", meanwhile)
    open_store(url, now=NOW).close()
    assert version(url) == str(NEXT)
    assert backed_up_versions(url) == [str(NEWEST)]
