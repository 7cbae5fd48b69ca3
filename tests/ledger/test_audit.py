"""The audit of a ledger that is as it should be: it finds nothing, changes nothing, and takes its time into account."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from acting import a_worker
from builders import EVERY_HOUR, Night
from full_night import a_full_night

from nightporter import sweep
from nightporter.clock import DAY, ManualClock
from nightporter.rules import zones
from nightporter.store import Store, open_store
from nightporter.store.tx_clock import schedule_from, schedule_text
from nightporter.words import Ended, Ending, ErrorClass, Receipt
from nightporter.words.bounds import Bounds, Days
from words import a_clock_trigger

TABLES = (
    "setting", "automation", "automation_version", "trigger", "trigger_version", "pause", "firing", "firing_payload",
    "run", "run_output", "transition", "effect", "child", "delivery", "delivery_try", "inbox", "worker", "rollup_month",
    "definition_change", "quarantine", "missed_card", "gap",
)

ENDS = [Ended.ok("done"), Ended.failed(ErrorClass.EXCEPTION, "KeyError")]


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def test_a_night_in_which_everything_happened_is_clean(store: Store, clock: ManualClock) -> None:
    night = a_full_night(store, clock)
    report = night.audit(boot_at=None)
    assert report.clean, report.findings
    assert report.counts["slots"] > 50
    states = {row[0] for row in night.sql("SELECT DISTINCT state FROM run")}
    assert states == {"queued", "running", "held", "review", "succeeded", "failed", "timed_out", "cancelled", "skipped"}


def test_auditing_twice_finds_the_same_and_changes_no_row(store: Store, clock: ManualClock) -> None:
    night = a_full_night(store, clock)
    night.sql("UPDATE run SET ran_late = 1 WHERE id = ?", night.runs["told"])
    before = {table: sorted(map(str, night.sql(f"SELECT * FROM {table}"))) for table in TABLES}
    first, second = night.audit(), night.audit()
    assert first == second
    assert [check.id for check in first.findings] == ["I-21"]
    assert {table: sorted(map(str, night.sql(f"SELECT * FROM {table}"))) for table in TABLES} == before


def test_an_empty_store_is_clean(night: Night) -> None:
    report = night.audit()
    assert report.clean
    assert report.counts == {"triggers": 0, "slots": 0, "lines": 0}


def test_a_report_as_json_names_every_check_and_what_contradicts_it(night: Night) -> None:
    run = night.run(night.define("brief"))
    night.sql("UPDATE run SET ran_late = 1")
    told = json.loads(json.dumps(night.audit().as_json()))
    assert told["clean"] is False
    assert told["at"] == "2026-03-27T08:00:00Z"
    (late,) = [check for check in told["checks"] if check["violations"]]
    assert late["id"] == "I-21"
    assert late["examples"] == [f"{run} has no slot and is marked late"]
    assert len({check["id"] for check in told["checks"]}) == len(told["checks"])


def test_ten_examples_are_enough_and_the_count_is_of_all(night: Night) -> None:
    automation = night.define("brief")
    for _ in range(12):
        night.run(automation)
    night.sql("UPDATE run SET ran_late = 1")
    (late,) = night.audit().findings
    assert (late.violations, len(late.examples)) == (12, 10)


# -- what is under way is no violation ------------------------------------------------------------------------------


def test_a_slot_that_is_due_and_not_yet_answered_is_not_silent(night: Night) -> None:
    night.define("brief", EVERY_HOUR)
    night.pass_time(hours=1, seconds=50)
    assert night.found(boot_at=night.now - 3_000_000_000) == {}
    night.pass_time(seconds=20)
    assert night.found(boot_at=night.now - 3_000_000_000) == {"I-13": 1}


def test_slots_that_pass_while_nothing_runs_are_no_finding_before_the_next_boot(night: Night) -> None:
    night.define("brief", EVERY_HOUR)
    night.pass_time(days=3)
    assert night.found() == {}
    assert night.found(boot_at=night.now) == {"I-13": 1}
    night.tick()
    assert night.found(boot_at=night.now) == {}


def test_a_due_set_that_was_evaluated_leaves_nothing_armed_behind_it(night: Night) -> None:
    night.define("brief", EVERY_HOUR)
    night.pass_time(hours=1, minutes=2)
    night.store.write(lambda tx: tx.put_setting("due_evaluated_at", str(night.now)))
    assert night.found() == {"I-13": 1}
    night.store.write(lambda tx: tx.put_setting("due_evaluated_at", str(night.now + 10)))  # the wall was put back since
    assert night.found() == {}


def test_the_slots_of_a_pause_that_is_still_open_are_not_silent(night: Night) -> None:
    automation = night.define("brief", EVERY_HOUR)
    night.hours(2)
    night.pause(automation)
    night.pass_time(hours=5)
    assert night.found() == {}
    night.enable(automation)
    assert night.found() == {}
    assert night.audit().counts["slots"] == 7


def test_what_a_living_worker_runs_is_left_to_it_and_what_a_dead_one_ran_to_the_sweep(night: Night) -> None:
    worker = a_worker(night.store, night.now)
    night.start(night.define("brief"), worker=worker)
    night.pass_time(minutes=1)
    assert night.found() == {}
    night.store.write(lambda tx: tx.end_worker(worker, "dead", now=night.now))
    night.pass_time(seconds=59)
    assert night.found() == {}
    night.pass_time(seconds=2)
    assert night.found() == {"I-29": 1}


def test_a_line_that_moves_is_a_line_however_long(night: Night) -> None:
    automation = night.define("brief")
    waiting = [night.fire(automation).run_id for _ in range(3)]
    night.pass_time(minutes=9)
    assert night.found() == {}
    night.finish(night.begin(run=waiting[0]))
    night.pass_time(minutes=9)
    assert night.found() == {}
    night.pass_time(minutes=2)
    assert night.found() == {"I-31": 2}


def test_a_queue_stands_rightly_while_nobody_is_there_or_the_desk_is_stopped(night: Night) -> None:
    night.fire(night.define("brief"))
    night.pass_time(minutes=20)
    assert night.found() == {"I-31": 1}
    night.store.write(lambda tx: tx.put_setting("stopped", "{}"))
    assert night.found() == {}
    night.store.write(lambda tx: tx.drop_setting("stopped"))
    night.store.write(lambda tx: tx.end_worker(night.worker, "stopped", now=night.now))
    assert night.found() == {}


def test_a_run_set_aside_stands_in_nobodys_way(store: Store, clock: ManualClock) -> None:
    night = a_full_night(store, clock)  # its dismissed run was overtaken while it waited for a person
    assert night.sql("SELECT state, reason FROM run WHERE id = ?", night.runs["dismissed"]) == [("failed", "dismissed")]
    assert "I-36" not in night.found()


# -- what retention deleted is no violation ---------------------------------------------------------------------------


def test_a_ledger_stays_clean_while_retention_takes_its_oldest_rows(store: Store, clock: ManualClock) -> None:
    night = a_full_night(store, clock)
    day = timedelta(days=1)
    oldest = night.sql("SELECT min(id) FROM firing")
    for days in (3, 4, 20, 4, 4, 30):
        night.pass_time(days=days)
        night.change_shifts()
        night.tick()
        night.work()
        night.send(Receipt.DELIVERED)
        sweep.prune(night.store, keep_runs=7 * day, keep_ledger=30 * day, now=night.now)
        assert night.found(boot_at=night.now) == {}
    old = "SELECT count(*) FROM run WHERE state = 'succeeded' AND ended_at < ?"
    assert night.sql(old, night.now - 7 * DAY) == [(0,)]
    assert night.sql("SELECT min(id) FROM firing") > oldest


def test_without_a_mark_of_what_was_pruned_what_is_there_decides(night: Night) -> None:
    run = night.run(night.define("brief"))
    night.sql("DELETE FROM run_output WHERE run_id = ?", run)
    night.sql("DELETE FROM run WHERE id = ?", run)
    assert night.found() == {}
    night.store.write(lambda tx: tx.put_setting("pruned_before", str(night.now)))
    assert night.found() == {"I-07": 1, "I-63a": 1}


@pytest.mark.parametrize("then", ENDS, ids=["well", "ill"])
@pytest.mark.parametrize("before", ENDS, ids=["well", "ill"])
def test_where_the_wall_was_set_back_nobody_says_which_run_was_the_last(
    night: Night, before: Ended, then: Ended
) -> None:
    brief = night.define("brief")
    night.run(brief, then)
    night.pass_time(hours=1)
    night.run(brief, before)
    at = night.now
    night.clock.step(timedelta(minutes=-30))
    night.pass_time(seconds=1)
    night.run(brief, then)
    assert night.found() != {}, "it would be accused"
    night.store.write(lambda tx: tx.write_gap("step_back", night.now, at, worker=night.worker))
    assert night.found() == {}
    night.pass_time(hours=1)
    night.run(brief, before)
    night.run(brief, then)
    assert night.found() == {}
    night.sql("UPDATE automation SET errors_in_a_row = 7")
    assert night.found() == {"N-17": 1}, "what comes after it is looked at again"


# -- the enumeration -------------------------------------------------------------------------------------------------


def test_the_enumeration_is_left_out_where_nobody_asked_for_it(night: Night) -> None:
    night.define("brief", EVERY_HOUR)
    night.hours(1)
    night.sql("DELETE FROM firing")
    assert "I-03" in night.found()
    assert "I-03" not in {check.id for check in night.audit(enumerate_slots=False).checks}


def test_a_sample_goes_through_some_triggers_and_in_time_through_all(night: Night) -> None:
    for n in range(7):
        night.define(f"brief-{n}", EVERY_HOUR)
    night.hours(1)
    victims = night.sql("SELECT id FROM firing")
    night.sql("DELETE FROM firing WHERE id = ?", victims[0][0])
    found = []
    for _ in range(4):
        report = night.audit(sample=2)
        assert report.counts["triggers"] <= 2
        found.append("I-03" in {check.id for check in report.findings})
        night.pass_time(minutes=1)
    assert found.count(True) == 1


def test_a_trigger_with_more_lines_than_are_held_at_once_is_gone_through_in_spans(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightporter.ledger.audit.promises.LINES_AT_ONCE", 3)
    automation = night.define("brief", EVERY_HOUR)
    night.define("other", EVERY_HOUR)
    night.hours(8)
    night.tick(hours=5)  # one line for several, across a border between spans
    night.hours(8)
    whole = night.audit()
    assert whole.clean, whole.findings
    assert (whole.counts["triggers"], whole.counts["slots"]) == (2, 42)
    night.sql("DELETE FROM firing WHERE trigger_id = ? AND scheduled_for = ?", f"{automation}/clock",
              night.now - 2 * 3_600_000_000)
    assert night.found()["I-03"] == 1


def test_a_run_at_a_time_that_its_schedule_leaves_out_is_found(night: Night) -> None:
    night.define("brief", a_clock_trigger("0 12 * * *"))
    night.hours(30)
    assert night.found() == {}
    [(text,)] = night.sql("SELECT schedule FROM trigger_version")
    schedule = schedule_from(text)
    never = replace(schedule, bounds=Bounds(days=(Days(first="2026-01-01", last="2026-12-31"),)))
    night.sql("UPDATE trigger_version SET schedule = ?", schedule_text(never))
    night.sql("UPDATE trigger SET schedule = ?", schedule_text(never))
    assert night.found() == {"N-23": len(night.lines("id"))}


def test_slots_armed_with_other_zone_data_are_matched_with_those_of_ours(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    automation = night.define("brief", a_clock_trigger("0 12 * * *", timezone="Europe/Berlin"))
    night.hours(30)
    # Another release had summer time begin a week later: on the 28th and 29th noon was an hour later or earlier.
    night.sql("UPDATE firing SET scheduled_for = scheduled_for + 3600000000, arrived_at = arrived_at + 3600000000 "
              "WHERE trigger_id = ?", f"{automation}/clock")
    night.sql("UPDATE run SET scheduled_for = scheduled_for + 3600000000, ran_late = 0 WHERE automation_id = ?",
              automation)
    night.sql("UPDATE trigger SET next_fire_at = next_fire_at + 3600000000")
    shifted = night.found()
    assert {"I-03", "I-04", "I-18"} <= shifted.keys()
    night.sql("UPDATE trigger_version SET tzdata = '1999z'")
    night.sql("UPDATE trigger SET tzdata = '1999z'")
    assert zones.TZDATA != "1999z"
    assert not {"I-03", "I-04", "I-18"} & night.found().keys()


def test_a_report_of_a_store_in_memory_is_the_same(clock: ManualClock) -> None:
    store = open_store(":memory:", now=clock.now())
    try:
        night = Night(store, clock)
        automation = night.define("brief", EVERY_HOUR)
        night.hours(3)
        night.run(automation, Ended(Ending.OK))
        assert night.audit().clean
    finally:
        store.close()


# -- the database itself ---------------------------------------------------------------------------------------------


def test_an_index_that_is_not_what_it_says_is_found(night: Night, store_url: str) -> None:
    night.run(night.define("brief"))
    if night.store.dialect == "sqlite":
        import apsw

        connection = apsw.Connection(store_url)
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, '(name)', '(owner)') "
                           "WHERE name = 'automation_called'")
        connection.close()
    else:
        night.sql("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'automation_called'::regclass")
    again = open_store(store_url, now=night.now)
    try:
        report = Night(again, night.clock).audit()
    finally:
        again.close()
    assert [check.id for check in report.findings] == ["N-16"]
    assert "automation_called" in report.findings[0].examples[0]


# -- the page --------------------------------------------------------------------------------------------------------


def test_the_page_about_the_audit_names_every_check_and_every_invariant(night: Night) -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    checked, _, _ = page.partition("## What is not checked here")
    rows = re.findall(r"^\| ([IN]-\d\d[ab]?) \| ([^|]+) \|", checked, re.MULTILINE)
    assert sorted(rows) == sorted((check.id, check.title) for check in night.audit().checks)
    spoken_of = {int(number) for number in re.findall(r"\bI-(\d\d)", page)}
    assert spoken_of == set(range(1, 71))
