"""SQLite through apsw: WAL, synchronous=FULL, one writer thread with group commit, readers beside it."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import apsw
import apsw.ext

from nightporter.errors import StoreCorrupt, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store.kicks import DatagramKicks, Kicks
from nightporter.store.locks import FileLock
from nightporter.store.migrate import migrate
from nightporter.store.named import Query, queries
from nightporter.store.sql_port import Row
from nightporter.store.tx import Tx
from nightporter.store.writer import Writer

T = TypeVar("T")

CHUNKS = (50, 8, 1)
"""Rows in one statement; each size is a statement of its own, prepared once."""
PACKED = frozenset({
    "run_candidates", "run_fences", "trigger_due", "trigger_armed_still", "trigger_facts", "firing_recall",
    "automation_load", "firing_payload", "definitions_of", "delivery_candidates", "delivery_result", "effect_counts", "children",
})
"""Hot queries that give many rows."""

GROUP = 256
"""Write functions that share a commit at most: what waits behind a group waits milliseconds."""


class SqliteSql:
    """`Sql` over one apsw connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._queries: dict[str, Query] = queries("sqlite")

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        sql = self._queries[name].sql
        if name in PACKED:
            return _unpack(self._connection.execute(_packed(self._connection, sql), parameters))
        return list(self._connection.execute(sql, parameters))

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        rows = list(self._connection.execute(self._queries[name].sql, parameters))
        return rows[0] if rows else None

    def run(self, name: str, /, **parameters: Any) -> int:
        for _ in self._connection.execute(self._queries[name].sql, parameters):
            pass
        return self._connection.changes()

    def each(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> list[Row]:
        if not rows:
            return []
        query = self._queries[name]
        shared = [parameters[p] for p in query.parameters]
        found: list[Row] = []
        at = 0
        for size in CHUNKS:
            while len(rows) - at >= size:
                sql = _for_rows(query, size)
                values = [value for row in rows[at : at + size] for value in row] + shared
                if name in PACKED:
                    found += _unpack(self._connection.execute(_packed(self._connection, sql), values))
                else:
                    found += self._connection.execute(sql, values)
                at += size
        return found


@lru_cache(maxsize=1024)
def _for_rows(query: Query, size: int) -> str:
    return query.for_rows(size)


_packed_sql: dict[str, str] = {}


def _packed(connection: apsw.Connection, sql: str) -> str:
    """The query with all its rows in one, as JSON: one step, see `named`."""
    found = _packed_sql.get(sql)
    if found is None:
        width = len(apsw.ext.query_info(connection, sql).description)
        columns = ", ".join(f"c{i}" for i in range(width))
        found = f"WITH packed({columns}) AS ({sql}) SELECT json_group_array(json_array({columns})) FROM packed"
        _packed_sql[sql] = found
    return found


def _unpack(rows: Iterable[Row]) -> list[Row]:
    return [tuple(row) for (text,) in rows for row in json.loads(text)]


class SqliteTransactions:
    """Transaction control over the write connection."""

    def __init__(self, path: str, *, patience: float) -> None:
        self._connection = _connect(path, patience=patience)
        self._sql = SqliteSql(self._connection)

    def begin(self) -> Tx:
        self._connection.execute("BEGIN IMMEDIATE")
        return Tx(self._sql, "sqlite")

    def savepoint(self) -> None:
        self._connection.execute("SAVEPOINT job")

    def release(self) -> None:
        self._connection.execute("RELEASE job")

    def rollback_to(self) -> None:
        self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self.alive():
            with contextlib.suppress(apsw.Error):  # a full disk may have ended it between the two lines
                self._connection.execute("ROLLBACK")

    def alive(self) -> bool:
        return self._connection.in_transaction

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def close(self) -> None:
        self._connection.close()


def translate(error: Exception) -> Exception:
    """A driver's error as this program names it; anything else as it is."""
    why = str(error)
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(
                "the store is locked by another process", why=why,
                next="end the program that holds it (a backup tool, an open SQL shell), or wait and try again",
            )
        case apsw.FullError():
            return StoreUnwritable("the disk that holds the store is full", why=why, next="free some space")
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreUnwritable(
                "the store cannot be written", why=why, next="check the owner and the rights of its folder and files"
            )
        case apsw.IOError():
            return StoreUnwritable("the disk refused a read or a write of the store", why=why, next="check the disk")
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreCorrupt(
                "the store is damaged or is no store", why=why,
                next="keep the file, restore the latest backup beside it, and run `nightporter audit`",
            )
        case apsw.ConstraintError() | apsw.MismatchError() | apsw.TooBigError() | apsw.SQLError():
            return StoreRefused("the store refused a statement", why=why, next="run `nightporter doctor`")
        case apsw.Error():
            return StoreError("the store failed a statement", why=why, next="run `nightporter doctor`")
        case _:
            return error


class SqliteStore:
    """One file. `:memory:` is a real store too, for tests; it has one connection, so reads wait their turn."""

    dialect = "sqlite"

    def __init__(self, path: Path | str, *, now: int, patience: float = 60.0, kick_folder: Path | None = None) -> None:
        """Open, create or migrate. Raises StoreError and its kind.

        `patience` is how many seconds a write waits for another process's lock; `kick_folder` is where processes
        on the same file ring each other.
        """
        self.path = str(path)
        self._memory = self.path == ":memory:"
        self._patience = patience
        if not self._memory:
            _prepare(Path(self.path))
        self.kicks: Kicks = Kicks() if kick_folder is None else DatagramKicks(kick_folder)
        try:
            if self._memory:
                self._shared = SqliteTransactions(self.path, patience=patience)
                _migrate_sqlite(self._shared._connection, None, now)
                self._turn = threading.RLock()
                self.writer = Writer(lambda: _Guarded(self._shared, self._turn), self.kicks.ring, group=GROUP)
            else:
                _refuse_strangers(self.path, patience=patience)
                with contextlib.closing(_connect(self.path, patience=patience)) as connection:
                    _migrate_sqlite(connection, Path(self.path), now)
                self.writer = Writer(
                    lambda: SqliteTransactions(self.path, patience=patience), self.kicks.ring, group=GROUP,
                    pause=self._give_way,
                )
        except BaseException as error:
            self.kicks.close()
            if isinstance(error, apsw.Error):
                raise translate(error) from error
            raise
        self._leader = FileLock(Path(f"{self.path}.leader"))
        self._readers: list[apsw.Connection] = []
        self._readers_lock = threading.Lock()
        self._held_since = 0.0
        self._data_version: tuple[apsw.Connection, int] | None = None

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run a write function; returns once it is durable."""
        return self.writer.write(work)

    def read(self, look: Callable[[Tx], T]) -> T:
        """Run a reading function on one snapshot, on this thread, beside the writer."""
        if self._memory:
            with self._turn:
                tx = self._shared.begin()
                try:
                    return look(tx)
                finally:
                    self._shared.rollback()
        try:
            with self._reader() as connection:
                connection.execute("BEGIN")
                try:
                    return look(Tx(SqliteSql(connection), "sqlite"))
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise translate(error) from error

    def changed_elsewhere(self) -> bool:
        """Whether another process committed since the last call; the first one has none before it, and says that it may
        have. Call it from one thread."""
        if self._memory:
            return False
        if self._data_version is None:
            self._data_version = (_connect(self.path, patience=1.0), -1)
        connection, before = self._data_version
        after = int(next(iter(connection.execute("PRAGMA data_version")))[0])
        self._data_version = (connection, after)
        return before != after

    def lead(self) -> bool:
        """Try to be the one whose sources run, or see that we still are: a file lock beside the store."""
        if self._memory:
            return True
        try:
            return self._leader.take()
        except OSError as error:
            raise StoreUnwritable(f"{self._leader.path} cannot be opened", why=error.strerror or str(error)) from error

    def backup(self, to: Path) -> None:
        """A consistent copy of the store in one file."""
        try:
            with self._reader() as connection:
                _copy(connection, to)
        except apsw.Error as error:
            raise translate(error) from error

    def close(self) -> None:
        self.writer.close()
        self.kicks.close()
        self._leader.let_go()
        if self._memory:
            self._shared.close()
        for connection in self._readers:
            connection.close()
        if self._data_version is not None:
            self._data_version[0].close()

    @contextlib.contextmanager
    def _reader(self) -> Iterator[apsw.Connection]:
        with self._readers_lock:
            connection = self._readers.pop() if self._readers else None
        if connection is None:
            connection = _connect(self.path, patience=self._patience)
            connection.execute("PRAGMA query_only=1")
        try:
            yield connection
        finally:
            with self._readers_lock:
                self._readers.append(connection)

    def _give_way(self) -> None:
        # SQLite's lock is not fair: a writer that never rests starves the other processes on the file.
        now = time.monotonic()
        if now - self._held_since > 0.025:
            self._held_since = now
            if self.kicks.others():
                time.sleep(0.001)


class _Guarded:
    """The transactions of a store in memory, whose one connection readers borrow between groups."""

    def __init__(self, inner: SqliteTransactions, turn: threading.RLock) -> None:
        self._inner = inner
        self._turn = turn

    def begin(self) -> Tx:
        self._turn.acquire()
        return self._inner.begin()

    def commit(self) -> None:
        self._inner.commit()
        self._turn.release()

    def rollback(self) -> None:
        self._inner.rollback()
        self._turn.release()

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _prepare(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreUnwritable(
            f"the store {path} cannot be created", why=error.strerror or str(error),
            next="choose a home that this user may write (NIGHTPORTER_HOME or --home)",
        ) from error


def _refuse_strangers(path: str, *, patience: float) -> None:
    # Before the journal mode is set, which would already change a file that is not ours.
    with contextlib.closing(apsw.Connection(path)) as connection:
        connection.set_busy_timeout(int(patience * 1000))
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    if tables and "setting" not in tables:
        raise StoreCorrupt(
            f"{path} is an SQLite file of another program", why="it has tables, but none of ours",
            next="choose another home, or move the file away",
        )


def _connect(path: str, *, patience: float) -> apsw.Connection:
    connection = apsw.Connection(path, statementcachesize=400)
    connection.set_busy_timeout(int(patience * 1000))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute("PRAGMA cache_size=-65536")
    # The log is folded back every 4,000 pages and never kept larger than 64 MB.
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    connection.execute("PRAGMA journal_size_limit=67108864")
    return connection


def _migrate_sqlite(connection: apsw.Connection, path: Path | None, now: int) -> None:
    def version() -> int:
        known = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'setting'").fetchall()
        if not known:
            return 0
        rows = connection.execute("SELECT value FROM setting WHERE key = 'schema_version'").fetchall()
        return int(str(rows[0][0])) if rows else 0

    def execute(schema: str, number: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if version() < number:  # another process may have been first
                for _ in connection.execute(schema):
                    pass
                connection.execute(
                    "INSERT INTO setting (key, value) VALUES ('schema_version', ?1) "
                    "ON CONFLICT (key) DO UPDATE SET value = excluded.value", (str(number),),
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def back_up(before: int) -> None:
        if path is None:
            return
        connection.execute("BEGIN IMMEDIATE")  # nobody migrates it under our hands
        try:
            if version() == before:  # otherwise another process was first, and has made the backup too
                with contextlib.closing(apsw.Connection(str(path))) as source:
                    _copy(source, path.with_name(f"{path.name}.before-{before + 1:04d}-{now // 1_000_000}"))
        finally:
            connection.execute("ROLLBACK")

    migrate(version, execute, back_up, postgres=False)


def _copy(source: apsw.Connection, to: Path) -> None:
    with contextlib.closing(apsw.Connection(str(to))) as target, target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(1000)
    to.chmod(0o600)
