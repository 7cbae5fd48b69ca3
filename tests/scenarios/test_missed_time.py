"""S-12, S-13, S-15, S-42: a clock that is set, a laptop that sleeps, a week in which the desk was off; each with real
desks on both databases, and the books balance at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from armed import FREE, at
from desks import until
from engines import Engines

import nightporter.engine
from nightporter import operations
from nightporter.clock import HOUR, MINUTE, SECOND, Clock, Instant, ManualClock
from nightporter.engine import Engine
from nightporter.engine.sources import Sources
from nightporter.ledger.audit import audit
from nightporter.sources import clock as clock_module
from nightporter.store.postgres import PostgresStore
from nightporter.words import Missed, MissedPolicy, Overlap, Retry
from words import a_clock_trigger, a_firing, an_automation, rows

ONCE, REVIEW = Missed(MissedPolicy.RUN_ONCE), Missed(MissedPolicy.REVIEW)
QUARTER = 15 * MINUTE


@pytest.fixture(autouse=True)
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Desks go by the clock they are given, on PostgreSQL too, and look at it often."""

    def own(self: PostgresStore, clock: Clock) -> Clock:
        return clock

    monkeypatch.setattr(PostgresStore, "clock", own)
    monkeypatch.setattr(nightporter.engine, "CLOCK_SECONDS", 0.01)


def define(engine: Engine, name: str, expression: str, missed: Missed | None = None, **of: Any) -> str:
    trigger = {key: of.pop(key) for key in ("kind", "timezone", "overlap") if key in of}
    return an_automation(
        engine.store, now=engine.clock.now(), name=name, limits=FREE,
        triggers=[a_clock_trigger(expression, missed=missed, **trigger)], **of,
    )


def cards(engine: Engine, name: str, state: str = "pending") -> list[Instant]:
    return [row[0] for row in rows(
        engine.store, "SELECT c.slot FROM missed_card c JOIN automation a ON a.id = c.automation_id "
        "WHERE a.name = ? AND c.state = ? ORDER BY c.slot", name, state)]


