"""A check: a claim about the ledger, and how to look for what contradicts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nightporter.clock import HOUR, MINUTE, SECOND, Instant
from nightporter.ledger.audit.report import EXAMPLES, CheckResult
from nightporter.rules.missed import CARDS
from nightporter.rules.retry import DELIVERY_TRIES
from nightporter.store import Tx
from nightporter.store.tx_audit import Check as Query

SKEW = SECOND
"""How far apart the clocks of two machines on one store may be."""
LAG = 60 * SECOND
"""How long one actor may be behind another: the longest sleep of the clock, the time between sweeps."""
STALE = 10 * MINUTE
"""What nobody has touched for so long, though somebody was there to touch it, is forgotten."""
FOREVER = 9_000_000_000_000_000_000

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """What an audit must know to tell a violation from something that is under way, or was pruned."""

    now: Instant
    boot_at: Instant | None
    """When the desk that asks had booted; None when another program asks."""
    evaluated_at: Instant
    """When the due set was last evaluated whole, as the desk wrote it down; 0 where it never did."""
    live_since: Instant
    """Since when somebody has been there to claim and deliver; 0 when nobody is, or the desk is stopped."""
    pruned_before: Instant
    """Runs that ended before it may be gone; 0 where nothing says that any are."""
    ledger_pruned_before: Instant
    """The same for lines of the ledger."""

    @staticmethod
    def read(tx: Tx, *, now: Instant, boot_at: Instant | None) -> Terms:
        def instant(key: str) -> Instant:
            return tx.setting_instant(key) or Instant(0)

        evaluated = instant("due_evaluated_at")
        alive = [row[6] for row in tx.workers() if row[1] in ("desk", "worker")]
        return Terms(
            now, boot_at, evaluated if evaluated <= now else Instant(0),  # a wall that was put back tells nothing
            Instant(0) if tx.stopped() or not alive else Instant(min(alive)),
            instant("pruned_before"), instant("ledger_pruned_before"),
        )

    def parameters(self) -> dict[str, int | str]:
        """As the queries name them."""
        return {
            "skew": SKEW, "lag": LAG, "lag_ago": self.now - LAG, "stale_ago": self.now - STALE,
            "hour_ago": self.now - HOUR, "evaluated_before": self.evaluated_at - LAG, "boot_at": self.boot_at or 0,
            "live_since": self.live_since, "pruned_before": self.pruned_before,
            "pruned_from": self.pruned_before or FOREVER, "ledger_pruned_before": self.ledger_pruned_before,
            "payload_bound": f"fir_{self.ledger_pruned_before // 1000:011x}", "delivery_tries": DELIVERY_TRIES,
            "cards": CARDS,
        }


@dataclass(slots=True)
class Tally:
    """What contradicts one claim, counted; the first ten in words."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str, count: int = 1) -> None:
        self.count += count
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)

    def result(self, id: str, title: str) -> CheckResult:
        return CheckResult(id, title, self.count, tuple(self.examples))


@dataclass(frozen=True, slots=True)
class Check:
    """One claim, by its number in docs/audit.md."""

    id: str
    title: str
    look: Callable[[Tx, Terms], Tally]

    def result(self, tx: Tx, terms: Terms) -> CheckResult:
        return self.look(tx, terms).result(self.id, self.title)


def asked(id: str, title: str, query: Query, say: Callable[[Row], str]) -> Check:
    """A check that one query makes; `say` turns one of its rows into a sentence."""

    def look(tx: Tx, terms: Terms) -> Tally:
        count, rows = tx.violations(query, terms.parameters())
        return Tally(count, [say(row) for row in rows])

    return Check(id, title, look)
