"""Recovering: what a dead worker held is taken back, and nothing that may have happened is repeated unasked."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from night import Night
from turns import waits_for_a_lock

from nightporter.clock import ManualClock
from nightporter.dispatch import Claimed
from nightporter.store import Store, Tx, open_store
from nightporter.words import Destination, Ended, Limits, Overlap, Reason, Retry, TriggerSpec
from words import an_automation, fire, rows, run_row, states, steps

FREE = Limits(per_hour=None, queued=None, concurrent=None)


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def claimed(night: Night, runner: str = "echo", **of: Any) -> Claimed:
    """One run of a new automation, claimed by the worker that is about to die."""
    brief = an_automation(night.store, now=night.clock.now(), runner=runner, **of)
    fire(night.store, brief, now=night.clock.now())
    [one] = night.claim()
    return one


def let_go(night: Night, one: Claimed) -> None:
    """Its child was started."""
    night.store.write(lambda tx: tx.write_child(
        one.work.run_id, one.work.token, worker="wrk_1", host="here", group=42, started=7
    ))


def effect(night: Night, one: Claimed, *, done: bool) -> None:
    run = one.work.run_id
    rows = [(run, "k", "mail", one.work.attempt, one.work.token)]
    night.store.write(lambda tx: tx.intend(rows, now=night.clock.now()))
    if done:
        night.store.write(lambda tx: tx.effect_done(run, "k", "", now=night.clock.now()))


NONE = {"requeued": 0, "review": 0, "failed": 0, "cancelled": 0}
QUEUED, REVIEW, FAILED, CANCELLED = ({**NONE, name: 1} for name in NONE)


def test_a_worker_that_held_nothing_leaves_nothing(night: Night) -> None:
    assert not any(night.recover().values())


def test_a_run_that_cannot_have_acted_is_queued_again_with_its_attempt_used(night: Night) -> None:
    one = claimed(night, "function")
    night.sleep(minutes=1)
    assert night.recover() == QUEUED
    assert run_row(night.store, one.work.run_id, "state", "blocked", "attempt", "attempts", "reason", "run_after") == (
        "queued", None, 1, 3, None, night.clock.now()
    )
    assert steps(night.store, one.work.run_id) == ["queued", "running", "lost", "queued"]
    assert rows(night.store, "SELECT reason, worker, error_class FROM transition WHERE to_state = 'lost'") == [
        ("worker_lost", "wrk_1", "worker_lost")
    ]
    [again] = Night(night.store, night.clock, worker="wrk_2").claim()
    assert (again.work.attempt, again.work.token) == (2, 2)


@pytest.mark.parametrize(
    ("runner", "happened", "declared", "becomes"),
    [
        ("echo", "nothing", {}, QUEUED),
        ("script", "nothing", {}, QUEUED),
        ("script", "child", {}, REVIEW),
        ("script", "child", {"idempotent": True}, QUEUED),
        ("script", "child", {"on_crash": "retry"}, QUEUED),
        ("script", "child", {"on_crash": "review", "idempotent": True}, REVIEW),
        ("script", "nothing", {"on_crash": "review"}, QUEUED),
        ("python", "nothing", {}, REVIEW),
        ("python", "nothing", {"idempotent": True}, QUEUED),
        ("function", "intent", {}, REVIEW),
        ("function", "intent", {"idempotent": True}, REVIEW),
        ("function", "intent", {"on_crash": "retry"}, REVIEW),
        ("function", "done", {}, REVIEW),
        ("function", "done", {"idempotent": True}, QUEUED),
        ("gone", "nothing", {}, REVIEW),
    ],
)
def test_what_becomes_of_a_lost_run_follows_from_its_traces_and_what_was_declared(
    night: Night, runner: str, happened: str, declared: dict[str, Any], becomes: dict[str, int]
) -> None:
    one = claimed(night, "echo" if runner == "gone" else runner, **declared)
    if runner == "gone":  # it was there when the dead worker claimed the run
        rows(night.store, "UPDATE run SET runner = 'gone'")
    match happened:
        case "child":
            let_go(night, one)
        case "intent" | "done":
            effect(night, one, done=happened == "done")
        case _:
            pass
    assert night.recover() == becomes
    assert states(night.store) == ["queued" if becomes == QUEUED else "review"]
    assert rows(night.store, "SELECT 1 FROM child") == []


def test_a_run_for_review_is_asked_about_once(night: Night) -> None:
    one = claimed(night, "python", owner="ada", workspace="lab")
    night.recover()
    assert rows(night.store, "SELECT kind, owner, workspace, run_id FROM inbox") == [
        ("review", "ada", "lab", one.work.run_id)
    ]
    assert run_row(night.store, one.work.run_id, "state", "error", "ended_at") == (
        "review", "its worker died while it ran", None
    )
    assert not any(night.recover().values())
    assert rows(night.store, "SELECT count(*) FROM inbox") == [(1,)]
    assert steps(night.store, one.work.run_id) == ["queued", "running", "lost", "review"]


def test_a_run_without_an_attempt_left_fails_and_is_a_dead_letter_with_its_deliveries(night: Night) -> None:
    hook = Destination("hook", "webhook", {"url": "https://x.example"})
    one = claimed(night, retry=Retry(attempts=1), deliver=[hook])
    assert night.recover() == FAILED
    assert run_row(night.store, one.work.run_id, "state", "reason", "outcome", "dead_at") == (
        "failed", "worker_lost", "failed", night.clock.now()
    )
    assert rows(night.store, "SELECT kind FROM inbox") == [("dead_letter",)]
    assert rows(night.store, "SELECT destination, state FROM delivery") == [("hook", "pending")]
    assert rows(night.store, "SELECT runs, failed FROM rollup_month") == [(1, 1)]
    assert rows(night.store, "SELECT errors_in_a_row, last_run_id FROM automation") == [(1, one.work.run_id)]
    assert steps(night.store, one.work.run_id) == ["queued", "running", "lost", "failed"]


def test_a_run_that_somebody_had_asked_to_cancel_is_cancelled_and_no_dead_letter(night: Night) -> None:
    one = claimed(night)
    night.store.write(lambda tx: tx.ask_to_cancel([(one.work.run_id, "superseded", "run_9")], now=night.clock.now()))
    assert night.recover() == CANCELLED
    assert run_row(night.store, one.work.run_id, "state", "reason", "cancel_by", "dead_at") == (
        "cancelled", "superseded", "run_9", None
    )
    assert rows(night.store, "SELECT 1 FROM inbox") == []
    assert rows(night.store, "SELECT cancelled FROM rollup_month") == [(1,)]
    assert steps(night.store, one.work.run_id) == ["queued", "running", "lost", "queued", "cancelled"]


def test_a_person_who_asks_for_a_run_again_has_taken_the_cancel_back(night: Night) -> None:
    one = claimed(night, "python")
    night.store.write(lambda tx: tx.ask_to_cancel([(one.work.run_id, "cancelled_by", "ada")], now=night.clock.now()))
    night.recover()
    assert states(night.store) == ["review"]
    night.store.write(lambda tx: tx.requeue([one.work.run_id], now=night.clock.now()))
    night.claim()
    assert night.store.read(lambda tx: tx.cancel_asked("wrk_1")) == []


def test_a_definition_that_nobody_can_read_leaves_it_to_a_person(night: Night) -> None:
    claimed(night, "function")
    rows(night.store, "UPDATE automation_version SET definition = '{}'")
    night.known.__init__()  # type: ignore[misc]  # a new process has read none yet
    assert night.recover() == REVIEW


def test_only_the_dead_workers_runs_are_taken(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    living = Night(night.store, night.clock, worker="wrk_2")
    for _ in range(2):
        fire(night.store, brief, now=night.clock.now())
    [mine], [theirs] = night.claim(room=1), living.claim(room=1)
    assert night.recover() == QUEUED
    assert run_row(night.store, mine.work.run_id, "state") == ("queued",)
    assert run_row(night.store, theirs.work.run_id, "state", "worker") == ("running", "wrk_2")


def test_many_runs_are_taken_back_a_chunk_at_a_time(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    for _ in range(260):
        fire(night.store, brief, now=night.clock.now())
    assert len(night.claim(room=300)) == 260
    assert [night.recover()["requeued"] for _ in range(3)] == [250, 10, 0]


def test_what_waited_behind_a_lost_run_goes_on(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), runner="python", limits=Limits(concurrent=1),
        triggers=[TriggerSpec("hook", "call", overlap=Overlap.QUEUE)],
    )
    first = fire(night.store, brief, now=night.clock.now(), trigger="hook").run_id
    night.claim()
    second = fire(night.store, brief, now=night.clock.now(), trigger="hook").run_id
    assert run_row(night.store, second, "blocked") == ("overlap",)
    assert night.recover() == REVIEW
    assert [c.work.run_id for c in night.claim()] == [second]
    assert run_row(night.store, first, "state") == ("review",)


def test_a_worker_that_was_only_presumed_dead_cannot_end_what_was_taken_from_it(night: Night) -> None:
    one = claimed(night, "python")
    night.recover()
    assert night.end((one, Ended.ok("I was only asleep"))) == [None]
    assert run_row(night.store, one.work.run_id, "state") == ("review",)


def test_a_review_is_answered_by_another_run_or_by_none(night: Night) -> None:
    one = claimed(night, "python", retry=Retry(attempts=1))
    night.recover()
    night.sleep(hours=1)
    night.store.write(lambda tx: tx.requeue([one.work.run_id], now=night.clock.now()))
    assert run_row(night.store, one.work.run_id, "state", "attempts") == ("queued", 2)
    [again] = night.claim()
    assert again.work.attempt == 2
    night.recover()
    night.store.write(lambda tx: tx.dismiss([one.work.run_id], reason=Reason.DISMISSED, now=night.clock.now()))
    assert run_row(night.store, one.work.run_id, "state", "reason", "ended_at") == (
        "failed", "dismissed", night.clock.now()
    )


@pytest.mark.parametrize("last", ["an intent", "a child"])
def test_what_a_worker_that_still_lives_writes_down_at_the_last_moment_is_seen(
    store: Store, store_url: str, night: Night, last: str
) -> None:
    """It holds its run while it writes: whoever takes the run away waits for that, and must not have looked before."""
    one = claimed(night, "function" if last == "an intent" else "script")
    other = open_store(store_url, now=night.clock.now(), patience=20.0)
    writing, go_on = threading.Event(), threading.Event()

    def write(tx: Tx) -> None:
        run, token = one.key
        tx.fence(run, token)
        if last == "an intent":
            tx.intend([(run, "k", "mail", 1, token)], now=night.clock.now())
        else:
            tx.write_child(run, token, worker="wrk_1", host="here", group=42, started=7)
        writing.set()
        assert go_on.wait(20)

    with ThreadPoolExecutor() as pool:
        living = pool.submit(other.write, write)
        assert writing.wait(20)
        taking = pool.submit(night.recover)
        while store.dialect == "postgres" and not waits_for_a_lock(store):
            assert not taking.done()
        go_on.set()
        living.result(20)
        assert taking.result(20) == REVIEW
    other.close()
