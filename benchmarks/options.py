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
    starts: int
    """Of each command, a round."""

    @staticmethod
    def of(folder: Path, *, quick: bool, rounds: int | None, ledger: int | None) -> Options:
        if quick:
            return Options(
                folder, quick, rounds or 3, runs=3_072, ledger=ledger or 0, due_at_once=3_000, latency_seconds=1.0,
                idle_seconds=1.5, starts=2,
            )
        return Options(
            folder, quick, rounds or 3, runs=8_192, ledger=1_000_000 if ledger is None else ledger,
            due_at_once=10_000, latency_seconds=5.0, idle_seconds=10.0, starts=5,
        )
