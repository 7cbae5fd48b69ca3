"""Enable, pause, remove and what ends by itself: what each change of an automation leaves in the ledger."""

from __future__ import annotations

from threading import Event, Thread

import pytest
from acting import after
from builders import EVERY_HOUR, SAID, Night

from nightporter import operations
from nightporter.clock import HOUR, MINUTE, Instant, ManualClock
from nightporter.errors import Conflict, NotFound, StoreError
from nightporter.sources.clock import settle
from nightporter.states import AutomationState
from nightporter.store import Store, Tx, open_store
from nightporter.words import Ended, Ending, ErrorClass, Limits, Reason, Schedule, TriggerSpec
from words import a_clock_trigger, rows


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def pauses(night: Night) -> list[tuple[int, int | None, str]]:
    return [(a, b, why) for a, b, why in night.sql("SELECT paused_from, paused_to, reason FROM pause ORDER BY 1")]


# -- a change is made when it has its turn ----------------------------------------------------------------------------


def test_a_pause_that_waited_while_a_slot_was_answered_does_not_count_it_again(night: Night, store_url: str) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.pass_time(minutes=59, seconds=59)
    asked_at = night.now
    elsewhere = open_store(store_url, now=night.now)
    answering, go_on = Event(), Event()

    def answer(tx: Tx) -> None:
        tx.lock_automations([brief])
        answering.set()
        go_on.wait(30)
        night.pass_time(seconds=1)
        settle(tx, brief, now=night.now)

    clock = Thread(target=lambda: elsewhere.write(answer))
    person = Thread(target=lambda: night.store.write(
        lambda tx: operations.pause(tx, brief, by="ann", reason="", now=asked_at)))
    clock.start()
    answering.wait(30)
    person.start()
    go_on.set()
    clock.join(30)
    person.join(30)
    elsewhere.close()
    assert pauses(night) == [(night.now, None, "paused")], "the pause began after the slot, not when it was asked for"
    night.pass_time(minutes=90)
    night.enable(brief)
    night.work()
    assert night.lines("verdict", "slots") == [("admitted", None), ("collapsed", 1)]
    assert night.found() == {}


def test_an_edit_asked_for_before_a_slot_was_answered_does_not_owe_it_again(night: Night) -> None:
    night.define("brief", EVERY_HOUR)
    night.pass_time(minutes=59, seconds=59)
    asked_at = night.now
    night.tick(seconds=1)
    definition = night.written("brief", a_clock_trigger("*/30 * * * *"))
    night.store.write(lambda tx: operations.define(tx, definition, truth="code", by="x", now=asked_at))
    night.work()
    night.tick(minutes=30)
    assert night.lines("scheduled_for") == [(after(asked_at, seconds=1),), (night.now - night.now % MINUTE,)]
    assert night.found() == {}


def test_nothing_of_it_is_written_before_what_was_written_last(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR)
    early = night.now
    night.pass_time(minutes=10)
    night.pause(brief)
    night.store.write(lambda tx: operations.enable(tx, brief, by="ann", now=early))
    assert pauses(night) == [(night.now, night.now, "paused")]
    assert night.found() == {}


# -- a pause with an end ----------------------------------------------------------------------------------------------


def test_a_pause_ends_when_it_was_said_to_and_the_slot_after_it_runs(night: Night) -> None:
    brief = night.define("brief", a_clock_trigger("10 0,30 8,9 * * *"))
    night.pause(brief, minutes=30)
    night.pass_time(minutes=30, seconds=59)
    assert night.upkeep() == 1
    night.tick()
    assert night.lines("verdict", "reason", "slots") == [("collapsed", "paused", 1), ("admitted", None, None)]
    assert pauses(night)[0][1] == night.now - 59_000_000
    assert night.found() == {}