def lines(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    """`(verdict, slot or first slot, how many)` of the clock's lines."""
    return rows(
        engine.store, "SELECT f.verdict, coalesce(f.scheduled_for, f.slot_from), f.slots FROM firing f "
        "JOIN automation a ON a.id = f.automation_id WHERE a.name = ? AND f.source = 'clock' "
        "ORDER BY coalesce(f.scheduled_for, f.slot_from)", name)


def runs(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    """`(slot, marked as catching up, marked late)`."""
    return rows(
        engine.store, "SELECT r.scheduled_for, r.catchup, r.ran_late FROM run r JOIN automation a "
        "ON a.id = r.automation_id WHERE a.name = ? ORDER BY r.scheduled_for", name)


def armed(engine: Engine, name: str) -> Instant | None:
    [(slot,)] = rows(engine.store, "SELECT t.next_fire_at FROM trigger t JOIN automation a ON a.id = t.automation_id "
                     "WHERE a.name = ? AND t.kind = 'clock'", name)
    return None if slot is None else Instant(slot)


def balances(engine: Engine) -> bool:
    """The books: every slot owed has one answer, and nothing contradicts anything."""
    report = engine.store.read(lambda tx: audit(tx, now=engine.clock.now()))
    assert report.findings == ()
    return report.counts["slots"] > 0


async def all_have_ended(engine: Engine, clock: ManualClock) -> None:
    """Time goes on until nothing waits any more."""
    while rows(engine.store, "SELECT 1 FROM run WHERE state IN ('queued', 'running')"):
        clock.advance(timedelta(seconds=1))
        await asyncio.sleep(0.03)


@pytest.fixture
async def in_flight() -> AsyncIterator[tuple[asyncio.Event, asyncio.Event, dict[str, Any]]]:
    """A function that runs until it is let go."""
    begun, leave = asyncio.Event(), asyncio.Event()

    async def holds_on(_: Any = None) -> str:
        begun.set()
        await leave.wait()
        return "done"

    yield begun, leave, {"holds-on": holds_on}
    leave.set()


async def start_one_in_flight(engine: Engine, begun: asyncio.Event) -> None:
    busy = await asyncio.to_thread(
        an_automation, engine.store, now=engine.clock.now(), name="busy", runner="function",
        config={"name": "holds-on"})
    await engine.fire(a_firing(busy))
    await asyncio.wait_for(begun.wait(), 20)


# -- S-12 -------------------------------------------------------------------------------------------------------------


async def test_what_a_clock_that_is_set_forward_jumps_over_is_missed(
    engines: Engines, in_flight: tuple[asyncio.Event, asyncio.Event, dict[str, Any]]
) -> None:
    """S-12: at 10:07 the clock says 13:07. Twelve slots were missed, what runs goes on, and no lease lapses."""
    begun, leave, functions = in_flight
    clock = ManualClock(at(2026, 6, 1, 10, 7))
    engine = engines(clock=clock, functions=functions)
    await engine.start()
    define(engine, "asked", "*/15 * * * *", REVIEW)
    define(engine, "caught-up", "*/15 * * * *", ONCE)
    await start_one_in_flight(engine, begun)
    worker = engine.worker
    clock.step(timedelta(hours=3))
    await until(lambda: runs(engine, "caught-up") and cards(engine, "asked"))
    assert cards(engine, "asked") == [Instant(at(2026, 6, 1, 10, 15) + n * QUARTER) for n in range(12)]
    assert lines(engine, "caught-up") == [
        ("collapsed", at(2026, 6, 1, 10, 15), 11), ("admitted", at(2026, 6, 1, 13), None)]
    assert armed(engine, "asked") == armed(engine, "caught-up") == at(2026, 6, 1, 13, 15)
    await until(lambda: runs(engine, "caught-up") == [(at(2026, 6, 1, 13), 1, 1)])
    leave.set()
    await all_have_ended(engine, clock)
    assert rows(engine.store, "SELECT state, attempt FROM run WHERE source = 'call'") == [("succeeded", 1)]
    assert engine.worker == worker
    await until(lambda: engine.store.read(lambda tx: tx.gaps()))
    assert balances(engine)


# -- S-13 -------------------------------------------------------------------------------------------------------------


async def test_a_clock_that_is_set_back_fires_nothing_twice_and_goes_on_where_it_was(
    engines: Engines, caplog: pytest.LogCaptureFixture
) -> None:
    """S-13: at 10:07 the clock says 07:07. Nothing up to 10:00 fires again, a person's run still runs, and 10:15 fires
    when it has come."""
    clock = ManualClock(at(2026, 6, 1, 9, 59, 59))
    engine = engines(clock=clock)
    await engine.start()
    quarter = define(engine, "quarter", "*/15 * * * *", ONCE)
    clock.advance(timedelta(seconds=1))
    await until(lambda: rows(engine.store, "SELECT 1 FROM run WHERE state <> 'queued'"))
    await all_have_ended(engine, clock)
    clock.step(timedelta(hours=-3))
    await until(lambda: engine.store.read(lambda tx: tx.gaps()))
    await engine.fire(a_firing(quarter, trigger="manual"))
    await all_have_ended(engine, clock)
    for _ in range(3):
        clock.advance(timedelta(minutes=59))
        await asyncio.sleep(0.05)
    assert lines(engine, "quarter") == [("admitted", at(2026, 6, 1, 10), None)]
    assert armed(engine, "quarter") == at(2026, 6, 1, 10, 15)
    assert rows(engine.store, "SELECT 1 FROM run WHERE started_at < queued_at OR ended_at < started_at") == []
    clock.advance(timedelta(microseconds=at(2026, 6, 1, 10, 15) - clock.now()))
    await until(lambda: len(lines(engine, "quarter")) == 2)
    await all_have_ended(engine, clock)
    assert [slot for slot, *_ in runs(engine, "quarter") if slot] == [at(2026, 6, 1, 10), at(2026, 6, 1, 10, 15)]
    assert len([r for r in caplog.records if "clock.set_back" in r.getMessage()]) == 1
    assert balances(engine)


async def test_what_waits_to_be_tried_again_does_not_wait_for_the_hours_that_a_clock_was_set_back(
    engines: Engines
) -> None:
    """S-13."""
    def unavailable(_: Any = None) -> str:
        raise RuntimeError("503")

    clock = ManualClock(at(2026, 6, 1, 10, 7))
    engine = engines(clock=clock, functions={"calls": unavailable})
    await engine.start()
    calls = await asyncio.to_thread(
        an_automation, engine.store, now=clock.now(), name="calls", runner="function", config={"name": "calls"},
        retry=Retry(attempts=3, delays=(timedelta(minutes=10),), on=frozenset({"exception"})))
    await engine.fire(a_firing(calls))
    await until(lambda: rows(engine.store, "SELECT 1 FROM run WHERE state = 'queued' AND attempt = 1"))
    [(before,)] = rows(engine.store, "SELECT run_after FROM run")
    clock.step(timedelta(hours=-3))
    await until(lambda: rows(engine.store, "SELECT run_after, attempt FROM run") == [(before - 3 * HOUR, 1)])
    clock.advance(timedelta(minutes=12))
    await until(lambda: rows(engine.store, "SELECT 1 FROM run WHERE attempt = 2"))
    assert engine.store.read(lambda tx: audit(tx, now=clock.now())).findings == ()


# -- S-15 -------------------------------------------------------------------------------------------------------------


async def test_a_laptop_that_slept_for_eight_hours_catches_up_at_once(
    engines: Engines, in_flight: tuple[asyncio.Event, asyncio.Event, dict[str, Any]]
) -> None:
    """S-15: lid shut from 23:10 to 07:10. Each schedule does what was asked of it, one after another."""
    begun, leave, functions = in_flight
    clock = ManualClock(at(2026, 6, 1, 23, 10))
    engine = engines(clock=clock, functions=functions)
    await engine.start()
    define(engine, "daily", "0 3 * * *", REVIEW)
    define(engine, "quarter", "*/15 * * * *", ONCE)
    define(engine, "hourly", "0 * * * *", ONCE)
    define(engine, "once", "2026-06-02T02:00", kind="at")
    await start_one_in_flight(engine, begun)
    clock.sleep(timedelta(hours=8))
    await until(lambda: runs(engine, "hourly") and cards(engine, "daily"))
    assert cards(engine, "daily") == [at(2026, 6, 2, 3)]
    assert lines(engine, "quarter") == [
        ("collapsed", at(2026, 6, 1, 23, 15), 31), ("admitted", at(2026, 6, 2, 7), None)]
    assert lines(engine, "once") == [("missed", at(2026, 6, 2, 2), 1)]
    assert cards(engine, "once") == [at(2026, 6, 2, 2)]
    begins = [row[0] for row in rows(engine.store, "SELECT run_after FROM run WHERE catchup = 1 ORDER BY run_after")]
    assert begins[1] - begins[0] == 2 * SECOND
    leave.set()
    await all_have_ended(engine, clock)
    assert runs(engine, "quarter") == [(at(2026, 6, 2, 7), 1, 1)]
    assert rows(engine.store, "SELECT state, attempt FROM run WHERE source = 'call'") == [("succeeded", 1)]
    await until(lambda: engine.store.read(lambda tx: tx.gaps()))
    assert [row.kind for row in engine.store.read(lambda tx: tx.gaps())] == ["sleep"]
    assert balances(engine)


# -- S-42 -------------------------------------------------------------------------------------------------------------

WEEK_AGO, BOOT = at(2026, 6, 1, 0, 7), at(2026, 6, 8, 0, 7)
SHOTS = {"119": "2026-06-08T00:05:01", "120": "2026-06-08T00:05:00", "121": "2026-06-08T00:04:59",
         "day-3": "2026-06-03T12:00:00"}


async def a_week_off(engines: Engines, clock: ManualClock) -> None:
    """What there was on day 0; then the desk is off for seven days."""
    engine = engines(clock=clock)
    await engine.start()
    define(engine, "quarter", "*/15 * * * *", REVIEW)
    define(engine, "daily", "0 9 * * *", REVIEW, timezone="America/New_York")
    define(engine, "weekly", "0 9 * * mon", REVIEW)
    for name, when in SHOTS.items():
        define(engine, f"once-{name}", when, kind="at")
    define(engine, "caught-up", "*/15 * * * *", ONCE, overlap=Overlap.QUEUE)
    define(engine, "caught-up-too", "0 * * * *", ONCE)
    off = define(engine, "off", "*/15 * * * *", REVIEW)
    await engine.write(lambda tx: operations.pause(tx, off, by="ann", reason="", now=clock.now()))
    await engine.stop()
    clock.advance(timedelta(days=7))


def after_a_week(engine: Engine) -> bool:
    """What becomes of it at the boot, whatever went wrong on the way."""
    newest = [Instant(at(2026, 6, 7, 19, 15) + n * QUARTER) for n in range(20)]
    assert cards(engine, "quarter") == newest
    assert newest[-1] == at(2026, 6, 8)
    [older] = rows(engine.store, "SELECT f.slot_from, f.slots, f.slots_exact FROM firing f JOIN automation a "
                   "ON a.id = f.automation_id WHERE a.name = 'quarter' AND f.verdict = 'collapsed'")
    assert older == (at(2026, 6, 1, 0, 15), 480, 0), "at least 480 of the 652 older ones"
    assert cards(engine, "daily") == [Instant(at(2026, 6, 1, 13) + n * 24 * HOUR) for n in range(7)]
    assert cards(engine, "weekly") == [at(2026, 6, 1, 9)]
    for name in ("119", "120"):
        assert [line[0] for line in lines(engine, f"once-{name}")] == ["admitted"]
        assert runs(engine, f"once-{name}")[0][1] == 0, "it is only late"
    for name in ("121", "day-3"):
        assert [line[0] for line in lines(engine, f"once-{name}")] == ["missed"]
        assert len(cards(engine, f"once-{name}")) == 1
        assert armed(engine, f"once-{name}") is None
        assert rows(engine.store, "SELECT state FROM automation WHERE name = ?", f"once-{name}") == [("completed",)]
    assert [(slot, mark) for slot, mark, _ in runs(engine, "caught-up")] == [(at(2026, 6, 8), 1)]
    assert [(slot, mark) for slot, mark, _ in runs(engine, "caught-up-too")] == [(at(2026, 6, 8), 1)]
    begins = [row[0] for row in rows(engine.store, "SELECT run_after FROM run WHERE catchup = 1 ORDER BY run_after")]
    assert [b - a for a, b in pairwise(begins)] == [2 * SECOND]
    assert lines(engine, "off") == []
    assert runs(engine, "off") == []
    assert armed(engine, "quarter") == at(2026, 6, 8, 0, 15)
    return True


@pytest.mark.parametrize("crash", [None, "begin", "middle", "end"])
async def test_after_seven_days_off_everything_missed_is_accounted_for_once(
    engines: Engines, monkeypatch: pytest.MonkeyPatch, crash: str | None
) -> None:
    """S-42, and the desk dies when it begins to answer what was missed, in the middle of it, or when it has."""
    clock = ManualClock(WEEK_AGO)
    await a_week_off(engines, clock)
    assert clock.now() == BOOT
    if crash is not None:
        monkeypatch.setattr(clock_module, "CHUNK", 3)
        turns = 0
        tick, note = clock_module.ClockSource.tick, Sources._note

        def dies(self: Any, *of: Any) -> Any:
            nonlocal turns
            turns += 1
            if crash == "begin" or (crash == "middle" and turns == 3):
                raise RuntimeError("one surprise")
            return tick(self, *of)

        def dies_late(self: Any, tx: Any) -> None:
            raise RuntimeError("one surprise")

        monkeypatch.setattr(clock_module.ClockSource, "tick", dies)
        if crash == "end":
            monkeypatch.setattr(Sources, "_note", dies_late)
        dying = engines(clock=clock)
        with pytest.raises(RuntimeError):
            await dying.start()
        monkeypatch.setattr(clock_module.ClockSource, "tick", tick)
        monkeypatch.setattr(Sources, "_note", note)
    engine = engines(clock=clock)
    await engine.start()
    assert after_a_week(engine)
    await all_have_ended(engine, clock)
    assert runs(engine, "caught-up") == [(at(2026, 6, 8), 1, 1)]
    await engine.stop()
    clock.advance(timedelta(minutes=1))
    again = engines(clock=clock)
    await again.start()
    assert after_a_week(again), "a second boot makes nothing more of it"
    assert rows(again.store, "SELECT count(*) FROM inbox WHERE kind = 'missed'") == [(1,)]
    assert balances(again)
