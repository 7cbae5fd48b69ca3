"""What was understood of a text."""

from __future__ import annotations

from dataclasses import dataclass

from nightporter.words.automation import Schedule


@dataclass(frozen=True, slots=True)
class Understood:
    """A schedule, and what a person should be told of how the words were read."""

    schedule: Schedule
    notes: tuple[str, ...] = ()
    from_now: bool = False
    """It was counted from the moment in which it was read, so a file cannot say it so."""
