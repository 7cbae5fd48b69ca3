"""The account's part of a transaction: what is not as it should be, and what was said of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase

TaskQuery = Literal[
    "task_queued", "task_lost", "task_delivery_failed", "task_cleanup", "task_overdue", "waits_for_a_person",
]


class AccountTx(TxBase):
    def tasks_found(self, query: TaskQuery, *, before: Instant, room: int) -> tuple[int, list[Row]]:
        """How many there are, and the first; columns as in the query."""
        rows = self.sql.all(query, before=before, room=room)
        return (rows[0][-1] if rows else 0), [row[:-1] for row in rows]

    def children_left(self, host: str, *, before: Instant, room: int) -> list[Row]:
        """`(run, process group, birth, when the run ended)` of runs of a machine that ended before an instant."""
        return self.sql.all("task_children", host=host, before=before, room=room)

    # -- flags: what was said already -------------------------------------------------------------------------------

    def flags(self) -> dict[tuple[str, str], Instant]:
        """Since when each `(kind, subject)` is known."""
        return {(r[0], r[1]): r[2] for r in self.sql.all("flags")}

    def raise_flags(self, flags: Collection[tuple[str, str]], *, now: Instant) -> set[tuple[str, str]]:
        """Write down what was found; what nobody had found before."""
        return {(r[0], r[1]) for r in self.sql.each("flag_raise", sorted(flags), now=now)}

    def drop_flags(self, flags: Collection[tuple[str, str]]) -> None:
        """What is as it should be again."""
        self.sql.each("flag_drop", sorted(flags))

    # -- a desk that drains -----------------------------------------------------------------------------------------

    def drains(self, worker: str, *, now: Instant) -> None:
        """This worker takes nothing more, and lets its runs end."""
        self.sql.run("worker_drains", id=worker, now=now)

    def draining(self) -> dict[str, Instant]:
        """Since when each worker that has not left drains."""
        return {r[0]: r[1] for r in self.sql.all("workers_draining")}
