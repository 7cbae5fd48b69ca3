"""The books of a measurement: what must stand in the store after it, counted on a connection of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import apsw

from nightporter.clock import Instant


class Miscount(Exception):
    """The store does not hold what was measured: the figures would be about something else."""


class Books:
    """Counts in a store, given as the engine takes it. Ids begin with their time, so `since` bounds every count."""

    def __init__(self, store: str | Path) -> None:
        self._postgres = str(store).startswith("postgresql://")
        if self._postgres:
            import psycopg

            self._connection: Any = psycopg.connect(str(store), autocommit=True)
        else:
            self._connection = apsw.Connection(str(store), flags=apsw.SQLITE_OPEN_READWRITE)
            self._connection.set_busy_timeout(10_000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(sql))

    def one(self, sql: str) -> int:
        """The one number that a query gives."""
        return int(self.rows(sql)[0][0])

    def lines(self) -> int:
        """Ledger lines so far."""
        return self.one("SELECT count(*) FROM firing")

    def open_runs(self) -> int:
        """Runs that have not ended."""
        return self.one("SELECT count(*) FROM run WHERE state IN ('queued', 'running', 'held', 'lost')")

    def check(self, since: Instant, runs: int) -> None:
        """Each of `runs` firings since then has its ledger line, its run that succeeded after three transitions, its
        output and its delivery. Raises Miscount naming each count that is off."""
        stamp = f"{since // 1000:011x}"
        expected = {
            ("firing", "admitted"): runs, ("run", "succeeded"): runs, ("transition", "queued"): runs,
            ("transition", "running"): runs, ("transition", "succeeded"): runs, ("run_output", "noop"): runs,
            ("delivery", "delivered"): runs,
        }
        found: dict[tuple[str, str], int] = {}
        for table, of, key, prefix in (
            ("firing", "verdict", "id", "fir"), ("run", "state", "id", "run"),
            ("transition", "to_state", "run_id", "run"), ("run_output", "text", "run_id", "run"),
            ("delivery", "state", "id", "del"),
        ):
            counted = self.rows(f"SELECT {of}, count(*) FROM {table} WHERE {key} >= '{prefix}_{stamp}' GROUP BY {of}")
            found |= {(table, str(what)): int(n) for what, n in counted}
        if found != expected:
            off = {key: (found.get(key, 0), expected.get(key, 0)) for key in found.keys() | expected.keys()}
            raise Miscount("; ".join(
                f"{table} {what}: {got} instead of {wanted}" for (table, what), (got, wanted) in sorted(off.items())
                if got != wanted
            ))
