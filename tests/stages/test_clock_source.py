"""The clock source: each slot is answered once and never early, what was missed is told, and a bad row stops nobody."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from armed import FREE, armed_at, at, cron, every, lines, tick_all

from nightporter.clock import HOUR, SECOND, Instant, Kick, ManualClock, rfc3339
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import TZDATA
from nightporter.sources import clock as clock_module
from nightporter.sources.clock import ClockSource, settle
from nightporter.sources.plan import plan
from nightporter.store import Store, Tx
from nightporter.store.tx_clock import Armed, schedule_text
from nightporter.words import Firing, Overlap, Policy, Schedule, Settled, Verdict
from words import a_clock_trigger, an_automation, rows, trigger_of

POLICY = Policy(Overlap.SKIP, None, None, 0, None, 50, 1, "echo")
"""One that says nothing of missed slots."""


@pytest.fixture
def source(store: Store, clock: ManualClock) -> ClockSource:
    return ClockSource(store, clock, Kick())


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
    brief = cron(store, clock, "0 * * * *")
    clock.advance(timedelta(hours=1, seconds=120, microseconds=1))
    tick_all(source)
    assert lines(store) == [("missed", "missed_policy", at(2026, 3, 27, 9), 1)]
    assert armed_at(store, brief) == at(2026, 3, 27, 10)
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
    found = plan(Armed("a/clock", "a", schedule_text(schedule), 1, first, "", TZDATA), schedule, POLICY, now)
    answered = sum(f.count if isinstance(f, Settled) else 1 for f in found.firings)
    assert answered == slots_ago + 1
    assert found.next_fire_at == anchor + step * (slots_ago + 2)
    fresh = [f.scheduled_for for f in found.firings if isinstance(f, Firing)]
    assert fresh == sorted(set(fresh), key=lambda slot: slot or 0)
    assert all(slot is not None and now - 120 * SECOND <= slot <= now for slot in fresh)


def test_verdicts_of_the_clock_are_those_of_the_words() -> None:
    schedule = Schedule("at", "2026-03-27T09:00", "UTC")
    slot = at(2026, 3, 27, 9)
    [missed] = plan(Armed("a/clock", "a", "", 1, slot, "", ""), schedule, POLICY, Instant(slot + HOUR)).firings
    assert isinstance(missed, Settled)
    assert missed.verdict is Verdict.MISSED


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
