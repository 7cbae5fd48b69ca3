"""noop: does nothing and says so, for measuring what the desk itself costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightporter.outside.options import mapping
from nightporter.words import Ended, Work


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """It has no keys."""
    return mapping(config, "noop", known=())


class Noop:
    """Its one report is the word `noop`, so that a delivery of it can be measured too."""

    kind = "noop"
    opaque = False

    def run_now(self, work: Work) -> Ended:
        return Ended.ok("noop")
