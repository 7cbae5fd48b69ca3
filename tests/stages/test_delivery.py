"""Delivery: each result on its way to each place, tried until there is evidence or no hope, and never the run again."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from typing import Any

import pytest
from night import DESTINATIONS, Night

from nightporter import operations
from nightporter.clock import MINUTE, SECOND, ManualClock
from nightporter.delivery import LANE_SLOTS, Sending, Tried, record, recover
from nightporter.errors import Conflict
from nightporter.rules.retry import DELIVERY_TRIES, delivery_delay
from nightporter.store import Store
from nightporter.store.tx_sweep import STOPPED
from nightporter.words import Destination, Ended, ErrorClass, Limits, Reason, Receipt, Sent
from words import a_clock_trigger, a_definition, an_automation, fire, rows, run_row

FREE = Limits(per_hour=None, queued=None, concurrent=None)
HOOK = Destination("hook", "webhook", {"url": "https://one.example.org/in"})
PAGER = Destination("pager", "pager")

DELIVERED = Sent(Receipt.DELIVERED, evidence="200 OK; msg_1", status=200)
LATER = Sent(Receipt.TRANSIENT, error="503", status=503)
NEVER = Sent(Receipt.PERMANENT, error="410", status=410)


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def ended(night: Night, *deliver: Destination, ended: Ended | None = None, name: str = "brief", **of: Any) -> str:
    """A run that ended with something to deliver."""
    automation = f"aut_default_{name}"
    if not rows(night.store, "SELECT 1 FROM automation WHERE id = ?", automation):
        an_automation(night.store, now=night.clock.now(), name=name, deliver=deliver, limits=FREE, **of)
    fire(night.store, automation, now=night.clock.now())
    [claimed] = night.run_all(ended or Ended.ok("the report", data={"n": 1}))
    return claimed.work.run_id


def edited(night: Night, *deliver: Destination) -> None:
    """A new version of `brief`, with these destinations."""
    text = a_definition(name="brief", deliver=deliver, limits=FREE).as_json()
    night.store.write(lambda tx: tx.insert_version("aut_default_brief", 2, text, "2", by="test", now=night.clock.now()))
    rows(night.store, "UPDATE automation SET version = 2")


def delivery(night: Night, *columns: str) -> tuple[Any, ...]:
    [found] = rows(night.store, f"SELECT {', '.join(columns)} FROM delivery")
    return found


def tries(night: Night) -> list[tuple[Any, ...]]:
    return rows(night.store, "SELECT n, result, status, error FROM delivery_try ORDER BY n")


def resend(night: Night, identity: str) -> None:
    night.store.write(lambda tx: operations.resend(tx, identity, now=night.clock.now()))


def taken(night: Night) -> Sending:
    [one] = night.take()
    return one


# -- taking ---------------------------------------------------------------------------------------------------------


def test_what_is_taken_is_this_workers_and_carries_everything_the_destination_needs(night: Night) -> None:
    run = ended(night, HOOK, timezone="Europe/Berlin")
    night.sleep(seconds=1)
    one = taken(night)
    parcel = one.parcel
    assert (parcel.run_id, parcel.automation, parcel.workspace, parcel.attempt) == (run, "brief", "default", 1)
    assert parcel.config == {"url": "https://one.example.org/in"}
    assert parcel.timezone == "Europe/Berlin"
    assert (one.kind, one.lane, one.token, one.tries, one.error) == ("webhook", "webhook:one.example.org", 1, 1, "")
    assert parcel.created_at == night.clock.now() - SECOND
    assert delivery(night, "state", "worker", "tries", "token") == ("sending", "wrk_1", 1, 1)
    assert night.take() == []


def test_the_body_says_what_happened_and_when(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), deliver=[HOOK], triggers=[a_clock_trigger()], timezone="Europe/Berlin"
    )
    slot = night.clock.now()
    run = fire(night.store, brief, now=slot, trigger="clock", scheduled_for=slot).run_id
    night.sleep(minutes=6)
    [claimed] = night.claim()
    night.sleep(seconds=1.5)
    night.end((claimed, Ended.ok("the report", data={"n": 1}, exit_code=0)))
    assert taken(night).parcel.body == {
        "type": "brief.execution.succeeded",
        "timestamp": "2026-03-27T08:06:01.5Z",
        "data": {
            "run": run, "automation": "brief", "automation_id": brief, "trigger": "clock", "state": "succeeded",
            "outcome": "report", "reason": None, "text": "the report", "data": {"n": 1}, "error": "", "exit_code": 0,
            "attempt": 1, "scheduled_for": "2026-03-27T08:00:00Z", "queued_at": "2026-03-27T08:00:00Z",
            "started_at": "2026-03-27T08:06:00Z", "ended_at": "2026-03-27T08:06:01.5Z", "ran_late": True,
        },
    }


def test_a_failure_is_told_as_one(night: Night) -> None:
    ended(night, HOOK, ended=Ended.failed(ErrorClass.NONZERO_EXIT, "exit 3", exit_code=3))
    body = taken(night).parcel.body
    assert body["type"] == "brief.execution.failed"
    assert (body["data"]["state"], body["data"]["reason"], body["data"]["error"]) == (
        "failed", "nonzero_exit", "exit 3"
    )


def test_every_try_sends_the_same_event_and_the_same_body(night: Night) -> None:
    ended(night, HOOK)
    seen = set()
    for _ in range(3):
        one = taken(night)
        seen.add((one.parcel.event_id, json.dumps(one.parcel.body, sort_keys=True), one.parcel.created_at))
        night.record((one, LATER))
        night.sleep(hours=1)
    assert len(seen) == 1
    [(event, body, _)] = seen
    assert rows(night.store, "SELECT DISTINCT event_id, body_hash FROM delivery_try") == [
        (event, hashlib.sha256(body.encode()).hexdigest())
    ]


def test_two_runs_and_two_destinations_are_four_events(night: Night) -> None:
    for _ in range(2):
        ended(night, HOOK, PAGER)
    assert len({one.parcel.event_id for one in night.take()}) == 4


def test_what_is_not_due_waits(night: Night) -> None:
    ended(night, HOOK)
    night.record((taken(night), Sent(Receipt.TRANSIENT, retry_after=timedelta(minutes=1))))
    due = night.store.read(lambda tx: tx.next_try())
    assert due is not None
    assert due >= night.clock.now() + 60_000_000
    night.sleep(microseconds=due - night.clock.now() - 1)
    assert night.take() == []
    night.sleep(microseconds=1)
    assert len(night.take()) == 1


def test_a_stopped_desk_delivers_nothing(night: Night) -> None:
    ended(night, HOOK)
    night.store.write(lambda tx: tx.put_setting(STOPPED, "{}"))
    assert night.take() == []


def test_no_room_is_no_taking(night: Night) -> None:
    ended(night, HOOK)
    assert night.take(room=0) == []


def test_the_destination_is_the_one_the_run_was_admitted_with(night: Night) -> None:
    ended(night, HOOK)
    rows(night.store, "UPDATE automation SET version = 2")
    assert taken(night).parcel.config == {"url": "https://one.example.org/in"}


@pytest.mark.parametrize("damage", ["UPDATE automation_version SET definition = '{}'", "DELETE FROM run"])
def test_what_cannot_be_read_is_taken_with_its_error_and_stops_nobody(night: Night, damage: str) -> None:
    ended(night, HOOK)
    rows(night.store, damage)
    ended(night, PAGER, name="sound")
    found = {one.kind: one.error for one in night.take()}
    assert "cannot be read" in found["webhook"]
    assert found["pager"] == ""


# -- lanes ----------------------------------------------------------------------------------------------------------


def test_one_receiver_has_few_at_a_time(night: Night) -> None:
    for _ in range(LANE_SLOTS + 3):
        ended(night, HOOK)
    assert len(night.take()) == LANE_SLOTS
    assert night.take(lanes={"webhook:one.example.org": LANE_SLOTS}) == []
    assert len(night.take(lanes={"webhook:one.example.org": LANE_SLOTS - 1})) == 1


def test_a_slow_receiver_with_a_long_queue_holds_up_nobody_else(night: Night) -> None:
    for _ in range(12):
        ended(night, HOOK)
    night.sleep(seconds=1)
    ended(night, PAGER, name="other")
    assert sorted(one.kind for one in night.take(room=6)) == ["pager"] + ["webhook"] * LANE_SLOTS
    assert [one.kind for one in night.take(room=6, lanes={"webhook:one.example.org": LANE_SLOTS})] == []


def test_full_lanes_are_passed_over(night: Night) -> None:
    ended(night, HOOK)
    ended(night, PAGER, name="other")
    found = night.take(lanes={"webhook:one.example.org": LANE_SLOTS, "file": LANE_SLOTS})
    assert [one.kind for one in found] == ["pager"]


def test_what_waits_longest_goes_first(night: Night) -> None:
    first = ended(night, HOOK)
    night.sleep(seconds=1)
    ended(night, HOOK)
    assert [one.parcel.run_id for one in night.take(room=1)] == [first]


# -- recording ------------------------------------------------------------------------------------------------------


def test_an_acknowledged_delivery_is_delivered_with_its_evidence(night: Night) -> None:
    ended(night, HOOK)
    assert night.record((taken(night), DELIVERED)) == [True]
    assert delivery(night, "state", "reason", "evidence", "ended_at", "next_try_at") == (
        "delivered", None, "200 OK; msg_1", night.clock.now(), None
    )
    assert tries(night) == [(1, "delivered", 200, "")]


def test_without_an_acknowledgement_the_word_is_unverified(night: Night) -> None:
    ended(night, HOOK)
    night.record((taken(night), Sent(Receipt.UNVERIFIED)))
    assert delivery(night, "state", "reason") == ("unverified", "unverified")
    assert rows(night.store, "SELECT kind FROM inbox") == []


def test_a_refusal_for_good_is_given_up_at_once_with_one_notice(night: Night) -> None:
    run = ended(night, HOOK)
    night.record((taken(night), NEVER))
    assert delivery(night, "state", "reason", "error") == ("given_up", "rejected_by_receiver", "410")
    [(kind, title, text, of)] = rows(night.store, "SELECT kind, title, text, run_id FROM inbox")
    assert (kind, title, of) == ("given_up", "brief: a result was not delivered", run)
    assert f"nightporter deliver {run}" in text
    night.sleep(days=1)
    assert night.take() == []


def test_a_best_effort_is_given_up_without_a_notice(night: Night) -> None:
    ended(night, Destination("calm", "webhook", best_effort=True))
    night.record((taken(night), NEVER))
    assert delivery(night, "state") == ("given_up",)
    assert rows(night.store, "SELECT 1 FROM inbox") == []


def test_a_passing_error_is_tried_again_later_and_later(night: Night) -> None:
    ended(night, HOOK)
    for n in range(1, 6):
        night.record((taken(night), LATER))
        state, reason, due = delivery(night, "state", "reason", "next_try_at")
        assert (state, reason) == ("pending", "unreachable")
        longest = delivery_delay(n) / timedelta(microseconds=1)
        assert longest * 0.1 <= due - night.clock.now() <= longest
        night.clock.advance(timedelta(microseconds=due - night.clock.now()))
    assert [n for n, *_ in tries(night)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [(timedelta(hours=2), 120 * MINUTE, 150 * MINUTE), (timedelta.max, 24 * 60 * MINUTE, 24 * 60 * MINUTE)],
)
def test_a_receiver_that_names_a_time_is_heard_within_bounds(
    night: Night, asked: timedelta, least: int, most: int
) -> None:
    ended(night, HOOK)
    night.record((taken(night), Sent(Receipt.TRANSIENT, retry_after=asked, reason=Reason.PROVIDER_UNAVAILABLE)))
    due, reason = delivery(night, "next_try_at", "reason")
    assert least <= due - night.clock.now() <= most
    assert reason == "provider_unavailable"


def test_after_fifty_tries_it_is_given_up_and_a_person_may_send_it_again(night: Night) -> None:
    ended(night, HOOK)
    for n in range(1, DELIVERY_TRIES + 1):
        assert delivery(night, "state", "tries") == ("pending", n - 1)
        night.record((taken(night), LATER))
        night.sleep(hours=4)
    assert delivery(night, "state", "reason", "tries") == ("given_up", "gave_up", 50)
    assert rows(night.store, "SELECT kind FROM inbox ORDER BY created_at") == [("incident",), ("given_up",)]
    [(identity,)] = rows(night.store, "SELECT id FROM delivery")
    resend(night, identity)
    one = taken(night)
    assert (one.tries, one.parcel.attempt) == (1, 51), "a person's resend has tries of its own"
    night.record((one, LATER))
    assert delivery(night, "state") == ("pending",)
    night.sleep(hours=4)
    night.record((taken(night), DELIVERED))
    assert delivery(night, "state", "tries") == ("delivered", 52)


@pytest.mark.parametrize("sent", [NEVER, Sent(Receipt.UNVERIFIED), LATER], ids=["given up", "unverified", "waiting"])
def test_a_resend_starts_at_once_and_keeps_the_event(night: Night, sent: Sent) -> None:
    ended(night, HOOK)
    first = taken(night)
    night.record((first, sent))
    [(identity,)] = rows(night.store, "SELECT id FROM delivery")
    night.sleep(days=3)
    resend(night, identity)
    assert delivery(night, "state", "reason", "ended_at", "next_try_at") == (
        "pending", None, None, night.clock.now()
    )
    assert taken(night).parcel.event_id == first.parcel.event_id


@pytest.mark.parametrize("sent", [NEVER, LATER], ids=["given up", "waiting"])
def test_a_resend_goes_where_the_definition_says_by_now(night: Night, sent: Sent) -> None:
    run = ended(night, HOOK)
    night.record((taken(night), LATER))
    there = Destination("hook", "webhook", {"url": "https://two.example.org/in"})
    edited(night, there)
    night.sleep(hours=1)
    first = taken(night)
    assert first.parcel.config == HOOK.config, "by itself it goes on as it began"
    night.record((first, sent))
    [(identity,)] = rows(night.store, "SELECT id FROM delivery")
    resend(night, identity)
    again = taken(night)
    assert again.parcel.config == there.config
    assert (again.parcel.run_id, again.parcel.event_id, again.body_hash) == (
        run, first.parcel.event_id, first.body_hash
    )
    assert again.error == ""


@pytest.mark.parametrize("deliver", [[], [Destination("hook", "pager")]], ids=["gone", "another kind"])
def test_a_resend_to_what_is_there_no_more_goes_where_it_went(night: Night, deliver: list[Destination]) -> None:
    ended(night, HOOK)
    night.record((taken(night), NEVER))
    edited(night, *deliver)
    [(identity,)] = rows(night.store, "SELECT id FROM delivery")
    resend(night, identity)
    again = taken(night)
    assert (again.parcel.config, again.lane, again.error) == (HOOK.config, "webhook:one.example.org", "")


def test_a_resend_to_a_corrected_address_does_not_wait_behind_the_old_one_and_is_called_by_the_new(
    night: Night,
) -> None:
    ended(night, HOOK)
    first = taken(night)
    night.record((first, NEVER))
    edited(night, Destination("hook", "webhook", {"url": "https://two.example.org/in"}))
    resend(night, first.parcel.delivery_id)
    [again] = night.take(lanes={"webhook:one.example.org": LANE_SLOTS})
    assert again.lane == "webhook:two.example.org"
    night.record((again, NEVER))
    assert [text for (text,) in rows(night.store, "SELECT text FROM inbox") if "two.example.org" in text]
    resend(night, first.parcel.delivery_id)
    assert night.take(lanes={"webhook:two.example.org": LANE_SLOTS}) == []


@pytest.mark.parametrize("how_far", ["not tried yet", "being sent", "delivered"])
def test_what_is_delivered_or_on_its_way_is_not_sent_again(night: Night, how_far: str) -> None:
    ended(night, HOOK)
    if how_far != "not tried yet":
        sending = taken(night)
        if how_far == "delivered":
            night.record((sending, DELIVERED))
    [(identity,)] = rows(night.store, "SELECT id FROM delivery")
    with pytest.raises(Conflict):
        resend(night, identity)


def test_a_failed_delivery_never_touches_its_run(night: Night) -> None:
    run = ended(night, HOOK)
    before = run_row(night.store, run, "*")
    automation = rows(night.store, "SELECT * FROM automation")
    night.record((taken(night), NEVER))
    assert run_row(night.store, run, "*") == before
    assert rows(night.store, "SELECT * FROM automation") == automation


def test_one_destination_giving_up_leaves_the_others_be(night: Night) -> None:
    ended(night, HOOK, PAGER)
    both = {one.kind: one for one in night.take()}
    assert night.record((both["webhook"], NEVER), (both["pager"], DELIVERED)) == [True, True]
    assert rows(night.store, "SELECT kind, state FROM delivery ORDER BY kind") == [
        ("pager", "delivered"), ("webhook", "given_up")
    ]


def test_a_try_whose_claim_is_gone_changes_nothing(night: Night) -> None:
    ended(night, HOOK)
    old = taken(night)
    night.store.write(lambda tx: recover(tx, "wrk_1", DESTINATIONS, now=night.clock.now()))
    new = taken(night)
    assert (old.token, new.token) == (1, 2)
    assert night.record((old, DELIVERED)) == [False]
    assert night.record((old, NEVER)) == [False]
    assert delivery(night, "state") == ("sending",)
    assert tries(night) == []
    assert rows(night.store, "SELECT 1 FROM inbox") == []
    assert night.record((new, DELIVERED)) == [True]


# -- a worker that died while sending --------------------------------------------------------------------------------


def test_where_a_repeat_does_no_harm_the_same_event_goes_out_again(night: Night) -> None:
    ended(night, HOOK)
    first = taken(night)
    night.sleep(minutes=1)
    assert night.store.write(lambda tx: recover(tx, "wrk_1", DESTINATIONS, now=night.clock.now())) == 1
    assert delivery(night, "state", "next_try_at") == ("pending", night.clock.now())
    again = taken(night)
    assert (again.parcel.event_id, again.parcel.attempt) == (first.parcel.event_id, 2)


@pytest.mark.parametrize("kind", ["pager", "gone"])
def test_where_a_repeat_might_do_harm_nobody_knows_and_a_person_is_told(night: Night, kind: str) -> None:
    run = ended(night, Destination("it", kind))
    taken(night)
    assert night.store.write(lambda tx: recover(tx, "wrk_1", DESTINATIONS, now=night.clock.now())) == 1
    assert delivery(night, "state", "ended_at") == ("unknown", night.clock.now())
    assert night.take() == []
    [(notice, of, text)] = rows(night.store, "SELECT kind, run_id, text FROM inbox")
    assert (notice, of) == ("given_up", run)
    assert f"nightporter deliver {run}" in text
    [(identity,)] = rows(night.store, "SELECT id FROM delivery")
    resend(night, identity)
    assert len(night.take()) == 1


def test_a_best_effort_that_nobody_knows_of_is_no_news(night: Night) -> None:
    ended(night, Destination("it", "pager", best_effort=True))
    taken(night)
    night.store.write(lambda tx: recover(tx, "wrk_1", DESTINATIONS, now=night.clock.now()))
    assert delivery(night, "state") == ("unknown",)
    assert rows(night.store, "SELECT 1 FROM inbox") == []


def test_only_the_dead_workers_deliveries_are_taken_back(night: Night) -> None:
    ended(night, HOOK)
    taken(night)
    assert night.store.write(lambda tx: recover(tx, "wrk_2", DESTINATIONS, now=night.clock.now())) == 0
    assert delivery(night, "state") == ("sending",)


def test_a_try_cut_off_in_the_middle_is_repeated_only_where_that_does_no_harm(night: Night) -> None:
    ended(night, HOOK, PAGER)
    cut = Sent(Receipt.TRANSIENT, error="the desk was shut down while sending", reason=Reason.SHUTDOWN)
    tried = [Tried(one, cut, doubtful=True) for one in night.take()]
    night.store.write(lambda tx: record(tx, tried, DESTINATIONS, now=night.clock.now()))
    assert rows(night.store, "SELECT kind, state, reason FROM delivery ORDER BY kind") == [
        ("pager", "unknown", "shutdown"), ("webhook", "pending", "shutdown")
    ]
    assert rows(night.store, "SELECT kind FROM inbox") == [("given_up",)]
