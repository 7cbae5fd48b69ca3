"""Missed slots that a person decides about, as they are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nightporter.clock import SECOND, Instant, rfc3339
from nightporter.errors import Conflict, NotFound
from nightporter.ledger.finding import resolve
from nightporter.store import Tx
from nightporter.store.tx_missed import CardRow
from nightporter.words import Reason


@dataclass(frozen=True, slots=True)
class Card:
    """A missed slot, and what became of it since."""

    row: CardRow
    age: float
    """Seconds that it has waited, or waited until somebody decided."""

    @property
    def trigger(self) -> str:
        return self.row.trigger_id.rpartition("/")[2]

    def as_json(self) -> dict[str, Any]:
        """For programs; the names stay as they are."""
        row = self.row
        return {
            "id": row.id, "automation": row.automation, "automation_id": row.automation_id,
            "workspace": row.workspace, "trigger": self.trigger, "slot": rfc3339(row.slot), "state": row.state,
            "age": self.age, "created_at": rfc3339(row.created_at), "decided_at": rfc3339(row.decided_at),
            "decided_by": row.decided_by, "reason": str(Reason.DISMISSED) if row.state == "dismissed" else None,
            "note": row.note, "run_id": row.run_id, "firing_id": row.firing_id,
        }


def missed_cards(
    tx: Tx, now: Instant, *, automation_id: str = "", decided: bool = False, limit: int = 100
) -> list[Card]:
    """Those that wait, the newest slot first; with `decided` those that do not any more behind them."""
    return [
        Card(row, ((row.decided_at or now) - row.created_at) / SECOND)
        for row in tx.cards(automation_id=automation_id, decided=decided, room=limit)
    ]


def resolve_cards(tx: Tx, which: str) -> list[str]:
    """The card of that id, or of that beginning of one; else those that wait of an automation. Raises NotFound, and
    Conflict where more than one card begins so."""
    if which.startswith("msd_"):
        found = tx.cards_like(which)
        if len(found) > 1 and which not in found:
            raise Conflict(f"more than one missed slot begins with {which}", why=", ".join(found),
                           next="write more of its id")
        if not found:
            raise NotFound(f"no missed slot has the id {which}", next="`nightporter missed` lists those that wait")
        return [which] if which in found else found
    return [row.id for row in reversed(tx.cards(automation_id=resolve(tx, which)))]
