"""Two migrations that no release has, for what may happen while a store is brought forward.

`python steps.py STORE FATE` opens a store with a program that knows them. FATE: `-`, or where that process dies by
SIGKILL, or `small:N`, where no file may grow beyond N bytes.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from nightporter.clock import SystemClock
from nightporter.errors import StoreError
from nightporter.store import Store, migrate, open_store
from nightporter.store.named import migrations

NEXT = migrations()[-1][0] + 1
"""The number of the first of them: there may be real ones that no release has yet."""
STEPS = [
    (NEXT, """
ALTER TABLE run ADD COLUMN note TEXT NOT NULL DEFAULT '';
UPDATE run SET note = note || 'noted';
CREATE TABLE shelf (run_id TEXT NOT NULL PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO shelf SELECT id, attempt FROM run;
"""),
    (NEXT + 1, "UPDATE shelf SET n = n + 1000;\nDELETE FROM firing_payload;"),
]
FATES = {
    "copying": "the backup is half written",
    "copied": "the backup is there, nothing migrated",
    "UPDATE run": "the first migration has changed the table and no row yet",
    "INSERT INTO shelf": "it has changed the rows of one table and not of the other",
    f"applied:{NEXT}": "all of it is done, not committed",
    f"committed:{NEXT}": "it is committed, the second not begun",
    "DELETE FROM firing_payload": "half of the second is done",
    f"applied:{NEXT + 1}": "all of the second is done, not committed",
}
"""Where a process dies, and what holds there."""


@contextlib.contextmanager
def two_more() -> Iterator[None]:
    """A program that knows two migrations more."""
    with mock.patch.object(migrate, "migrations", return_value=[*migrations(), *STEPS]):
        yield


def opened(store: str, **rest: Any) -> Store:
    """The store, opened by such a program."""
    with two_more():
        return open_store(store, now=SystemClock().now(), **rest)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(fate: str) -> None:
    """Wrap the dialects' own steps, so that this process ends where it is told."""
    from nightporter.store import postgres_schema, sqlite_file

    def around(kind: Any) -> None:
        back_up, apply = kind.back_up, kind.apply

        def copied(schema: Any, before: int) -> Any:
            done = back_up(schema, before)
            if fate == "copied":
                die()
            return done

        def applied(schema: Any, text: str, number: int) -> None:
            schema._connection = _Watched(schema._connection, fate, number)
            apply(schema, text, number)
            if fate == f"committed:{number}":
                die()

        kind.back_up, kind.apply = copied, applied

    around(sqlite_file.SqliteSchema)
    around(postgres_schema.PostgresSchema)
    if fate == "copying":
        sqlite_file.copy_to = _half_a_copy  # type: ignore[assignment]  # it does not return


def _half_a_copy(_: Any, to: Path) -> None:
    to.with_name(f"{to.name}{'.part'}").write_bytes(b"SQLite format 3\0")
    die()


class _Watched:
    """A connection that takes a migration one statement after the other, and dies before one of them."""

    def __init__(self, connection: Any, fate: str, number: int) -> None:
        self._connection = getattr(connection, "_connection", connection)
        self._fate = fate
        self._number = number

    def execute(self, sql: str | bytes, *parameters: Any) -> Any:
        text = sql.decode() if isinstance(sql, bytes) else sql
        if self._fate == "copying" and text.startswith('INSERT INTO "nightporter_before'):
            die()
        if text.startswith("INSERT INTO setting"):
            done = self._connection.execute(sql, *parameters)
            if self._fate == f"applied:{self._number}":
                die()
            return done
        if ";\n" not in text:
            return self._connection.execute(sql, *parameters)
        for statement in text.strip().split(";\n"):
            if statement.startswith(self._fate):
                die()
            self._connection.execute(statement.encode() if isinstance(sql, bytes) else statement)
        return []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


BALLAST = "CREATE TABLE ballast (a TEXT) STRICT;\nINSERT INTO ballast SELECT hex(zeroblob(100000)) FROM run;\n"
"""Megabytes more, where there is no room for them."""


def main(store: str, fate: str) -> None:
    if fate.startswith("small:"):
        STEPS[0] = (NEXT, STEPS[0][1] + BALLAST)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(fate[6:]), int(fate[6:])))
    else:
        _arm(fate)
        if fate == "copying" and store.startswith("postgresql:"):
            from nightporter.store import postgres_schema

            start = postgres_schema.PostgresSchema.__init__

            def watched(schema: Any, connection: Any, now: int) -> None:
                start(schema, _Watched(connection, fate, 0), now)  # type: ignore[arg-type]  # it stands for one

            postgres_schema.PostgresSchema.__init__ = watched  # type: ignore[method-assign, assignment]
    try:
        opened(store, lease=0.5).close()
    except StoreError as error:
        print(error.code, error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
