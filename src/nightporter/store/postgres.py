"""PostgreSQL through psycopg 3: one writer connection per process, a pool of readers, LISTEN/NOTIFY for kicks.

Each write function is its own transaction here: the stages already collect their work into batches, and
functions that share a transaction would hold each other's row locks in an order nobody chose. A rider uses
SKIP LOCKED only, so it waits for nobody.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg_pool import ConnectionPool, PoolTimeout

from nightporter import logs
from nightporter.clock import SECOND, Clock, Instant
from nightporter.errors import (
    BadInput,
    StoreCorrupt,
    StoreEntangled,
    StoreError,
    StoreLocked,
    StoreRefused,
    StoreUnwritable,
)
from nightporter.store.kicks import Kicks
from nightporter.store.migrate import OURS, as_number, migrate, newest, refuse_newer
from nightporter.store.named import Query, queries
from nightporter.store.postgres_array import array, says_the_same, single
from nightporter.store.postgres_kicks import PostgresKicks
from nightporter.store.postgres_link import Line, Link
from nightporter.store.postgres_schema import PostgresSchema, tune
from nightporter.store.server_clock import ServerClock
from nightporter.store.sql_port import Row
from nightporter.store.tx import Tx
from nightporter.store.writer import Writer

T = TypeVar("T")
log = logs.get(__name__)

WHAT_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
WORTH_A_LINE = SECOND
"""What our clock may differ from the server's by before it is said."""


