"""Schedulers, and edits, that meet at a slot: whoever moves it on answers it, and nobody else does."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from armed import armed_at, cron, every, lines, tick_all
from turns import waits_for_a_lock

from nightporter.clock import MINUTE, Kick, ManualClock
from nightporter.errors import LostLead
from nightporter.rules.schedule import parse
from nightporter.rules.zones import TZDATA
from nightporter.sources import plan as plan_module
from nightporter.sources.clock import ClockSource, answer
from nightporter.sources.plan import read_and_plan
from nightporter.sources.telling import tell
from nightporter.store import Store, Tx, open_store
from nightporter.store.tx_clock import schedule_from, schedule_text
from nightporter.words import Missed, MissedPolicy, Schedule
from words import rows, trigger_of


def test_whoever_moves_the_slot_on_answers_it_and_the_other_does_not(store_url: str, clock: ManualClock) -> None:
    one, other = (open_store(store_url, now=clock.now()) for _ in range(2))
    cron(one, clock)
    clock.advance(timedelta(hours=1))
    now = clock.now()
    read = [
        [read_and_plan(armed, now) for armed in store.read(lambda tx: tx.due(now, 10))]
        for store in (one, other)
    ]
    assert len(one.write(lambda tx: answer(tx, read[0], now=now))) == 1
    assert other.write(lambda tx: answer(tx, read[1], now=now)) == []
    assert len(lines(one)) == 1
    one.close()
    other.close()


def test_schedulers_that_tick_at_once_answer_each_slot_once(store_url: str, clock: ManualClock) -> None:
    stores = [open_store(store_url, now=clock.now()) for _ in range(2)]
    for n in range(40):
        cron(stores[0], clock, name=f"brief-{n}")
    clock.advance(timedelta(hours=1))
    gate = threading.Barrier(2)
    faults: list[BaseException] = []

    def work(store: Store) -> None:
        source = ClockSource(store, clock, Kick())
        gate.wait(20)
        try:
            tick_all(source)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert len(lines(stores[0])) == 40
    assert rows(stores[0], "SELECT count(*) FROM run") == [(40,)]
    for store in stores:
        store.close()


def test_an_edit_that_left_the_slot_where_it_was_wins_too(store: Store, clock: ManualClock) -> None:
    """Otherwise the old plan would move the new schedule on past slots that nobody answers."""
    brief = cron(store, clock, "0 * * * *")
    clock.advance(timedelta(hours=1))
    now = clock.now()
    [armed] = store.read(lambda tx: tx.due(now, 10))
    often = schedule_text(parse("cron", "* * * * *", "UTC"))
    store.write(lambda tx: tx.arm([(trigger_of(brief, "clock"), now, TZDATA, 2, often)]))
    stale = read_and_plan(armed, now)
    assert store.write(lambda tx: answer(tx, [stale], now=now)) == []
    assert armed_at(store, brief) == now
    tick_all(ClockSource(store, clock, Kick()))
    assert armed_at(store, brief) == now + MINUTE


def test_a_trigger_that_was_mended_after_it_was_read_is_not_put_aside(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = cron(store, clock)
    rows(store, "UPDATE trigger SET schedule = '{' WHERE id = ?", trigger_of(brief, "clock"))
    clock.advance(timedelta(hours=1))
    slot = clock.now()
    read = schedule_from

    def mended_meanwhile(text: str) -> Schedule:
        mended = schedule_text(parse("cron", "0 9 * * *", "UTC"))
        store.write(lambda tx: tx.arm([(trigger_of(brief, "clock"), slot, TZDATA, 2, mended)]))
        monkeypatch.setattr(plan_module, "schedule_from", read)
        return read(text)

    monkeypatch.setattr(plan_module, "schedule_from", mended_meanwhile)
    tick_all(ClockSource(store, clock, Kick()))
    assert rows(store, "SELECT 1 FROM quarantine") == []
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]


def test_an_edit_that_came_between_wins(store: Store, clock: ManualClock) -> None:
    brief = cron(store, clock)
    clock.advance(timedelta(hours=1))
    now = clock.now()
    [armed] = store.read(lambda tx: tx.due(now, 10))
    store.write(lambda tx: tx.disarm([trigger_of(brief, "clock")]))
    stale = read_and_plan(armed, now)
    assert store.write(lambda tx: answer(tx, [stale], now=now)) == []
    assert lines(store) == []


def test_one_who_was_succeeded_while_it_stood_still_moves_no_slot_and_ends_its_loop(
    store: Store, clock: ManualClock
) -> None:
    brief = every(store, clock, "1m")
    leads = True
    loop = ClockSource(store, clock, Kick(), leads=lambda _: leads)
    clock.advance(timedelta(minutes=1))
    assert loop.tick()
    leads = False
    clock.advance(timedelta(minutes=1))
    armed, told = armed_at(store), lines(store)
    with pytest.raises(LostLead):
        loop.tick()
    loop.run()
    assert loop.lost_the_lead
    assert (armed_at(store), lines(store)) == (armed, told)
    assert tick_all(ClockSource(store, clock, Kick())) == 1
    assert len(lines(store)) == 2
    assert rows(store, "SELECT count(*) FROM run WHERE automation_id = ?", brief) == [(1,)]


def test_one_who_was_succeeded_puts_no_trigger_aside(store: Store, clock: ManualClock) -> None:
    every(store, clock, "1m")
    rows(store, "UPDATE trigger SET schedule = '[]'")
    clock.advance(timedelta(minutes=1))
    with pytest.raises(LostLead):
        ClockSource(store, clock, Kick(), leads=lambda _: False).tick()
    assert rows(store, "SELECT count(*) FROM quarantine") == [(0,)]


def test_what_is_missed_while_somebody_tells_of_what_was_missed_before_is_told_too(
    store_url: str, clock: ManualClock
) -> None:
    one, other = (open_store(store_url, now=clock.now(), patience=20.0) for _ in range(2))
    for name in ("brief", "report"):
        cron(one, clock, "0 * * * *", name=name, missed=Missed(MissedPolicy.REVIEW))
    clock.advance(timedelta(hours=2, minutes=30))
    now = clock.now()
    first, second = (read_and_plan(armed, now) for armed in one.read(lambda tx: tx.due(now, 10)))
    one.write(lambda tx: answer(tx, [first], now=now))
    answered, go_on = threading.Event(), threading.Event()

    def miss(tx: Tx) -> None:
        answer(tx, [second], now=now)
        answered.set()
        assert go_on.wait(20)

    with ThreadPoolExecutor() as pool:
        missing = pool.submit(one.write, miss)
        assert answered.wait(20)
        telling = pool.submit(other.write, lambda tx: tell(tx, evaluated_at=now, now=now))
        while one.dialect == "postgres" and not telling.done() and not waits_for_a_lock(other):
            pass
        go_on.set()
        missing.result(20)
        telling.result(20)
    clock.advance(timedelta(seconds=1))
    other.write(lambda tx: tell(tx, evaluated_at=clock.now(), now=clock.now()))
    told = "\n".join(text for (text,) in rows(one, "SELECT text FROM inbox WHERE kind = 'missed'"))
    assert "brief: 2 wait for you" in told
    assert "report: 2 wait for you" in told
    one.close()
    other.close()


def test_what_was_missed_is_told_though_the_clock_was_set_back_since(store: Store, clock: ManualClock) -> None:
    cron(store, clock, "0 * * * *", missed=Missed(MissedPolicy.REVIEW))
    clock.advance(timedelta(hours=2, minutes=30))
    tick_all(ClockSource(store, clock, Kick()))
    clock.step(timedelta(hours=-5))
    seen = clock.now()
    clock.advance(timedelta(seconds=1))
    assert [store.write(lambda tx: tell(tx, evaluated_at=seen, now=clock.now())) for _ in range(2)] == [1, 0]
