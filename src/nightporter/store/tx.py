"""A transaction: what a write function may do. One method per thing done, grouped in the order of the stages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from nightporter.clock import Instant
from nightporter.store.sql_port import Sql
from nightporter.store.tx_admission import AdmissionTx
from nightporter.store.tx_audit import AuditTx
from nightporter.store.tx_automations import AutomationTx
from nightporter.store.tx_clock import ClockTx
from nightporter.store.tx_delivery import DeliveryTx
from nightporter.store.tx_dispatch import DispatchTx
from nightporter.store.tx_ledger import LedgerTx
from nightporter.store.tx_strange import StrangeTx
from nightporter.store.tx_sweep import SweepTx

Taker = Callable[["Tx", Sequence[Any], Instant], Collection[str]]
"""Takes rows before they are left for whoever looks; the ids of those it took, and wrote."""


class Tx(AutomationTx, ClockTx, AdmissionTx, DispatchTx, DeliveryTx, SweepTx, LedgerTx, StrangeTx, AuditTx):
    """One transaction on either database. Lives only inside the function it was handed to."""

    def __init__(self, sql: Sql, dialect: str) -> None:
        self.sql = sql
        self.dialect = dialect
        self.kicks: set[str] = set()
        self.takers: Mapping[str, Taker] = {}
        """By topic. What they take, their ride in the same commit answers for."""
        self.taken: dict[str, list[Any]] = {}
        self.undone = 0
        """How often something that was written in it was undone: what was read before may not be there."""

    def kick(self, topic: str) -> None:
        """Ring those who wait for `topic` once this is committed: due, queued, delivery, cancel."""
        self.kicks.add(topic)

    def offer(self, topic: str, rows: Sequence[Any], *, now: Instant) -> Collection[str]:
        """Offer rows to who would otherwise find them; the ids of those that need not be left."""
        return self.takers[topic](self, rows, now) if topic in self.takers and rows else ()

    def mark(self) -> tuple[frozenset[str], dict[str, int]]:
        """Where the transaction stands, for `forget_since`."""
        return frozenset(self.kicks), {topic: len(taken) for topic, taken in self.taken.items()}

    def forget_since(self, mark: tuple[frozenset[str], dict[str, int]]) -> None:
        """What was written since then was undone: so are its kicks, and what was taken of it."""
        self.undone += 1
        kicks, lengths = mark
        self.kicks &= kicks
        for topic, taken in self.taken.items():
            del taken[lengths.get(topic, 0) :]
