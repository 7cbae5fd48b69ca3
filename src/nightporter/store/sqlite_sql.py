"""Named queries on SQLite: many rows in one statement, both ways, and what all of them share bound once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import apsw
import apsw.ext

from nightporter.store.named import Query, queries
from nightporter.store.sql_port import Row

CHUNKS = (64, 32, 16, 8, 4, 2, 1)
"""Rows in one statement; each size is a statement of its own, prepared once. A statement by itself costs as much as
some rows, so that few are to do for any number of them. The driver keeps none that is longer than 16 KB."""
ALIKE = 32
"""Rows of which it is worth looking what they have in common."""
PACKED = frozenset({
    "run_candidates", "run_fences", "trigger_due", "trigger_due_next", "trigger_armed_still", "trigger_facts",
    "firing_recall", "automation_load", "firing_payload", "definitions_of", "delivery_candidates", "delivery_result",
    "effect_counts", "children",
})
"""Hot queries that give many rows."""


class SqliteSql:
    """`Sql` over one apsw connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._queries: dict[str, Query] = queries("sqlite")

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        sql = self._queries[name].sql
        if name in PACKED:
            return _unpack(self._execute(_packed(self._connection, sql), parameters))
        return list(self._execute(sql, parameters))

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        rows = list(self._execute(self._queries[name].sql, parameters))
        return rows[0] if rows else None

    def run(self, name: str, /, **parameters: Any) -> int:
        for _ in self._execute(self._queries[name].sql, parameters):
            pass
        return self._connection.changes()

    def _execute(self, sql: str, values: Any) -> apsw.Cursor:
        """SQLite undoes a whole transaction by itself where a disk is full or fails. What comes then, from somebody who
        heard nothing of it, would be written by itself, and stay."""
        if not self._connection.in_transaction:
            raise apsw.AbortError("the transaction was undone before its end")
        return self._connection.execute(sql, values)

    def each(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> list[Row]:
        if not rows:
            return []
        query = self._queries[name]
        shared = [parameters[p] for p in query.parameters]
        same: tuple[int, ...] = ()
        if len(rows) >= ALIKE:
            same, rows, once = _apart(rows)
            shared += once
        found: list[Row] = []
        at = 0
        for size in CHUNKS:
            while len(rows) - at >= size:
                sql = _for_rows(name, size, same)
                values = [value for row in rows[at : at + size] for value in row] + shared
                if name in PACKED:
                    found += _unpack(self._execute(_packed(self._connection, sql), values))
                else:
                    found += self._execute(sql, values)
                at += size
        return found


def _apart(rows: Sequence[Row]) -> tuple[tuple[int, ...], Sequence[Row], list[Any]]:
    """What is the same in all rows, bound once: `(columns, rows without them, their values)`. A bound value costs as
    much as a good part of the row it is written to."""
    columns = list(zip(*rows, strict=True))
    same = tuple(i for i, c in enumerate(columns[1:], 1) if c[0] == c[-1] and c.count(c[0]) == len(c))
    if not same:
        return same, rows, []
    apart = frozenset(same)
    others = list(zip(*[c for i, c in enumerate(columns) if i not in apart], strict=True))
    return same, others, [columns[i][0] for i in same]


@lru_cache(maxsize=1024)
def _for_rows(name: str, size: int, same: tuple[int, ...]) -> str:
    return queries("sqlite")[name].for_rows(size, same)


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
