"""Timers that were brought over and let go: the desk fires at what systemd.time says, and makes up as Persistent says;
on both databases."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from armed import at, lines, tick_all
from machines import machine
from units import DOES, ETC, WANTS

from nightporter.clock import Instant, Kick, ManualClock
from nightporter.exchange import bring, plan, scan
from nightporter.operations import enable
from nightporter.sources.clock import ClockSource
from nightporter.store import Store


def brought(store: Store, clock: ManualClock, folder: Path, says: str) -> None:
    """A timer with these lines, brought over and let go."""
    root = machine(folder, {f"{ETC}/a.timer": f"[Timer]\n{says}\n", f"{ETC}/a.service": DOES},
                   links={f"{WANTS}/a.timer": "../a.timer"})
    found = scan(root, ("systemd",), me="ana", otherwise="UTC", now=clock.now())
    (item,) = plan(found.readings, present={}, taken=(), me="ana", now=clock.now()).items
    made = bring(store, item, by="ana", now=clock.now)
    assert (made.state, made.reason) == ("imported", "")
    store.write(lambda tx: enable(tx, made.automation_id or "", by="ana", now=clock.now()))


def answered(store: Store) -> list[tuple[str, Instant]]:
    return [(verdict, slot) for verdict, _, slot, _ in lines(store)]


@pytest.fixture
def monday() -> ManualClock:
    """Monday 30 November 2026, 08:00 in Berlin."""
    return ManualClock(at(2026, 11, 30, 7))


def test_each_time_of_each_line_fires_once(store: Store, monday: ManualClock, tmp_path: Path) -> None:
    brought(store, monday, tmp_path,
            "OnCalendar=Mon..Wed 09:00\nOnCalendar=*-*-01 12:30 UTC\nOnCalendar=Fri *-12-4..10")
    source = ClockSource(store, monday, Kick())
    for _ in range(6 * 48):
        monday.advance(timedelta(minutes=30))
        tick_all(source)
    # What is skipped here finds the run before it still waiting: nobody works.
    assert [slot for _, slot in answered(store)] == [
        at(2026, 11, 30, 8), at(2026, 12, 1, 8), at(2026, 12, 1, 12, 30), at(2026, 12, 2, 8), at(2026, 12, 3, 23)]


@pytest.mark.parametrize(
    ("persistent", "became"),
    [("yes", [("collapsed", at(2026, 11, 30, 8)), ("admitted", at(2026, 12, 4, 8))]),
     ("no", [("collapsed", at(2026, 11, 30, 8))])],
)
def test_days_without_a_desk_are_made_up_for_once_where_the_timer_is_persistent(
    store: Store, monday: ManualClock, tmp_path: Path, persistent: str, became: list[tuple[str, Instant]]
) -> None:
    brought(store, monday, tmp_path, f"OnCalendar=09:00\nPersistent={persistent}")
    source = ClockSource(store, monday, Kick())
    monday.advance(timedelta(days=4, hours=2))
    tick_all(source)
    assert answered(store) == became
