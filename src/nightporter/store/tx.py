"""A transaction: what a write function may do. One method per thing done, grouped in the order of the stages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from nightporter.clock import Instant
from nightporter.store.sql_port import Sql
from nightporter.store.tx_account import AccountTx
from nightporter.store.tx_admission import AdmissionTx, Arrival
from nightporter.store.tx_audit import AuditTx
from nightporter.store.tx_automations import AutomationTx
from nightporter.store.tx_clock import ClockTx
from nightporter.store.tx_delivery import DeliveryTx
from nightporter.store.tx_dispatch import DispatchTx
from nightporter.store.tx_incidents import IncidentTx
from nightporter.store.tx_ledger import LedgerTx
from nightporter.store.tx_looks import LooksTx
from nightporter.store.tx_missed import MissedTx
from nightporter.store.tx_strange import StrangeTx
from nightporter.store.tx_sweep import SweepTx


class Taken(Protocol):
    """What a taker has claimed."""

    @property
    def key(self) -> tuple[str, int]:
        """A run, and the token it is claimed under."""


Taker = Callable[["Tx", Sequence[Arrival], Instant], Collection[str]]
"""Takes runs before they are queued: writes them, adds them to `Tx.taken`, and gives their ids."""


class Tx(
    AutomationTx, ClockTx, AdmissionTx, DispatchTx, LooksTx, DeliveryTx, IncidentTx, SweepTx, LedgerTx, StrangeTx,
    AuditTx,
    AccountTx, MissedTx,
):
    """One transaction on either database. Lives only inside the function it was handed to."""

    def __init__(self, sql: Sql, dialect: str) -> None:
        self.sql = sql
        self.dialect = dialect
        self.kicks: set[str] = set()
        self.takers: Mapping[str, Taker] = {}
        """By topic. What they take, their ride in the same commit answers for."""
        self.taken: dict[str, list[Taken]] = {}
        self.undone = 0
        """How often something that was written in it was undone: what was read before may not be there."""

    def kick(self, topic: str) -> None:
        """Ring those who wait for `topic` once this is committed: due, queued, delivery, cancel."""
        self.kicks.add(topic)

    def offer(self, topic: str, arrivals: Sequence[Arrival], *, now: Instant) -> Collection[str]:
        """Offer runs to who would otherwise find them; the ids of those that need not be queued."""
        return self.takers[topic](self, arrivals, now) if topic in self.takers and arrivals else ()

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
