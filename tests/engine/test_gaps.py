"""Gaps are noticed, written down and said once: a clock that is set, a machine that sleeps, a desk that was down, a
store that was put back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from armed import at
from builders import Night
from desks import until
from engines import Engines

import nightporter.engine
from nightporter.clock import HOUR, MINUTE, SECOND, Clock, Instant, Kick, ManualClock
from nightporter.engine import Engine
from nightporter.engine.gaps import ClockWatch, Gap, Mark, since_it_was_kept, write_down
from nightporter.engine.sources import Sources
from nightporter.sources.clock import ClockSource
from nightporter.store import Store, Tx
from nightporter.store.postgres import PostgresStore
from nightporter.words import (
    Coalesce,
    Destination,
    Ended,
    ErrorClass,
    Missed,
    MissedPolicy,
    Receipt,
    Retry,
    TriggerSpec,
)
from words import a_clock_trigger, an_automation, rows

NOON = at(2026, 3, 27, 12)
ALL = frozenset({"exception"})


# -- the watch, which is pure but for the clock -----------------------------------------------------------------------


def test_time_that_passes_as_it_should_is_no_gap() -> None:
    clock = ManualClock(NOON)
    watch = ClockWatch(clock)
    for _ in range(30):
        clock.advance(timedelta(seconds=1))
        assert watch.look() == []
    clock.step(timedelta(seconds=9))
    assert watch.look() == [], "a correction is no step"


@pytest.mark.parametrize(
    ("happens", "gaps"),
    [
        (lambda clock: clock.step(timedelta(hours=3)), [Gap("step_forward", NOON, Instant(NOON + 3 * HOUR))]),
        (lambda clock: clock.step(timedelta(hours=-3)), [Gap("step_back", Instant(NOON - 3 * HOUR), NOON)]),
        (lambda clock: clock.sleep(timedelta(hours=8)), [Gap("sleep", NOON, Instant(NOON + 8 * HOUR))]),
        (lambda clock: clock.advance(timedelta(minutes=2)), [Gap("sleep", NOON, Instant(NOON + 2 * MINUTE))]),
        (lambda clock: (clock.sleep(timedelta(hours=1)), clock.step(timedelta(minutes=5))),
         [Gap("sleep", NOON, Instant(NOON + HOUR)),
          Gap("step_forward", Instant(NOON + HOUR), Instant(NOON + 65 * MINUTE))]),
    ],
    ids=["set forward", "set back", "asleep", "stood still", "asleep and set"],
)
def test_what_happened_to_the_clock_is_told_once(happens: Callable[[ManualClock], Any], gaps: list[Gap]) -> None:
    clock = ManualClock(NOON)
    watch = ClockWatch(clock)
    happens(clock)
    assert watch.look() == gaps
    clock.advance(timedelta(seconds=1))
    assert watch.look() == []


@pytest.mark.parametrize(
    ("high", "kept", "gaps"),
    [
        (None, None, []),
        (NOON - MINUTE, None, []),
        (NOON - HOUR, None, [Gap("down", Instant(NOON - HOUR), NOON)]),
        (NOON - HOUR, NOON - HOUR + MINUTE, [Gap("down", Instant(NOON - HOUR + MINUTE), NOON)]),
        (NOON - 5 * HOUR, NOON - MINUTE, [Gap("restored", Instant(NOON - 5 * HOUR), Instant(NOON - MINUTE))]),
        (NOON - 5 * HOUR, NOON - HOUR,
         [Gap("restored", Instant(NOON - 5 * HOUR), Instant(NOON - HOUR)), Gap("down", Instant(NOON - HOUR), NOON)]),
        (NOON + HOUR, NOON + HOUR, [Gap("step_back", NOON, Instant(NOON + HOUR))]),
    ],
)
def test_what_lies_between_the_last_time_that_a_store_was_kept_and_now(
    high: Instant | None, kept: Instant | None, gaps: list[Gap]
) -> None:
    assert since_it_was_kept(high, kept, NOON) == gaps


def test_a_mark_is_of_its_store_and_goes_forward_only(tmp_path: Path) -> None:
    mark = Mark(tmp_path / "kept.json")
    assert mark.read("one") is None
    mark.write("one", NOON)
    mark.write("one", Instant(NOON - HOUR))
    assert Mark(tmp_path / "kept.json").read("one") == NOON
    assert mark.read("another") is None
    (tmp_path / "kept.json").write_text("{")
    assert mark.read("one") is None
    Mark(tmp_path / "nowhere" / "kept.json").write("one", NOON)


# -- desks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Desks go by the clock they are given, on PostgreSQL too, and look at it often."""

    def own(self: PostgresStore, clock: Clock) -> Clock:
        return clock

    monkeypatch.setattr(PostgresStore, "clock", own)
    monkeypatch.setattr(nightporter.engine, "CLOCK_SECONDS", 0.01)


