"""Claims: one holder at a time, and nobody else's writes. Who may run beside whom."""

from __future__ import annotations

from nightporter.clock import rfc3339
from nightporter.ledger.audit.check import FOREVER, Row, asked


def _going(row: Row) -> str:
    until = "has not ended" if row[3] >= FOREVER else f"ended at {rfc3339(row[3])}"
    return f"{row[0]} of {row[1]} began at {rfc3339(row[2])}; one admitted before it {until}"


CHECKS = (
    asked("I-32", "each claim of a run has a larger token than the one before", "audit_tokens_grow",
          lambda r: f"{r[0]}: step {r[1]} is a claim under token {r[2]}, after {r[3]}"),
    asked("I-33", "whoever ends a claim is the one that made it", "audit_stale_writes",
          lambda r: f"{r[0]}: step {r[1]} was written by {r[3]} under token {r[2]}; the claim was {r[4]} of {r[5]}"),
    asked("I-34", "an effect was written under a claim, while it lasted", "audit_stale_effects",
          lambda r: f"{r[0]}: effect {r[1]!r} was written under token {r[2]}, not within that claim"),
    asked("I-36", "under skip, queue and replace a run goes alone", "audit_not_alone", _going),
    asked("I-37", "under queue, runs start in the order of their admission", "audit_out_of_turn",
          lambda r: f"{r[0]} of {r[1]} started at {rfc3339(r[2])}; one admitted before it started at {rfc3339(r[3])}"),
    asked("I-38", "under replace, one run waits at most", "audit_survivors",
          lambda r: f"{r[0]} has {r[1]} runs that wait for the one that is going"),
    asked("N-09", "no more runs of an automation run at once than it allows", "audit_over_concurrency",
          lambda r: f"{r[0]} has {r[2]} runs running and allows {r[1]}"),
)
