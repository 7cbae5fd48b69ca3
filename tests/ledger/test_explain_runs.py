"""`explain` of a run says why it was on time, late or tried again."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from acting import a_worker, after, begin, die, finish, send
from explained import FILE, NOW, daily, ran, said, slot_run

from nightporter import operations
from nightporter.clock import Instant
from nightporter.sources.clock import settle
from nightporter.store import Store
from nightporter.words import (
    Ended,
    Ending,
    ErrorClass,
    Limits,
    Outcome,
    Overlap,
    Receipt,
    Retry,
    Sent,
    TriggerSpec,
)
from words import a_clock_trigger, a_definition, an_automation, fire, rows

SLOT = Instant(NOW)  # 08:00 UTC is 09:00 in Berlin that day; the first slot after it is tomorrow's


def test_a_run_on_time_says_so_in_its_own_zone(store: Store) -> None:
    slot = after(NOW, days=1)
    _, run = slot_run(store, daily(deliver=[FILE]), answered=after(slot, microseconds=4000))
    finish(store, begin(store, after(slot, microseconds=12_000))[0], Ended.ok("hello"), after(slot, seconds=2))
    send(store, Sent(Receipt.DELIVERED, evidence="/home/out.txt"), after(slot, seconds=3))
    assert said(store, run).text == (
        "brief ran for its slot of 2026-03-28 09:00 Europe/Berlin, 12 ms after it was due. It succeeded after 2 s with "
        "a report. It was delivered to out (file): /home/out.txt."
    )


def test_a_run_is_late_because_the_desk_was_not_running(store: Store) -> None:
    slot = after(NOW, days=1)
    back = after(slot, seconds=100)
    worker = a_worker(store, back)
    _, run = slot_run(store, daily(), answered=back)
    begin(store, back, worker=worker)
    text = said(store, run, after(back, seconds=5)).text
    assert "1 min 40 s late, because the desk was not running until 2026-03-28 09:01:40 Europe/Berlin" in text
    assert "It has been running for 5 s" in text


def test_a_slot_left_out_for_the_one_before_it_says_that_both_were_answered_late(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger("* * * * *")]), now=NOW)
    back = after(NOW, seconds=130)
    a_worker(store, back)
    store.write(lambda tx: settle(tx, automation, now=back))
    ran = said(store, automation, back, at=after(NOW, seconds=60)).run_id
    assert said(store, automation, back, at=after(NOW, seconds=120)).text == (
        "brief did not run for its slot of 2026-03-27 08:02 UTC: the run before it had not ended, and the overlap "
        f"policy is to skip ({ran} had not ended). Its slot was answered only at 2026-03-27 08:02:10 UTC: the desk was "
        "not running until 2026-03-27 08:02:10 UTC. `overlap: queue` would let it wait its turn instead."
    )


def test_a_run_is_late_because_it_waited_behind_another(store: Store) -> None:
    queue = TriggerSpec("call", "call", overlap=Overlap.QUEUE)
    automation = an_automation(store, a_definition(triggers=[queue]), now=NOW)
    first = fire(store, automation, now=NOW)
    worker = a_worker(store, NOW)
    claimed = begin(store, NOW, worker=worker)[0]
    second = str(fire(store, automation, now=after(NOW, seconds=1)).run_id)
    waiting = said(store, second, after(NOW, seconds=31)).text
    assert f"has been waiting for 30 s: {first.run_id} is still going, and it must go alone" in waiting
    finish(store, claimed, Ended.ok("done"), after(NOW, seconds=61))
    begin(store, after(NOW, seconds=61), worker=worker)
    assert f"1 min late, because it waited 1 min behind {first.run_id}" in said(store, second).text


def test_a_run_is_late_because_of_the_ceiling(store: Store) -> None:
    automation = an_automation(store, a_definition(limits=Limits(concurrent=1)), now=NOW)
    worker = a_worker(store, NOW)
    first = fire(store, automation, now=NOW)
    claimed = begin(store, NOW, worker=worker)[0]
    second = str(fire(store, automation, now=after(NOW, seconds=1)).run_id)
    begin(store, after(NOW, seconds=2), worker=worker)
    finish(store, claimed, Ended.ok("done"), after(NOW, seconds=31))
    begin(store, after(NOW, seconds=31), worker=worker)
    text = said(store, second).text
    assert f"30 s late, because it waited 30 s until {first.run_id} ended: as many runs of this automation" in text


def test_a_run_is_late_because_no_desk_took_it(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    run = str(fire(store, automation, now=NOW).run_id)
    began = after(NOW, minutes=10)
    begin(store, began, worker=a_worker(store, began))
    assert "10 min late, because no desk was running to take it until 2026-03-27 08:10 UTC" in said(store, run).text


def test_a_run_is_late_because_its_automation_was_paused(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    worker = a_worker(store, NOW)
    run = str(fire(store, automation, now=NOW).run_id)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="", now=NOW))
    begin(store, after(NOW, seconds=1), worker=worker)
    assert "the automation is paused" in said(store, run, after(NOW, seconds=2)).text
    lifted = after(NOW, minutes=3)
    store.write(lambda tx: operations.enable(tx, automation, by="ana", now=lifted))
    begin(store, lifted, worker=worker)
    assert "3 min late, because it was paused until 2026-03-27 08:03 UTC" in said(store, run).text


def test_a_second_attempt_says_what_became_of_the_first(store: Store) -> None:
    automation = an_automation(store, a_definition(retry=Retry(attempts=3, delays=(timedelta(seconds=30),))), now=NOW)
    run = str(fire(store, automation, now=NOW).run_id)
    failed = Ended.failed(ErrorClass.TRANSIENT, "503 from the mail server")
    finish(store, begin(store, NOW)[0], failed, after(NOW, seconds=1))
    waiting = said(store, run, after(NOW, seconds=2)).text
    assert "queued again after its last attempt" in waiting
    assert "(503 from the mail server)" in waiting
    assert re.search(r"tried again at 2026-03-27 08:00:\d\d UTC, in ", waiting)
    finish(store, begin(store, after(NOW, minutes=2))[0], Ended.ok("here"), after(NOW, minutes=2, seconds=1))
    text = said(store, run).text
    assert "It succeeded after 1 s on attempt 2 of 3 with a report" in text
    assert "An earlier attempt was not the last one: it could not be reached" in text


def test_a_run_whose_worker_died_and_that_may_repeat_says_so(store: Store) -> None:
    automation = an_automation(store, a_definition(idempotent=True), now=NOW)
    run = str(fire(store, automation, now=NOW).run_id)
    worker = a_worker(store, NOW)
    begin(store, NOW, worker=worker)
    die(store, worker, after(NOW, seconds=40))
    finish(store, begin(store, after(NOW, seconds=41))[0], Ended.ok("done"), after(NOW, seconds=42))
    text = said(store, run).text
    assert "on attempt 2 of 3 with a report. An earlier attempt was not the last one: the worker that" in text


def test_a_run_that_needs_you_and_goes_nowhere_says_both(store: Store) -> None:
    run = ran(store, Ended(Ending.OK, text="sign here", outcome=Outcome.NEEDS_YOU))
    text = said(store, run).text
    assert "with something that needs you. Nothing was sent: its definition names no destination" in text


def test_a_run_by_hand_and_a_replay_name_who_asked(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    by_hand = store.write(lambda tx: operations.fire(
        tx, automation, trigger="manual", external_id="m1", by="ana", now=NOW
    ))
    assert "because ana asked at 2026-03-27 08:00 UTC" in said(store, str(by_hand.run_id)).text
    finish(store, begin(store, NOW)[0], Ended.ok("done"), NOW)
    again = store.write(lambda tx: operations.replay(tx, str(by_hand.run_id), external_id="r1", by="ben", now=NOW))
    text = said(store, str(again.run_id)).text
    assert f"because ben asked at 2026-03-27 08:00 UTC, as a replay of {by_hand.run_id}" in text


def test_a_delivery_whose_worker_died_may_have_arrived(store: Store) -> None:
    from nightporter import delivery

    run = ran(store, Ended.ok("hello"), deliver=[FILE])
    now = after(NOW, seconds=4)
    a_worker(store, now, name="wrk_gone")
    store.write(lambda tx: delivery.claim(tx, worker="wrk_gone", room=5, lanes={}, now=now))
    assert "It is being delivered to out (file)." in said(store, run, now).text
    store.write(lambda tx: delivery.recover(tx, "wrk_gone", {}, now=now))
    assert "Whether it reached out (file) is not known: its worker died while sending" in said(store, run, now).text


@pytest.mark.parametrize(("of_the_run", "why"), [
    ({"reason": "not_started"}, "it was given back, because "),
    ({"catchup": 1}, "late runs begin one after another, and its turn is at "),
    ({}, "what is due all at once begins a little apart, and its turn is at "),
])
def test_a_run_that_waits_for_its_time_says_which_wait_that_is(
    store: Store, of_the_run: dict[str, object], why: str
) -> None:
    automation = an_automation(store, now=NOW)
    run = fire(store, automation, now=NOW).run_id
    rows(store, "UPDATE run SET blocked = 'time', run_after = ?", after(NOW, minutes=2))
    for column, value in of_the_run.items():
        rows(store, f"UPDATE run SET {column} = ?", value)
    text = said(store, str(run), NOW).text
    assert why in text
    assert "in 2 min" in text
