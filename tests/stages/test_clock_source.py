"""The clock source: each slot is answered once and never early, what was missed is told, and a bad row stops nobody."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nightporter.clock import DAY, HOUR, MINUTE, SECOND, Instant, Kick, ManualClock, instant, rfc3339
from nightporter.errors import LostLead, StoreUnwritable
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import TZDATA
from nightporter.sources import clock as clock_module
from nightporter.sources.clock import ClockSource, answer, plan, settle
from nightporter.store import Store, Tx, open_store
from nightporter.store.tx_clock import Armed, schedule_from, schedule_text
from nightporter.words import Firing, Limits, Overlap, Schedule, Settled, Verdict
from words import a_clock_trigger, an_automation, rows, trigger_of

FREE = Limits(per_hour=None, queued=None, concurrent=None)


def at(*of: int) -> Instant:
    """An instant in UTC."""
    return instant(datetime(*of, tzinfo=UTC))  # type: ignore[arg-type,misc]  # year, month, day, ...


@pytest.fixture
def source(store: Store, clock: ManualClock) -> ClockSource:
    return ClockSource(store, clock, Kick())


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


class Busy:
    """A store, and its writer, whose writes wait for somebody else's first."""

    commit_seconds = 0.0

    def __init__(self, store: Store, clock: ManualClock, wait: timedelta) -> None:
        self._store, self._clock, self._wait = store, clock, wait
        self.read = store.read
        self.writer = self

    def write(self, work: Callable[[Tx], Any], *, patient: bool = False) -> Any:
        def later(tx: Tx) -> Any:
            self._clock.advance(self._wait)
            return work(tx)

        return self._store.write(later)


def test_an_answer_that_had_to_wait_for_the_store_is_of_when_it_was_given(store: Store, clock: ManualClock) -> None:
    every(store, clock, "1m")
    clock.advance(timedelta(minutes=1))
    came = clock.now()
    source = ClockSource(Busy(store, clock, timedelta(seconds=5)), clock, Kick())  # type: ignore[arg-type]  # in part
    source.tick()
    given = came + 5 * SECOND
    assert rows(store, "SELECT scheduled_for, arrived_at FROM firing") == [(came, given)]
    assert rows(store, "SELECT run.queued_at, t.at FROM run JOIN transition t ON t.run_id = run.id") == [(given, given)]


# -- on time --------------------------------------------------------------------------------------------------------


def test_nothing_fires_early(store: Store, clock: ManualClock, source: ClockSource) -> None:
    cron(store, clock)
    clock.advance(timedelta(hours=1) - timedelta(microseconds=1))
    assert not source.tick()
    assert lines(store) == []
    clock.advance(timedelta(microseconds=1))
    assert source.tick()
    assert lines(store) == [("admitted", None, at(2026, 3, 27, 9), None)]


