"""The SQLite file: connecting, creating, refusing strangers, migrating, copying; and what its errors mean."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import apsw

from nightporter.errors import StoreCorrupt, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store.migrate import OURS, WORKERS, backup_name, migrate, newest, refuse_newer
from nightporter.store.sql_port import Row

THERE = apsw.SQLITE_OPEN_READWRITE
"""Opens no file that is not there: by default SQLite makes one, in place of a store that was deleted."""
LARGE_LOG = 67_108_864
"""Bytes. A log is as large as what was written since the oldest reader began; then it is cut to this."""


def prepare(path: Path, *, patience: float, now: int) -> None:
    """Make the store where there is none, whole or not at all: an empty file is none of ours. Raises StoreError."""
    try:
        if not path.exists():
            missing = [folder for folder in path.parents if not folder.exists()]
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make(path, patience=patience, now=now)
            # A name is in its folder's keeping: what is committed is of no use in a file that nobody finds again.
            for folder in (path.parent, *(made.parent for made in missing)):
                _sync_folder(folder)
        elif path.stat().st_size == 0:
            raise StoreCorrupt(
                f"the store {path} is empty", why="a store never is: what was in it is lost, or it is another's file",
                next="restore the latest backup; for a new store remove the empty file",
            )
    except OSError as error:
        raise StoreUnwritable(
            f"the store {path} cannot be created", why=error.strerror or str(error),
            next="choose a home that this user may write (NIGHTPORTER_HOME or --home)",
        ) from error


def _make(path: Path, *, patience: float, now: int) -> None:
    making = path.with_name(f"{path.name}.making")
    descriptor = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # whoever makes it too waits here
        if path.exists():
            return
        for left in ("", "-wal", "-shm", "-journal"):  # by one that died over it
            path.with_name(f"{making.name}{left}").unlink(missing_ok=True)
        os.close(os.open(making, os.O_CREAT | os.O_RDWR, 0o600))
        with contextlib.closing(connect(str(making), patience=patience)) as connection:
            migrate(SqliteSchema(connection, None, now), postgres=False, lease=0.0)
        making.replace(path)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_strangers(path: str, *, patience: float) -> None:
    """Raises StoreCorrupt for a file of another program, and StoreNewer for one of a newer one; neither is changed."""
    # Before the journal mode is set, which would already change a file that is not ours.
    beside = Path(f"{path}-wal")
    kept = beside.exists() and beside.stat().st_size > 0
    with contextlib.closing(apsw.Connection(path, flags=THERE)) as connection:
        if kept:  # whoever closes a store last folds its log back, and that is a change too
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(int(patience * 1000))
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
        if tables and not tables >= OURS:
            raise StoreCorrupt(
                f"{path} is an SQLite file of another program", why="it has tables, and lacks ours",
                next="choose another home, or move the file away",
            )
        refuse_newer(schema_of(connection), newest())


WRITERS_PAGES, READERS_PAGES = 32_768, 8_192
"""Kilobytes that a connection keeps: so a desk stays small, however large its store. The kernel keeps the rest."""


def connect(path: str, *, patience: float, pages: int = WRITERS_PAGES) -> apsw.Connection:
    """Read and write a store that is there. Raises apsw.CantOpenError where none is, and makes none."""
    connection = apsw.Connection(path, flags=THERE, statementcachesize=400)
    connection.set_busy_timeout(int(patience * 1000))
    # Plans do not depend on bound values. Otherwise SQLite prepares a statement again whenever one changes that was
    # compared with the condition of a partial index: 0.2 ms a time, more than most of our statements take to run.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute(f"PRAGMA cache_size=-{pages}")
    # The log is folded back every 4,000 pages and never kept larger than 64 MB.
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    connection.execute(f"PRAGMA journal_size_limit={LARGE_LOG}")
    return connection


class Files:
    """The store's file and its log as they were when a connection opened them: under another file, or none, of that
    name what is committed would be found by nobody."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._log = f"{path}-wal"
        self._is = _which(self._path)
        self._log_is: tuple[int, int] | None = None

    def know_the_log(self) -> None:
        """Something was committed: its log is there from now on."""
        if self._log_is is None:
            self._log_is = _which(self._log)

    def refuse_others(self) -> None:
        """Raises StoreCorrupt when the file or the log is not what was opened."""
        if self._is != _which(self._path):
            lost = self._path
        elif self._log_is is not None and self._log_is != _which(self._log):
            lost = self._log
        else:
            return
        raise StoreCorrupt(
            f"{lost} was deleted or replaced while the store was open",
            why="what was written now would be lost with it",
            next="stop the desk, put the file or the latest backup back, and start it again",
        )


