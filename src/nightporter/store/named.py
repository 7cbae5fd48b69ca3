"""Named queries: the only SQL, one statement per name, one text for both databases.

A query file is a sequence of

    -- name: run_claim  queued -> running
    -- What it does and why it is so.
    UPDATE run SET ... ;

The arrow, where there is one, says which change of state the query makes; a test compares it with
`states`. `postgres.sql` and `sqlite.sql` may override a name of the shared files, saying why.

What several queries of a file have in common may stand in a `-- part: NAME`, and `@part(NAME)` in each of them.

Three macros carry the difference between the dialects:

- `@rows(id text, at int) AS r`   the rows handed to `Sql.each`, as a table: `unnest` on PostgreSQL, `VALUES` of
  many rows at once on SQLite. One step for many rows matters there: the driver lets go of the interpreter's lock
  for each step and has to win it back from the event loop, so that a step for each row measured three times slower.
- `@lock(a)`   row locks on PostgreSQL; nothing on SQLite, which has a single writer.
- `@lock_free(a)`   the same, passing over rows that somebody else holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import count
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_HEADER = re.compile(r"^-- (?P<what>name|part): (?P<name>[a-z_]+)(?:\s+(?P<change>.+->.+))?$")
_PART = re.compile(r"@part\((?P<name>[a-z_]+)\)")
_ROWS = re.compile(r"@rows\((?P<columns>[^)]*)\)\s+AS (?P<alias>\w+)")
_LOCK = re.compile(r"@lock(?P<free>_free)?\((?P<tables>[^)]*)\)")
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_ROWS_HERE = "{rows}"
_TYPES = {"text": "text", "int": "bigint"}


@dataclass(frozen=True, slots=True)
class Query:
    """One compiled statement."""

    name: str
    change: str
    """`queued -> running`, or empty."""
    sql: str
    """As the driver takes it; on SQLite with `@rows`, for one row."""
    columns: tuple[str, ...] = ()
    """Of `@rows`; empty where the query takes none."""
    types: tuple[str, ...] = ()
    """Of these columns, as PostgreSQL names them."""
    parameters: tuple[str, ...] = ()
    """On SQLite with `@rows`: the shared parameters, bound after those of all rows."""
    body: str = ""
    """With `@rows`: what `for_rows` and `for_arrays` make statements of."""

    @property
    def inserts(self) -> bool:
        return self.body.startswith("INSERT")

    def for_rows(self, n: int, same: Sequence[int] = ()) -> str:
        """The SQLite statement for `n` rows, its parameters numbered: the columns of each row, then the shared
        parameters, then the columns in `same`, which all rows share."""
        width = len(self.columns) - len(same)
        values = ", ".join(
            f"({', '.join(f'?{row * width + i + 1}' for i in range(width))})" for row in range(n)
        )
        at = {p: n * width + i for i, p in enumerate(self.parameters, 1)}
        apart = {i: n * width + len(at) + place for place, i in enumerate(same, 1)}
        column = count(1)
        names = ", ".join(
            f"{f'?{apart[i]}' if i in apart else f'column{next(column)}'} AS {c}" for i, c in enumerate(self.columns)
        )
        sql = _PARAMETER.sub(lambda m: f"?{at[m[1]]}", self.body)
        return sql.replace(_ROWS_HERE, f"(SELECT {names} FROM (VALUES {values}))")

    def for_arrays(self, same: Sequence[int] = ()) -> str:
        """The PostgreSQL statement for rows whose columns are arrays, but those in `same`, which are one value each;
        where all are, there is one row."""
        typed = [(f"%(rows_{c})s::{t}", c) for c, t in zip(self.columns, self.types, strict=True)]
        names = ", ".join(f"{p} AS {c}" if i in same else f"u.{c}" for i, (p, c) in enumerate(typed))
        apart = [column for i, column in enumerate(typed) if i not in same]
        arrays, of = ", ".join(f"{p}[]" for p, _ in apart), ", ".join(c for _, c in apart)
        return self.body.replace(_ROWS_HERE, f"(SELECT {names}{f' FROM unnest({arrays}) AS u({of})' if apart else ''})")


class BadQueryFile(Exception):
    """A query file is malformed: a bug in this program."""


@cache
def queries(dialect: Dialect) -> dict[str, Query]:
    """All queries of a dialect by name. Raises BadQueryFile for a name twice in one place."""
    folder = resources.files("nightporter.store") / "sql"
    found: dict[str, Query] = {}
    shared = [f for f in folder.iterdir() if f.name.endswith(".sql") and f.name not in ("sqlite.sql", "postgres.sql")]
    for file in sorted(shared, key=lambda f: f.name):
        for name, change, body in _split(file.read_text(encoding="utf-8"), file.name):
            if name in found:
                raise BadQueryFile(f"{file.name}: {name} stands twice")
            found[name] = _compile(name, change, body, dialect)
    override = folder / f"{dialect}.sql"
    for name, change, body in _split(override.read_text(encoding="utf-8"), override.name):
        found[name] = _compile(name, change, body, dialect)
    return found


@cache
def migrations() -> list[tuple[int, str]]:
    """`(number, text)` of each migration, ascending; the text is for SQLite, see `for_postgres`."""
    folder = resources.files("nightporter.store") / "sql" / "migrations"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(int(f.name.split("_", 1)[0]), f.read_text(encoding="utf-8")) for f in files]


def for_postgres(schema: str) -> str:
    """A migration as PostgreSQL reads it."""
    schema = re.sub(r"\)\s*STRICT(, WITHOUT ROWID)?;", ");", schema)
    return re.sub(r"\bINTEGER\b", "BIGINT", schema)


def _split(text: str, where: str) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    parts: dict[str, str] = {}
    what = name = change = ""
    body: list[str] = []
    for line in [*text.splitlines(), "-- name: end"]:
        header = _HEADER.match(line.strip())
        if header:
            statement = "\n".join(body).strip().rstrip(";")
            if name:
                if not statement:
                    raise BadQueryFile(f"{where}: {name} is empty")
                if what == "part":
                    parts[name] = statement
                else:
                    found.append((name, change, _PART.sub(lambda m: parts[m["name"]], statement)))
            what, name, change, body = header["what"], header["name"], (header["change"] or "").strip(), []
        elif line.lstrip().startswith("--"):
            continue
        else:
            body.append(line.split(" -- ")[0])
    return found


def _compile(name: str, change: str, body: str, dialect: Dialect) -> Query:
    rows = _ROWS.search(body)
    columns: list[tuple[str, str]] = []
    if rows:
        columns = [(c.split()[0], _TYPES[c.split()[1]]) for c in rows["columns"].split(",")]
        body = f"{body[: rows.start()]}{_ROWS_HERE} AS {rows['alias']}{body[rows.end() :]}"
    names, types = tuple(c for c, _ in columns), tuple(t for _, t in columns)
    if dialect == "sqlite":
        body = _LOCK.sub("", body)
        if not rows:
            return Query(name, change, body)
        parameters = tuple(dict.fromkeys(_PARAMETER.findall(body)))
        query = Query(name, change, "", names, types, parameters, body)
        return replace(query, sql=query.for_rows(1))
    body = _LOCK.sub(lambda m: f"FOR UPDATE OF {m['tables']}" + (" SKIP LOCKED" if m["free"] else ""), body)
    body = _PARAMETER.sub(r"%(\1)s", body.replace("%", "%%"))
    if not rows:
        return Query(name, change, body)
    query = Query(name, change, "", names, types, body=body)
    return replace(query, sql=query.for_arrays())