class PostgresSql:
    """`Sql` over one psycopg connection."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._queries: dict[str, Query] = queries("postgres")

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        return self._connection.execute(self._queries[name].sql.encode(), parameters, prepare=True).fetchall()

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        return self._connection.execute(self._queries[name].sql.encode(), parameters, prepare=True).fetchone()

    def run(self, name: str, /, **parameters: Any) -> int:
        return self._connection.execute(self._queries[name].sql.encode(), parameters, prepare=True).rowcount

    def each(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> list[Row]:
        if not rows:
            return []
        query = self._queries[name]
        # Only of what is inserted: a planner that is told a token believes that few runs have it, and looks for those.
        same = []
        for i, (column, values) in enumerate(zip(query.columns, zip(*rows, strict=True), strict=True)):
            if once := len(rows) == 1 or (query.inserts and i > 0 and says_the_same(values)):
                same.append(i)
            parameters[f"rows_{column}"] = single(values[0]) if once else array(values)
        cursor = self._connection.execute(_for_arrays(query, tuple(same)), parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []


@lru_cache(maxsize=1024)
def _for_arrays(query: Query, same: tuple[int, ...]) -> bytes:
    return query.for_arrays(same).encode()


class PostgresTransactions:
    """Transaction control over the write connection; opens a new one when the old one broke."""

    def __init__(self, link: Link, *, patience: float) -> None:
        self._link = link
        self._patience = patience
        self._newest = newest()
        self._connection: psycopg.Connection[Row] = link.connect()
        self._saved = False
        """The savepoint that comes with a transaction is there, and not used yet."""
        self._number: str | None = None
        """The server's number of the transaction under way, once something was written in it."""

    def begin(self) -> Tx:
        self._number = None
        if self._connection.closed or self._connection.broken:
            self._connection = self._reconnect()
        try:
            version = self._begin()
        except psycopg.OperationalError:  # the server hung up while we were idle; nothing was lost
            self._connection = self._reconnect()
            version = self._begin()
        refuse_newer(version, self._newest)
        return Tx(PostgresSql(self._connection), "postgres")

    def _begin(self) -> int:
        """The number of the schema, which stays what it is until this transaction ends: a migration waits for whoever
        has read it. The first savepoint comes with it, so that it costs no round trip."""
        cursor = self._connection.execute(
            "BEGIN; SELECT value FROM setting WHERE key = 'schema_version'; SAVEPOINT job"
        )
        self._saved = True
        cursor.nextset()
        return as_number(cursor.fetchone())

    def savepoint(self) -> None:
        if not self._saved:
            self._connection.execute("SAVEPOINT job")
        self._saved = False

    def release(self) -> None:
        # The number comes with the answer, so that it costs no round trip; it is for a commit that gets none.
        cursor = self._connection.execute("RELEASE job; SELECT pg_current_xact_id_if_assigned()::text")
        cursor.nextset()
        row = cursor.fetchone()
        self._number = None if row is None else row[0]

    def rollback_to(self) -> None:
        self._connection.execute("ROLLBACK TO job")
        self._connection.execute("RELEASE job")

    def commit(self) -> None:
        """Raises StoreError when the server hung up and it cannot be learnt whether it had committed."""
        try:
            self._connection.execute("COMMIT")
        except psycopg.OperationalError as error:
            if not self._connection.broken or not self._was_committed(error):
                raise

    def _was_committed(self, error: psycopg.OperationalError) -> bool:
        """Whether a transaction was committed whose COMMIT got no answer."""
        if self._number is None:
            return True  # nothing was written
        lost = self._connection.info.backend_pid
        until = time.monotonic() + self._patience
        status: str | None = "in progress"
        try:
            while status == "in progress" and time.monotonic() < until:
                if self._connection.broken:
                    self._connection = self._reconnect()
                # What still runs there has no one left to answer; it is ended, and only if it is that transaction.
                [(status, _)] = self._connection.execute(
                    "SELECT pg_xact_status(%(number)s::xid8), (SELECT count(pg_terminate_backend(pid, 1000)) "
                    "FROM pg_stat_activity WHERE pid = %(pid)s AND backend_xid = %(number)s::xid8::xid)",
                    {"number": self._number, "pid": lost},
                ).fetchall()
        except psycopg.Error as again:
            status = str(again).strip()
        if status in ("committed", "aborted"):
            return status == "committed"
        raise StoreError(
            "the database hung up while it committed, and nobody knows whether it had",
            why=f"{str(error).strip()}; asked for the transaction {self._number}: {status or 'too long ago'}",
            next="look whether it was done before you do it again",
        ) from error

    def rollback(self) -> None:
        with contextlib.suppress(psycopg.Error):  # a broken connection has no transaction left to end
            self._connection.execute("ROLLBACK")

    def alive(self) -> bool:
        status = self._connection.info.transaction_status
        return status in (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR)

    def wrote(self) -> bool:
        return self._number is not None

    def translate(self, error: Exception) -> Exception:
        return translate(error)

    def close(self) -> None:
        self._connection.close()

    def _reconnect(self) -> psycopg.Connection[Row]:
        until = time.monotonic() + self._patience
        while True:
            try:
                return self._link.connect()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


def translate(error: Exception) -> Exception:
    """A driver's error as this program names it; anything else as it is."""
    why = str(error).strip()
    match error:
        case pg.DeadlockDetected() | pg.SerializationFailure():
            return StoreEntangled("another process waited for the same rows", why=why, next="try again")
        case pg.LockNotAvailable():
            return StoreLocked("another process holds the rows", why=why, next="try again")
        case pg.DiskFull() | pg.ReadOnlySqlTransaction() | pg.InsufficientPrivilege():
            return StoreUnwritable("the database cannot be written", why=why, next="check its disk and your rights")
        case pg.DataCorrupted() | pg.IndexCorrupted():
            return StoreCorrupt("the database is damaged", why=why, next="restore a backup")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreError(
                "the database cannot be reached", why=why, next="check that the server runs and the address"
            )
        case psycopg.DataError() | psycopg.IntegrityError() | psycopg.ProgrammingError() | psycopg.NotSupportedError():
            return StoreRefused("the database refused a statement", why=why, next="run `nightporter doctor`")
        case UnicodeEncodeError():
            return StoreRefused("the database refused a text", why=f"it holds half a character: {why}",
                                next="write it without")
        case psycopg.Error():
            return StoreError("the database failed a statement", why=why, next="run `nightporter doctor`")
        case _:
            return error