def test_slots_after_the_end_of_a_pause_that_nobody_saw_end_are_missed_and_not_paused(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.pause(brief, hours=2, minutes=30)
    night.pass_time(hours=5, minutes=30)
    night.upkeep()
    night.tick()
    assert night.lines("verdict", "reason", "slots") == [
        ("collapsed", "paused", 2), ("collapsed", "missed_policy", 3)
    ]
    assert night.found() == {}


@pytest.mark.parametrize("what", ["enable", "edit", "remove"])
def test_a_pause_whose_end_has_come_is_over_for_whoever_comes_first(night: Night, what: str) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.pause(brief, minutes=90)
    night.pass_time(minutes=121)
    match what:
        case "enable":
            night.enable(brief)
        case "edit":
            night.define("brief", EVERY_HOUR, a_clock_trigger("30 23 * * *", name="late"))
        case _:
            night.remove(brief)
    night.tick()
    assert night.lines() == [("collapsed", "paused"), ("admitted", None)]
    assert night.found() == {}


def test_the_clock_is_told_of_a_slot_that_a_pause_left_in_the_past(night: Night) -> None:
    brief = night.define("brief", a_clock_trigger("10 30 8 * * *"))
    night.pause(brief, minutes=30)
    heard: list[str] = []
    night.store.kicks.listen(heard.extend)
    night.pass_time(minutes=31)
    night.upkeep()
    assert "due" in heard


# -- what ends by itself ----------------------------------------------------------------------------------------------


def test_a_pause_that_ends_beyond_the_expiry_ends_in_expiry_and_stops_no_other(night: Night) -> None:
    short = night.define("a", EVERY_HOUR, expires=Instant(night.now + HOUR))
    other = night.define("b", EVERY_HOUR)
    for each in (short, other):
        night.pause(each, hours=2)
    night.pass_time(hours=3)
    night.upkeep()
    assert [night.row(each).state for each in (short, other)] == ["expired", "active"]
    night.tick()
    assert night.found() == {}


def test_the_trouble_of_one_automation_is_its_own_and_is_told(
    night: Night, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = night.define("a", EVERY_HOUR), night.define("b", EVERY_HOUR)
    for each in (bad, good):
        night.pause(each, hours=1)
    rows(night.store, "UPDATE pause SET reason = 'a word of a newer program' WHERE automation_id = ?", bad)
    night.pass_time(hours=2)
    assert night.upkeep() == 1
    assert [night.row(each).state for each in (bad, good)] == ["paused", "active"]
    [told] = caplog.records
    assert ("upkeep.failed" in told.getMessage(), bad in told.getMessage()) == (True, True)


def test_an_ill_store_is_nobodys_trouble_and_is_told(night: Night, store_url: str) -> None:
    night.pause(night.define("brief", EVERY_HOUR), hours=1)
    night.pass_time(hours=2)
    other = open_store(store_url, now=night.now)
    other.writer.close()
    with pytest.raises(StoreError):
        operations.upkeep(other, now=night.clock.now)
    other.close()


# -- enabling and removing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["enable", "remove", "pause", "edit"])
def test_a_trigger_that_cannot_be_read_is_named_and_stands_in_nobodys_way(night: Night, what: str) -> None:
    brief = night.define("brief", EVERY_HOUR, a_clock_trigger("30 * * * *", name="half"))
    if what in ("enable", "remove"):
        night.pause(brief)
    rows(night.store, "UPDATE trigger SET schedule = ? WHERE name = 'half'", '["cron","nonsense","UTC",null]')
    night.pass_time(hours=2)
    match what:
        case "enable":
            night.enable(brief)
        case "remove":
            night.remove(brief)
        case "pause":
            night.pause(brief)
        case _:
            night.define("brief", EVERY_HOUR, a_clock_trigger("45 * * * *", name="half"))
    if what == "edit":
        assert night.sql("SELECT key FROM quarantine") == [], "saving it again mends it"
        night.tick(minutes=45)
    else:
        assert night.sql("SELECT subject, key FROM quarantine") == [("trigger", f"{brief}/half")]
    slots = night.sql("SELECT sum(coalesce(slots, 1)) FROM firing WHERE trigger_id = ?", f"{brief}/clock")
    assert slots == [(2,)], "the other one's slots have their answers"


def test_removing_closes_what_waits_for_a_review(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, runner="script")
    claimed = night.start(brief)
    night.lose(night.worker)
    night.remove(brief)
    assert night.sql("SELECT state, reason FROM run") == [("failed", "deleted")]
    with pytest.raises(Conflict, match="does not wait for a review"):
        night.review(claimed.work.run_id, "dismiss")
    with pytest.raises(Conflict, match="brief was removed"):
        night.review(claimed.work.run_id, "retry")
    assert night.sql("SELECT failed FROM rollup_month") == [(1,)]
    assert night.found() == {}


def test_a_run_that_comes_to_a_review_after_the_removal_can_only_be_closed(night: Night) -> None:
    brief = night.define("brief", runner="script")
    claimed = night.start(brief)
    night.remove(brief)
    # The request to end it got lost.
    rows(night.store, "UPDATE run SET cancel_at = NULL, cancel_reason = NULL, cancel_by = ''")
    night.finish(claimed, Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN))
    run = claimed.work.run_id
    assert night.sql("SELECT state FROM run") == [("review",)]
    with pytest.raises(Conflict, match="brief was removed"):
        night.review(run, "retry")
    night.review(run, "dismiss")
    assert night.sql("SELECT state, reason FROM run") == [("failed", "dismissed")]


def test_a_one_shot_whose_only_run_is_cancelled_is_completed(night: Night) -> None:
    once = TriggerSpec("clock", "clock", schedule=Schedule("at", "2026-03-27T09:00", "UTC"))
    brief = night.define("brief", once, timezone="Pacific/Auckland")
    night.next_hour()
    [(run,)] = night.sql("SELECT id FROM run")
    night.cancel(run)
    assert night.row(brief).state == AutomationState.COMPLETED
    assert night.found() == {}


def test_what_failed_before_a_change_that_makes_it_act_again_is_no_error_in_a_row_any_more(night: Night) -> None:
    brief = night.define("brief", TriggerSpec("clock", "clock", schedule=Schedule("at", "2026-03-27T09:00", "UTC")))
    night.next_hour()
    night.work(Ended.failed(ErrorClass.EXCEPTION, "KeyError"))
    assert night.row(brief).state == AutomationState.COMPLETED
    night.pass_time(minutes=5)
    night.define("brief", EVERY_HOUR)
    assert night.row(brief).state == AutomationState.ACTIVE
    assert night.sql("SELECT errors_in_a_row FROM automation") == [(0,)]
    assert night.found() == {}


def test_a_cancelled_run_counts_in_the_month_of_its_automations_zone(night: Night) -> None:
    brief = night.define("brief", timezone="Pacific/Auckland")
    night.pass_time(days=4, hours=5)  # the last hours of March, UTC
    run = night.fire(brief).run_id
    assert run is not None
    night.cancel(run)
    assert night.sql("SELECT month, cancelled FROM rollup_month") == [("2026-04", 1)]


@pytest.mark.parametrize("expires", [None, 100 * HOUR])
def test_an_expiry_that_is_moved_or_removed_renews(night: Night, expires: int | None) -> None:
    brief = night.define("brief", EVERY_HOUR, expires=Instant(night.now + HOUR))
    waiting = night.fire(brief).run_id
    night.pass_time(minutes=150)
    night.upkeep()
    assert night.row(brief).state == AutomationState.EXPIRED
    night.pass_time(hours=1)
    night.define("brief", EVERY_HOUR, description="the same end", expires=Instant(night.now - HOUR))
    assert night.row(brief).state == AutomationState.EXPIRED, "another edit renews nothing"
    night.define("brief", EVERY_HOUR, expires=None if expires is None else Instant(night.now + expires))
    assert night.row(brief).state == AutomationState.ACTIVE
    assert waiting in night.work()
    night.next_hour()
    assert night.lines() == [("collapsed", "missed_policy"), ("collapsed", "expired"), ("admitted", None)]
    assert night.found() == {}


def test_the_definition_in_force_is_read_without_a_lock(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.define("brief", EVERY_HOUR, description="newer")
    assert night.store.read(lambda tx: operations.definition_of(tx, brief)).description == "newer"
    with pytest.raises(NotFound):
        night.store.read(lambda tx: operations.definition_of(tx, "aut_none"))


def test_what_ran_before_a_pause_is_not_what_the_pause_answers(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.hours(2)
    night.pause(brief)
    night.pass_time(hours=3)
    night.enable(brief)
    night.hours(1)
    assert [verdict for verdict, _ in night.lines()] == ["admitted", "admitted", "collapsed", "admitted"]
    assert night.work(SAID) == []


def test_a_ceiling_that_is_raised_lets_go_at_once_what_waited_behind_it(night: Night) -> None:
    call = TriggerSpec("call", "call")
    brief = night.define("brief", call, limits=Limits(concurrent=1))
    for _ in range(4):
        night.fire(brief)
    assert len(night.begin(10)) == 1
    night.define("brief", call, limits=Limits(concurrent=3))
    assert len(night.begin(10)) == 2
    night.define("brief", call, limits=Limits(concurrent=None))
    assert len(night.begin(10)) == 1
    assert night.found() == {}


@pytest.mark.parametrize("again", [False, True], ids=["as it was", "edited"])
def test_a_one_shot_that_slept_through_its_moment_is_completed_and_not_active_for_ever(
    night: Night, again: bool
) -> None:
    once = TriggerSpec("clock", "clock", schedule=Schedule("at", "2026-03-27T09:00", "UTC"))
    brief = night.define("brief", once)
    night.pause(brief)
    night.tick(hours=3)
    if again:
        night.define("brief", once, description="in other words")
    night.enable(brief)
    assert (night.row(brief).state, night.row(brief).state_reason) == (
        AutomationState.COMPLETED, "its only moment has passed")
    assert night.lines() == [("collapsed", "paused")]
    assert night.found() == {}


def test_an_edit_while_the_only_run_of_a_one_shot_goes_on_completes_nothing(night: Night) -> None:
    once = TriggerSpec("clock", "clock", schedule=Schedule("at", "2026-03-27T09:00", "UTC"))
    brief = night.define("brief", once)
    night.tick(hours=1)
    [claimed] = night.begin()
    night.define("brief", once, description="in other words")
    assert night.row(brief).state == AutomationState.ACTIVE
    night.finish(claimed)
    assert (night.row(brief).state, night.row(brief).state_reason) == (
        AutomationState.COMPLETED, "its only moment has its outcome")
    assert night.found() == {}
