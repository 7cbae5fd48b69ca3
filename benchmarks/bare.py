"""The limits: the least that a durable queue must do on the same disk, with nothing of a desk around it.

A job is one narrow row under a text id. A turn is one commit: what is new is inserted, what waits is claimed, and what
was claimed before is done, each by one statement over the batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import apsw

Claim = tuple[str, int]
"""A job's id and the token it was claimed under."""

_WAITING = "CREATE INDEX waiting ON job (id) WHERE state = 'queued'"


class Bare(Protocol):
    """A queue of narrow rows in a database."""

    def turn(self, new: Sequence[str], done: Sequence[Claim], room: int) -> list[Claim]:
        """One durable commit; the jobs it claimed, `room` at most."""

    def insert(self, new: Sequence[str]) -> None:
        """One durable commit of new rows."""

    def close(self) -> None: ...


class BareSqlite:
    """apsw, WAL, synchronous=FULL."""

    def __init__(self, folder: Path) -> None:
        self._connection = connect(folder / "bare.sqlite")
        for statement in (
            "DROP TABLE IF EXISTS job",
            "CREATE TABLE job (id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL, token INTEGER NOT NULL) "
            "STRICT, WITHOUT ROWID",
            _WAITING,
        ):
            self._connection.execute(statement)

    def turn(self, new: Sequence[str], done: Sequence[Claim], room: int) -> list[Claim]:
        execute, many = self._connection.execute, self._connection.executemany
        execute("BEGIN IMMEDIATE")
        many("INSERT INTO job VALUES (?, 'queued', 0)", [(job,) for job in new])
        claimed = execute(
            "UPDATE job SET state = 'running', token = token + 1 WHERE id IN "
            "(SELECT id FROM job WHERE state = 'queued' ORDER BY id LIMIT ?) RETURNING id, token", (room,),
        ).fetchall()
        many("UPDATE job SET state = 'done' WHERE id = ? AND token = ?", done)
        execute("COMMIT")
        return [(str(job), int(str(token))) for job, token in claimed]

    def insert(self, new: Sequence[str]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO job VALUES (?, 'done', 0)", [(job,) for job in new])
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class BarePostgres:
    """psycopg, one connection, rows by unnest, synchronous_commit=on."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection = psycopg.connect(url, autocommit=True, options="-c synchronous_commit=on -c jit=off")
        for statement in (
            b"DROP TABLE IF EXISTS job",
            b"CREATE TABLE job (id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL, token BIGINT NOT NULL)",
            _WAITING.encode(),
        ):
            self._connection.execute(statement)

    def turn(self, new: Sequence[str], done: Sequence[Claim], room: int) -> list[Claim]:
        execute = self._connection.execute
        with self._connection.transaction():
            execute("INSERT INTO job SELECT id, 'queued', 0 FROM unnest(%s::text[]) AS r(id)", (list(new),),
                    prepare=True)
            claimed = execute(
                "UPDATE job SET state = 'running', token = token + 1 WHERE id IN (SELECT id FROM job WHERE "
                "state = 'queued' ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING id, token", (room,),
                prepare=True,
            ).fetchall()
            execute("UPDATE job SET state = 'done' FROM unnest(%s::text[], %s::bigint[]) AS r(id, token) "
                    "WHERE job.id = r.id AND job.token = r.token",
                    ([job for job, _ in done], [token for _, token in done]), prepare=True)
        return [(str(job), int(token)) for job, token in claimed]

    def insert(self, new: Sequence[str]) -> None:
        self._connection.execute("INSERT INTO job SELECT id, 'done', 0 FROM unnest(%s::text[]) AS r(id)",
                                 (list(new),), prepare=True)

    def close(self) -> None:
        self._connection.close()


def batches(bare: Bare, total: int, batch: int) -> float:
    """Jobs a second without any callers: whole batches, one turn after the other."""
    start, done = time.perf_counter(), list[Claim]()
    for first in range(0, total, batch):
        done = bare.turn(names(min(batch, total - first)), done, batch)
    bare.turn([], done, 0)
    return total / (time.perf_counter() - start)


def bulk(bare: Bare, total: int, batch: int) -> float:
    """Seconds to insert `total` rows, one commit a batch."""
    start = time.perf_counter()
    for first in range(0, total, batch):
        bare.insert(names(min(batch, total - first)))
    return time.perf_counter() - start


def names(count: int) -> list[str]:
    """Ids that begin with their time, so that they append, as long as those of runs."""
    at = time.time_ns()
    return [f"job_{at + n:027x}" for n in range(count)]


def connect(path: Path) -> apsw.Connection:
    """An SQLite file as durable as the desk's own."""
    connection = apsw.Connection(str(path))
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection
