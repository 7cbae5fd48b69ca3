"""S-33, S-35: an upstream that is away for an hour, and what is dead after its attempts."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import timedelta

import pytest
from builders import SAID
from scenes import UNAVAILABLE, a_night, at, slots, until

from nightporter import ledger, operations, sweep
from nightporter.clock import SECOND, Instant
from nightporter.store import Store
from nightporter.words import Ended, ErrorClass, Failures, Limits, Overlap, Retry
from words import a_clock_trigger

TRIGGERS = 50
STEP = 2
"""Seconds from one look at the queue to the next."""
ATTEMPTS = 3


@pytest.mark.parametrize("asked", [None, timedelta(seconds=60)], ids=["by our delays", "by Retry-After"])
def test_an_upstream_that_is_away_for_half_an_hour_is_asked_little_and_never_in_waves(
    store: Store, asked: timedelta | None
) -> None:
    """S-33: fifty automations every quarter of an hour; in the middle of it all the process is another one."""
    night = a_night(store, "09:59")
    for n in range(TRIGGERS):
        night.define(f"asks-{n}", a_clock_trigger("*/15 * * * *"), limits=Limits(concurrent=None))
    away = Ended.failed(ErrorClass.TRANSIENT, "503", retry_after=asked)
    times: dict[tuple[int, int], list[float]] = defaultdict(list)
    """When each was asked, by slot and attempt, in seconds after the slot."""

    def ask(answer: Ended) -> int:
        found = night.begin(500)
        for one in found:
            slot = one.work.scheduled_for or 0
            times[slot, one.work.attempt].append((night.now - slot) / SECOND)
        night.finish(found, answer)
        return len(found)

    for start in ("10:00", "10:15"):
        until(night, start)
        quiet = 0
        while quiet < 150 // STEP:
            quiet = 0 if ask(away) else quiet + 1
            night.pass_time(seconds=STEP)
            if start == "10:15" and sum(len(t) for (slot, n), t in times.items() if n == 2) == TRIGGERS * 3 // 2:
                night.change_shifts()
    until(night, "10:30")
    came_back = ask(SAID)
    assert came_back == TRIGGERS, "what runs when it is there again is this quarter's, and no heap"
    asked_at = Counter({key: len(found) for key, found in times.items()})
    for slot in (at("10:00"), at("10:15")):
        assert [asked_at[slot, n] for n in range(1, ATTEMPTS + 2)] == [TRIGGERS] * ATTEMPTS + [0]
        for n, delay in ((2, 30), (3, 60)):
            wait = max(delay, asked.total_seconds() if asked else 0)
            assert max(times[slot, n]) - min(times[slot, n]) >= 0.2 * wait, "a wave"
    assert night.sql("SELECT count(*) FROM inbox WHERE kind = 'dead_letter'") == [(2 * TRIGGERS,)]
    assert night.found() == {}


def test_a_slot_that_comes_while_the_one_before_is_tried_again_is_left_out_for_overlap(store: Store) -> None:
    """S-33."""
    night = a_night(store, "09:59:30")
    night.define("asks", a_clock_trigger("* * * * *"), retry=Retry(delays=(timedelta(minutes=20),)))
    until(night, "10:00")
    night.work(UNAVAILABLE)
    until(night, "10:02")
    assert slots(night, "verdict", "reason") == [
        ("10:00", "admitted", None), ("10:01", "skipped", "overlap"), ("10:02", "skipped", "overlap")]
    assert night.found() == {}


@pytest.mark.parametrize("error", [ErrorClass.CONFIGURATION, ErrorClass.PERMISSION])
def test_what_is_wrongly_set_up_is_not_tried_again(store: Store, error: ErrorClass) -> None:
    """S-33: a missing key, a 401."""
    night = a_night(store, "10:00")
    automation = night.define("asks")
    run = night.run(automation, Ended.failed(error, "401"))
    night.pass_time(hours=1)
    assert night.begin(10) == []
    assert night.sql("SELECT state, attempt FROM run WHERE id = ?", run) == [("failed", 1)]
    assert night.found() == {}


def test_who_is_asked_to_come_back_in_an_hour_comes_no_sooner_and_not_much_later(store: Store) -> None:
    """S-33: 429 with Retry-After: 3600, and another process in between."""
    night = a_night(store, "10:00")
    automation = night.define("asks")
    night.run(automation, Ended.failed(ErrorClass.TRANSIENT, "429", retry_after=timedelta(hours=1)))
    night.pass_time(minutes=59)
    night.change_shifts()
    assert night.begin(10) == []
    night.pass_time(minutes=17)
    [again] = night.begin(10)
    assert again.work.attempt == 2
    night.finish(again)
    assert night.found() == {}


def test_what_is_wrongly_set_up_again_and_again_is_paused_and_that_is_said_with_the_way_back(store: Store) -> None:
    """S-33."""
    night = a_night(store, "09:59")
    automation = night.define("asks", a_clock_trigger("*/15 * * * *"))
    for slot in ("10:00", "10:15", "10:30", "10:45", "11:00"):
        assert night.row(automation).state == "active"
        until(night, slot)
        night.work(Ended.failed(ErrorClass.CONFIGURATION, "401 unauthorized"))
    assert night.row(automation).state == "auto_paused"
    night.pass_time(hours=1)
    assert night.begin(10) == []
    [(text,)] = night.sql("SELECT text FROM inbox WHERE kind = 'auto_paused'")
    assert "nightporter enable asks" in text
    night.enable(automation)
    until(night, "12:15")
    assert night.lines("verdict", "reason", "slots")[-2:] == [("collapsed", "paused", 4), ("admitted", None, None)]
    night.work()
    assert night.found() == {}


def test_what_is_dead_after_three_attempts_is_told_once_and_stays_dead_beside_its_replay(store: Store) -> None:
    """S-35."""
    night = a_night(store, "10:00")
    automation = night.define("asks", retry=Retry(delays=(timedelta(minutes=3),)))
    dead = night.start(automation, payload={"n": 7}).work.run_id
    [(worker, token)] = night.sql("SELECT worker, token FROM run")
    assert (worker, token) == (night.worker, 1)
    night.lose(night.worker)  # an attempt that a worker's death cut short is one of the three
    night.change_shifts()
    for _ in range(2):
        night.pass_time(minutes=3)
        night.work(UNAVAILABLE)
    assert night.now - at("10:00") == 6 * 60 * SECOND
    assert night.sql("SELECT state, attempt, dead_at FROM run") == [("failed", 3, night.now)]
    assert night.sql("SELECT kind, run_id FROM inbox") == [("dead_letter", dead)], "one message, not three"
    assert night.sql("SELECT runs, failed FROM rollup_month") == [(1, 1)]
    row = night.row(automation)
    assert (row.errors_in_a_row, row.last_failure_at, row.last_success_at) == (1, night.now, None)

    answer = store.write(lambda tx: operations.replay(tx, dead, external_id="k1", by="ann", now=night.now))
    [again] = night.begin()
    assert again.work.payload == {"n": 7}
    assert again.work.run_id == answer.run_id != dead
    night.finish(again)
    assert night.sql("SELECT id, state, replay_of FROM run ORDER BY queued_at") == [
        (dead, "failed", None), (answer.run_id, "succeeded", dead)]
    assert store.read(lambda tx: ledger.dead_letters(tx)).items == ()
    assert night.found() == {}


def test_a_dead_letter_that_nobody_saw_outlives_the_week_after_which_runs_are_pruned(store: Store) -> None:
    """S-35."""
    night = a_night(store, "10:00")
    automation = night.define("asks", retry=Retry(attempts=1))
    fine, dead = night.run(automation), night.run(automation, UNAVAILABLE)
    night.pass_time(days=8)
    sweep.prune(store, keep_runs=timedelta(days=7), keep_ledger=timedelta(days=30), now=Instant(night.now))
    assert night.sql("SELECT id FROM run") == [(dead,)]
    assert fine != dead
    assert [letter.id for letter in store.read(lambda tx: ledger.dead_letters(tx)).items] == [dead]
    assert night.found() == {}


def test_ten_dead_in_a_row_are_counted_and_one_that_ends_well_ends_the_row(store: Store) -> None:
    """S-35: the desk says since when an automation has been failing."""
    night = a_night(store, "09:59")
    automation = night.define("asks", a_clock_trigger("* * * * *", overlap=Overlap.PARALLEL), retry=Retry(attempts=1),
                              failures=Failures(pause_after=None))
    for n in range(10):
        until(night, f"10:{n:02}")
        night.work(UNAVAILABLE)
    line = store.read(lambda tx: ledger.automation_detail(tx, automation, now=night.now)).line
    assert (line.errors_in_a_row, line.last_success_at) == (10, None)
    night.run(automation, trigger="manual")
    assert night.row(automation).errors_in_a_row == 0
    assert night.found() == {}
