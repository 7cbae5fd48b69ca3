"""Named queries over one PostgreSQL connection: many rows as arrays, and many statements in one round trip."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, LiteralString

import psycopg
from psycopg import errors as pg

from nightporter.store.named import Query, queries
from nightporter.store.postgres_array import array, says_the_same, single
from nightporter.store.sql_port import Row


class PostgresSql:
    """`Sql` over one psycopg connection. What nobody waits for is sent ahead: the server works on it while the next
    statement is made up here, and many share one round trip."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection
        self._queries: dict[str, Query] = queries("postgres")
        self._ahead: tuple[contextlib.ExitStack, psycopg.Pipeline] | None = None
        """The pipeline that is open while there is something whose answer was not waited for."""
        self.changed = False
        """Whether anything but a look was asked for, since somebody set it back."""

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        return self._run(self._queries[name], parameters).fetchall()

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        return self._run(self._queries[name], parameters).fetchone()

    def run(self, name: str, /, **parameters: Any) -> int:
        return self._run(self._queries[name], parameters).rowcount

    def each(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> list[Row]:
        if not rows:
            return []
        cursor = self._run(self._queries[name], parameters, rows)
        return cursor.fetchall() if cursor.description else []

    def do(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> None:
        if rows:
            pipeline = self._open()
            self._send(self._queries[name], parameters, rows)
            self._sync(pipeline)

    def tell(self, statement: LiteralString) -> None:
        """Send a statement ahead."""
        pipeline = self._open()
        self._connection.execute(statement, prepare=True)
        self._sync(pipeline)

    def ask(self, statement: LiteralString) -> Row | None:
        """The first row that a statement gives."""
        cursor = self._connection.execute(statement, prepare=True)
        self.catch_up()
        return cursor.fetchone()

    def catch_up(self) -> None:
        """Wait for all that was sent ahead. Raises what the first of it that failed raised."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return
        try:
            ahead[0].close()
        except (pg.InFailedSqlTransaction, pg.PipelineAborted) as error:  # it came behind one that failed
            raise error.__context__ or error from None

    def _open(self) -> psycopg.Pipeline:
        if self._ahead is None:
            stack = contextlib.ExitStack()
            self._ahead = stack, stack.enter_context(self._connection.pipeline())
        return self._ahead[1]

    def _sync(self, pipeline: psycopg.Pipeline) -> None:
        """Have the server take what was sent for a whole, without waiting for it. Only then does it count the time for
        which a session in a transaction is silent: what holds locks and says no more is to be ended."""
        self._connection.pgconn.pipeline_sync()
        pipeline.result_queue.append(None)  # where the driver, too, expects the answer to a sync

    def _run(self, query: Query, parameters: dict[str, Any], rows: Sequence[Row] = ()) -> psycopg.Cursor[Row]:
        cursor = self._send(query, parameters, rows)
        self.catch_up()
        return cursor

    def _send(self, query: Query, parameters: dict[str, Any], rows: Sequence[Row]) -> psycopg.Cursor[Row]:
        self.changed = self.changed or not query.looks
        # One value for all, only in what is inserted: a planner that is told a token believes that few runs have it,
        # and looks for those.
        same = []
        for i, (column, values) in enumerate(zip(query.columns, zip(*rows, strict=True), strict=True)):
            if once := len(rows) == 1 or (query.inserts and i > 0 and says_the_same(values)):
                same.append(i)
            parameters[f"rows_{column}"] = single(values[0]) if once else array(values)
        return self._connection.execute(_for_arrays(query, tuple(same)), parameters, prepare=True)


@lru_cache(maxsize=1024)
def _for_arrays(query: Query, same: tuple[int, ...]) -> bytes:
    return (query.for_arrays(same) if query.columns else query.sql).encode()
