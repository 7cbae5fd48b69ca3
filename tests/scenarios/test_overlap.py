"""S-30, S-31, S-32: `*/15`, and a run that takes fifty minutes from ten on, under each policy there is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from builders import SAID, Night
from scenes import HOOK, a_night, at, slots, told, until

from nightporter.clock import MINUTE, Kick, ManualClock
from nightporter.dispatch import Claimed
from nightporter.sources.clock import ClockSource, Restart
from nightporter.store import Store, open_store
from nightporter.words import Ended, Ending, Limits, Missed, MissedPolicy, Overlap, Reason
from words import a_clock_trigger


def brief(night: Night, overlap: Overlap, **rest: Any) -> str:
    limits = replace(rest.pop("limits", Limits()), timeout=timedelta(hours=2))
    trigger = a_clock_trigger("*/15 * * * *", overlap=overlap, missed=rest.pop("missed", None))
    return night.define("brief", trigger, limits=limits, **rest)


def begun(night: Night, room: int = 10) -> list[str]:
    """Slots of the runs that start now."""
    return told([one.work.scheduled_for or 0 for one in night.begin(room)])


def started_at_ten(night: Night) -> Claimed:
    until(night, "10:00")
    [claimed] = night.begin()
    return claimed


def late(night: Night) -> list[tuple[str, int]]:
    return [(told([slot])[0], flag) for slot, flag in night.sql(
        "SELECT scheduled_for, ran_late FROM run WHERE started_at IS NOT NULL ORDER BY scheduled_for")]


def test_under_skip_the_slots_that_a_long_run_covers_name_it_and_the_next_one_runs(store: Store) -> None:
    """S-30."""
    night = a_night(store, "09:50")
    brief(night, Overlap.SKIP)
    slow = started_at_ten(night)
    until(night, "10:50")
    night.finish(slow)
    until(night, "11:00")
    assert begun(night) == ["11:00"]
    named = f"{slow.work.run_id} had not ended"
    assert slots(night, "verdict", "reason", "detail") == [
        ("10:00", "admitted", None, ""),
        *((time, "skipped", "overlap", named) for time in ("10:15", "10:30", "10:45")),
        ("11:00", "admitted", None, ""),
    ]
    assert night.found() == {}


def test_the_guard_holds_in_a_process_that_has_just_begun(store_url: str) -> None:
    """S-30: a crash at 10:20, and the guard is in the store. The old worker is dead, and not found dead yet; then it
    is, and what it ran waits for its turn again."""
    first = open_store(store_url, now=at("09:50"))
    night = a_night(first, "09:50")
    brief(night, Overlap.SKIP)
    started_at_ten(night)
    until(night, "10:20")
    first.close()
    store = open_store(store_url, now=at("10:20"))
    again = Night(store, ManualClock(at("10:20")), worker="wrk_fresh")
    store.write(lambda tx: tx.join("wrk_fresh", role="desk", host="here", pid=1, lock_path="", now=again.now))
    until(again, "10:30")
    again.lose(night.worker)
    until(again, "10:45")
    assert slots(again, "verdict") == [("10:00", "admitted"), ("10:15", "skipped"), ("10:30", "skipped"),
                                       ("10:45", "skipped")]
    assert begun(again) == ["10:00"], "its second attempt"
    assert again.found() == {}
    store.close()


def test_a_run_by_hand_goes_beside_a_long_one_and_blocks_no_slot_once_it_has_ended(store: Store) -> None:
    """S-30."""
    night = a_night(store, "09:50")
    automation = brief(night, Overlap.SKIP)
    slow = started_at_ten(night)
    until(night, "10:05")
    by_hand = night.start(automation, trigger="manual")
    night.finish(slow)
    night.finish(by_hand)
    until(night, "10:15")
    assert slots(night, "verdict") == [("10:00", "admitted"), ("10:15", "admitted")]
    assert night.found() == {}


def test_under_queue_slots_run_one_by_one_in_their_order_and_late(store: Store) -> None:
    """S-31."""
    night = a_night(store, "09:50")
    brief(night, Overlap.QUEUE)
    flying = started_at_ten(night)
    until(night, "10:50")
    order = []
    for _ in range(4):
        assert begun(night) == [], "one at a time"
        night.finish(flying)
        night.pass_time(minutes=1)
        found = night.begin(10)
        order += told([one.work.scheduled_for or 0 for one in found])
        if found:
            [flying] = found
    assert order == ["10:15", "10:30", "10:45"]
    assert late(night) == [("10:00", 0), ("10:15", 1), ("10:30", 1), ("10:45", 1)]
    assert night.found() == {}


def test_under_queue_what_was_put_off_after_a_restart_still_goes_before_what_came_later(store: Store) -> None:
    """S-31: nobody was there from 10:00 to 10:50, and what is overdue begins later by up to twenty minutes."""
    night = a_night(store, "09:50")
    brief(night, Overlap.QUEUE, missed=Missed(MissedPolicy.RUN_ALL))
    flying = started_at_ten(night)
    night.clock.advance(timedelta(minutes=50))
    source = ClockSource(store, night.clock, Kick())
    while source.tick(Restart(push=20 * MINUTE)):
        pass
    until(night, "11:15")
    night.finish(flying)
    order: list[str] = []
    while len(order) < 5:
        night.pass_time(minutes=1)
        for claimed in night.begin(10):
            order += told([claimed.work.scheduled_for or 0])
            night.pass_time(minutes=1)
            night.finish(claimed)
    assert order == ["10:15", "10:30", "10:45", "11:00", "11:15"]
    assert night.found() == {}


def test_a_full_queue_counts_what_it_turns_away(store: Store) -> None:
    """S-31."""
    night = a_night(store, "09:50")
    brief(night, Overlap.QUEUE, limits=Limits(queued=2))
    slow = started_at_ten(night)
    until(night, "11:00")
    assert slots(night, "verdict", "reason", "detail")[3:] == [
        ("10:45", "skipped", "queue_full", "the limit is 2 waiting"),
        ("11:00", "skipped", "queue_full", "the limit is 2 waiting"),
    ]
    night.finish(slow)
    night.work()
    assert [slot for slot, _ in late(night)] == ["10:00", "10:15", "10:30"]
    assert night.found() == {}


def test_in_parallel_each_slot_has_its_run_and_beyond_the_ceiling_it_waits(store: Store) -> None:
    """S-32."""
    night = a_night(store, "09:50")
    brief(night, Overlap.PARALLEL, limits=Limits(concurrent=4))
    flying = []
    for time in ("10:00", "10:15", "10:30", "10:45", "11:00"):
        until(night, time)
        flying += night.begin(10)
    assert told([one.work.scheduled_for or 0 for one in flying]) == ["10:00", "10:15", "10:30", "10:45"]
    assert night.sql("SELECT scheduled_for, blocked FROM run WHERE state = 'queued'") == [(at("11:00"), "concurrency")]
    assert [verdict for _, verdict in slots(night, "verdict")] == ["admitted"] * 5
    night.finish(flying[2])
    assert begun(night) == ["11:00"]
    assert night.found() == {}


@pytest.mark.parametrize("dies", ["when it is asked", "only with its worker"])
def test_under_replace_the_old_run_ends_as_superseded_before_the_new_one_starts(store: Store, dies: str) -> None:
    """S-32 (`cancel`): what it did stays on record, what it says late is not heard, and nothing of it is delivered."""
    night = a_night(store, "09:50")
    brief(night, Overlap.REPLACE, deliver=[HOOK], runner="script", idempotent=True)
    slow = started_at_ten(night)
    night.act(slow, "paid")
    until(night, "10:15")
    [(asked, by)] = night.sql("SELECT cancel_reason, cancel_by FROM run WHERE id = ?", slow.work.run_id)
    [(new,)] = night.sql("SELECT id FROM run WHERE scheduled_for = ?", at("10:15"))
    assert (asked, by) == ("superseded", new)
    assert begun(night) == [], "the old one has not ended"
    if dies == "when it is asked":
        night.finish(slow, Ended(Ending.CANCELLED, reason=Reason.SUPERSEDED))
    else:
        night.lose(night.worker)
        night.worker = "wrk_next"
        store.write(lambda tx: tx.join("wrk_next", role="desk", host="here", pid=1, lock_path="", now=night.now))
    night.finish(slow, SAID)  # too late: its token is nobody's any more
    [successor] = night.begin()
    assert successor.work.run_id == new
    night.finish(successor)
    assert night.sql("SELECT state, reason FROM run WHERE id = ?", slow.work.run_id) == [("cancelled", "superseded")]
    assert night.sql("SELECT run_id FROM delivery") == [(new,)]
    assert night.sql("SELECT state FROM effect WHERE run_id = ? AND key = 'paid'", slow.work.run_id) == [("done",)]
    assert night.found() == {}


def test_of_many_that_replace_one_another_while_one_runs_only_the_newest_waits(store: Store) -> None:
    """S-32."""
    night = a_night(store, "09:50")
    brief(night, Overlap.REPLACE)
    started_at_ten(night)
    until(night, "11:00")
    assert night.sql("SELECT scheduled_for FROM run WHERE state = 'queued'") == [(at("11:00"),)]
    assert night.sql("SELECT count(*) FROM run WHERE state = 'cancelled' AND reason = 'superseded'") == [(3,)]
    assert night.sql("SELECT runs, cancelled FROM rollup_month") == [(3, 3)]
    assert night.found() == {}
