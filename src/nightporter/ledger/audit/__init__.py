"""audit: what the ledger promises, checked against what is in it.

Each check claims something of the ledger and looks for what contradicts it; docs/audit.md says what each claims and
why. An audit changes nothing and reads one snapshot, so it may run beside a living desk: what is under way, what a
sweep is about to repair and what retention has deleted are no violations.
"""

from __future__ import annotations

from nightporter.clock import Instant
from nightporter.ledger.audit import arming, attempts, claims, course, deliveries, failures, keeping, limits, slots
from nightporter.ledger.audit.check import Terms
from nightporter.ledger.audit.enumeration import Enumeration
from nightporter.ledger.audit.owed import Owed
from nightporter.ledger.audit.report import CheckResult, Report
from nightporter.store import Tx

__all__ = ["CheckResult", "Report", "audit"]

_CHECKS = (
    *slots.CHECKS, *arming.CHECKS, *course.CHECKS, *claims.CHECKS, *attempts.CHECKS, *deliveries.CHECKS,
    *limits.CHECKS, *keeping.CHECKS, *failures.CHECKS,
)


def audit(
    tx: Tx, *, now: Instant, boot_at: Instant | None = None, enumerate_slots: bool = True, sample: int | None = None
) -> Report:
    """Check the ledger. Use it inside `store.read`; `now` is read before.

    `boot_at`: when the desk that asks had booted, which lets it expect more of itself; None: another program asks.
    `enumerate_slots`: also compute every slot that was owed and look for its line; `sample` is how many triggers
    that is done for at most, each audit another part of them. Raises StoreError.
    """
    terms = Terms.read(tx, now=now, boot_at=boot_at)
    results = [check.result(tx, terms) for check in _CHECKS] + Owed(tx).results()
    counts: dict[str, int] = {}
    if enumerate_slots:
        enumeration = Enumeration(tx, terms, sample=sample)
        results += enumeration.results()
        counts = enumeration.counts
    return Report(now, tuple(sorted(results, key=lambda result: result.id)), counts)
