"""What a release left, put into either database again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import psycopg

from nightporter.store.named import for_postgres, migrations

RELEASES = sorted(folder for folder in (Path(__file__).parent / "releases").iterdir() if folder.is_dir())


def released_migrations(release: Path) -> dict[str, str]:
    """The file names of the migrations that a release knew, and the SHA-256 of each."""
    lines = (line.split() for line in (release / "migrations.sha256").read_text().splitlines())
    return {name: digest for digest, name in lines}


def load(release: Path, store: str, *, home: Path, host: str, world: str) -> None:
    """Make the store that this release left, at the schema that it knew: of a desk of that home, on that host."""
    known = {int(name.split("_", 1)[0]) for name in released_migrations(release)}
    schema = [text for number, text in migrations() if number in known]
    rows = (release / "store.sql").read_text(encoding="utf-8")
    for place, concrete in (("{home}", str(home)), ("{host}", host), ("{world}", world)):
        rows = rows.replace(place, concrete)
    if store.startswith("postgresql:"):
        with psycopg.connect(store) as postgres:
            for text in (*map(for_postgres, schema), rows):
                postgres.execute(text.encode())
        return
    with closing(apsw.Connection(store)) as sqlite:
        sqlite.execute("PRAGMA journal_mode=WAL")
        with sqlite:
            for text in (*schema, rows):
                sqlite.execute(text)


@contextmanager
def reading(store: str) -> Iterator[Any]:
    """A connection to look with."""
    if store.startswith("postgresql:"):
        with psycopg.connect(store, autocommit=True) as postgres:
            yield postgres
    else:
        with closing(apsw.Connection(store)) as sqlite:
            sqlite.set_busy_timeout(5000)
            yield sqlite


def rows(store: str, sql: str) -> list[tuple[Any, ...]]:
    with reading(store) as connection:
        return [tuple(row) for row in connection.execute(sql)]


def counts(store: str) -> dict[str, int]:
    """How many rows each table has."""
    tables = rows(store, "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
                  if store.startswith("postgresql:") else "SELECT name FROM sqlite_schema WHERE type = 'table'")
    return {table: int(rows(store, f'SELECT count(*) FROM "{table}"')[0][0]) for (table,) in tables}