pytestmark = pytest.mark.usefixtures("by_hand")


def gaps(engine: Engine) -> list[tuple[str, Instant, Instant]]:
    return [(row.kind, row.gap_from, row.gap_to) for row in engine.store.read(lambda tx: tx.gaps())]


def hourly(engine: Engine, policy: MissedPolicy = MissedPolicy.REVIEW) -> None:
    an_automation(engine.store, now=engine.clock.now(), triggers=[a_clock_trigger("0 * * * *", missed=Missed(policy))])


def told(engine: Engine) -> list[tuple[str, str]]:
    return rows(engine.store, "SELECT title, text FROM inbox WHERE kind = 'missed' ORDER BY id")


async def test_a_clock_that_is_set_forward_is_written_down_and_what_it_jumped_over_is_missed(engines: Engines) -> None:
    clock = ManualClock(at(2026, 3, 27, 10, 7))
    engine = engines(clock=clock)
    await engine.start()
    hourly(engine)
    clock.step(timedelta(hours=3))
    await until(lambda: gaps(engine))
    assert gaps(engine) == [("step_forward", at(2026, 3, 27, 10, 7), at(2026, 3, 27, 13, 7))]
    await until(lambda: len(rows(engine.store, "SELECT 1 FROM missed_card")) == 3)
    await until(lambda: told(engine))
    assert told(engine) == [(
        "brief missed its time",
        "brief: 3 wait for you\n`nightporter missed` lists what waits for you, and runs or dismisses it.",
    )]