def test_a_slot_is_answered_once_and_the_next_is_strictly_later(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    brief = cron(store, clock)
    clock.advance(timedelta(hours=1))
    tick_all(source)
    assert armed_at(store, brief) == at(2026, 3, 28, 9)
    assert tick_all(source) == 0
    assert len(lines(store)) == 1


def test_the_slot_is_the_runs_time_and_its_telling(store: Store, clock: ManualClock, source: ClockSource) -> None:
    cron(store, clock)
    clock.advance(timedelta(hours=1, seconds=30))
    source.tick()
    assert rows(store, "SELECT scheduled_for, queued_at, source FROM run") == [
        (at(2026, 3, 27, 9), clock.now(), "clock")
    ]
    assert rows(store, "SELECT external_id, dedupe_key FROM firing") == [("2026-03-27T09:00:00Z",) * 2]


def test_a_grid_keeps_its_phase_however_late_it_is_answered(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    brief = every(store, clock, "15m")
    clock.advance(timedelta(minutes=16, seconds=40))
    source.tick()
    assert armed_at(store, brief) == at(2026, 3, 27, 8, 30)


def test_a_one_shot_fires_once_and_is_armed_no_more(store: Store, clock: ManualClock, source: ClockSource) -> None:
    brief = cron(store, clock, "2026-03-27T09:00", kind="at")
    clock.advance(timedelta(hours=1))
    tick_all(source)
    assert armed_at(store, brief) is None
    clock.advance(timedelta(days=400))
    assert tick_all(source) == 0
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]
    assert rows(store, "SELECT state FROM automation") == [("active",)], "it is completed when its run has ended"


def test_local_time_is_kept_through_a_change_of_the_zone(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    for _ in range(72):
        tick_all(source)
        clock.advance(timedelta(hours=1))
    assert [rfc3339(slot) for _, _, slot, _ in lines(store)] == [
        "2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"
    ]


def test_a_switched_off_trigger_that_is_still_armed_leaves_its_reason(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock)
    rows(store, "UPDATE automation SET state = 'paused', state_reason = 'holiday'")
    clock.advance(timedelta(hours=1))
    tick_all(source)
    assert lines(store) == [("skipped", "paused", at(2026, 3, 27, 9), None)]


# -- late -----------------------------------------------------------------------------------------------------------


def test_two_minutes_late_is_only_late(store: Store, clock: ManualClock, source: ClockSource) -> None:
    cron(store, clock)
    clock.advance(timedelta(hours=1, seconds=120))
    tick_all(source)
    assert lines(store) == [("admitted", None, at(2026, 3, 27, 9), None)]
    assert source.not_run == 0


def test_more_than_two_minutes_late_is_missed_and_told_by_one_line(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    brief = cron(store, clock)
    clock.advance(timedelta(hours=1, seconds=120, microseconds=1))
    tick_all(source)
    assert lines(store) == [("collapsed", "missed_policy", at(2026, 3, 27, 9), 1)]
    assert armed_at(store, brief) == at(2026, 3, 28, 9)
    assert source.not_run == 1


def test_a_long_silence_is_one_line_and_what_is_fresh_still_fires(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    every(store, clock, "1m", overlap=Overlap.PARALLEL)
    clock.advance(timedelta(hours=3, seconds=30))
    assert tick_all(source) == 1
    now = clock.now()
    assert lines(store) == [
        ("collapsed", "missed_policy", at(2026, 3, 27, 8, 1), 178),
        ("admitted", None, at(2026, 3, 27, 10, 59), None), ("admitted", None, at(2026, 3, 27, 11), None),
    ]
    assert rows(store, "SELECT slot_from, slot_to, slots_exact FROM firing WHERE verdict = 'collapsed'") == [
        (at(2026, 3, 27, 8, 1), now - 120 * SECOND - 1, 1)
    ]


def test_a_line_that_answers_too_many_slots_to_count_says_so(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock, "* * * * *")
    clock.advance(timedelta(days=2))
    tick_all(source)
    assert rows(store, "SELECT slots, slots_exact FROM firing WHERE verdict = 'collapsed'") == [(480, 0)]


def test_a_missed_one_shot_is_told_and_its_automation_is_done(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    brief = cron(store, clock, "2026-03-27T09:00", kind="at")
    clock.advance(timedelta(hours=1, seconds=121))
    tick_all(source)
    assert lines(store) == [("missed", "missed_policy", at(2026, 3, 27, 9), 1)]
    assert armed_at(store, brief) is None
    assert rows(store, "SELECT state FROM automation") == [("completed",)]


def test_a_second_start_enumerates_nothing_again(store: Store, clock: ManualClock) -> None:
    every(store, clock, "1m")
    clock.advance(timedelta(hours=5))
    for _ in range(10):
        tick_all(ClockSource(store, clock, Kick()))
    assert [verdict for verdict, *_ in lines(store)].count("collapsed") == 1
    assert len(lines(store)) == 4


@pytest.mark.parametrize(("slots_ago", "expression"), [(1, "7m"), (3, "30s"), (500, "1s"), (9, "1d")])
def test_every_slot_up_to_now_has_exactly_one_answer(slots_ago: int, expression: str) -> None:
    anchor = at(2026, 1, 1)
    schedule = parse("every", expression, "UTC", anchor=anchor)
    step = (next_due(schedule, anchor) or 0) - anchor
    first = Instant(anchor + step)
    now = Instant(anchor + step * (slots_ago + 1) + step // 3)
    found = plan(Armed("a/clock", "a", schedule_text(schedule), 1, first, "", TZDATA), schedule, now)
    answered = sum(f.count if isinstance(f, Settled) else 1 for f in found.firings)
    assert answered == slots_ago + 1
    assert found.next_fire_at == anchor + step * (slots_ago + 2)
    fresh = [f.scheduled_for for f in found.firings if isinstance(f, Firing)]
    assert fresh == sorted(set(fresh), key=lambda slot: slot or 0)
    assert all(slot is not None and now - 120 * SECOND <= slot <= now for slot in fresh)


# -- a clock that is set ----------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_fires_nothing_twice(store: Store, clock: ManualClock, source: ClockSource) -> None:
    cron(store, clock)
    clock.advance(timedelta(hours=1))
    tick_all(source)
    clock.step(timedelta(hours=-3))
    assert tick_all(source) == 0
    clock.advance(timedelta(hours=4))
    assert tick_all(source) == 0
    assert len(lines(store)) == 1


def test_a_clock_that_is_set_back_while_the_loop_sleeps_fires_nothing_early_and_nothing_twice(store: Store) -> None:
    class SetBack(ManualClock):
        """Set back by an hour when the slot has come and is not answered, and by two when it has been."""

        def wait(self, until: Instant, kick: Kick) -> None:
            told = len(lines(store))
            seen.append((self.now(), armed_at(store), told))
            self.advance(timedelta(microseconds=until - self.now()))
            if len(seen) == 1:
                self.step(timedelta(hours=-1))
            if told and not seen[-2][2]:
                self.step(timedelta(hours=-2))
            if self.now() > at(2026, 3, 27, 9, 10):
                loop.close()

    seen: list[tuple[Instant, Instant | None, int]] = []
    clock = SetBack(at(2026, 3, 27, 8, 59))
    cron(store, clock)
    loop = ClockSource(store, clock, Kick())
    loop.run()
    assert lines(store) == [("admitted", None, at(2026, 3, 27, 9), None)]
    assert rows(store, "SELECT arrived_at >= scheduled_for FROM firing") in ([(1,)], [(True,)])
    assert {armed for _, armed, told in seen if not told} == {at(2026, 3, 27, 9)}
    assert {armed for _, armed, told in seen if told} == {at(2026, 3, 28, 9)}
    assert min(now for now, _, told in seen if told) < at(2026, 3, 27, 8)


def test_a_clock_that_jumps_ahead_leaves_a_line_for_what_it_jumped_over(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock)
    clock.step(timedelta(days=3))
    tick_all(source)
    assert [(verdict, slots) for verdict, _, _, slots in lines(store)] == [("collapsed", 3)]


# -- two schedulers -------------------------------------------------------------------------------------------------


def test_whoever_moves_the_slot_on_answers_it_and_the_other_does_not(store_url: str, clock: ManualClock) -> None:
    one, other = (open_store(store_url, now=clock.now()) for _ in range(2))
    cron(one, clock)
    clock.advance(timedelta(hours=1))
    now = clock.now()
    read = [
        [plan(armed, parse("cron", "0 9 * * *", "UTC"), now) for armed in store.read(lambda tx: tx.due(now, 10))]
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
    stale = plan(armed, parse("cron", "0 * * * *", "UTC"), now)
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
        monkeypatch.setattr(clock_module, "schedule_from", read)
        return read(text)

    monkeypatch.setattr(clock_module, "schedule_from", mended_meanwhile)
    tick_all(ClockSource(store, clock, Kick()))
    assert rows(store, "SELECT 1 FROM quarantine") == []
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]


def test_an_edit_that_came_between_wins(store: Store, clock: ManualClock) -> None:
    brief = cron(store, clock)
    clock.advance(timedelta(hours=1))
    now = clock.now()
    [armed] = store.read(lambda tx: tx.due(now, 10))
    store.write(lambda tx: tx.disarm([trigger_of(brief, "clock")]))
    stale = plan(armed, parse("cron", "0 9 * * *", "UTC"), now)
    assert store.write(lambda tx: answer(tx, [stale], now=now)) == []
    assert lines(store) == []


# -- many -----------------------------------------------------------------------------------------------------------


def test_a_busy_instant_is_answered_in_chunks(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_module, "CHUNK", 4)
    source = ClockSource(store, clock, Kick())
    for n in range(10):
        cron(store, clock, name=f"brief-{n}")
    clock.advance(timedelta(hours=1))
    sizes = []
    while source.tick():
        sizes.append(len(lines(store)))
        if len(sizes) < 3:
            assert source.evaluated_at is None, "not all of what is due has been looked at"
    assert sizes == [4, 8, 10]
    assert source.evaluated_at == clock.now()


# -- rows that cannot be read ---------------------------------------------------------------------------------------

BAD_ROWS: dict[str, tuple[str, str]] = {
    "no JSON": ("schedule", "{"),
    "another shape": ("schedule", '["cron"]'),
    "no schedule at all": ("schedule", "null"),
    "an unknown kind": ("schedule", json.dumps(["moon", "full", "UTC", None])),
    "a number for an expression": ("schedule", json.dumps(["cron", 5, "UTC", None])),
    "an unknown zone": ("schedule", json.dumps(["cron", "0 9 * * *", "Mars/Olympus", None])),
    "a cron that is none": ("schedule", json.dumps(["cron", "every now and then", "UTC", None])),
    "a policy that is none": ("policy", "[]"),
    "an automation that is gone": ("automation_id", "aut_gone"),
}


@pytest.mark.parametrize(("column", "value"), BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_trigger_that_cannot_be_read_is_put_aside_and_the_others_go_on(
    store: Store, clock: ManualClock, source: ClockSource, column: str, value: str
) -> None:
    bad, good = (cron(store, clock, name=name, overlap=Overlap.PARALLEL) for name in ("bad", "good"))
    trigger = trigger_of(bad, "clock")
    rows(store, f"UPDATE trigger SET {column} = ? WHERE id = ?", value, trigger)
    clock.advance(timedelta(hours=1))
    tick_all(source)
    assert [automation for (automation,) in rows(store, "SELECT automation_id FROM run")] == [good]
    [(slot, error)] = rows(store, "SELECT next_fire_at, error FROM trigger WHERE id = ?", trigger)
    assert slot is None
    assert error
    assert rows(store, "SELECT subject, key, error, at FROM quarantine") == [("trigger", trigger, error, clock.now())]
    clock.advance(timedelta(days=1))
    tick_all(source)
    assert rows(store, "SELECT count(*) FROM run") == [(2,)]
    assert rows(store, "SELECT count(*) FROM quarantine") == [(1,)]


def test_a_line_that_the_store_refuses_puts_its_trigger_aside_and_the_others_go_on(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    bad, good = (cron(store, clock, name=name, overlap=Overlap.PARALLEL) for name in ("bad", "good"))
    clock.advance(timedelta(hours=1))
    store.write(lambda tx: settle(tx, bad, now=clock.now()))
    # Somebody restored half of an old copy: the run of this slot is there, and its line is not.
    rows(store, "DELETE FROM firing")
    rows(store, "UPDATE trigger SET next_fire_at = ? WHERE id = ?", clock.now(), trigger_of(bad, "clock"))
    tick_all(source)
    assert rows(store, "SELECT key FROM quarantine") == [(trigger_of(bad, "clock"),)]
    assert rows(store, "SELECT automation_id, verdict FROM firing") == [(good, "admitted")]


def test_a_trigger_that_was_put_aside_can_be_let_back(store: Store, clock: ManualClock, source: ClockSource) -> None:
    brief = cron(store, clock)
    trigger = trigger_of(brief, "clock")
    store.write(lambda tx: tx.quarantine_trigger(trigger, "unreadable", now=clock.now()))
    store.write(lambda tx: tx.release_trigger(trigger))
    schedule = schedule_text(parse("cron", "0 9 * * *", "UTC"))
    store.write(lambda tx: tx.arm([(trigger, at(2026, 3, 27, 9), TZDATA, 1, schedule)]))
    assert rows(store, "SELECT 1 FROM quarantine") == []
    clock.advance(timedelta(hours=1))
    tick_all(source)
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]


# -- settle ---------------------------------------------------------------------------------------------------------


def test_settling_answers_all_slots_of_one_automation_and_of_no_other(store: Store, clock: ManualClock) -> None:
    mine, other = cron(store, clock, name="mine"), cron(store, clock, name="other")
    clock.advance(timedelta(hours=1))
    store.write(lambda tx: settle(tx, mine, now=clock.now()))
    assert armed_at(store, mine) == at(2026, 3, 28, 9)
    assert armed_at(store, other) == at(2026, 3, 27, 9)
    assert len(lines(store)) == 1
    store.write(lambda tx: settle(tx, mine, now=clock.now()))
    assert len(lines(store)) == 1


def test_settling_before_a_slot_moves_nothing(store: Store, clock: ManualClock) -> None:
    brief = cron(store, clock)
    store.write(lambda tx: settle(tx, brief, now=clock.now()))
    assert armed_at(store, brief) == at(2026, 3, 27, 9)


def test_settling_puts_a_trigger_aside_that_cannot_be_read_and_answers_the_others(
    store: Store, clock: ManualClock
) -> None:
    daily = a_clock_trigger()
    brief = an_automation(store, now=clock.now(), triggers=[daily, replace(daily, name="spare")], limits=FREE)
    rows(store, "UPDATE trigger SET schedule = '{' WHERE id = ?", trigger_of(brief, "spare"))
    clock.advance(timedelta(hours=1))
    store.write(lambda tx: settle(tx, brief, now=clock.now()))
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]
    assert rows(store, "SELECT key FROM quarantine") == [(trigger_of(brief, "spare"),)]


# -- another release of the zone data ---------------------------------------------------------------------------------


def armed_elsewhere(store: Store, automation: str, slot: Instant) -> None:
    """The slot as another release of the zone data had it."""
    trigger = trigger_of(automation, "clock")
    rows(store, "UPDATE trigger SET next_fire_at = ?, tzdata = 'old' WHERE id = ?", slot, trigger)


NINE_IN_BERLIN = at(2026, 6, 1, 7)
"""By today's rules; under others it may have been an hour earlier or later."""


@pytest.mark.parametrize("was", [NINE_IN_BERLIN - HOUR, NINE_IN_BERLIN + HOUR])
def test_a_slot_that_is_still_to_come_moves_to_where_the_rules_now_have_it(store: Store, was: Instant) -> None:
    clock = ManualClock(at(2026, 6, 1, 5))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, was)
    source = ClockSource(store, clock, Kick())
    assert source.rezone() == 1
    assert armed_at(store, brief) == NINE_IN_BERLIN
    assert source.rezone() == 0


def test_an_occurrence_that_the_new_rules_have_passed_already_is_answered_and_not_lost(store: Store) -> None:
    clock = ManualClock(at(2026, 5, 31, 20))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, Instant(NINE_IN_BERLIN + HOUR))
    clock.advance(timedelta(hours=11, minutes=30))
    source = ClockSource(store, clock, Kick())
    source.rezone()
    tick_all(source)
    assert lines(store) == [("collapsed", "missed_policy", NINE_IN_BERLIN, 1)]
    assert armed_at(store, brief) == NINE_IN_BERLIN + DAY


def test_an_occurrence_that_has_fired_under_the_old_rules_does_not_fire_again(store: Store) -> None:
    clock = ManualClock(at(2026, 6, 1, 6, 30))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, Instant(NINE_IN_BERLIN - HOUR + DAY))
    rows(store, "UPDATE trigger SET last_fired_at = ?", NINE_IN_BERLIN - HOUR)  # today's, half an hour ago
    source = ClockSource(store, clock, Kick())
    source.rezone()
    assert armed_at(store, brief) == NINE_IN_BERLIN + DAY
    clock.advance(timedelta(hours=2))
    assert tick_all(source) == 0


@pytest.mark.parametrize("was", [NINE_IN_BERLIN - HOUR, NINE_IN_BERLIN + HOUR])
def test_an_occurrence_that_came_due_while_nobody_ran_is_answered_once(store: Store, was: Instant) -> None:
    clock = ManualClock(at(2026, 6, 1, 5))
    brief = cron(store, clock, "0 9 * * *", timezone="Europe/Berlin")
    armed_elsewhere(store, brief, was)
    clock.advance(timedelta(hours=6))
    source = ClockSource(store, clock, Kick())
    source.rezone()
    tick_all(source)
    assert lines(store) == [("collapsed", "missed_policy", NINE_IN_BERLIN, 1)]
    clock.advance(timedelta(hours=12))
    assert tick_all(source) == 0


def test_a_grid_and_a_moment_with_an_offset_stay_where_they_are(store: Store, clock: ManualClock) -> None:
    grid = every(store, clock, "15m", name="grid")
    moment = cron(store, clock, "2026-03-27T12:00+02:00", kind="at", timezone="Europe/Berlin", name="moment")
    before = [armed_at(store, a) for a in (grid, moment)]
    rows(store, "UPDATE trigger SET tzdata = 'old' WHERE next_fire_at IS NOT NULL")
    assert ClockSource(store, clock, Kick()).rezone() == 0
    assert [armed_at(store, a) for a in (grid, moment)] == before
    assert rows(store, "SELECT DISTINCT tzdata FROM trigger WHERE next_fire_at IS NOT NULL") == [(TZDATA,)]


def test_a_trigger_that_cannot_be_read_does_not_stop_the_others_from_moving(store: Store) -> None:
    clock = ManualClock(at(2026, 6, 1, 5))
    bad, good = (cron(store, clock, timezone="Europe/Berlin", name=name) for name in ("bad", "good"))
    for automation in (bad, good):
        armed_elsewhere(store, automation, Instant(NINE_IN_BERLIN + HOUR))
    rows(store, "UPDATE trigger SET schedule = '{' WHERE id = ?", trigger_of(bad, "clock"))
    assert ClockSource(store, clock, Kick()).rezone() == 1
    assert armed_at(store, good) == NINE_IN_BERLIN
    assert rows(store, "SELECT key FROM quarantine") == [(trigger_of(bad, "clock"),)]


def test_what_the_zones_clock_shows_at_a_slot_is_kept_where_the_schedule_goes_by_it(
    store: Store, clock: ManualClock, source: ClockSource
) -> None:
    cron(store, clock, "30 10 * * *", timezone="Europe/Berlin", name="local")
    cron(store, clock, "* * * * *", timezone="Europe/Berlin", name="elapsed")
    cron(store, clock, "30 9 * * *", name="utc")
    every(store, clock, "1h", name="grid")
    clock.advance(timedelta(hours=2))
    tick_all(source)
    local = at(2026, 3, 28, 10, 30) // SECOND
    assert rows(
        store, "SELECT automation_id, wall FROM trigger WHERE next_fire_at IS NOT NULL ORDER BY wall IS NULL, id"
    ) == [
        ("aut_default_local", local), ("aut_default_elapsed", None), ("aut_default_grid", None),
        ("aut_default_utc", None),
    ]


# -- the loop -------------------------------------------------------------------------------------------------------


class Running:
    """The loop on a thread of its own, and a way to wait for what it did."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.kick = Kick()
        self.source = ClockSource(store, clock, self.kick)
        self._wrote = threading.Condition()
        self._written = 0
        store.writer.ride("queued", lambda tx: None, self._heard)
        self.thread = threading.Thread(target=self.source.run, daemon=True)
        self.thread.start()

    def _heard(self, _: None) -> None:
        with self._wrote:
            self._written += 1
            self._wrote.notify_all()

    def wait_for_runs(self, count: int) -> None:
        with self._wrote:
            assert self._wrote.wait_for(lambda: self._written >= count, 20)

    def close(self) -> None:
        self.source.close()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def running(store: Store, clock: ManualClock) -> Iterator[Callable[[], Running]]:
    loops: list[Running] = []

    def start() -> Running:
        loops.append(Running(store, clock))
        return loops[-1]

    yield start
    for loop in loops:
        loop.close()


def test_the_loop_fires_each_slot_when_it_comes(
    store: Store, clock: ManualClock, running: Callable[[], Running]
) -> None:
    every(store, clock, "15m", overlap=Overlap.PARALLEL)
    loop = running()
    for n in (1, 2, 3):
        clock.advance(timedelta(minutes=15))
        loop.wait_for_runs(n)
    assert [slot for _, _, slot, _ in lines(store)] == [at(2026, 3, 27, 8, 15 * n) for n in (1, 2)] + [
        at(2026, 3, 27, 8, 45)
    ]


def test_an_edit_wakes_the_loop(store: Store, clock: ManualClock, running: Callable[[], Running]) -> None:
    loop = running()
    brief = every(store, clock, "1s")
    loop.kick.ring()
    clock.advance(timedelta(seconds=1))
    loop.wait_for_runs(1)
    assert rows(store, "SELECT DISTINCT automation_id FROM run") == [(brief,)]


def test_a_slot_that_comes_between_the_look_and_the_sleep_is_not_slept_through(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(ManualClock):
        def wait(self, until: Instant, kick: Kick) -> None:
            sleeps.append(until)
            loop.close()

    sleeps: list[Instant] = []
    clock = Told(at(2026, 3, 27, 8))
    cron(store, clock, "1 8 * * *")
    read = store.read

    def slowly(look: Callable[[Tx], Any]) -> Any:
        found = read(look)
        monkeypatch.undo()
        clock.advance(timedelta(minutes=1))
        return found

    monkeypatch.setattr(store, "read", slowly)
    loop = ClockSource(store, clock, Kick())
    loop.run()
    assert sleeps == [clock.now()], "which is no sleep at all"
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]


def test_without_anything_armed_the_loop_looks_again_within_a_minute(store: Store) -> None:
    class Told(ManualClock):
        def wait(self, until: Instant, kick: Kick) -> None:
            sleeps.append(until - self.now())
            loop.close()

    sleeps: list[int] = []
    loop = ClockSource(store, Told(at(2026, 3, 27, 8)), Kick())
    loop.run()
    assert sleeps == [MINUTE]


@pytest.mark.parametrize(("wrong", "told"), [
    ([StoreUnwritable("the disk is full")] * 2, []),
    ([OSError("a handle is gone"), ZeroDivisionError("a bug")], ["a handle is gone", "a bug"]),
], ids=["an ill store", "anything else"])
def test_whatever_goes_wrong_the_loop_waits_a_second_and_goes_on(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    wrong: list[Exception], told: list[str],
) -> None:
    class Told(ManualClock):
        def wait(self, until: Instant, kick: Kick) -> None:
            sleeps.append(until - self.now())
            if len(sleeps) == 3:
                loop.close()

    sleeps: list[int] = []
    left = list(wrong)
    read = store.read

    def sometimes(look: Callable[[Tx], Any]) -> Any:
        if left:
            raise left.pop()
        return read(look)

    monkeypatch.setattr(store, "read", sometimes)
    loop = ClockSource(store, Told(clock.now()), Kick())
    loop.run()
    assert sleeps == [SECOND, SECOND, MINUTE]
    assert [text for text in told if text not in caplog.text] == []


def test_verdicts_of_the_clock_are_those_of_the_words() -> None:
    schedule = Schedule("at", "2026-03-27T09:00", "UTC")
    slot = at(2026, 3, 27, 9)
    [missed] = plan(Armed("a/clock", "a", "", 1, slot, "", ""), schedule, Instant(slot + HOUR)).firings
    assert isinstance(missed, Settled)
    assert missed.verdict is Verdict.MISSED


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
