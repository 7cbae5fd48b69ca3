"""A transaction: what a write function may do. One method per thing done, grouped in the order of the stages."""

from __future__ import annotations

from nightporter.store.sql_port import Sql
from nightporter.store.tx_admission import AdmissionTx
from nightporter.store.tx_audit import AuditTx
from nightporter.store.tx_automations import AutomationTx
from nightporter.store.tx_clock import ClockTx
from nightporter.store.tx_delivery import DeliveryTx
from nightporter.store.tx_dispatch import DispatchTx
from nightporter.store.tx_ledger import LedgerTx
from nightporter.store.tx_sweep import SweepTx


class Tx(AutomationTx, ClockTx, AdmissionTx, DispatchTx, DeliveryTx, SweepTx, LedgerTx, AuditTx):
    """One transaction on either database. Lives only inside the function it was handed to."""

    def __init__(self, sql: Sql, dialect: str) -> None:
        self.sql = sql
        self.dialect = dialect
        self.kicks: set[str] = set()

    def kick(self, topic: str) -> None:
        """Ring those who wait for `topic` once this is committed: due, queued, delivery, cancel."""
        self.kicks.add(topic)
