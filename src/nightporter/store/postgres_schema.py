"""A PostgreSQL database on its way forward: its number, who is at work on it, the copy made before, and each step."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import errors as pg

from nightporter import logs
from nightporter.errors import StoreUnwritable
from nightporter.store.migrate import WORKERS, backup_name
from nightporter.store.sql_port import Row

log = logs.get(__name__)

_MIGRATION_LOCK = 7_110_462_209_113_001

BUSY_TABLES = (
    "setting", "run", "run_output", "transition", "effect", "child", "delivery", "delivery_try", "firing",
    "firing_payload", "inbox", "worker", "trigger", "automation",
)
AUTOVACUUM = (
    "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1"
)
"""A queue's rows change a few times each and are dead after that; with the server's own 20 % of a large table, a claim
walks over tens of thousands of dead ones before somebody clears them away."""
UNTUNED = """
SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
AND relname = ANY(%s) AND NOT coalesce(array_to_string(reloptions, ' '), '') LIKE '%%autovacuum%%' ORDER BY relname
"""


def tune(connection: psycopg.Connection[Row]) -> None:
    """Have the server clear away early what is dead in the tables of the queue. What somebody has set for a table
    stands; so does everything where the user may not."""
    for (table,) in connection.execute(UNTUNED, (list(BUSY_TABLES),)).fetchall():
        try:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '1s'")  # somebody may be clearing it by hand
                connection.execute(f'ALTER TABLE "{table}" SET ({AUTOVACUUM})'.encode())
        except (pg.InsufficientPrivilege, pg.LockNotAvailable) as error:
            log.info("store.not_tuned", table=table, error=str(error).strip())


class PostgresSchema:
    """A store on its way forward: `migrate.Schema`."""

    def __init__(self, connection: psycopg.Connection[Row], now: int) -> None:
        self._connection = connection
        self._now = now

    def version(self) -> int:
        row = self._connection.execute("SELECT to_regclass('setting')").fetchone()
        if row is None or row[0] is None:
            return 0
        row = self._connection.execute("SELECT value FROM setting WHERE key = 'schema_version'").fetchone()
        return int(row[0]) if row else 0

    def workers(self) -> list[Row]:
        return self._connection.execute(WORKERS).fetchall()

    def back_up(self, before: int) -> Callable[[], None] | None:
        # A copy inside the same database, in a schema of its own: tables with their keys, so that the older program
        # can work there. What the server is lost with, it is lost with too: pg_dump is not its business.
        name = f"nightporter_{backup_name(before + 1, self._now)}".replace("-", "_").lower()
        connection = self._connection
        connection.execute("SELECT pg_advisory_lock(%s)", (_MIGRATION_LOCK,))
        try:
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                if self.version() != before:
                    return None
                connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())
                connection.execute(f'CREATE SCHEMA "{name}"'.encode())
                tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
                for (table,) in tables.fetchall():
                    connection.execute(f'CREATE TABLE "{name}"."{table}" (LIKE "{table}" INCLUDING ALL)'.encode())
                    connection.execute(f'INSERT INTO "{name}"."{table}" TABLE "{table}"'.encode())
        except (pg.InsufficientPrivilege, pg.DiskFull) as error:
            raise StoreUnwritable(
                "the backup of the store before it is migrated cannot be made", why=str(error).strip(),
                next="give the database's user the right to create a schema, and room for a second copy of the tables; "
                     "nothing was changed",
            ) from error
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATION_LOCK,))
        return lambda: self._drop(name)

    def apply(self, schema: str, number: int) -> None:
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            if self.version() < number:
                if number > 1:  # whoever writes has read it in its transaction: see `PostgresTransactions.begin`
                    self._connection.execute("LOCK TABLE setting IN ACCESS EXCLUSIVE MODE")
                self._connection.execute(schema.encode())
                self._connection.execute(
                    "INSERT INTO setting (key, value) VALUES ('schema_version', %s) "
                    "ON CONFLICT (key) DO UPDATE SET value = excluded.value", (str(number),),
                )

    def _drop(self, name: str) -> None:
        self._connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())
