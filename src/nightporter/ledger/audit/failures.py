"""Failures: counters that say what the runs say, incidents about what failed, and nobody told twice."""

from __future__ import annotations

from nightporter.clock import SECOND, rfc3339
from nightporter.ledger.audit.check import asked

CHECKS = (
    asked("N-17", "errors in a row are those of the runs since the last success", "audit_errors_in_a_row",
          lambda r: f"{r[0]} counts {r[1]}, and its runs say {r[2]}" + (f" to {r[3]}" if r[3] != r[2] else "")),
    asked("N-18", "an incident that stands is about something that failed", "audit_incidents",
          lambda r: f"{r[0]} about {r[1]}: {r[2]}"),
    asked("N-19", "nobody is told twice of an incident within its cooldown", "audit_alerted_twice",
          lambda r: f"{r[0]} was told to {r[1]!r} again after {r[3] / SECOND:g} s of {r[4] / SECOND:g}"),
    asked("N-20", "an automation that the desk paused is told of", "audit_paused_untold",
          lambda r: f"{r[0]} was paused by the desk at {rfc3339(r[1])}, and no message says so"),
)
