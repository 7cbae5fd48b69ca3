"""What a part of the soak is asked for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databases import Databases, shared_server

from nightporter.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Order:
    """One part's order: how much of it, from which seed, and where it may keep what it needs."""

    part: str
    seed: int
    rounds: int
    """How much: what a round is, the part says. 0: as much as it thinks right by itself."""
    store: str
    """`sqlite`, `postgres` or `both`."""
    folder: Path
    """Its own, empty at the start. Deleted at the end, unless there are findings."""
    results: Path
    """The folder of the published figures."""

    @property
    def stores(self) -> tuple[str, ...]:
        return ("sqlite", "postgres") if self.store == "both" else (self.store,)

    def replay(self, *, seed: int, rounds: int, store: str = "") -> str:
        """The command that does it again."""
        return f"make soak PART={self.part} SEED={seed} ROUNDS={rounds} STORE={store or self.store}"

    def publish(self, figures: dict[str, Any], name: str = "") -> None:
        """Write figures down as JSON, `results/PART.json` or `results/PART-name.json`."""
        path = self.results / f"{self.part}{'-' * bool(name)}{name}.json"
        path.write_text(json.dumps(figures, indent=2, sort_keys=True) + "\n")

    @contextlib.contextmanager
    def postgres(self) -> Iterator[Databases]:
        """A PostgreSQL server for the time of the block, as the tests have it."""
        with shared_server(self.folder, self.part, SystemClock().now()) as databases:
            yield databases
