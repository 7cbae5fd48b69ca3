"""One violation planted for each check, in a ledger that is clean without it; exactly that check finds it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator

import pytest
from builders import Night
from databases import Databases
from full_night import a_full_night
from planting import (
    AT_ONCE,
    INCIDENT,
    MISSED,
    PAUSED,
    SKIPPED,
    TWICE,
    Plant,
    a_hold_that_ran_on,
    a_pause_over,
    a_run_from_before_its_slot,
    a_run_left_lost,
    a_run_that_never_ended,
    a_run_without_its_row,
    a_start_out_of_turn,
    an_end_after_the_end,
    an_end_beyond_the_next_beginning,
    an_open_act_of_a_run_that_went_on,
    another_delivery,
    another_line,
    another_run_of_a_slot,
    automation,
    first,
    line,
    plain,
    run,
    step,
    together,
    trigger,
    two_alerts,
    worker_of,
)

from conftest import START
from nightporter.clock import DAY, HOUR, MINUTE, SECOND, Instant, ManualClock
from nightporter.store import open_store

PLANTS = (
    # slots and lines
    Plant("I-01", "a slot has two lines", lambda night: another_line(0)),
    Plant("I-02", "a slot became two runs", another_run_of_a_slot, also={"I-01": 1}),
    Plant("I-03", "a slot that was skipped has no line", together(
        plain((f"UPDATE trigger SET firings = firings - 1 WHERE id = (SELECT trigger_id FROM firing WHERE id = "
               f"({first('firing', SKIPPED)}))",)),
        plain((f"DELETE FROM firing WHERE id = ({first('firing', SKIPPED)})",)))),
    Plant("I-03", "a range no longer reaches its last slot",
          line(MISSED, f"slot_to = slot_to - {HOUR}, slots = slots - 1")),
    Plant("I-04", "a line answers half past", lambda night: another_line(30 * MINUTE)),
    Plant("N-23", "a slot is said to be left out", line(SKIPPED, "reason = 'excluded'")),
    Plant("I-05", "a line names a version that never was", line(SKIPPED, "version = 99")),
    Plant("I-05", "a line names a version that was not in force", together(
        lambda night: [("UPDATE trigger_version SET valid_to = NULL WHERE trigger_id = ? AND version = 1",
                        f"{night.runs['often']}/clock")],
        lambda night: [("UPDATE trigger_version SET valid_from = valid_from + ? WHERE trigger_id = ?", 80 * MINUTE + 1,
                        f"{night.runs['often']}/clock")]), count=2),
    Plant("I-06", "a skip has no reason", line(SKIPPED, "reason = NULL")),
    Plant("I-06", "a verdict is not of the list",
          line("verdict = 'repeated'", "verdict = 'ignored'"), also={"I-07": 1}),
    Plant("I-07", "a skip names a run", lambda night: line(SKIPPED, "run_id = ?", night.runs["told"])(night)),
    Plant("I-08", "a run has no line", lambda night: [
        ("UPDATE trigger SET firings = firings - 1 WHERE id = ?", f"{night.runs['plain']}/manual"),
        ("DELETE FROM firing WHERE run_id = ?", night.runs["by hand"])]),
    Plant("I-09", "a range begins with a slot that was answered alone",
          line(MISSED, f"slot_from = slot_from - {HOUR}, slots = slots + 1")),
    Plant("I-10a", "a range does not say how many", line(MISSED, "slots = NULL")),
    Plant("I-10b", "a range says one too many", line(MISSED, "slots = slots + 1")),
    Plant("I-10b", "a pause says one too few", line(PAUSED, "slots = slots - 1")),
    Plant("I-10b", "a lower bound is above the truth", line(MISSED, "slots = 400, slots_exact = 0")),
    Plant("I-11", "more wait than may", lambda night: [
        ("INSERT INTO missed_card (id, workspace, automation_id, trigger_id, firing_id, slot, state, created_at) "
         "SELECT ?, workspace, automation_id, trigger_id, firing_id, slot, state, created_at FROM missed_card "
         "WHERE id = (SELECT min(id) FROM missed_card WHERE state = 'pending' AND substr(id, 1, 4) = 'msd_')",
         f"copy_{n}") for n in range(20)]),
    Plant("I-12", "an executed card names no run", plain(
        ("UPDATE missed_card SET run_id = NULL WHERE state = 'executed'",))),
    Plant("I-12", "a card is of another slot than its line", plain(
        ("UPDATE missed_card SET slot = slot + 1 WHERE state = 'pending'",))),
    Plant("I-12", "a card was decided by nobody", plain(
        ("UPDATE missed_card SET state = 'dismissed' WHERE state = 'pending'",))),
    Plant("I-12", "a card became the run of another slot", lambda night: [
        ("UPDATE missed_card SET run_id = ? WHERE state = 'executed'", night.runs["told"])]),
    Plant("I-12", "a card waits for what was removed", lambda night: [
        ("UPDATE missed_card SET automation_id = ? WHERE state = 'pending'", night.runs["gone"])]),
    Plant("I-57", "two runs make up for one gap", lambda night: [
        ("UPDATE run SET catchup = 1, source = 'clock', ran_late = CASE WHEN started_at IS NULL THEN 0 ELSE 1 END "
         "WHERE automation_id = ?", night.runs["asleep"])]),
    # the armed slot
    Plant("I-13", "a slot passed under a desk that was there", plain(
        ("INSERT INTO setting (key, value) VALUES ('stopped', '{}')",)), later=25 * MINUTE, booted=True),
    Plant("I-14", "nothing is armed", trigger("daily/clock", "next_fire_at = NULL")),
    Plant("I-15", "a completed automation is armed", automation("daily", "state = 'completed'")),
    Plant("I-16", "a one-shot is armed again", together(
        automation("once", "state = 'active'"),
        trigger("once/clock", "next_fire_at = created_at + ?", 100 * DAY))),
    Plant("I-17", "the slot armed has its answer", lambda night: [
        ("UPDATE trigger SET next_fire_at = (SELECT max(scheduled_for) FROM firing WHERE trigger_id = ?) WHERE id = ?",
         f"{night.runs['brief']}/clock", f"{night.runs['brief']}/clock")]),
    Plant("I-18", "the slot armed is not of the schedule",
          trigger("daily/clock", "next_fire_at = next_fire_at + ?", MINUTE)),
    Plant("I-18", "the next slot is jumped over", trigger("daily/clock", "next_fire_at = next_fire_at + ?", DAY)),
    Plant("I-19", "a slot is answered before it comes", line(SKIPPED, "arrived_at = scheduled_for - 1")),
    Plant("I-20", "a run started before its slot", a_run_from_before_its_slot),
    Plant("I-21", "a run in time is marked late", run("told", "ran_late = 1")),
    Plant("N-01", "two versions meet", lambda night: [
        ("UPDATE trigger_version SET valid_to = valid_to + 1 WHERE trigger_id = ? AND version = 1",
         f"{night.runs['edited']}/clock")]),
    Plant("N-02", "the schedule in force is another", trigger("daily/clock", "version = 7")),
    Plant("N-02", "what is off owes slots", lambda night: [
        ("INSERT INTO trigger_version (trigger_id, version, schedule, timezone, tzdata, valid_from) "
         "SELECT id, version, schedule, 'UTC', '', created_at FROM trigger WHERE id = ?",
         f"{night.runs['off']}/clock")]),
    Plant("N-03", "what acts sleeps", lambda night: [
        ("INSERT INTO pause (automation_id, paused_from, reason) VALUES (?, ?, 'paused')", night.runs["daily"],
         night.now)]),
    Plant("N-03", "what sleeps is not written down", lambda night: [
        ("UPDATE pause SET paused_to = ? WHERE automation_id = ?", night.now, night.runs["asleep"])]),
    # the course of a run
    Plant("I-22", "a reason is not of the list", run("dead", "reason = 'because'")),
    Plant("I-22", "a delivery's state is not of the list", lambda night: [
        ("UPDATE delivery SET state = 'lost' WHERE state = 'unverified'",)], count=1),
    Plant("I-23", "a run ends twice", an_end_after_the_end),
    Plant("I-24", "the log ends elsewhere", step("told", 3, "to_state = 'failed'")),
    Plant("I-25", "a run took a step that there is not", a_hold_that_ran_on),
    Plant("I-26", "a step begins elsewhere", step("reviewed", 5, "from_state = 'lost'")),
    Plant("I-26", "time goes back", together(
        step("told", 3, "at = at - ?", 2 * SECOND), run("told", "ended_at = ended_at - ?", 2 * SECOND))),
    Plant("I-27", "the row has another end than the log", run("told", "ended_at = ended_at + 5")),
    Plant("N-04", "an ended run waits", run("told", "blocked = 'time'")),
    Plant("N-04", "a run that succeeded failed", run("by hand", "outcome = 'failed'")),
    Plant("I-28", "nobody runs a run", together(
        run("lonely", "worker = 'wrk_nobody'"), step("lonely", 2, "worker = 'wrk_nobody'"))),
    Plant("I-29", "a dead worker's run was not taken back", worker_of("lonely", 2 * MINUTE)),
    Plant("I-30", "a boot left a dead worker's run", worker_of("lonely", 30 * SECOND), booted=True),
    Plant("I-31", "a queue stands still", run("waiting", "run_after = run_after - ?", 20 * MINUTE)),
    Plant("N-05", "a run waits for nobody", run("waiting", "blocked = 'overlap'")),
    Plant("N-05", "a run waits for a place that nobody has", run("kept", "blocked = 'concurrency'")),
    Plant("N-06", "a run waits for a pause that is not", run("waiting", "blocked = 'paused'")),
    Plant("N-07", "a run is left lost", a_run_left_lost),
    Plant("N-08", "a run runs on and on", a_run_that_never_ended),
    # claims
    Plant("I-32", "a token is given twice", together(
        step("retried", 4, "token = 1"), step("retried", 5, "token = 1"))),
    Plant("I-33", "a stranger ended a run", step("told", 3, "worker = 'wrk_other'")),
    Plant("I-33", "an old claim ended a run", step("retried", 5, "token = 1")),
    Plant("I-34", "an effect was written under no claim", lambda night: [
        ("UPDATE effect SET token = 99 WHERE run_id = ?", night.runs["acted"])]),
    Plant("I-34", "an effect was done after its claim", lambda night: [
        ("UPDATE effect SET done_at = done_at + ? WHERE run_id = ?", MINUTE, night.runs["acted"])]),
    Plant("I-36", "one began while another was going", an_end_beyond_the_next_beginning),
    Plant("I-37", "one started out of turn", a_start_out_of_turn),
    Plant("I-38", "two wait to replace one", trigger("line/call", "policy = replace(policy, 'queue', 'replace')")),
    Plant("N-09", "more run than may", automation("narrow", "concurrent = 0")),
    # attempts and effects
    Plant("I-39", "an effect was done at no time", lambda night: [
        ("UPDATE effect SET done_at = NULL WHERE run_id = ?", night.runs["acted"])]),
    Plant("I-40", "what may have happened was tried again", an_open_act_of_a_run_that_went_on),
    Plant("N-10", "what may not repeat was repeated", lambda night: [
        ("UPDATE automation_version SET definition = replace(definition, 'idempotent\":true', 'idempotent\":false') "
         "WHERE automation_id = ?", night.runs["safe"])]),
    Plant("N-11", "a start mark is left", lambda night: [
        ("UPDATE effect SET state = 'intended', done_at = NULL WHERE run_id = ?", night.runs["job done"])]),
    Plant("N-11", "a child's line is left", lambda night: [
        ("INSERT INTO child (run_id, token, worker, host, process_group, started) VALUES (?, 1, 'wrk', 'here', 7, 7)",
         night.runs["job done"])]),
    Plant("I-41", "one attempt too many", run("told", "attempts = 0")),
    Plant("I-42", "an attempt that the log does not have", run("told", "attempt = attempt + 1")),
    Plant("I-42", "a token that the log does not have", run("told", "token = token + 1")),
    Plant("I-43", "a timeout was tried again", step("retried", 3, "error_class = 'timeout'")),
    Plant("I-44", "a failed run is no dead letter", run("dead", "dead_at = NULL")),
    Plant("I-44", "a dead letter was not announced", lambda night: [
        ("DELETE FROM inbox WHERE run_id = ? AND kind = 'dead_letter'", night.runs["timed out"])]),
    Plant("I-44", "a good run is a dead letter", run("told", "dead_at = ended_at")),
    Plant("I-45", "a hold does not wait", run("held", "run_after = queued_at")),
    Plant("N-12", "nobody was asked", lambda night: [
        ("DELETE FROM inbox WHERE run_id = ? AND kind = 'review'", night.runs["in review"])]),
    Plant("N-12", "nobody heard of a delivery given up", plain(("DELETE FROM inbox WHERE kind = 'given_up'",))),
    # deliveries
    Plant("I-46a", "a result was not delivered", lambda night: [
        ("DELETE FROM delivery WHERE run_id = ?", night.runs["told"])]),
    Plant("I-46b", "a result was delivered elsewhere", lambda night: another_delivery("elsewhere")),
    Plant("I-47", "a result was delivered twice", lambda night: another_delivery("kept")),
    Plant("I-48", "a try had another event id", lambda night: [
        (f"UPDATE delivery_try SET event_id = 'evt_other' WHERE n = 1 AND delivery_id = ({TWICE})",)]),
    Plant("I-48", "a try had another body", lambda night: [
        (f"UPDATE delivery_try SET body_hash = 'other' WHERE n = 1 AND delivery_id = ({TWICE})",)]),
    Plant("I-49", "delivered without evidence", lambda night: [
        (f"UPDATE delivery SET evidence = '' WHERE id = ({AT_ONCE})",)]),
    Plant("I-49", "delivered by a try that failed", lambda night: [
        (f"UPDATE delivery_try SET result = 'transient' WHERE n = 2 AND delivery_id = ({TWICE})",)]),
    Plant("I-49", "given up after one try of fifty", plain(
        ("UPDATE delivery SET reason = 'gave_up' WHERE state = 'given_up'",))),
    Plant("N-13", "a try that was not made", lambda night: [
        (f"UPDATE delivery SET tries = 1, token = 1 WHERE id = ({TWICE})",)]),
    Plant("I-50a", "a delivery waits for ever", plain(
        ("UPDATE delivery SET next_try_at = NULL WHERE state = 'pending'",))),
    Plant("I-50b", "a delivery is overdue", lambda night: [
        ("UPDATE delivery SET next_try_at = ? WHERE state = 'pending'", night.now - 2 * HOUR)]),
    Plant("N-14", "a stranger sends a delivery", plain(
        ("UPDATE delivery SET worker = 'wrk_nobody' WHERE state = 'sending'",))),
    Plant("I-52", "a run failed because of its delivery", run("dead", "reason = 'gave_up'")),
    # limits and counts
    Plant("I-53", "one more than the ceiling", trigger("few/call", "policy = replace(policy, ',2,', ',1,')")),
    Plant("I-54", "one within the cooldown", automation("cool", "cooldown = ?", 30 * MINUTE)),
    Plant("I-56", "a line more than there is", trigger("daily/clock", "firings = firings + 1")),
    Plant("N-22", "a run counts one more than came", run("burst", "merged = merged + 1")),
    Plant("N-22", "a run carries what nobody said", run("burst", "carries = 'fir_nobody'")),
    Plant("N-21", "a run of a schedule was not counted", automation("twice", "counted_runs = counted_runs - 1")),
    Plant("I-58", "a run was caused by nothing", run("told", "depth = 3")),
    Plant("I-60a", "who may try again is remembered", line("reason = 'hourly_ceiling'", "dedupe_key = external_id")),
    Plant("I-60b", "a key is kept twice", lambda night: [
        ("DROP INDEX firing_dedupe",),
        ("UPDATE firing SET external_id = 'twice', dedupe_key = 'twice' WHERE run_id IN (?, ?)", night.runs["acted"],
         night.runs["quiet"])]),
    Plant("I-61", "a repeat names another run", lambda night: line(
        "verdict = 'repeated'", "run_id = ?", night.runs["acted"])(night)),
    Plant("I-62", "runs were started after the removal",
          automation("gone", "state_at = state_at - ?", 90 * MINUTE), count=2),
    Plant("N-15", "a run was admitted in a pause", a_pause_over("cool second")),
    Plant("I-70", "a run more than there is", trigger("few/call", "runs = runs + 1")),
    # keeping
    Plant("I-63a", "a success is forgotten", automation("plain", "last_success_at = last_success_at - ?", HOUR),
          also={"N-17": 1}),
    Plant("I-63a", "the last outcome is another", automation("single", "last_outcome = 'failed'")),
    Plant("I-63b", "a month forgets a run", lambda night: [
        ("UPDATE rollup_month SET runs = runs - 1, succeeded = succeeded - 1 WHERE automation_id = ?",
         night.runs["single"])]),
    Plant("N-24", "what had nothing to do succeeded", lambda night: [
        ("INSERT INTO run_look (run_id, kind, answer, text) VALUES (?, 'python', 'nothing', '')", night.runs["told"])]),
    Plant("N-24", "a run that failed left what its look keeps", lambda night: [
        ("INSERT INTO look_state (automation_id, look, state, version, run_id, at) "
         "VALUES (?, 'python', '1', 1, ?, 0)", night.runs["brief"], night.runs["dead"])]),
    Plant("I-64", "a look is of no run", plain(
        ("INSERT INTO run_look (run_id, kind, answer, text) VALUES ('run_none', 'python', 'something', '')",))),
    Plant("I-64", "a month is of nobody", plain(
        ("INSERT INTO rollup_month (automation_id, month) VALUES ('aut_x', '2026-03')",))),
    Plant("I-64", "a delivery is of no run", lambda night: [
        *another_delivery("kept"), ("UPDATE delivery SET run_id = 'run_x' WHERE id = 'del_planted'",)]),
    Plant("I-65", "what fires is quarantined", lambda night: [
        ("INSERT INTO quarantine (subject, key, error, at) VALUES ('trigger', ?, 'odd', 0)",
         f"{night.runs['daily']}/clock")]),
    Plant("N-17", "failures that never were are counted", automation("single", "errors_in_a_row = 7")),
    Plant("N-18", "an incident is about a trigger that never was", plain(
        (f"INSERT INTO incident ({INCIDENT}) SELECT 'inc_x', workspace, id, 'schedule', 'here', 'odd', 'open', 1, 0, "
         "0, 'nowhere', 'odd' FROM automation ORDER BY id LIMIT 1",))),
    Plant("N-19", "somebody is told twice within a cooldown", two_alerts),
    Plant("N-20", "nobody is told of a pause by the desk", automation("asleep", "state = 'auto_paused'")),
    Plant("I-67", "another schema", plain(("UPDATE setting SET value = '0' WHERE key = 'schema_version'",))),
    Plant("I-68", "a run was deleted while it ran", a_run_without_its_row),
    Plant("I-68", "a payload was deleted", lambda night: [
        ("DELETE FROM firing_payload WHERE firing_id = (SELECT firing_id FROM run WHERE id = ?)", night.runs["told"])]),
)


_numbers = itertools.count()


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def full_night(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Night]:
    """A full night, made once on each database; only what leaves it as it is may be asked of it. Tests that are moved
    from worker to worker may make one anew."""
    with contextlib.ExitStack() as after:
        if request.param == "sqlite":
            url = str(tmp_path_factory.mktemp("night") / "ledger.db")
        else:
            databases: Databases = request.getfixturevalue("databases")
            name = f"night_{databases.worker}_{next(_numbers)}"
            after.callback(databases.drop, name)
            url = databases.create(name, migrated=True)
        store = open_store(url, now=START, patience=5.0)
        after.callback(store.close)
        yield a_full_night(store, ManualClock(Instant(START)))


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: f"{plant.id}: {plant.said}")
def test_a_planted_violation_is_found_by_its_check_and_by_no_other(full_night: Night, plant: Plant) -> None:
    now = full_night.now + plant.later
    boot_at = full_night.now - 10 * SECOND if plant.booted else None
    found = full_night.found_after(*plant.statements(full_night), now=now, boot_at=boot_at)
    assert found == {plant.id: plant.count, **plant.also}


def test_every_check_has_a_violation_planted_for_it(full_night: Night) -> None:
    planted = {plant.id for plant in PLANTS} | {"N-16"}
    assert {check.id for check in full_night.audit().checks} == planted


def test_nothing_that_was_planted_stays(full_night: Night) -> None:
    assert full_night.found() == {}
