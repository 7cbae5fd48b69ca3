"""What an audit says: each check with what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant, rfc3339

EXAMPLES = 10
"""Of one check, at most."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: its number in docs/audit.md, what it claims, and what contradicts it."""

    id: str
    title: str
    violations: int
    examples: tuple[str, ...] = ()
    """The first ten, each a sentence that names the row."""

    def as_json(self) -> dict[str, Any]:
        return {"id": self.id, "title": self.title, "violations": self.violations, "examples": list(self.examples)}


@dataclass(frozen=True, slots=True)
class Report:
    """An audit of one snapshot."""

    at: Instant
    checks: tuple[CheckResult, ...]
    counts: Mapping[str, int]
    """What was gone through: `triggers`, `slots` enumerated, `lines` that answer them."""

    @property
    def findings(self) -> tuple[CheckResult, ...]:
        """The checks that something contradicts."""
        return tuple(check for check in self.checks if check.violations)

    @property
    def clean(self) -> bool:
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """`{at, clean, counts, checks: [{id, title, violations, examples}]}`."""
        return {
            "at": rfc3339(self.at), "clean": self.clean, "counts": dict(self.counts),
            "checks": [check.as_json() for check in self.checks],
        }
