"""`explain` says in a sentence or two why something ran, ran late, ended so, was delivered, or did not run."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from acting import a_worker, after, begin, die, finish, send, setting

from conftest import START
from nightporter import operations
from nightporter.admission import admit
from nightporter.clock import Instant
from nightporter.errors import NotFound
from nightporter.ledger import explain
from nightporter.ledger.why import Explanation
from nightporter.rules.gates import PAYLOAD_LIMIT
from nightporter.sources.clock import plan, settle
from nightporter.store import Store
from nightporter.store.tx_clock import schedule_from
from nightporter.words import (
    Definition,
    Destination,
    Ended,
    Ending,
    ErrorClass,
    Firing,
    Limits,
    Outcome,
    Overlap,
    Reason,
    Receipt,
    Retry,
    Sent,
    TriggerSpec,
    Verdict,
)
from words import a_clock_trigger, a_definition, an_automation, fire, trigger_of

NOW = START
FILE = Destination("out", "file", {"path": "out.txt"})
ONCE = Retry(attempts=1)


def said(store: Store, subject: str, now: Instant = NOW, *, at: Instant | str | None = None) -> Explanation:
    return store.read(lambda tx: explain(tx, subject, now, at=at))


def fired(store: Store, automation: str, external_id: str = "e1", *, now: Instant = NOW, **rest: object) -> Explanation:
    answer = fire(store, automation, external_id, now=now, **rest)  # type: ignore[arg-type]  # fields of a firing
    return said(store, answer.firing_id, now)


def ran(store: Store, ended: Ended, *, now: Instant = NOW, **rest: object) -> str:
    """A run of one attempt that ended so; its id."""
    automation = an_automation(store, a_definition(retry=ONCE, **rest), now=now)  # type: ignore[arg-type]
    run = fire(store, automation, now=now).run_id
    assert run is not None
    finish(store, begin(store, now)[0], ended, after(now, seconds=3))
    return run


# -- one scene for each reason ------------------------------------------------------------------------------------


def disabled(store: Store) -> Explanation:
    automation = an_automation(
        store, a_definition(triggers=[TriggerSpec("call", "call", enabled=False)]), now=NOW
    )
    return fired(store, automation)


def paused(store: Store) -> Explanation:
    automation = an_automation(store, now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="on holiday", now=NOW))
    return fired(store, automation)


def stopped(store: Store) -> Explanation:
    automation = an_automation(store, now=NOW)
    store.write(lambda tx: operations.stop(tx, by="ana", reason="too much", now=NOW))
    return fired(store, automation)


def expired(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(expires=after(NOW, hours=1)), now=NOW)
    return fired(store, automation, now=after(NOW, hours=2))


def deleted(store: Store) -> Explanation:
    automation = an_automation(store, now=NOW)
    store.write(lambda tx: operations.remove(tx, automation, by="ana", now=NOW))
    return fired(store, automation)


def queue_full(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(limits=Limits(queued=1)), now=NOW)
    fire(store, automation, now=NOW)
    return fired(store, automation)


def overlap(store: Store) -> Explanation:
    alone = TriggerSpec("call", "call", overlap=Overlap.SKIP)
    automation = an_automation(store, a_definition(triggers=[alone]), now=NOW)
    fire(store, automation, now=NOW)
    return fired(store, automation)


def cooldown(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(cooldown=timedelta(minutes=5)), now=NOW)
    fire(store, automation, now=NOW)
    finish(store, begin(store, NOW)[0], Ended.ok("done"), NOW)
    return fired(store, automation, now=after(NOW, seconds=60))


def hourly_ceiling(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(limits=Limits(per_hour=1)), now=NOW)
    fire(store, automation, now=NOW)
    return fired(store, automation, now=after(NOW, seconds=1))


def concurrency_ceiling(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(limits=Limits(concurrent=1)), now=NOW)
    fire(store, automation, now=NOW)
    second = fire(store, automation, now=after(NOW, seconds=1))
    begin(store, after(NOW, seconds=2), room=5)
    return said(store, str(second.run_id), after(NOW, seconds=10))


def missed_policy(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger("*/10 * * * *")]), now=NOW)
    a_worker(store, after(NOW, hours=1))
    later = after(NOW, hours=1, minutes=5)
    store.write(lambda tx: settle(tx, automation, now=later))
    return said(store, automation, later, at=after(NOW, minutes=20))


def suppressed_duplicate(store: Store) -> Explanation:
    automation = an_automation(store, now=NOW)
    fire(store, automation, "order-17", now=NOW)
    return fired(store, automation, "order-17", now=after(NOW, seconds=1))


def payload_too_large(store: Store) -> Explanation:
    return fired(store, an_automation(store, now=NOW), text="x" * (PAYLOAD_LIMIT + 1))


def unreadable(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    store.write(lambda tx: tx.quarantine_trigger(trigger_of(automation, "clock"), "no zone is named Mars", now=NOW))
    return said(store, automation)


def no_op(store: Store) -> Explanation:
    return said(store, ran(store, Ended.ok("")))


def nonzero_exit(store: Store) -> Explanation:
    return said(store, ran(store, Ended.failed(ErrorClass.NONZERO_EXIT, "exit code 3", exit_code=3)))


def exception(store: Store) -> Explanation:
    return said(store, ran(store, Ended.failed(ErrorClass.EXCEPTION, "ValueError: no such page")))


def timed_out(store: Store) -> Explanation:
    return said(store, ran(store, Ended.timed_out("it ran longer than its timeout of 0:05:00")))


def configuration(store: Store) -> Explanation:
    return said(store, ran(store, Ended.failed(ErrorClass.CONFIGURATION, "no runner is called 'abacus' here")))


def permission_denied(store: Store) -> Explanation:
    return said(store, ran(store, Ended.failed(ErrorClass.PERMISSION, "10.0.0.1 is a private address")))


def provider_unavailable(store: Store) -> Explanation:
    return said(store, ran(store, Ended(Ending.HOLD, error="429", retry_after=timedelta(minutes=10))))


def worker_lost(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(runner="script"), now=NOW)
    fire(store, automation, now=NOW)
    worker = a_worker(store, NOW)
    begin(store, NOW, worker=worker)
    die(store, worker, after(NOW, seconds=30))
    return said(store, store.read(lambda tx: str(tx.read_latest_run(automation))), after(NOW, seconds=31))


def cancelled_by(store: Store) -> Explanation:
    run = str(fire(store, an_automation(store, now=NOW), now=NOW).run_id)
    store.write(lambda tx: operations.cancel_runs(tx, [run], reason=Reason.CANCELLED_BY, by="ana", now=NOW))
    return said(store, run)


def superseded(store: Store) -> Explanation:
    automation = an_automation(
        store, a_definition(triggers=[TriggerSpec("call", "call", overlap=Overlap.REPLACE)]), now=NOW
    )
    first = str(fire(store, automation, now=NOW).run_id)
    fire(store, automation, now=after(NOW, seconds=1))
    return said(store, first, after(NOW, seconds=1))


def dismissed(store: Store) -> Explanation:
    found = worker_lost(store)
    later = after(NOW, minutes=5)
    store.write(lambda tx: operations.review(tx, found.id, "dismiss", by="ana", now=later))
    return said(store, found.id, later)


def shutdown(store: Store) -> Explanation:
    return said(store, ran(store, Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN), runner="script"))


def not_started(store: Store) -> Explanation:
    return said(store, ran(store, Ended(Ending.CANCELLED, reason=Reason.NOT_STARTED, error="the store is locked")))


def may_have_acted(store: Store) -> Explanation:
    return said(store, ran(store, Ended(Ending.ERROR, reason=Reason.MAY_HAVE_ACTED, error="effect 'mail'")))


def rejected_by_receiver(store: Store) -> Explanation:
    run = ran(store, Ended.ok("hello"), deliver=[FILE])
    send(store, Sent(Receipt.PERMANENT, error="404 Not Found", status=404), after(NOW, seconds=4))
    return said(store, run, after(NOW, seconds=5))


def unreachable(store: Store) -> Explanation:
    run = ran(store, Ended.ok("hello"), deliver=[FILE])
    send(store, Sent(Receipt.TRANSIENT, error="connection refused"), after(NOW, seconds=4))
    return said(store, run, after(NOW, seconds=5))


def gave_up(store: Store) -> Explanation:
    run = ran(store, Ended.ok("hello"), deliver=[FILE])
    now = after(NOW, seconds=4)
    for _ in range(50):
        send(store, Sent(Receipt.TRANSIENT, error="503 Service Unavailable", status=503), now)
        now = after(now, hours=24)
    return said(store, run, now)


def unverified(store: Store) -> Explanation:
    run = ran(store, Ended.ok("hello"), deliver=[FILE])
    send(store, Sent(Receipt.UNVERIFIED, evidence="250 queued"), after(NOW, seconds=4))
    return said(store, run, after(NOW, seconds=5))


SCENES: dict[Reason, tuple[Callable[[Store], Explanation], str]] = {
    Reason.DISABLED: (disabled, r"did not run .* switched off in its definition"),
    Reason.PAUSED: (paused, r"did not run .* paused \(on holiday\)\. `nightporter enable brief`"),
    Reason.STOPPED: (stopped, r"did not run .* whole desk is stopped; lift it"),
    Reason.EXPIRED: (expired, r"did not run .* expiry date \(it expired at 2026-03-27T09:00:00Z\)"),
    Reason.DELETED: (deleted, r"did not run .* was removed"),
    Reason.QUEUE_FULL: (queue_full, r"did not run .* already waiting \(the limit is 1 waiting\)"),
    Reason.OVERLAP: (overlap, r"did not run .* had not ended, and the overlap policy is to skip \(run_\w+ had"),
    Reason.COOLDOWN: (cooldown, r"did not run .* cooldown ago \(.* free again at 2026-03-27T08:05:00Z\)"),
    Reason.HOURLY_CEILING: (
        hourly_ceiling, r"did not run when a program called it .* \(the ceiling is 1 an hour; free again at"
    ),
    Reason.CONCURRENCY_CEILING: (concurrency_ceiling, r"has been waiting for 9 s: as many runs .* were running \(1\)"),
    Reason.MISSED_POLICY: (
        missed_policy,
        r"did not run for 6 slots from 2026-03-27 08:10 UTC to .* desk was back at 2026-03-27 09:00 UTC",
    ),
    Reason.SUPPRESSED_DUPLICATE: (suppressed_duplicate, r"did not run again .* it became run_\w+ \(the id is order-17"),
    Reason.PAYLOAD_TOO_LARGE: (payload_too_large, r"refused .* larger than the desk accepts \(262145 bytes"),
    Reason.UNREADABLE: (unreadable, r"trigger clock fires no more: .* cannot be read \(no zone is named Mars\)"),
    Reason.NO_OP: (no_op, r"ran because .* It ended after 3 s: it ran and had nothing to say"),
    Reason.NONZERO_EXIT: (nonzero_exit, r"failed after 3 s: .* \(exit code 3\)\. `nightporter logs .* replay run_"),
    Reason.EXCEPTION: (exception, r"failed after 3 s: the code raised an exception \(ValueError: no such page\)"),
    Reason.TIMEOUT: (timed_out, r"timed out after 3 s: .*; that is not tried again"),
    Reason.CONFIGURATION: (configuration, r"failed .* cannot run as it is configured \(no runner is called 'abacus'"),
    Reason.PERMISSION_DENIED: (permission_denied, r"failed .* not permitted \(10\.0\.0\.1 is a private address\)"),
    Reason.PROVIDER_UNAVAILABLE: (provider_unavailable, r"It is held until 2026-03-27 08:1[0-2]:.* unavailable"),
    Reason.WORKER_LOST: (worker_lost, r"may have acted and is not repeated unasked: the worker that ran it died"),
    Reason.CANCELLED_BY: (cancelled_by, r"never started\. It was cancelled: ana cancelled it"),
    Reason.SUPERSEDED: (superseded, r"It was cancelled: a newer run took its place \(run_\w+\)"),
    Reason.DISMISSED: (dismissed, r"It failed.*: a person looked at it and chose not to run it again"),
    Reason.SHUTDOWN: (shutdown, r"not repeated unasked: the desk was shut down before it could end"),
    Reason.NOT_STARTED: (not_started, r"It is queued again .* could not be started; .* \(the store is locked\)"),
    Reason.MAY_HAVE_ACTED: (
        may_have_acted, r"not repeated unasked: an earlier attempt may have acted .* \(effect 'mail'\)"
    ),
    Reason.REJECTED_BY_RECEIVER: (
        rejected_by_receiver, r"not delivered to out \(file\) after one try: .* refused it for good \(404.* work is not"
    ),
    Reason.UNREACHABLE: (unreachable, r"delivery to out \(file\) has failed one try so far: .* \(connection refused\)"),
    Reason.GAVE_UP: (gave_up, r"not delivered to out \(file\) after 50 tries: every allowed try was used up \(503"),
    Reason.UNVERIFIED: (unverified, r"To out \(file\): it was handed over, but nothing acknowledged it \(250 queued\)"),
}


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_explained(store: Store, reason: Reason) -> None:
    scene, expected = SCENES[reason]
    text = scene(store).text
    assert re.search(expected, text), text
    assert "\n" not in text
    assert "  " not in text
    assert text.endswith((".", "`"))


def test_an_admitted_firing_is_explained_by_its_run(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    answer = fire(store, automation, now=NOW)
    found = said(store, answer.firing_id, after(NOW, seconds=2))
    assert (found.kind, found.id) == ("run", answer.run_id)
    assert "has been waiting for 2 s: it waits" not in found.text
    assert "no desk is running to take it" in found.text


# -- on time, late, again -----------------------------------------------------------------------------------------


def slot_run(store: Store, definition: Definition, *, answered: Instant) -> tuple[str, str]:
    """The first slot of an automation, answered then; `(automation, run)`."""
    automation = an_automation(store, definition, now=NOW)
    store.write(lambda tx: settle(tx, automation, now=answered))
    return automation, store.read(lambda tx: str(tx.read_latest_run(automation)))


def daily(**rest: object) -> Definition:
    return a_definition(triggers=[a_clock_trigger("0 9 * * *", timezone="Europe/Berlin")], **rest)  # type: ignore[arg-type]


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
    store.write(lambda tx: delivery.claim(tx, worker="wrk_gone", room=5, lanes={}, now=now))
    assert "It is being delivered to out (file)." in said(store, run, now).text
    store.write(lambda tx: delivery.recover(tx, "wrk_gone", {}, now=now))
    assert "Whether it reached out (file) is not known: its worker died while sending" in said(store, run, now).text


# -- an automation, and an instant --------------------------------------------------------------------------------


def test_an_automation_says_what_was_last_and_what_is_next(store: Store) -> None:
    automation = an_automation(store, daily(), now=NOW)
    a_worker(store, NOW)
    text = said(store, "brief").text
    assert text == "Nothing has fired it yet. Next: 2026-03-28 09:00 Europe/Berlin, in 24 h."
    fire(store, automation, now=NOW)
    assert said(store, automation).text.startswith("Last: brief was admitted because a program called it at 2026-03-27")


def test_an_automation_whose_slot_has_come_says_that_no_desk_runs(store: Store) -> None:
    an_automation(store, daily(), now=NOW)
    late = after(NOW, days=1, seconds=5)
    assert "no desk is running to answer it: `nightporter up`" in said(store, "brief", late).text
    a_worker(store, late)
    assert "has come and is about to be answered" in said(store, "brief", late).text


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("proposed", "was proposed by test and does nothing until `nightporter enable brief`"),
        ("paused", "has been paused by test since 2026-03-27 08:00 UTC"),
        ("auto_paused", "was paused by the desk at 2026-03-27 08:00 UTC"),
        ("config_error", "cannot run: its definition has an error"),
        ("expired", "brief expired at 2026-03-27 08:00 UTC"),
        ("completed", "brief is completed"),
    ],
)
def test_an_automation_that_does_not_act_says_why(store: Store, state: str, expected: str) -> None:
    an_automation(store, now=NOW, state=state)
    text = said(store, "brief").text
    assert expected in text
    assert "Next" not in text


def test_a_broken_definition_names_its_place(store: Store) -> None:
    from nightporter.errors import BadDefinition

    error = BadDefinition("unknown key `whne`: did you mean `when`?", next="mend it", path="brief.md", line=3, column=1)
    store.write(lambda tx: operations.break_file(
        tx, error, path="brief.md", name="brief", workspace="default", default_timezone="UTC", now=NOW
    ))
    assert "its definition has an error at brief.md:3:1: unknown key `whne`" in said(store, "brief").text


def test_an_automation_without_a_schedule_says_how_it_runs(store: Store) -> None:
    an_automation(store, now=NOW)
    assert "It has no schedule: it runs when a person asks or a program calls it." in said(store, "brief").text


def test_a_stopped_desk_is_named_first(store: Store) -> None:
    an_automation(store, daily(), now=NOW)
    setting(store, "stopped", "{}")
    assert said(store, "brief").text.startswith("The whole desk is stopped; lift it")


def test_at_a_time_of_day_means_the_last_one_that_has_come(store: Store) -> None:
    slot = after(NOW, days=1)
    _, run = slot_run(store, daily(), answered=after(slot, seconds=1))
    found = said(store, "brief", after(slot, hours=3), at="09:00")
    assert found.run_id == run
    assert said(store, "brief", after(slot, hours=3), at="2026-03-28T09:00").run_id == run


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-26T09:00", "did not exist at 2026-03-26 09:00 Europe/Berlin: it was created at 2026-03-27 09:00"),
        ("2026-03-28T07:30", "was not due at 2026-03-28 07:30 Europe/Berlin: its schedule is .* the slot before is "
                             "2026-03-27 09:00 Europe/Berlin and the one after it 2026-03-28 09:00"),
        ("2026-03-29T09:00", "brief will run at 2026-03-29 09:00 Europe/Berlin, in 2[0-9] h"),
        ("2026-03-28T09:00", "was due at 2026-03-28 09:00 Europe/Berlin and that is not answered yet. Its slot of"),
    ],
)
def test_an_instant_without_a_line_is_explained(store: Store, at: str, expected: str) -> None:
    an_automation(store, daily(), now=NOW)
    text = said(store, "brief", after(NOW, days=1, seconds=30), at=at).text
    assert re.search(expected, text), text


def test_an_instant_within_an_open_pause_is_explained(store: Store) -> None:
    automation = an_automation(store, daily(), now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="", now=NOW))
    text = said(store, "brief", after(NOW, days=1, hours=1), at="09:00").text
    assert "did not run at 2026-03-28 09:00 Europe/Berlin: from 2026-03-27 09:00 Europe/Berlin it was paused." in text


def test_slots_of_a_pause_are_explained_by_their_line(store: Store) -> None:
    automation = an_automation(store, daily(), now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="", now=NOW))
    later = after(NOW, days=3)
    store.write(lambda tx: operations.enable(tx, automation, by="ana", now=later))
    text = said(store, "brief", later, at="2026-03-29T09:00").text
    assert "did not run for 3 slots from 2026-03-28 09:00 Europe/Berlin" in text
    assert "the automation is paused" in text


def test_a_one_shot_that_was_missed_is_explained(store: Store) -> None:
    once = a_clock_trigger("2026-03-27T09:00", kind="at")
    automation = an_automation(store, a_definition(triggers=[once]), now=NOW)
    late = after(NOW, hours=3)
    armed = store.read(lambda tx: tx.due(late, 5))[0]
    settled = plan(armed, schedule_from(armed.schedule), late)
    store.write(lambda tx: admit(tx, settled.firings, now=late))
    text = said(store, automation, late, at="2026-03-27T09:00").text
    assert text.startswith("brief missed its moment for its slot of 2026-03-27 09:00 UTC: its moment passed while")


def test_a_merged_line_is_explained(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    first = fire(store, automation, now=NOW)
    line = ("fir_00000000000merged", "default", automation, trigger_of(automation), "call", "x", None, None,
            Verdict.MERGED, None, "", first.run_id, 1, None, None, None, None, "", "", None, 0)
    store.write(lambda tx: tx.write_firings([line], [], now=NOW))
    assert f"it was folded into {first.run_id}, which was waiting" in said(store, "fir_00000000000merged").text


def test_a_run_past_its_retention_is_still_said_to_have_run(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    answer = store.write(lambda tx: admit(tx, [Firing(trigger_of(automation), "e1")], now=NOW))[0]
    finish(store, begin(store, NOW)[0], Ended.ok(""), NOW)
    much_later = after(NOW, days=8)
    store.write(lambda tx: tx.prune_runs(
        [answer.run_id or ""], before=much_later, dead_before=much_later))
    assert f"as {answer.run_id}, which is past its retention" in said(store, answer.firing_id, much_later).text


def test_what_is_not_there_is_an_error_that_says_what_is_near(store: Store) -> None:
    an_automation(store, now=NOW)
    with pytest.raises(NotFound) as caught:
        said(store, "breif")
    assert caught.value.next == "did you mean brief?"
