"""SQLite through apsw: WAL, synchronous=FULL, one writer thread with group commit, readers beside it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import apsw

from nightporter.clock import Clock
from nightporter.errors import StoreUnwritable
from nightporter.store.guarded import Guarded
from nightporter.store.kicks import DatagramKicks, Kicks
from nightporter.store.migrate import as_number, migrate, newest, refuse_newer
from nightporter.store.sqlite_file import (
    READERS_PAGES,
    Files,
    SqliteSchema,
    connect,
    connect_reading,
    copy_to,
    prepare,
    refuse_strangers,
    schema_of,
    translate,
)
from nightporter.store.sqlite_log import Log
from nightporter.store.sqlite_sql import SqliteSql
from nightporter.store.tx import Tx
from nightporter.store.writer import Writer

T = TypeVar("T")

GROUP = 256
"""Write functions that share a commit at most: what waits behind a group waits milliseconds."""


class SqliteTransactions:
    """Transaction control over the write connection."""

    def __init__(self, path: str, *, patience: float) -> None:
        self._patience = patience
        self._connection = connect(path, patience=patience)
        self._sql = SqliteSql(self._connection)
        self._newest = newest()
        self._files = None if path == ":memory:" else Files(Path(path))
        self._full = False
        self._changes = 0
        """Of this connection, before the transaction under way."""
        self._saved = False
        """Whether what is under way has a savepoint."""
        self._undone = False
        """All of it was undone: whoever comes next begins anew."""

    def begin(self) -> Tx:
        if self._files is not None:
            self._files.refuse_others()
        if self._full:
            # The log itself may be what fills the disk: folding it back is the only way out that needs no space.
            self._fold_back_the_log()
            self._full = False
        self._begin()
        return Tx(self._sql, "sqlite")

    def _fold_back_the_log(self) -> None:
        self._connection.set_busy_timeout(0)  # behind a reader there is nothing to be had: nobody waits for one here
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except apsw.Error:
            pass  # then the write that follows says what is wrong
        finally:
            self._connection.set_busy_timeout(int(self._patience * 1000))

    def _begin(self) -> None:
        self._undone = False
        self._changes = self._connection.total_changes()
        self._connection.execute("BEGIN IMMEDIATE")
        row = self._sql.one("setting_get", key="schema_version")
        refuse_newer(as_number(row), self._newest)

    def savepoint(self) -> None:
        if self._undone:
            self._begin()
        # Behind one, SQLite copies each page before it is changed. Where nothing is written yet, all can be undone.
        self._saved = self.wrote()
        if self._saved:
            self._connection.execute("SAVEPOINT job")

    def release(self) -> None:
        if self._saved:
            self._connection.execute("RELEASE job")

    def rollback_to(self) -> None:
        if self._saved:
            self._connection.execute("ROLLBACK TO job")
            self._connection.execute("RELEASE job")
        else:
            self._connection.execute("ROLLBACK")
            self._undone = True

    def commit(self) -> None:
        if self._undone:
            return
        self._connection.execute("COMMIT")
        if self._files is not None:
            self._files.know_the_log()

    def rollback(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(apsw.Error):  # a full disk may have ended it between the two lines
                self._connection.execute("ROLLBACK")

    def alive(self) -> bool:
        return self._undone or self._connection.in_transaction

    def wrote(self) -> bool:
        """Whether the transaction under way, or the last one, changed anything by now."""
        return not self._undone and self._connection.total_changes() > self._changes

    def translate(self, error: Exception) -> Exception:
        self._full = self._full or isinstance(error, apsw.FullError)
        return translate(error)

    def close(self) -> None:
        self._connection.close()


class SqliteStore:
    """One file. `:memory:` is a real store too, for tests; it has one connection, so reads wait their turn."""

    dialect = "sqlite"

    def __init__(
        self, path: Path | str, *, now: int, patience: float = 60.0, lease: float = 60.0,
        kick_folder: Path | None = None,
    ) -> None:
        """Open, create or migrate. Raises StoreError and its kind.

        `patience` is how many seconds a write waits for another process's lock, `lease` how many a worker's counter
        stands still before it counts as dead; `kick_folder` is where processes on the same file ring each other.
        """
        self.path = str(path)
        self._memory = self.path == ":memory:"
        self._patience = patience
        if not self._memory:
            try:
                prepare(Path(self.path), patience=patience, now=now)
            except apsw.Error as error:
                raise translate(error) from error
        self.read_only: StoreUnwritable | None = None
        """Why nothing can be written, of a store that was opened all the same, to be read."""
        self.kicks: Kicks = _kicks(kick_folder)
        try:
            if self._memory:
                self._shared = SqliteTransactions(self.path, patience=patience)
                migrate(SqliteSchema(self._shared._connection, None, now), postgres=False, lease=lease)
                self._turn = threading.RLock()
                self.writer = Writer(lambda: Guarded(self._shared, self._turn), self.kicks.ring, group=GROUP)
            else:
                self.writer = self._open_file(now, lease)
        except BaseException as error:
            self.kicks.close()
            if isinstance(error, apsw.Error):
                raise translate(error) from error
            raise
        self._readers: list[apsw.Connection] = []
        self._readers_lock = threading.Lock()
        self._held_since = 0.0
        self._log = Log(self.path)
        self._data_version: tuple[apsw.Connection, int] | None = None

    def _open_file(self, now: int, lease: float) -> Writer:
        """The writer of the file, brought to this program's schema; of one that cannot be written but can be read, a
        writer that takes nothing."""
        try:
            refuse_strangers(self.path, patience=self._patience)
            with contextlib.closing(connect(self.path, patience=self._patience)) as connection:
                migrate(SqliteSchema(connection, Path(self.path), now), postgres=False, lease=lease)
            return Writer(
                lambda: SqliteTransactions(self.path, patience=self._patience), self.kicks.ring, group=GROUP,
                pause=self._give_way,
            )
        except apsw.Error as error:
            unwritable = translate(error)
            if not isinstance(unwritable, StoreUnwritable):
                raise
            try:
                with contextlib.closing(connect_reading(self.path, patience=self._patience)) as connection:
                    schema = schema_of(connection)
            except apsw.Error:
                raise unwritable from error
            if schema != newest():
                raise unwritable from error  # it would have to be brought forward first
            self.read_only = unwritable
            return Writer(lambda: NoTransactions(unwritable), self.kicks.ring, group=GROUP)

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run a write function; returns once it is durable."""
        return self.writer.write(work)

    def read(self, look: Callable[[Tx], T]) -> T:
        """Run a reading function on one snapshot, on this thread, beside the writer."""
        try:
            if self._memory:
                with self._turn:
                    tx = self._shared.begin()
                    try:
                        return look(tx)
                    finally:
                        self._shared.rollback()
            with self._reader() as connection:
                connection.execute("BEGIN")
                try:
                    return look(Tx(SqliteSql(connection), "sqlite"))
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise translate(error) from error

    def changed(self) -> bool:
        """Whether anybody committed since the last call; the first one has none before it, and says that somebody may
        have. Call it from one thread. Raises StoreError."""
        if self._memory:
            return False
        connection, before = self._data_version or (None, -1)
        try:
            if connection is None:
                connection = connect(self.path, patience=1.0)
            after = int(next(iter(connection.execute("PRAGMA data_version")))[0])
        except apsw.Error as error:
            self._data_version = None  # the next call begins anew, on a connection of its own
            if connection is not None:
                connection.close()
            raise translate(error) from error
        self._data_version = (connection, after)
        return before != after

    def clock(self, own: Clock) -> Clock:
        """Who shares a file shares the machine and its clock."""
        return own

    def set_clock(self) -> None:
        pass

    def backup(self, to: Path) -> None:
        """A consistent copy of the store in one file."""
        try:
            with self._reader() as connection:
                copy_to(connection, to)
        except apsw.Error as error:
            raise translate(error) from error

    def tend(self) -> None:
        """Fold the log back beside the writer, and cut it off once nobody writes."""
        if not self._memory and self.read_only is None:
            self._log.tend()

    def close(self) -> None:
        self.writer.close()
        self.kicks.close()
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
        if connection is None and self.read_only is not None:
            connection = connect_reading(self.path, patience=self._patience)
        elif connection is None:
            connection = connect(self.path, patience=self._patience, pages=READERS_PAGES)
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


class NoTransactions:
    """Of a store that can only be read: none begins."""

    def __init__(self, why: StoreUnwritable) -> None:
        self._why = why

    def begin(self) -> Tx:
        raise self._why

    def savepoint(self) -> None: ...

    def release(self) -> None: ...

    def rollback_to(self) -> None: ...

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def alive(self) -> bool:
        return False

    def wrote(self) -> bool:
        return False

    def translate(self, error: Exception) -> Exception:
        return error

    def close(self) -> None: ...


def _kicks(folder: Path | None) -> Kicks:
    """Where no folder can be had, nobody else is rung: they look by themselves each second."""
    try:
        return Kicks() if folder is None else DatagramKicks(folder)
    except OSError:
        return Kicks()
