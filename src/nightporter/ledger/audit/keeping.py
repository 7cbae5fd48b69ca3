"""Keeping: what is added up agrees with what it is of, and nothing points at what is not there."""

from __future__ import annotations

from nightporter.ledger.audit.check import Check, Tally, Terms, asked
from nightporter.store import Tx
from nightporter.store.named import migrations


def _schema(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    newest, written = migrations()[-1][0], tx.setting("schema_version")
    if written != str(newest):
        tally.add(f"the store says {written or 'nothing'}, this program's is {newest}")
    return tally


def _damage(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    for line in tx.damage():
        tally.add(line)
    return tally


CHECKS = (
    asked("I-63a", "what an automation says of its last runs is what they say", "audit_health",
          lambda r: f"{r[0]}: its {r[1]} is not what its runs say"),
    asked("I-63b", "the months of an automation add up to its runs", "audit_months",
          lambda r: f"{r[0]}: its months tell of {r[1]} runs, and {r[2]} ended ones are there"),
    asked("I-64", "every row points at rows that are there", "audit_orphans",
          lambda r: f"{r[0]} {r[1]} lacks its {r[2]}"),
    asked("I-65", "what is quarantined is out of the loop, and what is out of the loop is named", "audit_quarantine",
          lambda r: f"{r[0]} {r[1]}"),
    Check("I-67", "the store has the schema that this program knows", _schema),
    asked("I-68", "only what has ended is pruned, and what a run needs stays with it", "audit_vanished",
          lambda r: f"{r[0]} {r[1]}"),
    Check("N-16", "the database finds no fault with itself", _damage),
)
