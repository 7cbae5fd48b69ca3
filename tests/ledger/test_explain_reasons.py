"""Each reason is explained in words of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from acting import a_worker, after, begin, die, finish, send
from explained import FILE, NOW, fired, ran, said

from nightporter import operations
from nightporter.ledger import reads
from nightporter.ledger.why import Explanation
from nightporter.rules.gates import PAYLOAD_LIMIT
from nightporter.rules.looks import ended_by, failed, nothing
from nightporter.sources.clock import settle
from nightporter.store import Store
from nightporter.words import (
    Ended,
    Ending,
    ErrorClass,
    Limits,
    Missed,
    MissedPolicy,
    Overlap,
    QuietHours,
    Reason,
    Receipt,
    Seen,
    Sent,
    Threshold,
    TriggerSpec,
)
from nightporter.words.bounds import Bounds, Days
from words import a_clock_trigger, a_definition, an_automation, an_incident, fire, rows, trigger_of


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


def excluded(store: Store) -> Explanation:
    holiday = Bounds(days=(Days("2026-03-27", "2026-03-27", "Founding Day"),))
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger(bounds=holiday)]), now=NOW)
    nine = after(NOW, hours=1)
    store.write(lambda tx: settle(tx, automation, now=nine))
    return said(store, automation, nine, at=nine)


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


def quiet_hours(store: Store) -> Explanation:
    return fired(store, an_automation(store, a_definition(quiet_hours=QuietHours(("07:00-09:00",))), now=NOW))


def threshold(store: Store) -> Explanation:
    third = TriggerSpec("call", "call", threshold=Threshold(3))
    automation = an_automation(store, a_definition(triggers=[third]), now=NOW)
    fire(store, automation, now=NOW)
    return fired(store, automation)


def max_runs(store: Store) -> Explanation:
    slots = [a_clock_trigger("0 9 * * *", name=name, overlap=Overlap.PARALLEL) for name in ("one", "two")]
    automation = an_automation(store, a_definition(triggers=slots, limits=Limits(max_runs=1)), now=NOW)
    nine = after(NOW, hours=1)
    store.write(lambda tx: settle(tx, automation, now=nine))
    [(turned_away,)] = rows(store, "SELECT id FROM firing WHERE verdict = 'skipped'")
    return said(store, turned_away, nine)


def incident_hold(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(hold_on_incident=True), now=NOW)
    an_incident(store, automation)
    return fired(store, automation)


def held_quiet(store: Store) -> Explanation:
    quiet = replace(FILE, quiet_hours=QuietHours(("07:00-09:00",)))
    return said(store, ran(store, Ended.ok("hello"), deliver=[quiet]), after(NOW, seconds=5))


def missed_policy(store: Store) -> Explanation:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger("*/10 * * * *")]), now=NOW)
    a_worker(store, after(NOW, hours=1))
    later = after(NOW, hours=1, minutes=5)
    store.write(lambda tx: settle(tx, automation, now=later))
    return said(store, automation, later, at=after(NOW, minutes=20))


def stale(store: Store) -> Explanation:
    daily = a_clock_trigger(missed=Missed(MissedPolicy.RUN_ONCE, timedelta(hours=2)))
    automation = an_automation(store, a_definition(triggers=[daily]), now=NOW)
    nine = after(NOW, hours=1)
    store.write(lambda tx: settle(tx, automation, now=nine))
    noon = after(NOW, hours=4)
    assert begin(store, noon) == []
    return said(store, automation, noon, at=nine)


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


def precondition_unmet(store: Store) -> Explanation:
    return said(store, ran(store, looked(nothing())))


def check_failed(store: Store) -> Explanation:
    return said(store, ran(store, looked(failed(ErrorClass.NONZERO_EXIT, "exit code 3"))))


def looked(seen: Seen) -> Ended:
    ended = ended_by(seen)
    assert ended is not None
    return ended


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
    Reason.EXCLUDED: (excluded, r"did not run for its slot of .* hour out \(27 March 2026 \(Founding Day\)\)"),
    Reason.QUEUE_FULL: (queue_full, r"did not run .* already waiting \(the limit is 1 waiting\)"),
    Reason.OVERLAP: (overlap, r"did not run .* had not ended, and the overlap policy is to skip \(run_\w+ had"),
    Reason.COOLDOWN: (cooldown, r"did not run .* cooldown ago \(.* free again at 2026-03-27T08:05:00Z\)"),
    Reason.HOURLY_CEILING: (
        hourly_ceiling, r"did not run when a program called it .* \(the ceiling is 1 an hour; free again at"
    ),
    Reason.CONCURRENCY_CEILING: (concurrency_ceiling, r"has been waiting for 9 s: as many runs .* were running \(1\)"),
    Reason.QUIET_HOURS: (
        quiet_hours, r"did not run .* does not start by itself \(until 2026-03-27T09:00:00Z\)\. `nightporter run brief`"
    ),
    Reason.THRESHOLD: (threshold, r"did not run .* fewer arrivals than make a run had come \(2 of 3\)"),
    Reason.MAX_RUNS: (max_runs, r"did not run .* as many runs as they may \(the limit is 1\)\. `nightporter enable"),
    Reason.INCIDENT_HOLD: (incident_hold, r"did not run .* has an open incident, and starts nothing .* \(inc_1\)"),
    Reason.MISSED_POLICY: (
        missed_policy,
        r"did not run for 6 slots from 2026-03-27 08:10 UTC to .* desk was back at 2026-03-27 09:00 UTC",
    ),
    Reason.STALE: (stale, r"never started\. It was not begun any more: it waited to begin .*`nightporter run brief`"),
    Reason.SUPPRESSED_DUPLICATE: (suppressed_duplicate, r"did not run again .* it became run_\w+ \(the id is order-17"),
    Reason.PAYLOAD_TOO_LARGE: (payload_too_large, r"refused .* larger than the desk accepts \(262145 bytes"),
    Reason.UNREADABLE: (unreadable, r"trigger clock fires no more: .* cannot be read \(no zone is named Mars\)"),
    Reason.NO_OP: (no_op, r"ran because .* It ended after 3 s: it ran and had nothing to say"),
    Reason.PRECONDITION_UNMET: (precondition_unmet, r"It ended after 3 s: its look found nothing to do, so nothing wa"),
    Reason.CHECK_FAILED: (check_failed, r"failed after 3 s: its look could not say .* \(exit code 3\)\. .*--skip-look"),
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
    Reason.HELD_QUIET: (held_quiet, r"delivery to out \(file\) waits until 2026-03-27 09:00 UTC: .* quiet hours"),
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


_OF_THE_MOMENT = (Reason.CONCURRENCY_CEILING, Reason.UNREADABLE)
"""Of a run that waits, and of a trigger that fires no more: no line has them."""


@pytest.mark.parametrize("reason", [each for each in Reason if each not in _OF_THE_MOMENT])
def test_each_reason_stands_in_a_list_with_its_sentence(store: Store, reason: Reason) -> None:
    SCENES[reason][0](store)
    lines = store.read(lambda tx: [
        line.as_json()
        for page in (reads.firings(tx, limit=100), reads.runs(tx, limit=100), reads.deliveries(tx, limit=100))
        for line in page.items
    ])
    told = [line for line in lines if reason in (line["reason"], line.get("cancel_reason"))]
    assert {line["reason_sentence"] for line in told if line["reason"] == reason} == {reason.sentence}


def test_an_admitted_firing_is_explained_by_its_run(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    answer = fire(store, automation, now=NOW)
    found = said(store, answer.firing_id, after(NOW, seconds=2))
    assert (found.kind, found.id) == ("run", answer.run_id)
    assert "has been waiting for 2 s: it waits" not in found.text
    assert "no desk is running to take it" in found.text
