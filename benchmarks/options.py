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
    stored: int
    """Triggers in the store of which a hundred come due each second."""
    stored_seconds: float
    apart: int
    """Firings for another process, a round."""

    @staticmethod
    def of(folder: Path, *, quick: bool, rounds: int | None, ledger: int | None) -> Options:
        if quick:
            return Options(
                folder, quick, rounds or 3, runs=3_072, ledger=ledger or 0, due_at_once=3_000, latency_seconds=1.0,
                idle_seconds=1.5, starts=2,
                stored=100_000, stored_seconds=4.0, apart=20,
            )
        return Options(
            folder, quick, rounds or 3, runs=8_192, ledger=1_000_000 if ledger is None else ledger,
            due_at_once=10_000, latency_seconds=5.0, idle_seconds=10.0,
            starts=5, stored=1_000_000, stored_seconds=60.0, apart=100,
        )