def _which(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116  before each group of writes
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect_reading(path: str, *, patience: float) -> apsw.Connection:
    """For a file that this user cannot write, or beside which nothing can be written. Raises apsw.Error.

    A file without a log beside it is whole by itself, and nobody is writing to it.
    """
    def reader(how: str) -> apsw.Connection:
        connection = apsw.Connection(f"file:{quote(path)}?{how}",
                                     flags=apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(int(patience * 1000))
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    try:
        return reader("mode=ro")
    except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.FullError):
        if any(Path(f"{path}-{beside}").exists() for beside in ("wal", "shm")):
            raise
        return reader("mode=ro&immutable=1")


def schema_of(connection: apsw.Connection) -> int:
    """The number of a store's schema; 0 for an empty one. Raises StoreCorrupt where there is one and no number."""
    known = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'setting'").fetchall()
    if not known:
        return 0
    rows = connection.execute("SELECT value FROM setting WHERE key = 'schema_version'").fetchall()
    number = str(rows[0][0]) if rows else ""
    if not number.isdecimal() or len(number) > 6:
        raise StoreCorrupt(
            "the store does not say which schema it has", why=f"its schema_version is {number[:40]!r}" if rows else
            "the row schema_version of its settings is gone", next="restore the latest backup beside it",
        )
    return int(number)


class SqliteSchema:
    """A store on its way forward: `migrate.Schema`. `path` is None in memory, where there is nothing to keep."""

    def __init__(self, connection: apsw.Connection, path: Path | None, now: int) -> None:
        self._connection = connection
        self._path = path
        self._now = now

    def version(self) -> int:
        return schema_of(self._connection)

    def workers(self) -> list[Row]:
        return list(self._connection.execute(WORKERS))

    def back_up(self, before: int) -> Callable[[], None] | None:
        if self._path is None:
            return None
        to = self._path.with_name(f"{self._path.name}.{backup_name(before + 1, self._now)}")
        self._connection.execute("BEGIN IMMEDIATE")  # nobody migrates it under our hands
        try:
            if self.version() != before:
                return None
            for left in self._path.parent.glob(f"{self._path.name}.before-*{PART}"):
                left.unlink()  # of a process that died while it copied
            with contextlib.closing(apsw.Connection(str(self._path), flags=THERE)) as source:
                copy_to(source, to)
        except (apsw.FullError, apsw.IOError) as error:
            size = self._path.stat().st_size // 1_000_000 + 1
            raise StoreUnwritable(
                "the backup of the store before it is migrated cannot be written", why=str(error),
                next=f"see that {self._path.parent} has {size} MB free, and start again; nothing was changed",
            ) from error
        finally:
            self._connection.execute("ROLLBACK")
        return lambda: to.unlink(missing_ok=True)

    def apply(self, schema: str, number: int) -> None:
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            if self.version() < number:
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


PART = ".part"


def copy_to(source: apsw.Connection, to: Path) -> None:
    """Copy a database into a file that appears whole or not at all. Raises StoreUnwritable."""
    part = to.with_name(f"{to.name}{PART}")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreUnwritable(f"the copy {to} cannot be made", why=error.strerror or str(error)) from error
    try:
        with contextlib.closing(apsw.Connection(str(part))) as target, target.backup("main", source, "main") as copy:
            while not copy.done:
                copy.step(1000)
        part.replace(to)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(to.parent)  # its name is to last as long as what is in it


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
        case UnicodeEncodeError():
            return StoreRefused("the store refused a text", why=f"it holds half a character: {why}",
                                next="write it without")
        case apsw.Error():
            return StoreError("the store failed a statement", why=why, next="run `nightporter doctor`")
        case _:
            return error
