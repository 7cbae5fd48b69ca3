"""What one run of the measurements is asked to do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """How much is measured, and where."""

    folder: Path
    quick: bool
    rounds: int
    runs: int
    """Durable runs a round."""
    ledger: int
    """Lines that the ledger holds before."""
    due_at_once: int
    latency_seconds: float
    """Of the idle desk's slots, a round."""
    idle_seconds: float

    @staticmethod
    def of(folder: Path, *, quick: bool, rounds: int | None, ledger: int | None) -> Options:
        if quick:
            return Options(folder, True, rounds or 3, 4_096, ledger or 0, 10_000, 2.0, 3.0)
        return Options(folder, False, rounds or 3, 16_384, 100_000 if ledger is None else ledger, 10_000, 5.0, 10.0)
