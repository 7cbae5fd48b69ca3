"""Look: a run's free first step, answered before anything is spent. What it asks, what it saw, and what asks it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nightporter.words.run import ErrorClass, Work


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked at: a kind and its config."""

    kind: str
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What tells whether it is another one. What a look keeps from run to run is kept under it, so that one that
        asks something else begins anew."""
        plain = json.dumps([self.kind, self.config], sort_keys=True, separators=(",", ":"))
        return blake2b(plain.encode(), digest_size=12).hexdigest()

    @staticmethod
    def read(raw: Mapping[str, Any]) -> Look:
        """One that was stored."""
        return Look(raw["kind"], raw["config"])


class Sight(StrEnum):
    """What a look came to. The three answers are never taken for one another."""

    SOMETHING = "something"
    """There is something to do: the run goes on, and is told of it."""
    NOTHING = "nothing"
    """There is nothing to do: the run ends here, well and without a word."""
    FAILED = "failed"
    """Whether there is cannot be said: the run has failed."""
    SKIPPED = "skipped"
    """A person wanted the run whatever the look would say; it was not asked."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look leaves."""

    sight: Sight
    text: str = ""
    """What there is to do, for the target."""
    state: Any = None
    """A JSON value for the next look, kept once the run has ended well; None leaves what is kept."""
    error: str = ""
    """One line a person can act on."""
    error_class: ErrorClass | None = None
    """Of one that failed."""
    retry_after: timedelta | None = None


Started = Callable[[int, int], Awaitable[None]]
"""To be told a child's process group and birth, before it is let go; durable when it returns."""


class Looker(Protocol):
    """What asks looks of one kind. It only reads."""

    kind: str
    launches: bool
    """Whether it starts a child."""

    async def look(self, config: Mapping[str, Any], work: Work, before: Any, started: Started) -> Seen:
        """Look once. `before` is what the latest look left whose run ended well; None at the first.

        Does not raise for what went wrong: it says so. Cancelling the task ends what it started.
        """


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a look from run to run."""

    state: Any = None
    version: int = 0
    """Raised with each change; 0: nothing is kept yet."""
