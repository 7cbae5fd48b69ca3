"""Hostile values: what somebody's hand, a bad disk or another program may have left in a row of the ledger."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw

ESC, BELL, CSI = "\x1b", "\a", "\x9b"
INTEGERS = (10**15, 0, -1, 253_402_300_800_000_000, -62_135_596_800_000_001, 2**62, 2**63 - 1, -(2**63), 7 * 10**15)
"""The year 2001, the epoch, just before it, the first instant after the calendar and the last before it, and so on."""
TEXTS = (
    "", "banana", f"{ESC}[31mred{BELL}{CSI}2J", "{", "[]", "null", "[[[]]]", '{"what": 5, "line": {}}', "Mars/Olympus",
    '["cron","banana","UTC",null]', '["every","15m","Mars/Olympus",0]', '["every","1m","UTC",9223372036854775807]',
    '["moon","x","UTC",null]', '["at","2026-11-03T09:00","UTC","soon"]', "[" * 20_000, "9" * 5000, "\u202egnp.exe",
    '{"n": NaN}', '"\\ud800"',
)
KEYS = frozenset({
    ("automation", "id"), ("automation_version", "automation_id"), ("trigger", "id"), ("trigger", "automation_id"),
    ("run", "id"), ("firing", "id"), ("setting", "key"),
})
"""Columns that say which row it is: what is lost with one is found by nobody."""


@dataclass(frozen=True)
class Column:
    """A column of the ledger."""

    table: str
    name: str
    integer: bool
    key: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"

    @property
    def values(self) -> tuple[int | str, ...]:
        return INTEGERS if self.integer else TEXTS


def columns(store: Path) -> Iterator[Column]:
    """Every column that can be tampered with while its row is still the same row."""
    with contextlib.closing(apsw.Connection(str(store))) as connection:
        tables = [name for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")]
        for table in tables:
            info = list(connection.execute(f'SELECT name, type, pk FROM pragma_table_info("{table}") ORDER BY cid'))
            key = tuple(name for name, _, place in info if place)
            for name, kind, _ in info:
                if (table, name) not in KEYS:
                    yield Column(table, name, kind == "INTEGER", key)


def spoil(store: Path, column: Column) -> list[tuple[str, int | str]]:
    """Write the hostile values into a column, one row after another, each as often as there are rows for it:
    `(the row's first key, value)` of those that stand."""
    planted: list[tuple[str, int | str]] = []
    with contextlib.closing(apsw.Connection(str(store))) as connection:
        connection.set_busy_timeout(5000)
        rows = list(connection.execute(f"SELECT {', '.join(map(_quoted, column.key))} FROM {_quoted(column.table)}"))
        where = " AND ".join(f"{_quoted(name)} = ?" for name in column.key)
        for number, row in enumerate(rows):
            value = column.values[number % len(column.values)]
            if column == Column("setting", "value", column.integer, column.key) and row[0] == "schema_version":
                continue  # another schema is another program's business
            connection.execute(
                f"UPDATE OR IGNORE {_quoted(column.table)} SET {_quoted(column.name)} = ? WHERE {where}", (value, *row)
            )
            if connection.changes():
                planted.append((str(row[0]), value))
    return planted


def _quoted(name: str) -> str:
    return f'"{name}"'
