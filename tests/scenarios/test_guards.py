"""When not to start: each guard on a whole night at the desk, with what the ledger, `explain` and an audit say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from builders import SAID, Night
from scenes import HOOK, UNAVAILABLE, a_night, at, slots, until

from nightporter import operations
from nightporter.clock import HOUR, Instant
from nightporter.ledger import automation_detail, explain
from nightporter.sources.clock import settle
from nightporter.sources.missed import slot_key
from nightporter.store import Store
from nightporter.store.tx_clock import schedule_from
from nightporter.words import (
    Answer,
    Coalesce,
    Destination,
    Ended,
    Limits,
    Overlap,
    QuietHours,
    Receipt,
    Threshold,
    TriggerSpec,
)
from words import a_clock_trigger, an_incident, steps

QUARTERS = a_clock_trigger("*/15 * * * *")
NIGHT = QuietHours(("22:00-07:00",))
GATHERS = Coalesce(timedelta(seconds=30), timedelta(minutes=2))


def called(**options: Any) -> TriggerSpec:
    return TriggerSpec("call", "call", **options)


def said(night: Night, subject: str) -> str:
    return night.store.read(lambda tx: explain(tx, subject, night.now)).text


def became(answer: Answer) -> str:
    return str(answer.reason or answer.verdict)


# -- quiet hours ------------------------------------------------------------------------------------------------------


def test_in_quiet_hours_slots_are_answered_and_programs_may_ask_again(store: Store) -> None:
    night = a_night(store, "21:40")
    automation = night.define("brief", QUARTERS, quiet_hours=NIGHT)
    until(night, "21:45")
    night.work()
    until(night, "22:15")
    assert slots(night, "verdict", "reason", "detail", "dedupe_key") == [
        ("21:45", "admitted", None, "", "2026-06-10T21:45:00Z"),
        ("22:00", "skipped", "quiet_hours", "until 2026-06-11T07:00:00Z", "2026-06-10T22:00:00Z"),
        ("22:15", "skipped", "quiet_hours", "until 2026-06-11T07:00:00Z", "2026-06-10T22:15:00Z"),
    ]
    first = night.fire(automation, "order-17")
    assert became(first) == "quiet_hours"
    assert "hours in which it does not start by itself (until 2026-06-11T07:00:00Z)" in said(night, first.firing_id)
    assert became(night.fire(automation, trigger="manual")) == "admitted"
    night.work()
    night.pass_time(hours=9)
    assert became(night.fire(automation, "order-17")) == "admitted"
    assert night.found() == {}


def test_without_quiet_hours_the_same_night_is_an_ordinary_one(store: Store) -> None:
    night = a_night(store, "21:40")
    night.define("brief", QUARTERS)
    for time in ("21:45", "22:00", "22:15"):
        until(night, time)
        night.work()
    assert [verdict for _, verdict in slots(night, "verdict")] == ["admitted"] * 3


# -- thresholds -------------------------------------------------------------------------------------------------------


def test_every_third_arrival_is_a_run_and_what_is_told_twice_is_not_counted(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(threshold=Threshold(3)))
    assert [became(night.fire(automation, key)) for key in ("a", "b", "b")] == [
        "threshold", "threshold", "suppressed_duplicate"]
    assert became(night.fire(automation, "m", trigger="manual")) == "admitted", "and it is not counted"
    assert [became(night.fire(automation, key)) for key in "cdef"] == ["admitted", "threshold", "threshold", "admitted"]
    assert {("1 of 3",), ("2 of 3",)} < set(night.lines("detail", source="call"))
    night.work()
    assert night.found() == {}


def test_a_count_begins_anew_where_the_first_of_it_came_too_long_ago(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(threshold=Threshold(2, timedelta(hours=1))))
    found = []
    for minutes in (0, 61, 60, 1, 59):
        night.pass_time(minutes=minutes)
        found.append(became(night.fire(automation)))
        night.work()
    assert found == ["threshold", "threshold", "admitted", "threshold", "admitted"]
    assert night.found() == {}


def test_every_other_monday_is_a_threshold_of_a_schedule(store: Store) -> None:
    night = a_night(store, "10:00")
    night.define("brief", replace(a_clock_trigger("0 9 * * mon"), threshold=Threshold(2)))
    for _ in range(4):
        [(monday,)] = night.sql("SELECT next_fire_at FROM trigger WHERE kind = 'clock'")
        night.tick(microseconds=monday - night.now)
        night.work()
    assert night.lines("verdict", "reason") == [("skipped", "threshold"), ("admitted", None)] * 2
    assert night.found() == {}


# -- arrivals that are folded together --------------------------------------------------------------------------------


def test_a_burst_is_one_run_that_carries_the_last_of_it(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    first = night.fire(automation, payload={"n": 1})
    more = []
    for n in (2, 3):
        night.pass_time(seconds=20)
        more.append(night.fire(automation, payload={"n": n}))
    assert [each.verdict for each in (first, *more)] == ["admitted", "merged", "merged"]
    assert {each.run_id for each in (first, *more)} == {first.run_id}
    assert "it gathers what else arrives until 2026-06-10 10:01:10" in said(night, str(first.run_id))
    night.pass_time(seconds=29)
    assert night.begin() == [], "it waits for more"
    night.pass_time(seconds=1)
    [claimed] = night.begin()
    assert claimed.work.payload == {"n": 3}
    night.finish(claimed)
    text = said(night, str(first.run_id))
    assert "1 min 10 s late, because it waited 1 min 10 s for others like it" in text
    assert "2 more arrivals were folded into it while it waited." in text
    assert night.sql("SELECT merged FROM run") == [(2,)]
    assert night.found() == {}


def test_without_it_the_same_burst_is_as_many_runs(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called())
    assert [night.fire(automation).verdict for _ in range(3)] == ["admitted"] * 3


def test_a_burst_that_does_not_end_is_run_after_its_longest_wait(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    verdicts = []
    started = None
    while started is None:
        verdicts.append(night.fire(automation).verdict)
        night.pass_time(seconds=10)
        if claimed := night.begin():
            started = night.now
    assert started == at("10:02:00")
    assert verdicts == ["admitted"] + ["merged"] * 11
    after = night.fire(automation)
    assert after.verdict == "admitted", "a run that has begun takes nothing more"
    night.finish(claimed)
    night.pass_time(seconds=30)
    night.work()
    assert night.sql("SELECT merged FROM run ORDER BY id") == [(11,), (0,)]
    assert night.found() == {}


def test_what_belongs_together_is_told_by_a_field_of_the_payload(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=replace(GATHERS, key="payload.order.id")))
    payloads: list[Any] = [
        {"order": {"id": 1}}, {"order": {"id": 2}}, {"order": {"id": 1}, "more": 1}, {"order": 7}, None,
        {"order": {"id": "1"}},
    ]
    answers = [night.fire(automation, payload=payload) for payload in payloads]
    assert [answer.verdict == "admitted" for answer in answers] == [True, True, False, True, False, True]
    assert {answer.verdict for answer in answers} == {"admitted", "merged"}
    assert answers[2].run_id == answers[0].run_id
    night.pass_time(seconds=30)
    carried = {str(one.work.run_id): one.work.payload for one in night.begin(10)}
    assert carried[str(answers[0].run_id)] == {"order": {"id": 1}, "more": 1}
    assert night.found() == {}


def test_a_burst_while_a_run_is_going_is_one_run_behind_it(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS, overlap=Overlap.QUEUE))
    night.fire(automation)
    night.pass_time(seconds=30)
    [slow] = night.begin()
    behind = [night.fire(automation) for _ in range(3)]
    assert [answer.verdict for answer in behind] == ["admitted", "merged", "merged"]
    night.pass_time(seconds=40)
    assert night.begin() == [], "it must go alone"
    assert night.fire(automation).verdict == "merged", "and waits for those that come meanwhile"
    night.finish(slow)
    assert night.begin() == [], "and for no more of them"
    night.pass_time(seconds=30)
    [next_] = night.begin()
    assert next_.work.run_id == behind[0].run_id
    night.finish(next_)
    assert night.found() == {}


def test_what_another_takes_the_place_of_takes_nothing_more(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(
        coalesce=replace(GATHERS, key="payload.n"), overlap=Overlap.REPLACE))
    one, other = night.fire(automation, payload={"n": 1}), night.fire(automation, payload={"n": 2})
    assert steps(store, one.run_id) == ["queued", "cancelled"]
    again = night.fire(automation, payload={"n": 1})
    assert (other.verdict, again.verdict) == ("admitted", "admitted")
    night.pass_time(seconds=30)
    assert night.work() == [again.run_id]
    assert night.found() == {}


def test_a_run_that_failed_once_and_waits_takes_nothing_more(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    night.fire(automation)
    night.pass_time(seconds=30)
    night.finish(night.begin(), UNAVAILABLE)
    assert night.fire(automation).verdict == "admitted"
    assert night.found() == {}


def test_a_repeat_of_what_was_folded_is_a_repeat(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    first = night.fire(automation, "a")
    night.fire(automation, "b")
    again = night.fire(automation, "b")
    assert (again.verdict, again.run_id) == ("repeated", first.run_id)
    assert night.sql("SELECT merged FROM run") == [(1,)]
    assert night.found() == {}


def test_words_in_pieces_are_one_run_with_all_of_them(store: Store) -> None:
    night = a_night(store, "10:00")
    spoken = Coalesce(timedelta(seconds=5), timedelta(seconds=50), joins=True)
    automation = night.define("brief", called(coalesce=spoken), TriggerSpec("manual", "manual", coalesce=spoken))
    for trigger in ("call", "manual"):
        first = night.fire(automation, text="Look at the numbers", trigger=trigger, payload={"n": 1})
        night.pass_time(seconds=3)
        more = [night.fire(automation, text=text, trigger=trigger) for text in ("of last week", "")]
        assert {each.run_id for each in more} == {first.run_id} or trigger == "manual"
        night.pass_time(seconds=3)
        night.fire(automation, text="and not of this one", trigger=trigger)
        night.pass_time(seconds=5)
        claimed = {str(one.work.run_id): one for one in night.begin(10)}
        work = claimed[str(first.run_id)].work
        assert work.text == "Look at the numbers\nof last week\nand not of this one"
        assert work.payload == {"n": 1}
        night.finish(list(claimed.values()))
        replayed = night.store.write(lambda tx, run=work.run_id: operations.replay(  # type: ignore[misc]  # bound
            tx, run, external_id="again", by="ann", now=night.now))
        night.pass_time(seconds=50)
        [again] = night.begin(run=replayed.run_id)
        assert again.work.text == work.text
        night.finish(again)
    assert night.found() == {}


def test_a_person_who_says_nothing_beside_now_means_now(store: Store) -> None:
    night = a_night(store, "10:00")
    spoken = Coalesce(timedelta(seconds=5), timedelta(seconds=50), joins=True)
    automation = night.define("brief", TriggerSpec("manual", "manual", coalesce=spoken))
    night.fire(automation, trigger="manual", text="look")
    now = night.fire(automation, trigger="manual")
    assert [one.work.run_id for one in night.begin(10)] == [now.run_id]


# -- a number of runs -------------------------------------------------------------------------------------------------


def test_three_runs_of_a_schedule_and_it_is_completed_whatever_else_runs(store: Store) -> None:
    """S-41 (b)."""
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=3))
    for time, ended in (("10:00", UNAVAILABLE), ("10:15", SAID), ("10:30", SAID)):
        night.run(automation, trigger="manual")
        night.run(automation)
        until(night, time)
        night.work(ended)
        night.pass_time(minutes=1)
        night.work()
    row = night.row(automation)
    assert (row.state, row.state_reason) == ("completed", "its schedules have started as many runs as they may")
    assert night.sql("SELECT next_fire_at FROM trigger WHERE kind = 'clock'") == [(None,)]
    until(night, "12:00")
    assert [verdict for _, verdict in slots(night, "verdict")] == ["admitted"] * 3
    assert "is completed: its schedules have started as many runs as they may" in said(night, automation)
    assert became(night.fire(automation, trigger="manual")) == "admitted"
    night.work()
    assert night.found() == {}


def test_a_completed_one_begins_a_new_count_when_it_is_enabled(store: Store) -> None:
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=1))
    until(night, "10:00")
    night.work()
    until(night, "11:05")
    night.enable(automation)
    assert night.lines("verdict", "reason", "slots")[1:] == [("collapsed", "max_runs", 4)]
    until(night, "11:15")
    night.work()
    assert night.row(automation).state == "completed"
    assert night.sql("SELECT count(*) FROM run") == [(2,)]
    assert night.found() == {}


def test_a_higher_number_lets_it_go_on_and_any_other_change_does_not(store: Store) -> None:
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=2))
    until(night, "10:15")
    night.work()
    until(night, "10:20")
    assert night.row(automation).state == "active", "the second slot met the first run"
    until(night, "10:30")
    night.work()
    assert night.row(automation).state == "completed"
    night.define("brief", QUARTERS, limits=Limits(max_runs=2), description="as before")
    assert night.row(automation).state == "completed"
    assert night.found() == {}
    night.define("brief", QUARTERS, limits=Limits(max_runs=3))
    assert night.row(automation).state == "active"
    until(night, "11:00")
    night.work()
    assert night.row(automation).state == "completed"
    assert night.sql("SELECT count(*) FROM run") == [(3,)]
    assert night.found() == {}


def test_slots_that_come_together_with_the_last_run_say_so(store: Store) -> None:
    night = a_night(store, "09:50")
    twice = [replace(QUARTERS, name=name, overlap=Overlap.PARALLEL) for name in ("one", "two")]
    automation = night.define("brief", *twice, limits=Limits(max_runs=3))
    until(night, "10:15")
    assert slots(night, "verdict", "reason", "detail")[:2] == [("10:00", "admitted", None, "")] * 2
    assert sorted(slots(night, "verdict", "reason", "detail")[2:]) == [
        ("10:15", "admitted", None, ""), ("10:15", "skipped", "max_runs", "the limit is 3")]
    assert night.row(automation).state == "completed"
    night.work()
    assert night.found() == {}


def test_a_crash_between_the_fire_and_the_count_neither_loses_nor_doubles(store: Store) -> None:
    """They are one transaction: what is undone is undone together."""
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, limits=Limits(max_runs=2))
    night.pass_time(minutes=10)

    def dies(tx: Any) -> None:
        settle(tx, automation, now=night.now)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.write(dies)
    assert night.sql("SELECT counted_runs, state FROM automation") == [(0, "active")]
    night.tick()
    assert night.sql("SELECT counted_runs, state FROM automation") == [(1, "active")]
    night.tick()
    assert night.sql("SELECT count(*) FROM firing") == [(1,)]
    night.work()
    until(night, "10:15")
    assert night.sql("SELECT counted_runs, state FROM automation") == [(2, "completed")]
    assert night.found() == {}


# -- stagger -----------------------------------------------------------------------------------------------------------


def test_a_staggered_schedule_is_armed_shown_and_fired_with_its_offset(store: Store) -> None:
    night = a_night(store, "09:50")
    hourly = replace(a_clock_trigger("0 * * * *"), stagger=timedelta(minutes=5))
    automation = night.define("brief", hourly)
    [(text,)] = night.sql("SELECT schedule FROM trigger WHERE kind = 'clock'")
    offset = schedule_from(text).offset
    ten = Instant(at("10:00") + offset)
    assert offset
    detail = store.read(lambda tx: automation_detail(tx, automation, now=night.now))
    assert [fire.at for fire in detail.next_fires[:2]] == [ten, ten + HOUR]
    until(night, "10:00")
    assert slots(night) == []
    until(night, "10:06")
    assert night.lines("scheduled_for", "external_id", "verdict") == [(ten, slot_key(ten), "admitted")]
    night.work()
    night.define("brief", replace(a_clock_trigger("0 * * * *"), stagger=timedelta(minutes=5)), description="as before")
    night.define("brief", a_clock_trigger("0 * * * *"))
    until(night, "11:00")
    assert slots(night)[1:] == [("11:00",)]
    night.work()
    night.define("brief", hourly)
    until(night, "11:10")
    assert len(slots(night)) == 2, "eleven had its answer"
    until(night, "12:06")
    assert night.lines("scheduled_for")[2:] == [(ten + 2 * HOUR,)]
    night.work()
    assert night.found() == {}


# -- incidents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("incident", "hold", "held"),
    [
        ({}, True, True), ({}, False, False), ({"state": "acknowledged"}, True, False),
        ({"kind": "delivery"}, True, False),
    ],
    ids=["open", "open, and nobody asked", "acknowledged", "of a receiver"],
)
def test_an_open_incident_holds_what_starts_by_itself(
    store: Store, incident: dict[str, str], hold: bool, held: bool
) -> None:
    night = a_night(store, "09:50")
    automation = night.define("brief", QUARTERS, hold_on_incident=hold)
    an_incident(store, automation, **incident)
    until(night, "10:00")
    answers = [night.fire(automation), night.fire(automation, trigger="manual")]
    assert slots(night, "reason", "detail") == [("10:00", *(("incident_hold", "inc_1") if held else (None, "")))]
    assert [became(answer) for answer in answers] == ["incident_hold" if held else "admitted", "admitted"]


# -- deliveries -------------------------------------------------------------------------------------------------------


def sent(night: Night, *columns: str) -> list[tuple[Any, ...]]:
    return night.sql(f"SELECT {', '.join(columns)} FROM delivery ORDER BY created_at, id")


@pytest.mark.parametrize(("failures", "ended", "waits"), [
    (False, SAID, True), (False, Ended.timed_out("too long"), False), (True, Ended.timed_out("too long"), True),
])
def test_a_result_waits_for_the_end_of_quiet_hours_and_a_failure_only_where_that_is_asked_for(
    store: Store, failures: bool, ended: Ended, waits: bool
) -> None:
    night = a_night(store, "23:00")
    automation = night.define("brief", deliver=[replace(HOOK, quiet_hours=replace(NIGHT, failures=failures))])
    run = night.run(automation, ended)
    [(state, reason, due)] = sent(night, "state", "reason", "next_try_at")
    assert (state, reason, due) == (
        ("pending", "held_quiet", at("31:00")) if waits else ("pending", None, at("23:00")))
    assert ("waits until 2026-06-11 07:00" in said(night, run)) is waits
    night.send(Receipt.DELIVERED)
    assert sent(night, "state") == [("pending" if waits else "delivered",)]
    night.pass_time(hours=8)
    night.send(Receipt.DELIVERED)
    assert sent(night, "state", "reason", "tries") == [("delivered", None, 1)]
    assert night.found() == {}


def test_without_quiet_hours_it_goes_at_once(store: Store) -> None:
    night = a_night(store, "23:00")
    night.run(night.define("brief", deliver=[HOOK]))
    night.send(Receipt.DELIVERED)
    assert sent(night, "state") == [("delivered",)]


def test_a_further_try_waits_for_the_end_of_quiet_hours_too_unless_a_person_asks_for_it(store: Store) -> None:
    night = a_night(store, "21:59:50")
    automation = night.define("brief", deliver=[replace(HOOK, quiet_hours=NIGHT)])
    night.run(automation)
    night.send(Receipt.TRANSIENT)
    night.pass_time(minutes=5)
    assert night.take() == []
    assert sent(night, "state", "reason", "next_try_at", "tries") == [("pending", "held_quiet", at("31:00"), 1)]
    [(delivery,)] = sent(night, "id")
    night.store.write(lambda tx: operations.resend(tx, delivery, now=night.now))
    night.send(Receipt.DELIVERED)
    assert sent(night, "state") == [("delivered",)]
    assert night.found() == {}


def test_results_of_quiet_hours_are_one_message_of_the_inbox(store: Store) -> None:
    night = a_night(store, "21:00")
    desk = Destination("announce", "announce", quiet_hours=NIGHT)
    automation = night.define("brief", deliver=[desk])
    runs = [night.run(automation)]
    night.pass_time(hours=2)
    for n in range(3):
        runs.append(night.run(automation, Ended.ok(f"thing {n}")))
        night.pass_time(hours=1)
    night.pass_time(hours=8)
    runs.append(night.run(automation, Ended.ok("good morning")))
    assert night.sql("SELECT title, text FROM inbox ORDER BY created_at") == [
        ("brief: report", "three things to know"),
        ("brief: results of quiet hours", "report: thing 0\nreport: thing 1\nreport: thing 2\n"),
        ("brief: report", "good morning"),
    ]
    assert sent(night, "state") == [("delivered",)] * 5
    assert len({evidence for (evidence,) in sent(night, "evidence")}) == 3
    assert night.found() == {}