async def test_a_clock_that_is_set_back_is_said_once_and_nothing_fires_twice(
    engines: Engines, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock(at(2026, 3, 27, 9, 59, 50))
    engine = engines(clock=clock)
    await engine.start()
    hourly(engine)
    clock.advance(timedelta(seconds=15))
    await until(lambda: rows(engine.store, "SELECT 1 FROM run"))
    clock.step(timedelta(hours=-3))
    await until(lambda: gaps(engine))
    for _ in range(4):
        clock.advance(timedelta(seconds=10))
    await engine.write(lambda _: None)
    assert [kind for kind, *_ in gaps(engine)] == ["step_back"]
    assert rows(engine.store, "SELECT count(*) FROM firing WHERE source = 'clock'") == [(1,)]
    assert rows(engine.store, "SELECT next_fire_at FROM trigger WHERE next_fire_at IS NOT NULL") == [
        (at(2026, 3, 27, 11),)]
    assert len([r for r in caplog.records if "clock.set_back" in r.getMessage()]) == 1


async def test_a_desk_that_was_down_says_so_once_and_a_second_boot_says_nothing(engines: Engines) -> None:
    clock = ManualClock(at(2026, 3, 27, 10, 7))
    first = engines(clock=clock)
    await first.start()
    hourly(first, MissedPolicy.RUN_ONCE)
    await first.stop()
    clock.advance(timedelta(hours=4))
    for _ in range(2):
        again = engines(clock=clock)
        await again.start()
        assert gaps(again) == [("down", at(2026, 3, 27, 10, 7), at(2026, 3, 27, 14, 7))]
        assert told(again) == [("brief missed its time", "brief: runs late, 3 did not run")]
        assert rows(again.store, "SELECT count(*) FROM run") == [(1,)]
        await again.stop()
        clock.advance(timedelta(minutes=1))


async def test_what_is_skipped_by_its_policy_is_no_news(engines: Engines) -> None:
    clock = ManualClock(at(2026, 3, 27, 10, 7))
    first = engines(clock=clock)
    await first.start()
    hourly(first, MissedPolicy.SKIP)
    await first.stop()
    clock.advance(timedelta(hours=4))
    again = engines(clock=clock)
    await again.start()
    assert told(again) == []
    assert rows(again.store, "SELECT slots FROM firing") == [(4,)]


async def test_many_automations_that_missed_their_times_are_one_message(engines: Engines) -> None:
    clock = ManualClock(at(2026, 3, 27, 8))
    first = engines(clock=clock)
    await first.start()
    for n in range(60):
        an_automation(first.store, now=clock.now(), name=f"brief-{n:02}", triggers=[a_clock_trigger()])
    await first.stop()
    clock.advance(timedelta(hours=2))
    again = engines(clock=clock)
    await again.start()
    [(title, text)] = told(again)
    assert title == "60 automations missed their times"
    assert text.splitlines()[0] == "brief-00: runs late"
    assert text.splitlines()[-1] == "and 10 more"


async def put_back(engines: Engines, clock: ManualClock, tmp_path: Path) -> Instant:
    """A store with an hourly automation that went on elsewhere for two hours; what is here is the copy from before. Up
    to when it was kept there."""
    first = engines(clock=clock)
    await first.start()
    an_automation(first.store, now=clock.now(), triggers=[a_clock_trigger()])
    ledger = await first.read(lambda tx: tx.setting("ledger"))
    await first.stop()
    kept = Instant(clock.now() + 2 * HOUR)
    (tmp_path / "home" / "kept.json").write_text(json.dumps({"ledger": ledger, "at": kept}))
    clock.advance(timedelta(hours=2, seconds=30))
    return kept


async def test_a_store_that_was_put_back_runs_nothing_by_itself_that_may_have_run_before(
    engines: Engines, tmp_path: Path
) -> None:
    clock = ManualClock(at(2026, 3, 27, 8))
    kept = await put_back(engines, clock, tmp_path)
    again = engines(clock=clock)
    await again.start()
    assert gaps(again) == [("restored", at(2026, 3, 27, 8), kept)]
    assert rows(again.store, "SELECT verdict FROM firing") == [("missed",)]
    assert rows(again.store, "SELECT state FROM missed_card") == [("pending",)]
    assert told(again)[0][1].startswith("brief: 1 waits for you")
    await again.stop()
    third = engines(clock=clock)
    await third.start()
    assert len(gaps(third)) == 1, "it is told once"
    assert len(told(third)) == 1


async def test_a_desk_that_dies_while_it_answers_for_a_store_that_was_put_back_leaves_its_doubts_to_the_next(
    engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(at(2026, 3, 27, 8))
    kept = await put_back(engines, clock, tmp_path)
    dying = engines(clock=clock)
    with monkeypatch.context() as patch:
        patch.setattr(ClockSource, "tick", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            await dying.start()
    again = engines(clock=clock)
    await again.start()
    assert gaps(again) == [("restored", at(2026, 3, 27, 8), kept)]
    assert rows(again.store, "SELECT verdict FROM firing") == [("missed",)]
    assert rows(again.store, "SELECT count(*) FROM run") == [(0,)]


def test_the_mark_beside_the_store_is_never_ahead_of_what_was_committed(store: Store, tmp_path: Path) -> None:
    clock = ManualClock(at(2026, 3, 27, 8))
    store.write(lambda tx: tx.join("wrk_a", role="desk", host="here", pid=1, lock_path="", now=clock.now()))
    sources = Sources(store, clock, Kick(), me=lambda: "wrk_a", mark=tmp_path / "kept.json")
    sources.take_over(lambda: None)
    clock.advance(timedelta(minutes=5))

    def fails(tx: Tx) -> None:
        sources.note(tx)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(fails)
    sources.watch()
    [(high,)] = rows(store, "SELECT value FROM setting WHERE key = 'clock_high_water'")
    assert json.loads((tmp_path / "kept.json").read_text())["at"] <= int(high)


async def test_the_mark_beside_the_store_follows_what_is_kept(engines: Engines, tmp_path: Path) -> None:
    clock = ManualClock(at(2026, 3, 27, 8))
    engine = engines(clock=clock)
    await engine.start()
    clock.advance(timedelta(seconds=5))
    mark = tmp_path / "home" / "kept.json"
    await until(lambda: mark.exists() and json.loads(mark.read_text())["at"] == clock.now())
    assert json.loads(mark.read_text())["ledger"] == await engine.read(lambda tx: tx.setting("ledger"))


@pytest.mark.parametrize(("kind", "by"), [("step_forward", 3 * HOUR), ("step_back", -3 * HOUR)])
def test_where_the_clock_is_set_what_waits_for_a_time_waits_as_long_as_it_was_to(
    store: Store, kind: str, by: int
) -> None:
    """S-12, S-13: what was written after the clock was set, and before anybody noticed, waits rightly already."""
    night, calls = Night(store, ManualClock(NOON)), TriggerSpec("call", "call")
    hook = [Destination("hook", "webhook", {"url": "https://one.example"})]
    tried = night.define("tried", calls, deliver=hook, retry=Retry(attempts=3, delays=(timedelta(minutes=10),), on=ALL))
    gathers = night.define("gathers", replace(calls, coalesce=Coalesce(timedelta(minutes=5), timedelta(minutes=9))))
    sent = night.define("sent", calls, deliver=hook)
    night.run(sent)
    night.send(Receipt.TRANSIENT)
    night.run(tried, Ended.failed(ErrorClass.EXCEPTION, "503"))
    wait = night.sql("SELECT run_after - ? FROM run WHERE state = 'queued'", night.now)
    tries = night.sql("SELECT next_try_at - ? FROM delivery", night.now)
    old = night.now
    night.clock.step(timedelta(microseconds=by))
    night.fire(gathers)
    after = night.sql("SELECT run_after FROM run WHERE automation_id = ?", gathers)
    gap = Gap(kind, min(old, night.now), max(old, night.now))
    for _ in range(2):  # it is noticed once
        store.write(lambda tx: write_down(tx, [gap], worker="wrk_a", now=night.now))
    assert night.sql("SELECT run_after - ? FROM run WHERE automation_id = ?", night.now, tried) == wait
    assert night.sql("SELECT next_try_at - ? FROM delivery", night.now) == tries
    assert night.sql("SELECT run_after FROM run WHERE automation_id = ?", gathers) == after
    assert night.found() == {}


async def test_after_a_restart_what_is_overdue_begins_within_the_push(engines: Engines) -> None:
    clock = ManualClock(at(2026, 3, 27, 8))
    first = engines(clock=clock)
    await first.start()
    an_automation(first.store, now=clock.now(), triggers=[a_clock_trigger()])
    await first.stop()
    clock.advance(timedelta(hours=2))
    again = engines(clock=clock, settings={"boot_push": timedelta(seconds=60)})
    await again.start()
    [(state, wait)] = rows(again.store, "SELECT state, run_after - queued_at FROM run")
    assert state == "queued"
    assert 0 < wait <= 60 * SECOND
    clock.advance(timedelta(seconds=60))
    await until(lambda: rows(again.store, "SELECT 1 FROM run WHERE state = 'succeeded'") or
                rows(again.store, "SELECT 1 FROM run WHERE state = 'skipped'"))
    assert rows(again.store, "SELECT ran_late, catchup FROM run") == [(1, 1)]
