"""Incidents: a fault that recurs is one, it is told once to the right place, and errors in a row stop an automation."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from armed import FREE
from night import DESTINATIONS, Night

from nightporter import delivery, operations
from nightporter.air import Form
from nightporter.clock import HOUR, Kick, ManualClock
from nightporter.delivery import Tried
from nightporter.delivery.record import record_alone
from nightporter.incidents import schedule_failed, schedule_readable
from nightporter.ledger.audit import audit
from nightporter.rules.retry import ALERT_TRIES, STUCK_TRIES
from nightporter.sources.clock import ClockSource
from nightporter.store import Store
from nightporter.words import (
    AlertRoute,
    Alerts,
    Destination,
    Ended,
    ErrorClass,
    Failures,
    Receipt,
    Sent,
)
from words import a_clock_trigger, an_automation, fire, rows

PAGER = AlertRoute("pager", "webhook", {"url": "https://pager.example/in"})
OPS = AlertRoute("ops", "webhook", {"url": "https://ops.example/in"})
HOOK = Destination("hook", "webhook", {"url": "https://hook.example/in"})
QUIET = Destination("log", "silent")
BROKE, OTHERWISE = Ended.failed(ErrorClass.EXCEPTION, "broke at 09:15"), Ended.failed(ErrorClass.EXCEPTION, "no disk")
DELIVERED = Sent(Receipt.DELIVERED, evidence="200")
LATER, NEVER = Sent(Receipt.TRANSIENT, error="503 busy"), Sent(Receipt.PERMANENT, error="410 gone")


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def brief(night: Night, *, name: str = "brief", **of: Any) -> str:
    of = {"deliver": [QUIET], "failures": Failures(pause_after=None), "alerts": Alerts(to=(PAGER,)), **of}
    return an_automation(night.store, now=night.clock.now(), name=name, limits=FREE, **of)


def runs(night: Night, automation: str, *ends: Ended, trigger: str = "call") -> list[str]:
    """One after the other, a minute apart."""
    ids: list[str] = []
    for ended in ends:
        night.sleep(minutes=1)
        fire(night.store, automation, f"e-{night.clock.now()}", now=night.clock.now(), trigger=trigger)
        ids += [one.work.run_id for one in night.run_all(ended)]
    return ids


def incidents(night: Night) -> list[tuple[Any, ...]]:
    return rows(night.store, "SELECT kind, state, count, subject FROM incident ORDER BY first_at, id")


def alerts(night: Night) -> list[tuple[Any, ...]]:
    return rows(night.store, "SELECT destination, alert FROM delivery WHERE alert IS NOT NULL ORDER BY created_at, id")


def kinds(night: Night) -> list[str]:
    return [kind for (kind,) in rows(night.store, "SELECT kind FROM inbox ORDER BY created_at, id")]


def state(night: Night, automation: str) -> tuple[Any, ...]:
    columns = "state, errors_in_a_row, schedule_errors"
    [row] = rows(night.store, f"SELECT {columns} FROM automation WHERE id = ?", automation)
    return row


def found(night: Night) -> list[str]:
    """What an audit finds, once what waits is delivered."""
    while waiting := night.take():
        night.record(*[(taken, DELIVERED) for taken in waiting])
    report = night.store.read(lambda tx: audit(tx, now=night.clock.now()))
    return [f"{check.id}: {check.examples}" for check in report.findings]


# -- one incident -----------------------------------------------------------------------------------------------------


def test_the_same_fault_again_is_the_same_incident(night: Night) -> None:
    automation = brief(night)
    later = Ended.failed(ErrorClass.EXCEPTION, "broke at 21:40")
    first, second = runs(night, automation, BROKE, later)
    assert incidents(night) == [("execution", "open", 2, second)]
    assert alerts(night) == [("pager", "opened")]
    assert first != second
    assert found(night) == []


def test_what_fails_for_a_reason_that_a_trigger_is_named_like_is_no_incident_of_that_trigger(night: Night) -> None:
    automation = brief(night, triggers=[a_clock_trigger("0 9 * * *", name="exception")])
    trigger = f"{automation}/exception"
    runs(night, automation, BROKE)
    night.store.write(lambda tx: schedule_failed(tx, trigger, "broke at 09:15", now=night.clock.now()))
    assert sorted((kind, count) for kind, _, count, _ in incidents(night)) == [("execution", 1), ("schedule", 1)]
    night.store.write(lambda tx: schedule_readable(tx, trigger, now=night.clock.now()))
    assert {kind: state for kind, state, *_ in incidents(night)} == {"execution": "open", "schedule": "resolved"}
    night.store.write(lambda tx: schedule_failed(tx, trigger, "broke at 09:15", now=night.clock.now()))
    assert {kind: state for kind, state, *_ in incidents(night)} == {"execution": "open", "schedule": "open"}


def test_another_fault_is_another_incident(night: Night) -> None:
    runs(night, brief(night), BROKE, OTHERWISE)
    assert [count for _, _, count, _ in incidents(night)] == [1, 1]
    assert alerts(night) == [("pager", "opened")] * 2


def test_the_same_error_of_another_automation_is_an_incident_of_its_own(night: Night) -> None:
    for name in ("one", "two"):
        runs(night, brief(night, name=name), BROKE)
    assert len(incidents(night)) == 2


def test_a_success_ends_what_stands_and_that_is_told_once(night: Night) -> None:
    automation = brief(night)
    runs(night, automation, BROKE, OTHERWISE, Ended.ok("x"), Ended.ok("y"))
    assert [s for _, s, _, _ in incidents(night)] == ["resolved"] * 2
    assert alerts(night)[2:] == [("pager", "recovered")]
    assert kinds(night) == ["dead_letter", "dead_letter", "recovered"]
    assert rows(night.store, "SELECT failing FROM automation") == [(0,)]
    assert found(night) == []


def test_a_success_and_a_failure_that_end_together_count_in_their_order(night: Night) -> None:
    automation = brief(night)
    for n in range(3):
        fire(night.store, automation, f"e-{n}", now=night.clock.now())
    night.end(*zip(night.claim(), [BROKE, Ended.ok("x"), OTHERWISE], strict=True))
    assert sorted(s for _, s, _, _ in incidents(night)) == ["open", "resolved"]
    assert state(night, automation)[1] == 1
    assert found(night) == []


def test_a_run_by_hand_that_fails_opens_none_and_counts_nothing(night: Night) -> None:
    automation = brief(night, failures=Failures(pause_after=1))
    runs(night, automation, BROKE, trigger="manual")
    assert (incidents(night), alerts(night), state(night, automation)) == ([], [], ("active", 0, 0))
    assert kinds(night) == ["dead_letter"]
    assert found(night) == []


def test_a_run_by_hand_that_succeeds_ends_the_row(night: Night) -> None:
    automation = brief(night)
    runs(night, automation, BROKE)
    runs(night, automation, Ended.ok(""), trigger="manual")
    assert [s for _, s, _, _ in incidents(night)] == ["resolved"]
    assert state(night, automation)[1] == 0


# -- whom it is told to, and when: pairs that differ in one option ----------------------------------------------


@pytest.mark.parametrize(("after", "told"), [(1, 1), (3, 0)])
def test_an_alert_waits_for_as_many_failures_in_a_row_as_are_asked_for(night: Night, after: int, told: int) -> None:
    automation = brief(night, alerts=Alerts(to=(PAGER,), after=after))
    runs(night, automation, BROKE, BROKE)
    assert len(alerts(night)) == told
    runs(night, automation, BROKE)
    assert len(alerts(night)) == 1


@pytest.mark.parametrize(("cooldown", "told"), [(timedelta(hours=1), 1), (timedelta(minutes=10), 2)])
def test_a_fault_that_goes_on_is_told_again_after_its_cooldown(night: Night, cooldown: timedelta, told: int) -> None:
    automation = brief(night, alerts=Alerts(to=(PAGER,), cooldown=cooldown))
    runs(night, automation, BROKE)
    night.sleep(minutes=20)
    runs(night, automation, BROKE)
    assert alerts(night) == [("pager", "opened"), ("pager", "continued")][:told]
    assert found(night) == []


def test_a_fault_that_comes_and_goes_within_its_cooldown_is_told_once(night: Night) -> None:
    automation = brief(night)
    runs(night, automation, *[BROKE, Ended.ok("x")] * 5)
    assert alerts(night) == [("pager", "opened"), ("pager", "recovered")]
    assert incidents(night)[0][:3] == ("execution", "resolved", 5)
    night.sleep(hours=2)
    runs(night, automation, BROKE, Ended.ok("x"))
    assert len(incidents(night)) == 2
    assert alerts(night) == [("pager", "opened"), ("pager", "recovered")] * 2
    assert found(night) == []


def test_what_somebody_knows_is_not_told_again_but_for_its_end(night: Night) -> None:
    automation = brief(night)
    runs(night, automation, BROKE)
    [(incident,)] = rows(night.store, "SELECT id FROM incident")
    night.store.write(lambda tx: operations.acknowledge(tx, incident, by="ana", note="disk", now=night.clock.now()))
    night.sleep(hours=3)
    runs(night, automation, BROKE)
    assert alerts(night) == [("pager", "opened")]
    assert rows(night.store, "SELECT 1 FROM incident WHERE state = 'open'") == []
    runs(night, automation, Ended.ok("x"))
    assert alerts(night) == [("pager", "opened"), ("pager", "recovered")]


@pytest.mark.parametrize(
    ("to", "told"), [(None, ["desk"]), ((PAGER,), ["pager"]), ((), [])], ids=["the desk's", "its own", "none"])
def test_an_automation_that_names_no_place_alerts_where_the_desk_says(
    night: Night, to: tuple[AlertRoute, ...] | None, told: list[str]
) -> None:
    from nightporter.incidents import route_by_default

    desks = AlertRoute("desk", "webhook", {"url": "https://desk.example/in"})
    night.store.write(lambda tx: route_by_default(tx, [desks]))
    runs(night, brief(night, alerts=Alerts(to=to)), BROKE)
    assert [name for name, _ in alerts(night)] == told
    assert kinds(night) == ["dead_letter"], "the inbox has a copy in any case"


def test_an_alert_says_what_since_when_how_often_and_what_helps(night: Night) -> None:
    [run] = runs(night, brief(night), BROKE)
    [taken] = night.take()
    body = taken.parcel.body
    assert body["type"] == "incident.opened"
    assert {k: body["data"][k] for k in ("automation", "subject", "count", "kind")} == {
        "automation": "brief", "subject": run, "count": 1, "kind": "execution"}
    for words in ("brief has failed once since", "broke at 09:15", f"replay {run}"):
        assert words in body["data"]["text"]
    night.record((taken, DELIVERED))
    assert found(night) == []


def test_an_alert_whose_route_fails_takes_the_next_and_raises_none_of_its_own(night: Night) -> None:
    runs(night, brief(night, alerts=Alerts(to=(PAGER, OPS))), BROKE)
    for _ in range(ALERT_TRIES):
        [taken] = night.take()
        assert taken.lane == "webhook:pager.example"
        night.record((taken, LATER))
        night.sleep(minutes=5)
    [second] = night.take()
    assert (second.lane, second.parcel.body) == ("webhook:ops.example", taken.parcel.body)
    night.record((second, NEVER))
    assert night.take() == []
    assert alerts(night) == [("pager", "opened"), ("ops", "opened")]
    assert [kind for kind, *_ in incidents(night)] == ["execution", "delivery", "delivery"]
    assert kinds(night) == ["dead_letter", "incident", "incident"]
    assert found(night) == []


def test_an_alert_of_which_no_more_can_be_written_than_its_end_takes_its_next_route_too(night: Night) -> None:
    runs(night, brief(night, alerts=Alerts(to=(PAGER, OPS))), BROKE)
    [taken] = night.take()
    ends = [Tried(taken, NEVER, form=Form.ALONE)]
    assert night.store.write(lambda tx: record_alone(tx, ends, now=night.clock.now())) == [True]
    [second] = night.take()
    assert (second.lane, second.parcel.body) == ("webhook:ops.example", taken.parcel.body)


def test_a_receiver_that_is_at_fault_is_passed_over(night: Night) -> None:
    first, second = brief(night, name="one", alerts=Alerts(to=(PAGER, OPS))), brief(
        night, name="two", alerts=Alerts(to=(PAGER, OPS)))
    runs(night, first, BROKE)
    [taken] = night.take()
    night.record((taken, NEVER))
    runs(night, second, BROKE)
    assert sorted(name for name, _ in alerts(night)) == ["ops", "ops", "pager"]


def test_nobody_waits_for_a_time_that_a_clock_set_back_shows_twice(night: Night) -> None:
    automation = brief(night)
    runs(night, automation, BROKE, Ended.ok(""))
    night.clock.step(timedelta(days=-1))
    runs(night, automation, BROKE)
    night.sleep(hours=1)
    runs(night, automation, BROKE, Ended.ok(""))
    assert alerts(night) == [("pager", event) for event in ("continued", "recovered", "opened", "recovered")]


def test_alerts_of_a_time_that_is_still_to_come_keep_none_back(night: Night) -> None:
    automation = brief(night)
    runs(night, automation, *[Ended.failed(ErrorClass.EXCEPTION, f"no {what}") for what in "abcdefghijk"])
    assert alerts(night) == [("pager", "opened")] * 10 + [("pager", "folded")]
    night.clock.step(timedelta(days=-1))
    runs(night, automation, OTHERWISE)
    assert alerts(night) == [("pager", "opened")] * 11 + [("pager", "folded")]


def test_a_storm_of_alerts_is_folded(night: Night) -> None:
    for n in range(30):
        runs(night, brief(night, name=f"a-{n}"), BROKE)
    assert len(incidents(night)) == 30
    assert [event for _, event in alerts(night)] == ["opened"] * 10 + ["folded"]
    assert kinds(night) == ["dead_letter"] * 30
    assert found(night) == []


# -- receivers -------------------------------------------------------------------------------------------------------


def test_a_dead_receiver_is_one_incident_and_is_not_told_of_itself(night: Night) -> None:
    automation = brief(night, deliver=[HOOK], alerts=Alerts(to=(
        AlertRoute("same", "webhook", {"url": "https://hook.example/alerts"}), OPS)))
    runs(night, automation, Ended.ok("one"), Ended.ok("two"))
    night.record(*[(taken, NEVER) for taken in night.take()])
    [(kind, standing, count, _)] = incidents(night)
    assert (kind, standing, count) == ("delivery", "open", 2)
    assert alerts(night) == [("ops", "opened")]
    assert rows(night.store, "SELECT kind, title FROM inbox") == [
        ("given_up", "results were not delivered to webhook:hook.example")]
    assert state(night, automation) == ("active", 0, 0), "a delivery failure counts in neither"
    runs(night, automation, Ended.ok("three"))
    night.record(*[(taken, DELIVERED) for taken in night.take()])
    assert [s for _, s, _, _ in incidents(night)] == ["resolved"]
    assert [event for _, event in alerts(night)] == ["opened", "recovered"]
    assert found(night) == []


def test_every_result_that_a_dead_receiver_has_cost_is_named(night: Night) -> None:
    gone = runs(night, brief(night, deliver=[HOOK]), *[Ended.ok("one")] * 9)
    wordy = Sent(Receipt.PERMANENT, error=f"410 gone{'!' * 3_000}")
    while waiting := night.take():
        night.record(*[(taken, wordy) for taken in waiting])
    said = [text for (text,) in rows(night.store, "SELECT text FROM inbox WHERE kind = 'given_up'")]
    assert len(said) == 2
    assert [run for run in gone if f"nightporter deliver {run} sends it again" not in "".join(said)] == []
    assert found(night) == []


def test_an_alert_that_may_or_may_not_have_arrived_takes_its_next_route(night: Night) -> None:
    once = AlertRoute("call", "pager", {"number": "1"})
    runs(night, brief(night, alerts=Alerts(to=(once, OPS))), BROKE)
    assert [taken.kind for taken in night.take()] == ["pager"]
    night.store.write(lambda tx: delivery.recover(tx, night.worker, DESTINATIONS, now=night.clock.now()))
    sent = rows(night.store, "SELECT destination, state FROM delivery WHERE alert IS NOT NULL ORDER BY destination")
    assert sent == [("call", "unknown"), ("ops", "pending")]
    assert [kind for kind in kinds(night) if kind == "given_up"] == []
    assert found(night) == []


def test_a_receiver_that_takes_nothing_for_ten_tries_is_told_of_before_it_is_given_up(night: Night) -> None:
    runs(night, brief(night, deliver=[HOOK], alerts=Alerts(to=())), Ended.ok("one"))
    for n in range(1, STUCK_TRIES + 1):
        assert incidents(night) == []
        [taken] = night.take()
        assert taken.tries == n
        night.record((taken, LATER))
        night.sleep(hours=1)
    assert [(kind, s) for kind, s, *_ in incidents(night)] == [("delivery", "open")]
    assert kinds(night) == ["incident"]


def test_a_destination_of_best_effort_gives_up_without_an_incident(night: Night) -> None:
    effort = Destination("hook", "webhook", HOOK.config, best_effort=True)
    runs(night, brief(night, deliver=[effort]), Ended.ok("one"))
    night.record(*[(taken, NEVER) for taken in night.take()])
    assert (incidents(night), kinds(night)) == ([], [])


# -- pauses by the desk -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "became"), [(3, "auto_paused"), (4, "active"), (None, "active")])
def test_errors_in_a_row_pause_an_automation_at_its_own_number(night: Night, most: int | None, became: str) -> None:
    automation = brief(night, failures=Failures(pause_after=most), triggers=[a_clock_trigger("0 9 * * *")])
    runs(night, automation, BROKE, BROKE, BROKE)
    assert state(night, automation)[:2] == (became, 3)
    paused = became == "auto_paused"
    assert ("auto_paused" in kinds(night)) is paused
    assert (("pager", "paused") in alerts(night)) is paused
    assert (rows(night.store, "SELECT next_fire_at FROM trigger WHERE kind = 'clock'") == [(None,)]) is paused
    assert found(night) == []


def test_five_in_a_row_pause_it_and_a_success_between_begins_the_row_anew(night: Night) -> None:
    automation = brief(night, failures=Failures())
    runs(night, automation, *[BROKE] * 4, Ended.ok(""), *[BROKE] * 4)
    assert state(night, automation)[:2] == ("active", 4)
    runs(night, automation, BROKE)
    assert state(night, automation)[:2] == ("auto_paused", 5)


def test_a_pause_by_the_desk_says_the_command_that_ends_it_and_only_that_does(night: Night) -> None:
    automation = brief(night, failures=Failures(pause_after=1), triggers=[a_clock_trigger("0 * * * *")])
    runs(night, automation, BROKE)
    [(text,)] = rows(night.store, "SELECT text FROM inbox WHERE kind = 'auto_paused'")
    assert "nightporter enable brief" in text
    night.sleep(hours=30)
    operations.upkeep(night.store, now=night.clock.now)
    assert state(night, automation)[0] == "auto_paused"
    night.store.write(lambda tx: operations.enable(tx, automation, by="ana", now=night.clock.now()))
    assert state(night, automation) == ("active", 0, 0)
    [line] = rows(night.store, "SELECT verdict, reason, slots FROM firing WHERE verdict = 'collapsed'")
    assert line == ("collapsed", "paused", 30)
    assert found(night) == []


def test_what_is_queued_waits_for_the_pause_to_end(night: Night) -> None:
    automation = brief(night, failures=Failures(pause_after=1))
    for n in range(3):
        fire(night.store, automation, f"e-{n}", now=night.clock.now())
    [one] = night.claim(1)
    night.end((one, BROKE))
    assert night.claim() == []
    night.store.write(lambda tx: operations.enable(tx, automation, by="ana", now=night.clock.now()))
    assert len(night.claim()) == 2


def test_a_slot_that_has_come_when_the_desk_pauses_belongs_to_the_pause(night: Night) -> None:
    automation = brief(night, failures=Failures(pause_after=1), triggers=[
        a_clock_trigger("15m", kind="every", anchor=night.clock.now()),
        a_clock_trigger("0 * * * *", name="hourly")])
    night.sleep(minutes=16)  # the clock has not looked since
    runs(night, automation, BROKE)
    night.store.write(lambda tx: operations.enable(tx, automation, by="ana", now=night.clock.now()))
    assert rows(night.store, "SELECT verdict, reason, slots FROM firing WHERE source = 'clock'") == [
        ("collapsed", "paused", 1)]
    assert found(night) == []


@pytest.mark.parametrize(("most", "became"), [(3, "auto_paused"), (None, "active")])
def test_a_schedule_that_cannot_be_made_sense_of_pauses_it_too(night: Night, most: int | None, became: str) -> None:
    automation = brief(night, failures=Failures(pause_after_schedule_errors=most),
                       triggers=[a_clock_trigger("0 9 * * *")])
    odd = "odd"
    night.store.write(lambda tx: tx.quarantine_trigger(f"{automation}/clock", odd, now=night.clock.now()))
    night.store.write(lambda tx: tx.sql.run("trigger_redefine", kind="clock", enabled=1, policy="odd", removed_at=None,
                                            error=odd, id=f"{automation}/clock"))
    for n in range(1, 4):
        assert state(night, automation) == ("active", 0, n - 1)
        night.sleep(minutes=1)
        for _ in range(2):  # as two desks do, or one that starts again
            operations.take_up_again(night.store, now=night.clock.now)
            night.sleep(seconds=10)
    assert state(night, automation) == (became, 0, 3)
    assert incidents(night)[0][:3] == ("schedule", "open", 3)
    assert alerts(night)[:1] == [("pager", "opened")]
    assert kinds(night) == ["incident"] + ["auto_paused"] * (most is not None)


def test_the_books_of_a_night_with_failures_balance_for_whoever_reads_them(night: Night) -> None:
    automation = brief(night, failures=Failures(pause_after=2))
    runs(night, automation, BROKE, BROKE)
    [(of, state, first_at)] = rows(night.store, "SELECT automation_id, state, first_at FROM incident")
    assert (of, state) == (automation, "open")
    bodies = [json.loads(body) for (body,) in rows(night.store, "SELECT body FROM alert ORDER BY delivery_id")]
    assert {body["type"] for body in bodies} == {"incident.opened", "incident.paused"}
    assert night.clock.now() - first_at < HOUR


@pytest.mark.parametrize("mended_by", ["the sweep", "a person"])
def test_a_pause_for_a_schedule_ends_when_it_can_be_read_again_and_each_slot_is_answered(
    night: Night, mended_by: str
) -> None:
    automation = brief(night, failures=Failures(pause_after_schedule_errors=3), triggers=[
        a_clock_trigger("0 * * * *"), a_clock_trigger("*/20 * * * *", name="beside")])
    trigger = f"{automation}/clock"
    [(whole,)] = rows(night.store, "SELECT policy FROM trigger WHERE id = ?", trigger)
    source = ClockSource(night.store, night.clock, Kick())

    def write(policy: str, error: str) -> None:
        night.store.write(lambda tx: tx.sql.run("trigger_redefine", kind="clock", enabled=1, policy=policy,
                                                removed_at=None, error=error, id=trigger))

    def an_hour() -> None:
        night.sleep(hours=1)
        while source.tick():
            night.run_all(Ended.ok("done"))

    an_hour()
    write("odd", "")
    for _ in range(4):
        an_hour()
        operations.take_up_again(night.store, now=night.clock.now)
    assert state(night, automation) == ("auto_paused", 0, 3)
    write(whole, "odd")
    an_hour()
    if mended_by == "a person":
        night.store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="holidays",
                                                      now=night.clock.now()))
    operations.take_up_again(night.store, now=night.clock.now)
    assert state(night, automation)[0] == ("active" if mended_by == "the sweep" else "paused")
    if mended_by == "a person":
        night.store.write(lambda tx: operations.enable(tx, automation, by="ana", now=night.clock.now()))
    an_hour()
    assert rows(night.store, "SELECT reason, slots FROM firing WHERE trigger_id = ? AND verdict = 'collapsed' "
                             "ORDER BY slot_from", trigger) == [("unreadable", 5)]
    assert found(night) == []
