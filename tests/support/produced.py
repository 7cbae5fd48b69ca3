"""Each reason there is, produced on purpose through the stages that give it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from acting import a_worker, after, begin, die, finish, send
from explained import FILE, NOW, fired, ran, said

from nightporter import operations
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


PRODUCED: dict[Reason, Callable[[Store], Explanation]] = {
    Reason.DISABLED: disabled,
    Reason.PAUSED: paused,
    Reason.STOPPED: stopped,
    Reason.EXPIRED: expired,
    Reason.DELETED: deleted,
    Reason.EXCLUDED: excluded,
    Reason.QUEUE_FULL: queue_full,
    Reason.OVERLAP: overlap,
    Reason.COOLDOWN: cooldown,
    Reason.HOURLY_CEILING: hourly_ceiling,
    Reason.CONCURRENCY_CEILING: concurrency_ceiling,
    Reason.QUIET_HOURS: quiet_hours,
    Reason.THRESHOLD: threshold,
    Reason.MAX_RUNS: max_runs,
    Reason.INCIDENT_HOLD: incident_hold,
    Reason.HELD_QUIET: held_quiet,
    Reason.MISSED_POLICY: missed_policy,
    Reason.STALE: stale,
    Reason.SUPPRESSED_DUPLICATE: suppressed_duplicate,
    Reason.PAYLOAD_TOO_LARGE: payload_too_large,
    Reason.UNREADABLE: unreadable,
    Reason.NO_OP: no_op,
    Reason.PRECONDITION_UNMET: precondition_unmet,
    Reason.CHECK_FAILED: check_failed,
    Reason.NONZERO_EXIT: nonzero_exit,
    Reason.EXCEPTION: exception,
    Reason.TIMEOUT: timed_out,
    Reason.CONFIGURATION: configuration,
    Reason.PERMISSION_DENIED: permission_denied,
    Reason.PROVIDER_UNAVAILABLE: provider_unavailable,
    Reason.WORKER_LOST: worker_lost,
    Reason.CANCELLED_BY: cancelled_by,
    Reason.SUPERSEDED: superseded,
    Reason.DISMISSED: dismissed,
    Reason.SHUTDOWN: shutdown,
    Reason.NOT_STARTED: not_started,
    Reason.MAY_HAVE_ACTED: may_have_acted,
    Reason.REJECTED_BY_RECEIVER: rejected_by_receiver,
    Reason.UNREACHABLE: unreachable,
    Reason.GAVE_UP: gave_up,
    Reason.UNVERIFIED: unverified,
}
"""What brings each about, and what `explain` says of it there and then."""
