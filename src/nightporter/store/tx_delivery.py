"""Delivery's part of a transaction, and the inbox."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase


class SentOut(NamedTuple):
    """A delivery that is being handed over; the columns of `delivery_send`."""

    delivery_id: str
    run_id: str
    kind: str
    lane: str
    destination: str
    event_id: str
    tries: int
    token: int
    best_effort: int
    workspace: str
    automation_id: str
    tries_before: int
    alert: str | None
    """What is told of an incident, whose id is in the place of a run's; None: it carries a result."""


class DeliveryTx(TxBase):
    def create_deliveries(self, rows: Sequence[Row], *, now: Instant) -> None:
        """Columns as in the query; written in the transaction that ends the run."""
        self.sql.each("delivery_create", rows, now=now)
        if rows:
            self.kicks.add("delivery")

    def next_try(self) -> Instant | None:
        row = self.sql.one("delivery_next")
        return None if row is None else row[0]

    def delivery_candidates(self, now: Instant, room: int, full_lanes: Collection[str]) -> list[tuple[str, str]]:
        """`(delivery, lane)` of what is due, earliest first, passing over lanes that are full."""
        if full_lanes:
            rows = self.sql.all("delivery_candidates_beside", now=now, room=room, lanes=f"|{'|'.join(full_lanes)}|")
        else:
            rows = self.sql.all("delivery_candidates", now=now, room=room)
        return [(r[0], r[1]) for r in rows]

    def send(self, delivery_ids: Sequence[str], *, worker: str) -> list[SentOut]:
        """pending -> sending."""
        rows = self.sql.each("delivery_send", [(d,) for d in delivery_ids], worker=worker)
        return [SentOut._make(row) for row in rows]

    def end_deliveries(self, rows: Sequence[Row], *, now: Instant) -> set[str]:
        """`(delivery, token, state, reason, evidence, error)`; those whose claim was current."""
        return {r[0] for r in self.sql.each("delivery_end", rows, now=now)}

    def defer(self, rows: Sequence[Row]) -> set[str]:
        """`(delivery, token, next try, reason, error)`; those whose claim was current."""
        return {r[0] for r in self.sql.each("delivery_defer", rows)}

    def release_deliveries(self, rows: Sequence[Row]) -> set[str]:
        """`(delivery, token, next try, reason or None)` of what was not sent; those whose claim was current."""
        return {r[0] for r in self.sql.each("delivery_release", rows)}

    def hasten(self, lanes: Collection[str], *, apart: int, now: Instant) -> None:
        """What waits for its next try at receivers that take things again goes sooner: those of one, the oldest first,
        so many microseconds apart."""
        if not lanes:
            return
        places = dict.fromkeys(lanes, 0)
        sooner = []
        for delivery, lane in self.sql.each("delivery_of_lanes", [(lane,) for lane in lanes], now=now):
            sooner.append((delivery, now + places[lane] * apart))
            places[lane] += 1
        self.sql.each("delivery_hasten", sooner)
        self.kicks.add("delivery")

    def destination_of(self, delivery_id: str) -> tuple[str, str, str] | None:
        """`(automation, destination's name, kind)`."""
        row = self.sql.one("delivery_destination", id=delivery_id)
        return None if row is None else (row[0], row[1], row[2])

    def resend(self, delivery_id: str, *, lane: str | None, now: Instant) -> bool:
        """given_up, unknown, unverified, or pending after a try -> pending, by a person. A `lane` of None stays."""
        self.kicks.add("delivery")
        return self.sql.run("delivery_resend", id=delivery_id, lane=lane, now=now) > 0

    def write_tries(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(delivery, n, result, status, event id, body hash, error)`."""
        self.sql.each("delivery_try_write", rows, now=now)

    def results(self, run_ids: Collection[str]) -> dict[str, Row]:
        """What bodies are made of, by run; columns as in the query."""
        return {r[0]: r for r in self.sql.each("delivery_result", [(r,) for r in run_ids])}

    def write_inbox(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(id, workspace, owner, automation, run, kind, title, text)`; an id that is there already is left alone."""
        self.sql.each("inbox_write", rows, now=now)

    def fold_inbox(self, row: Row, *, now: Instant) -> str:
        """`(id, workspace, owner, automation, run, title, text)`; the text joins that of the message with that id, or
        of one that goes on where it was full: the id of the one it stands in."""
        return self._joined("inbox_fold", row, now)

    def gather_inbox(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(id, workspace, owner, automation, run, kind, title, text)`; a message with that id has the new title, and
        its text is joined or takes the place of what was there. What is full is gone on with in another."""
        for row in rows:  # two of one message cannot be written by one statement
            self._joined("inbox_gather", row, now)

    def _joined(self, query: str, row: Row, now: Instant) -> str:
        first, *rest = row
        id, n = first, 1
        while not self.sql.each(query, [(id, *rest)], now=now):  # it is full; a new one is not, however long the text
            found = self.sql.one("inbox_last_of", first=first, beyond=f"{first}g")
            last = int(found[0][len(first):], 16) if found and found[0] else 1
            n = last if last > n else n + 1
            id = f"{first}{n:04x}"
        return str(id)

    def unread(self, room: int) -> list[Row]:
        """`(id, kind, title, text, automation, run, created)`, oldest first."""
        return self.sql.all("inbox_unread", room=room)

    def mark_read(self, ids: Collection[str], *, now: Instant) -> None:
        self.sql.each("inbox_read", [(i,) for i in ids], now=now)
