"""The SQLite file: connecting, creating, refusing strangers, migrating, copying; and what its errors mean."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from urllib.parse import quote

import apsw

from nightporter.errors import StoreCorrupt, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store.migrate import migrate


def prepare(path: Path) -> None:
    try:
        missing = [folder for folder in path.parents if not folder.exists()]
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            # A name is in its folder's keeping: what is committed is of no use in a file that nobody finds again.
            for folder in (path.parent, *(made.parent for made in missing)):
                _sync_folder(folder)
    except OSError as error:
        raise StoreUnwritable(
            f"the store {path} cannot be created", why=error.strerror or str(error),
            next="choose a home that this user may write (NIGHTPORTER_HOME or --home)",
        ) from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_strangers(path: str, *, patience: float) -> None:
    # Before the journal mode is set, which would already change a file that is not ours.
    with contextlib.closing(apsw.Connection(path)) as connection:
        connection.set_busy_timeout(int(patience * 1000))
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    if tables and "setting" not in tables:
        raise StoreCorrupt(
            f"{path} is an SQLite file of another program", why="it has tables, but none of ours",
            next="choose another home, or move the file away",
        )


def connect(path: str, *, patience: float) -> apsw.Connection:
    connection = apsw.Connection(path, statementcachesize=400)
    connection.set_busy_timeout(int(patience * 1000))
    # Plans do not depend on bound values. Otherwise SQLite prepares a statement again whenever one changes that was
    # compared with the condition of a partial index: 0.2 ms a time, more than most of our statements take to run.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute("PRAGMA cache_size=-65536")
    # The log is folded back every 4,000 pages and never kept larger than 64 MB.
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    connection.execute("PRAGMA journal_size_limit=67108864")
    return connection


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


def migrate_file(connection: apsw.Connection, path: Path | None, now: int) -> None:
    def version() -> int:
        return schema_of(connection)

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
                    copy_to(source, path.with_name(f"{path.name}.before-{before + 1:04d}-{now // 1_000_000}"))
        finally:
            connection.execute("ROLLBACK")

    migrate(version, execute, back_up, postgres=False)


def copy_to(source: apsw.Connection, to: Path) -> None:
    with contextlib.closing(apsw.Connection(str(to))) as target, target.backup("main", source, "main") as copy:
        while not copy.done:
            copy.step(1000)
    to.chmod(0o600)


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
