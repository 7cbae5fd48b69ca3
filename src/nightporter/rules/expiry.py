"""expiry: until when an automation acts, and when a person is told that it will not for long."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from nightporter.clock import HOUR, Instant, micros
from nightporter.words import Definition


class Told(IntEnum):
    """What was said of the end of an automation, each once."""

    NOTHING = 0
    WEEK = 1
    DAY = 2
    AFTER = 3


_AHEAD: Final = ((Told.DAY, 24 * HOUR), (Told.WEEK, 7 * 24 * HOUR))
FARTHEST: Final = 7 * 24 * HOUR
"""Microseconds before the end in which nothing is said yet."""


def ends_at(definition: Definition, renewed_at: Instant) -> Instant | None:
    """When it ends that was renewed then; None: it does not."""
    if definition.lasts is not None:
        return Instant(renewed_at + micros(definition.lasts))
    return definition.expires


def to_be_told(expires: Instant, renewed_at: Instant | None, told: int, now: Instant) -> Told | None:
    """What is to be said now of an end that is ahead: the latest that is due, and that is news to whoever renewed it.
    What was passed over is not made up for."""
    for word, ahead in _AHEAD:
        if now < expires <= now + ahead and told < word and (renewed_at is None or renewed_at < expires - ahead):
            return word
    return None
