"""Asking a look without a desk, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightporter.words import AutomationId, Looker, RunId, Seen, TriggerId, Work

WORK = Work(
    run_id=RunId("run_1"), token=1, attempt=1, automation_id=AutomationId("aut_1"), automation="brief",
    workspace="default", trigger_id=TriggerId("aut_1/clock"), source="clock", kind="echo", config={},
)


async def ask(looker: Looker, config: dict[str, Any], before: Any = None, *, scratch: Path | None = None) -> Seen:
    """What the look says; children it starts are written down nowhere."""
    from dataclasses import replace

    async def started(group: int, birth: int) -> None:
        pass

    return await looker.look(config, replace(WORK, scratch=scratch), before, started)
