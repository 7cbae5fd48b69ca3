"""A run under a claim, from its start to its end."""

from __future__ import annotations

from dataclasses import dataclass

from nightporter.air import Key
from nightporter.words import Definition, Look, QuickRunner, Runner, Work


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run under this worker's claim."""

    work: Work
    attempts: int
    seq: int
    definition: Definition | None
    """None: it cannot be read, and `error` says why."""
    error: str = ""
    look: Look | None = None
    """Asked before the runner is called."""

    @property
    def key(self) -> Key:
        return self.work.run_id, self.work.token


def started_key(token: int) -> str:
    """The effect that says an attempt was started whose acts nobody can see."""
    return f"started:{token}"


def marks_its_start_here(runner: Runner | QuickRunner) -> bool:
    """Whether the start of its attempts is written down before it is called."""
    # A runner that launches a child marks its start with the child, before the child is let go.
    return runner.opaque and not getattr(runner, "launches", False)
