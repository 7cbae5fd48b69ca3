"""Automations of the clock, and what became of their slots."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from nightporter.clock import Instant, ManualClock, instant
from nightporter.sources.clock import ClockSource
from nightporter.store import Store
from nightporter.words import Limits
from words import a_clock_trigger, an_automation, rows, trigger_of

FREE = Limits(per_hour=None, queued=None, concurrent=None)


def at(*of: int) -> Instant:
    """An instant in UTC."""
    return instant(datetime(*of, tzinfo=UTC))  # type: ignore[arg-type,misc]  # year, month, day, ...


def every(store: Store, clock: ManualClock, span: str = "15m", *, name: str = "brief", **of: Any) -> str:
    """An automation on a grid that starts now."""
    return an_automation(
        store, now=clock.now(), name=name, limits=FREE,
        triggers=[a_clock_trigger(span, kind="every", anchor=clock.now(), **of)],
    )


def cron(store: Store, clock: ManualClock, expression: str = "0 9 * * *", *, name: str = "brief", **of: Any) -> str:
    return an_automation(store, now=clock.now(), name=name, limits=FREE, triggers=[a_clock_trigger(expression, **of)])


def lines(store: Store) -> list[tuple[Any, ...]]:
    """`(verdict, reason, slot or first slot, how many)`, by arrival and slot."""
    return rows(
        store, "SELECT verdict, reason, coalesce(scheduled_for, slot_from), slots FROM firing "
        "ORDER BY arrived_at, coalesce(scheduled_for, slot_from)"
    )


def armed_at(store: Store, automation: str = "aut_default_brief") -> Instant | None:
    [(slot,)] = rows(store, "SELECT next_fire_at FROM trigger WHERE id = ?", trigger_of(automation, "clock"))
    return None if slot is None else Instant(slot)


def tick_all(source: ClockSource) -> int:
    turns = 0
    while source.tick():
        turns += 1
    return turns
