"""The account's part of a transaction: what is not as it should be, and what was said of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from nightporter.clock import DAY, Instant
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

    # -- the daily heartbeat ----------------------------------------------------------------------------------------

    def last_heartbeat(self) -> Row | None:
        """`(slot, said at, title, body JSON)` of the newest."""
        return self.sql.one("heartbeat_last")

    def say_heartbeat(
        self, slot: Instant, *, title: str, body: str, destinations: Collection[str], now: Instant
    ) -> bool:
        """Write down what is said of a day; False where somebody has said it already."""
        if not self.sql.run("heartbeat_say", slot=slot, title=title, body=body, now=now):
            return False
        self.sql.each("heartbeat_to", [(d,) for d in sorted(set(destinations))], slot=slot, now=now)
        return True

    def heartbeats_pending(self, now: Instant) -> list[Row]:
        """`(slot, destination, tries, said at, body JSON)` of those that are to be sent now."""
        return self.sql.all("heartbeat_pending", now=now)

    def heartbeat_tried(
        self, slot: Instant, destination: str, tries: int, *, state: str, next_try_at: Instant | None,
        ended_at: Instant | None, evidence: str, error: str,
    ) -> bool:
        """Write how a try ended, the one after `tries` others; False where another desk has made it."""
        return self.sql.run(
            "heartbeat_tried", slot=slot, destination=destination, tries=tries, state=state, next_try_at=next_try_at,
            ended_at=ended_at, evidence=evidence, error=error,
        ) > 0

    def prune_heartbeats(self, *, before: Instant) -> None:
        self.sql.run("heartbeat_sent_prune", before=before)
        self.sql.run("heartbeat_prune", before=before)

    def read_ends(self, since: Instant, until: Instant) -> dict[str, int]:
        """How many runs ended so after an instant, and until another; due three days before at the most."""
        floor = f"run_{max(since - 3 * DAY, 0) // 1000:011x}"
        return dict(self.sql.all("heartbeat_runs", floor=floor, since=since, until=until))

    def read_not_run(self, since: Instant, until: Instant) -> list[Row]:
        """`(verdict, reason or empty, lines, slots)` of what arrived in a span and became no run."""
        return self.sql.all("heartbeat_lines", low=f"fir_{max(since, 0) // 1000:011x}",
                            high=f"fir_{until // 1000 + 1:011x}")

    def read_stuck(self, since: Instant, until: Instant) -> tuple[int, int]:
        """`(deliveries that are tried again, deliveries given up in the span)`."""
        row = self.sql.one("heartbeat_stuck", since=since, until=until) or (0, 0)
        return row[0], row[1]

    def read_coming(self, room: int) -> list[Row]:
        """`(automation, trigger, slot, schedule JSON)`, the earliest first."""
        return self.sql.all("read_coming", room=room)

    # -- what others keep, counted ----------------------------------------------------------------------------------

    def read_incidents_open(self) -> dict[str, int]:
        """Incidents that are not over, by state: open or acknowledged."""
        return {r[0]: r[1] for r in self.sql.all("read_incidents_open")}

    def read_cards_pending(self) -> tuple[int, Instant | None]:
        """`(missed slots that a person is to decide about, since when the oldest)`."""
        row = self.sql.one("read_cards_pending") or (0, None)
        return row[0], row[1]

    def read_gaps(self, since: Instant, room: int) -> list[Row]:
        """`(kind, from, to)` of spans that ended after an instant, the newest first."""
        return self.sql.all("read_gaps", since=since, room=room)

    def read_calendar(self, automation_id: str = "") -> list[Row]:
        """The triggers of the clock that may fire, of one automation or of all; columns as in the query."""
        return self.sql.all("read_calendar", automation_id=automation_id)
