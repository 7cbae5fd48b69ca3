"""Guards: what a definition says of when not to start, how many arrivals make a run, and when not to deliver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class QuietHours:
    """Hours of the day in which nothing starts by itself, or nothing is sent."""

    spans: tuple[str, ...] = ()
    """`22:00-07:00`, or `sat,sun 00:00-24:00` for what begins on those days; `rules.quiet.parse` checks them. None of
    them lifts what stands at the automation."""
    timezone: str = "UTC"
    """An IANA name."""
    failures: bool = False
    """Of a destination: hold failures too."""

    @staticmethod
    def read(raw: Mapping[str, Any] | None) -> QuietHours | None:
        """From what is stored."""
        return None if raw is None else QuietHours(tuple(raw["spans"]), raw["timezone"], raw["failures"])


@dataclass(frozen=True, slots=True)
class Threshold:
    """A run for every Nth arrival only."""

    every: int
    within: timedelta | None = None
    """Those that count together; an arrival later than this after the first of them begins a new count."""

    @staticmethod
    def read(raw: Mapping[str, Any] | None) -> Threshold | None:
        """From what is stored."""
        return None if raw is None else Threshold(
            int(raw["every"]), None if raw["within"] is None else timedelta(seconds=raw["within"]))


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Arrivals that come close together are one run, which waits until no more come."""

    window: timedelta
    """How long it waits after each arrival."""
    max_wait: timedelta
    """How long it waits at most."""
    key: str = ""
    """`payload.path`: those with the same value there belong together. Empty: all do."""
    joins: bool = False
    """The run carries the words of all, in their order; otherwise those of the last."""

    @staticmethod
    def read(raw: Mapping[str, Any] | None) -> Coalesce | None:
        """From what is stored."""
        return None if raw is None else Coalesce(
            timedelta(seconds=raw["window"]), timedelta(seconds=raw["max_wait"]), raw["key"], raw["joins"])
