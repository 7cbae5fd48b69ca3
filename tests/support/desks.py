"""Desks for tests of runners: one that records what it is told, and the work that is handed over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightporter.clock import Instant
from nightporter.words import AutomationId, RunId, TriggerId, Work


class RecordingDesk:
    """Does what a desk promises, in memory."""

    def __init__(self, refuse: Exception | None = None) -> None:
        self.refuse = refuse
        self.children: list[tuple[int, int]] = []
        self.intents: dict[str, str] = {}
        self.done: dict[str, str] = {}

    async def child_started(self, work: Work, group: int, started: int) -> None:
        self.children.append((group, started))
        if self.refuse is not None:
            raise self.refuse

    async def effect_intended(self, work: Work, name: str, key: str) -> str | None:
        if self.refuse is not None:
            raise self.refuse
        self.intents[key] = name
        return self.done.get(key)

    async def effect_done(self, work: Work, key: str, permalink: str = "") -> None:
        self.done[key] = permalink


def work_for(
    kind: str, config: dict[str, Any], *, payload: Any = None, text: str = "", timeout: timedelta | None = None,
    output_limit: int = 1_000_000, scratch: Path | None = None, scheduled_for: Instant | None = None, attempt: int = 1,
) -> Work:
    """One attempt at a checked config."""
    return Work(
        run_id=RunId("run_0123"), token=7, attempt=attempt, automation_id=AutomationId("aut_1"), automation="brief",
        workspace="default", trigger_id=TriggerId("aut_1/clock"), source="clock", kind=kind, config=config, text=text,
        payload=payload, scheduled_for=scheduled_for, timeout=timeout, output_limit=output_limit, scratch=scratch,
    )


async def until(fact: Callable[[], object]) -> None:
    """Return as soon as `fact()` is true; the test's own timeout is the limit."""
    while not fact():
        await asyncio.sleep(0.002)
