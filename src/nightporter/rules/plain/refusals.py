"""Why words are refused: ambiguous, incomplete, or about a moment that has no fixed place."""

from __future__ import annotations

from nightporter.errors import BadSchedule


def ambiguous(said: str, *readings: str, meaning: str = "") -> BadSchedule:
    """Two readings are both right: the text of each is offered."""
    return BadSchedule(
        f"{said} is ambiguous", why=meaning or f"it may mean `{'`, or `'.join(readings)}`",
        next=f"write `{'` or `'.join(readings)}`",
    )


def incomplete(said: str, *readings: str) -> BadSchedule:
    """Something that the schedule needs was not said."""
    return BadSchedule(said, next=f"write for example `{'` or `'.join(readings)}`")


def beyond(said: str, why: str, next: str) -> BadSchedule:
    """It is understood, and no schedule can be that."""
    return BadSchedule(said, why=why, next=next)
