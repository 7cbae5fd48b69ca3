"""Failures: when errors in a row pause an automation, and where a person is told of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any


@dataclass(frozen=True, slots=True)
class Failures:
    """After how many errors in a row the desk pauses the automation by itself; None is never."""

    pause_after: int | None = 5
    """Runs that failed, one after the other. A quiet run is a success; a run by hand that fails does not count."""
    pause_after_schedule_errors: int | None = 3
    """Times that a schedule of it could not be made sense of."""

    @staticmethod
    def read(raw: Any) -> Failures:
        return Failures(raw["pause_after"], raw["pause_after_schedule_errors"])


@dataclass(frozen=True, slots=True)
class AlertRoute:
    """A place that alerts go to."""

    name: str
    kind: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alerts:
    """Where a person is told of failures, apart from where results go. The inbox has a copy in any case."""

    to: tuple[AlertRoute, ...] | None = None
    """In this order: a route is used where those before it failed. None: what the desk's own setting names."""
    after: int = 1
    """Failures in a row before the first alert."""
    cooldown: timedelta = timedelta(hours=1)
    """The least time between two alerts about the same incident."""

    @staticmethod
    def read(raw: Any) -> Alerts:
        to = raw["to"]
        return Alerts(
            None if to is None else tuple(AlertRoute(each["name"], each["kind"], each["config"]) for each in to),
            raw["after"], timedelta(seconds=raw["cooldown"]),
        )


class IncidentKind(StrEnum):
    """What an incident is about."""

    EXECUTION = "execution"
    """Runs of an automation fail."""
    SCHEDULE = "schedule"
    """A schedule cannot be made sense of."""
    DELIVERY = "delivery"
    """A receiver takes nothing."""


class IncidentState(StrEnum):
    """Where an incident is."""

    OPEN = "open"
    """It goes on, and whoever is to be told of it is told."""
    ACKNOWLEDGED = "acknowledged"
    """It goes on, somebody knows, and nobody is told again."""
    RESOLVED = "resolved"
    """It is over: by itself, or because a person said so."""


class AlertEvent(StrEnum):
    """What an alert says."""

    OPENED = "opened"
    CONTINUED = "continued"
    """It goes on, and the cooldown is over."""
    PAUSED = "paused"
    """The desk paused the automation."""
    RECOVERED = "recovered"
    FOLDED = "folded"
    """More alerts came than a receiver is sent: those that follow are kept back for a while."""
