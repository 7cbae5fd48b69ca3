"""A ledger with a past: lines, ended runs, their transitions, outputs and deliveries, put there in bulk.

The rows are what the desk itself leaves of a run that succeeded, of the last six days, spread over AUTOMATIONS.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from nightporter import operations
from nightporter.clock import DAY, Instant, SystemClock
from nightporter.store import Tx, open_store
from nightporter.words import Definition, Destination, Target

AUTOMATIONS = 100
CHUNK = 50_000

# {series} gives i; {stamp} a run's time in milliseconds as 11 hex digits and i as 16 more.
_TABLES = (
    """INSERT INTO firing (id, workspace, automation_id, trigger_id, source, external_id, dedupe_key, arrived_at,
           verdict, run_id, version, sender)
       SELECT 'fir_' || stamp, 'default', automation_id, automation_id || '/call', 'call', stamp, stamp, at, 'admitted',
           'run_' || stamp, 1, 'code' FROM past""",
    """INSERT INTO run (id, workspace, automation_id, trigger_id, firing_id, source, version, runner, state, rank,
           run_after, priority, attempt, attempts, token, seq, worker, queued_at, started_at, attempt_at, ended_at,
           outcome)
       SELECT 'run_' || stamp, 'default', automation_id, automation_id || '/call', 'fir_' || stamp, 'call', 1, 'noop',
           'succeeded', at + 500000000, at, 50, 1, 3, 1, 3, 'wrk_past', at, at, at, at + 2000, 'report' FROM past""",
    """INSERT INTO transition (run_id, seq, from_state, to_state, at, worker, token, attempt)
       SELECT 'run_' || past.stamp, s.seq, s.was, s.state, past.at, s.worker, s.token, s.token FROM past,
           (SELECT 1 AS seq, NULL AS was, 'queued' AS state, NULL AS worker, 0 AS token
            UNION ALL SELECT 2, 'queued', 'running', 'wrk_past', 1
            UNION ALL SELECT 3, 'running', 'succeeded', 'wrk_past', 1) AS s ORDER BY 1, 2""",
    "INSERT INTO run_output (run_id, text, log) SELECT 'run_' || stamp, 'noop', '' FROM past",
    """INSERT INTO delivery (id, run_id, automation_id, workspace, destination, kind, lane, state, best_effort,
           event_id, created_at, ended_at, evidence)
       SELECT 'del_' || stamp, 'run_' || stamp, automation_id, 'default', 'silent', 'silent', 'silent', 'delivered', 0,
           'evt_' || stamp, at + 2000, at + 2000, 'kept in the ledger' FROM past""",
)
_SQLITE_PAST = """CREATE TEMP TABLE past AS
    WITH RECURSIVE series(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM series WHERE i + 1 < {end})
    SELECT {base} + i * {step} AS at, printf('%011x%016x', ({base} + i * {step}) / 1000, i) AS stamp,
           h.id AS automation_id
    FROM series JOIN history h ON h.n = i % {automations} ORDER BY 2"""
_POSTGRES_PAST = """CREATE TEMP TABLE past AS
    SELECT {base} + i * {step} AS at,
           lpad(to_hex(({base} + i * {step}) / 1000), 11, '0') || lpad(to_hex(i), 16, '0') AS stamp,
           h.id AS automation_id
    FROM generate_series({first}::bigint, {end}::bigint - 1) AS series(i) JOIN history h ON h.n = i % {automations}
    ORDER BY 2"""

_SQLITE_LAST = ("PRAGMA synchronous=FULL", "PRAGMA wal_checkpoint(TRUNCATE)")
_POSTGRES_LAST = ("ANALYZE", "CHECKPOINT")


def fill(store: str, lines: int) -> None:
    """Put a past of so many lines into a store, given as the engine takes it."""
    if not lines:
        return
    now = SystemClock().now()
    opened = open_store(store, now=now)
    try:
        ids = opened.write(lambda tx: _define(tx, now))
    finally:
        opened.close()
    postgres = store.startswith("postgresql://")
    connection = _postgres(store) if postgres else _sqlite(Path(store))
    try:
        connection.execute("CREATE TEMP TABLE history (n INTEGER, id TEXT)")
        for n, automation in enumerate(ids):
            connection.execute(f"INSERT INTO history VALUES ({n}, '{automation}')")
        _put(connection, _POSTGRES_PAST if postgres else _SQLITE_PAST, lines, now)
        # All of it on the disk, so that no later commit has to wait for it.
        for last in _POSTGRES_LAST if postgres else _SQLITE_LAST:
            connection.execute(last)
    finally:
        connection.close()


def _put(connection: Any, past: str, lines: int, now: Instant) -> None:
    span = {"base": now - 6 * DAY, "step": 6 * DAY // lines, "automations": AUTOMATIONS}
    for first in range(0, lines, CHUNK):
        connection.execute("BEGIN")
        connection.execute(past.format(first=first, end=min(first + CHUNK, lines), **span))
        for table in _TABLES:
            connection.execute(table)
        connection.execute("DROP TABLE past")
        connection.execute("COMMIT")


def _define(tx: Tx, now: Instant) -> list[str]:
    return [
        operations.define(
            tx, Definition(f"history-{n}", Target("noop"), deliver=(Destination("silent", "silent"),)), truth="code",
            by="benchmarks", now=now,
        ).automation_id
        for n in range(AUTOMATIONS)
    ]


def _sqlite(path: Path) -> Any:
    connection = apsw.Connection(str(path))
    # Nothing need survive on the way: the checkpoint at the end makes it durable.
    for pragma in ("synchronous=OFF", "temp_store=MEMORY", "cache_size=-262144", "wal_autocheckpoint=4000"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _postgres(url: str) -> Any:
    import psycopg

    return psycopg.connect(url, autocommit=True, options="-c synchronous_commit=off")
