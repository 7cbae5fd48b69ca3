"""Delivery: one run's result on its way to one destination. What a destination takes and what it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, NewType, Protocol

from nightporter.clock import Instant
from nightporter.words.firing import RunId
from nightporter.words.reason import Reason

DeliveryId = NewType("DeliveryId", str)


@dataclass(frozen=True, slots=True)
class Parcel:
    """What a destination takes. The same for every try of one delivery."""

    delivery_id: DeliveryId
    event_id: str
    """Stable across tries: the receiver's means to tell a repeat."""
    run_id: RunId
    automation: str
    """The automation's name."""
    workspace: str
    config: Mapping[str, Any]
    """The destination's own config, from the definition the run ran with."""
    body: Mapping[str, Any]
    """`{type, timestamp, data: {automation, run, state, outcome, reason, text, data, error, scheduled_for,
    started_at, ended_at, attempt}}`; instants as RFC 3339."""
    created_at: Instant
    """When the run ended; templates and timestamps of every try use it."""
    attempt: int
    timezone: str = "UTC"
    """The zone of the automation: dates that a destination writes for people are of it."""


class Receipt(StrEnum):
    """How one try ended."""

    DELIVERED = "delivered"
    """Acknowledged; evidence says by what."""
    UNVERIFIED = "unverified"
    """Handed over to something that acknowledges nothing."""
    TRANSIENT = "transient"
    """Try again later."""
    PERMANENT = "permanent"
    """The receiver refused for good."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a destination leaves of one try."""

    receipt: Receipt
    evidence: str = ""
    """The receiver's own id or acknowledgement: a status line, a path, a message id."""
    error: str = ""
    status: int | None = None
    reason: Reason | None = None
    retry_after: timedelta | None = None


class DestinationPort(Protocol):
    """What carries results to one kind of place."""

    kind: str
    repeatable: bool
    """True: sending the same event id twice does no harm, so a try cut short is simply repeated."""

    async def send(self, parcel: Parcel) -> Sent:
        """One try, within the delivery's timeout. Does not raise for what went wrong on the way."""