class PostgresStore:
    """One database, shared by the desks and workers of several machines."""

    dialect = "postgres"
    read_only: StoreUnwritable | None = None

    def __init__(
        self, url: str, *, now: int, patience: float = 60.0, silence: float = 15.0, lease: float = 60.0
    ) -> None:
        """Connect and migrate. Raises StoreError and its kind. `patience`: seconds to wait for a lost server;
        `silence`: seconds without an answer after which it is asked whether it still works on one; `lease`: seconds
        that a worker's counter stands still before it counts as dead."""
        self.url = url
        self._clock: tuple[Clock, ServerClock] | None = None
        self._link = Link(url, silence=silence)
        try:
            with self._link.connect() as connection:
                _refuse_strangers(connection)
                migrate(PostgresSchema(connection, now), postgres=True, lease=lease)
                tune(connection)
            self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
                min_size=0, max_size=8, open=True, timeout=patience, connection_class=Line,
                kwargs={**self._link.parameters, "autocommit": True}, configure=self._link.look_after,
            )
            self.kicks: Kicks = PostgresKicks(self._link)
            self.writer = Writer(
                lambda: PostgresTransactions(self._link, patience=patience), self.kicks.ring, group=1
            )
        except (psycopg.Error, StoreError) as error:
            self._link.close()
            raise translate(error) from error

    def clock(self, own: Clock) -> Clock:
        """The server's: machines that share it shall agree on the time. Raises StoreError."""
        self._clock = own, ServerClock(own)
        self.set_clock()
        return self._clock[1]

    def set_clock(self) -> None:
        """Look at the server's clock again."""
        if self._clock is None:
            return
        own, ours = self._clock

        try:
            with self._pool.connection() as connection:
                asked = own.elapsed()
                row = connection.execute(WHAT_TIME).fetchone()
                heard = own.elapsed()
        except psycopg.Error as error:
            raise translate(error) from error
        assert row is not None
        off = ours.set(Instant(row[0]), asked, heard)
        if abs(off) > WORTH_A_LINE:
            log.warning("store.clock_set", off=f"{off / SECOND:.3f}s")

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run a write function; returns once it is durable."""
        return self.writer.write(work)

    def read(self, look: Callable[[Tx], T]) -> T:
        """Run a reading function on one snapshot, on this thread, beside the writer."""
        try:
            try:
                return self._look(look)
            except PoolTimeout:
                raise
            except psycopg.OperationalError:
                # The server hung up since the connection was last used. Reading changes nothing, so it is done again.
                self._pool.check()
                return self._look(look)
        except psycopg.Error as error:
            raise translate(error) from error

    def _look(self, look: Callable[[Tx], T]) -> T:
        with self._pool.connection() as connection, _snapshot(connection):
            return look(Tx(PostgresSql(connection), "postgres"))

    def changed(self) -> bool:
        """PostgreSQL rings by NOTIFY; there is nothing cheaper to ask than the tables themselves."""
        return True

    def backup(self, to: Path) -> None:
        raise BadInput(
            "this store is a PostgreSQL database", why="its backups are the server's business",
            next="use pg_dump or your provider's snapshots",
        )

    def tend(self) -> None:
        """The server's business; see `postgres_schema.tune` for what is asked of it."""

    def close(self) -> None:
        self.writer.close()
        self.kicks.close()
        self._pool.close()
        self._link.close()


@contextlib.contextmanager
def _snapshot(connection: psycopg.Connection[Row]) -> Iterator[None]:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    finally:
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            connection.execute("ROLLBACK")


def _refuse_strangers(connection: psycopg.Connection[Row]) -> None:
    rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
    tables = {row[0] for row in rows}
    if tables and not tables >= OURS:
        raise StoreCorrupt(
            "the database holds the tables of another program",
            why=f"it has {', '.join(sorted(tables)[:5])}, and lacks {', '.join(sorted(OURS - tables))}",
            next="make a database for this desk alone, or give it a schema by ?options=-csearch_path%3Dnightporter",
        )
