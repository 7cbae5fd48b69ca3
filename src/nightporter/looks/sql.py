"""sql: a query that looks into a database: an SQLite file, or PostgreSQL.

It can only read, and the connection sees to that, not the text of the query: an SQLite file is opened for reading and
asked to allow nothing but reading; a PostgreSQL session is read-only, and takes one statement that must be a query.
What a function of the server does on its own account is bounded by the rights of the user it is asked as.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nightporter.errors import BadInput
from nightporter.looks.aside import OutOfTime, within
from nightporter.outside import secrets
from nightporter.outside.options import mapping, need
from nightporter.rules.looks import OUTPUT_LIMIT, ROWS, TIMEOUT, failed, of_rows
from nightporter.runners import exits
from nightporter.runners.workplace import absolute
from nightporter.words import ErrorClass, Seen, Started, Work

_KEYS = ("query", "store")
_SERVERS = ("postgresql://", "postgres://")
_REFERENCES = ("env:", "file:")
_STEPS = 10_000
"""Of SQLite's machine between two looks whether somebody still waits."""


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`query`: one statement. `store`: a file, an address `postgresql://` without a password, or a reference to one of
    them (`env:NAME`, `file:/path`). Raises BadInput."""
    given = mapping(config, "sql", known=_KEYS, short="query")
    query = need(given, "sql", "query", "query: SELECT count(*) FROM orders WHERE open")
    if not isinstance(query, str) or not query.strip():
        raise BadInput("`sql.query` is no text", why="it is one statement", next="for example SELECT count(*) FROM t")
    store = need(given, "sql", "store", "store: orders.db, or store: env:ORDERS_URL")
    if not isinstance(store, str) or not store.strip():
        raise BadInput("`sql.store` is no text", why="it names a database", next="write a file, or env:NAME")
    if store.startswith(_REFERENCES):
        secrets.check_reference(store, "sql.store")
    elif store.startswith(_SERVERS):
        _without_password(store)
    elif "://" in store:
        raise BadInput(f"`sql.store` cannot be {store.split('://')[0]}://", why="it is an SQLite file or PostgreSQL",
                       next="write a path, postgresql://..., or a reference to one of them")
    else:
        given["store"] = absolute(store, folder)
    return given


def _without_password(address: str) -> None:
    try:
        parts = urlsplit(address)
        spoken = parts.password is not None or "password=" in parts.query
    except ValueError:
        raise BadInput("`sql.store` is no address", why="it cannot be taken apart",
                       next="for example postgresql://user@host/name") from None
    if spoken:
        raise BadInput("`sql.store` has a password in it",
                       why="a secret written into a definition would be stored and shown",
                       next="name a reference such as env:ORDERS_URL instead")


class Sql:
    """Asks databases, on a thread of its own."""

    kind = "sql"
    launches = False

    def __init__(self, limit: timedelta = TIMEOUT) -> None:
        self._limit = limit

    async def look(self, config: Mapping[str, Any], work: Work, before: Any, started: Started) -> Seen:
        store = config["store"]
        try:
            if store.startswith(_REFERENCES):
                store = secrets.resolve(store)
        except BadInput as error:
            return failed(ErrorClass.CONFIGURATION, exits.one_line(error))
        ask = _of_server if store.startswith(_SERVERS) else _of_file
        try:
            return await within(self._limit, lambda over: ask(store, config["query"], self._limit, over))
        except OutOfTime:
            return failed(ErrorClass.TIMEOUT, f"the query took longer than {self._limit.total_seconds():g} s")


def _of_file(path: str, query: str, limit: timedelta, over: threading.Event) -> Seen:
    import apsw

    reads = {apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION, apsw.SQLITE_RECURSIVE}

    def only_reads(action: int, *_: object) -> int:
        return int(apsw.SQLITE_OK if action in reads else apsw.SQLITE_DENY)

    if not Path(path).is_file():
        return failed(ErrorClass.CONFIGURATION, f"the database {path!r} is not there")
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.set_busy_timeout(round(limit.total_seconds() * 1000))
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, OUTPUT_LIMIT * 16)
            connection.set_progress_handler(over.is_set, _STEPS)
            connection.authorizer = only_reads
            rows: list[Sequence[Any]] = []
            columns: list[str] = []
            cursor = connection.execute(_bounded(query))
            for row in cursor:
                columns = columns or [str(each[0]) for each in cursor.get_description()]
                rows.append(row)
        finally:
            connection.close(True)
    except apsw.AuthError as error:
        return failed(ErrorClass.PERMISSION, f"the query does more than read: {error}")
    except apsw.BusyError as error:
        return failed(ErrorClass.TRANSIENT, f"the database is locked: {error}")
    except apsw.Error as error:
        return failed(ErrorClass.CONFIGURATION, f"the query cannot be answered: {error}")
    return of_rows(columns, rows)


def _of_server(address: str, query: str, limit: timedelta, over: threading.Event) -> Seen:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    milliseconds = max(1, round(limit.total_seconds() * 1000))
    ours = f"-c default_transaction_read_only=on -c statement_timeout={milliseconds}"
    try:
        options = f"{conninfo_to_dict(address).get('options') or ''} {ours}".lstrip()
        with psycopg.connect(address, options=options, connect_timeout=10, tcp_user_timeout=milliseconds) as connection:
            connection.read_only = True
            # Prepared, so that the server takes one statement and no second one behind it.
            cursor = connection.execute(_bounded(query).encode(), prepare=True)
            rows = cursor.fetchall()
            columns = [each.name for each in cursor.description or ()]
    except (psycopg.errors.ReadOnlySqlTransaction, psycopg.errors.InsufficientPrivilege) as error:
        return failed(ErrorClass.PERMISSION, f"the query does more than it may: {_first_line(error)}")
    except psycopg.errors.QueryCanceled:
        return failed(ErrorClass.TIMEOUT, f"the query took longer than {limit.total_seconds():g} s")
    except psycopg.OperationalError as error:
        return failed(ErrorClass.TRANSIENT, f"the database cannot be reached: {_first_line(error)}")
    except (psycopg.Error, ValueError) as error:
        return failed(ErrorClass.CONFIGURATION, f"the query cannot be answered: {_first_line(error)}")
    return of_rows(columns, rows)


def _bounded(query: str) -> str:
    """The query within one that takes nothing but a query, and not too much of what that gives."""
    return f"SELECT * FROM (\n{query.strip().rstrip(';')}\n) AS look LIMIT {ROWS + 1}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
