"""Claiming: who goes first, who waits for whom, and what a claim writes down before anything starts."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from night import Night
from turns import waits_for_a_lock

from nightporter import operations
from nightporter.clock import Instant, ManualClock
from nightporter.dispatch import Claimed
from nightporter.store import Store, Tx, open_store
from nightporter.store.tx_sweep import STOPPED
from nightporter.words import Ended, Ending, ErrorClass, Limits, Overlap, Reason, Retry, RunId, TriggerSpec
from words import a_clock_trigger, an_automation, fire, rows, run_row, states, steps

FREE = Limits(per_hour=None, queued=None, concurrent=None)


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def runs(claimed: list[Claimed]) -> list[RunId]:
    return [c.work.run_id for c in claimed]


def admitted(night: Night, automation: str, **of: Any) -> RunId:
    answer = fire(night.store, automation, now=night.clock.now(), **of)
    assert answer.run_id is not None
    return answer.run_id


# -- what a claim is ------------------------------------------------------------------------------------------------


def test_a_claim_writes_the_start_down_and_hands_over_all_a_runner_needs(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), config={"say": "hi"}, limits=Limits(timeout=timedelta(seconds=7), output=99)
    )
    run = admitted(night, brief, text="hello", payload='{"a": [1, null]}')
    night.sleep(seconds=5)
    [claimed] = night.claim()
    work = claimed.work
    assert (work.run_id, work.token, work.attempt, work.automation, work.source) == (run, 1, 1, "brief", "call")
    assert (work.kind, work.config, work.text, work.payload) == ("echo", {"say": "hi"}, "hello", {"a": [1, None]})
    assert (work.timeout, work.output_limit, work.started_at) == (timedelta(seconds=7), 99, night.clock.now())
    assert (claimed.attempts, claimed.seq, claimed.error) == (3, 2, "")
    assert run_row(
        night.store, run, "state", "worker", "token", "attempt", "seq", "started_at", "attempt_at", "ran_late"
    ) == ("running", "wrk_1", 1, 1, 2, night.clock.now(), night.clock.now(), 0)
    assert rows(night.store, "SELECT from_state, to_state, worker, token, attempt FROM transition WHERE seq = 2") == [
        ("queued", "running", "wrk_1", 1, 1)
    ]


def test_a_run_is_claimed_once(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    run = admitted(night, brief)
    assert runs(night.claim()) == [run]
    assert night.claim() == []


def test_two_workers_never_claim_the_same_run(store_url: str, clock: ManualClock) -> None:
    stores = [open_store(store_url, now=clock.now()) for _ in range(2)]
    nights = [Night(store, clock, worker=f"wrk_{n}") for n, store in enumerate(stores)]
    brief = an_automation(stores[0], now=clock.now(), limits=FREE)
    wanted = {admitted(nights[0], brief) for _ in range(20)}
    claimed = [run for turn in range(12) for run in runs(nights[turn % 2].claim(room=3))]
    assert sorted(claimed) == sorted(wanted)
    for store in stores:
        store.close()


def test_no_room_is_no_claim(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    admitted(night, brief)
    assert night.claim(room=0) == []
    assert states(night.store) == ["queued"]


def test_a_stopped_desk_claims_nothing(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    admitted(night, brief)
    night.store.write(lambda tx: tx.put_setting(STOPPED, "{}"))
    assert night.claim() == []
    night.store.write(lambda tx: tx.drop_setting(STOPPED))
    assert len(night.claim()) == 1


def test_a_desk_that_is_stopped_after_a_claim_asked_is_asked_again_before_anything_is_taken(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    run = admitted(night, brief)
    monkeypatch.setattr(Tx, "claim_facts", lambda tx, worker, now: (True, False))  # as it was a moment ago
    night.store.write(lambda tx: operations.stop(tx, by="ann", reason="", now=night.clock.now()))
    assert night.claim() == []
    assert night.claim(only=run) == []


def test_a_stop_and_a_claim_at_one_instant_see_each_other(
    night: Night, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim has read that nobody stopped the desk; the stop asks for what runs; then the claim starts a run."""
    brief = an_automation(night.store, now=night.clock.now())
    run = admitted(night, brief)
    other = open_store(store_url, now=night.clock.now())
    asked: list[int] = []
    stopping = threading.Thread(target=lambda: asked.append(
        other.write(lambda tx: operations.stop(tx, by="ann", reason="", now=night.clock.now()))
    ))
    facts = Tx.claim_facts

    def and_then_a_stop(tx: Tx, worker: str, now: Instant) -> tuple[bool, bool]:
        told = facts(tx, worker, now)
        stopping.start()
        if tx.dialect == "postgres":  # on SQLite it waits for the only writer
            until = time.monotonic() + 10
            while stopping.is_alive() and not waits_for_a_lock(night.store):
                assert time.monotonic() < until
        return told

    monkeypatch.setattr(Tx, "claim_facts", and_then_a_stop)
    claimed = runs(night.claim())
    stopping.join(20)
    other.close()
    assert claimed == [run]
    assert asked == [1]
    assert run_row(night.store, run, "state", "cancel_reason", "cancel_by") == ("running", "stopped", "ann")


def test_a_claim_that_meets_a_stop_waits_for_nobody(night: Night, store_url: str) -> None:
    an_automation(night.store, now=night.clock.now())
    admitted(night, "aut_default_brief")
    other = open_store(store_url, now=night.clock.now(), patience=0.0)
    stopped, go = threading.Event(), threading.Event()

    def stop(tx: Tx) -> None:
        operations.stop(tx, by="ann", reason="", now=night.clock.now())
        stopped.set()
        go.wait(20)

    stopping = threading.Thread(target=lambda: other.write(stop))
    stopping.start()
    stopped.wait(20)
    if night.store.dialect == "postgres":
        assert night.claim() == []
        assert stopping.is_alive()
    go.set()
    stopping.join(20)
    assert night.claim() == []
    other.close()


def test_a_run_that_starts_long_after_its_slot_ran_late(night: Night) -> None:
    slot = night.clock.now()
    for name in ("prompt", "late"):
        an_automation(night.store, now=slot, name=name, triggers=[a_clock_trigger()])
    prompt = admitted(night, "aut_default_prompt", trigger="clock", scheduled_for=slot)
    night.sleep(minutes=5)
    night.claim()
    late = admitted(night, "aut_default_late", trigger="clock", scheduled_for=slot)
    night.sleep(microseconds=1)
    [claimed] = night.claim()
    assert claimed.work.scheduled_for == slot
    assert [run_row(night.store, run, "ran_late")[0] for run in (prompt, late)] == [0, 1]


def test_a_later_attempt_of_a_prompt_run_is_not_late(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), triggers=[a_clock_trigger()])
    run = admitted(night, brief, trigger="clock", scheduled_for=night.clock.now())
    night.run_all(Ended.failed(ErrorClass.TRANSIENT, "503", retry_after=timedelta(hours=1)))
    night.sleep(hours=2)
    night.claim()
    assert run_row(night.store, run, "ran_late", "attempt") == (0, 2)


def test_a_definition_that_cannot_be_read_is_claimed_with_its_error_and_stops_nobody(night: Night) -> None:
    bad = an_automation(night.store, now=night.clock.now(), name="bad")
    good = an_automation(night.store, now=night.clock.now(), name="good")
    rows(night.store, "UPDATE automation_version SET definition = '{}' WHERE automation_id = ?", bad)
    broken, sound = admitted(night, bad), admitted(night, good)
    claimed = {c.work.run_id: c for c in night.claim()}
    assert claimed[broken].definition is None
    assert "cannot be read" in claimed[broken].error
    assert claimed[sound].definition is not None


def test_a_payload_that_cannot_be_read_is_its_runs_failure(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    admitted(night, brief, payload="{")
    [claimed] = night.claim()
    assert claimed.definition is None
    assert "cannot be read" in claimed.error


def test_the_definition_is_the_one_the_run_was_admitted_with(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), config={"say": "old"})
    admitted(night, brief)
    rows(night.store, "UPDATE automation SET version = 2")
    [claimed] = night.claim()
    assert claimed.work.config == {"say": "old"}


@pytest.mark.parametrize(("runner", "marked"), [("python", True), ("echo", False), ("script", False), ("gone", False)])
def test_a_start_whose_acts_nobody_can_see_is_marked_with_the_claim(night: Night, runner: str, marked: bool) -> None:
    brief = an_automation(night.store, now=night.clock.now(), runner=runner)
    run = admitted(night, brief)
    night.claim()
    assert rows(night.store, "SELECT run_id, key, name, state, token FROM effect") == (
        [(run, "started:1", "started", "intended", 1)] if marked else []
    )


# -- who goes first -------------------------------------------------------------------------------------------------


def test_the_best_rank_goes_first(night: Night) -> None:
    slow = an_automation(night.store, now=night.clock.now(), name="slow", priority=90)
    swift = an_automation(night.store, now=night.clock.now(), name="swift", priority=10)
    last, second = admitted(night, slow), admitted(night, swift)
    first = admitted(night, slow, trigger="manual")
    assert [runs(night.claim(room=1)) for _ in range(3)] == [[first], [second], [last]]


def test_waiting_long_enough_beats_any_priority(night: Night) -> None:
    slow = an_automation(night.store, now=night.clock.now(), name="slow", priority=90)
    swift = an_automation(night.store, now=night.clock.now(), name="swift", priority=10)
    old = admitted(night, slow)
    night.sleep(seconds=801)
    new = admitted(night, swift)
    assert [runs(night.claim(room=1)) for _ in range(2)] == [[old], [new]]


def test_with_room_for_one_every_workspace_is_served(night: Night) -> None:
    names = ("a", "b", "c")
    for name in names:
        busy = an_automation(night.store, now=night.clock.now(), name=name, workspace=name, limits=FREE)
        for n in range(15):
            admitted(night, busy, external_id=f"e-{n}")
            night.sleep(seconds=1)
    served = [c.work.workspace for _ in range(30) for c in night.claim(room=1)]
    assert len(served) == 30
    assert min(served.count(name) for name in names) >= 5, served


def test_no_workspace_waits_behind_the_queue_of_another(night: Night) -> None:
    busy = an_automation(night.store, now=night.clock.now(), workspace="a", limits=FREE)
    quiet = an_automation(night.store, now=night.clock.now(), workspace="b", limits=FREE)
    for _ in range(50):
        admitted(night, busy)
    night.sleep(minutes=1)
    wanted = [admitted(night, quiet) for _ in range(2)]
    claimed = night.claim(room=4)
    assert sorted(runs(claimed)[n] for n, c in enumerate(claimed) if c.work.workspace == "b") == sorted(wanted)
    assert [c.work.workspace for c in claimed].count("a") == 2


def test_one_named_run_is_claimed_and_no_other(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    admitted(night, brief)
    wanted = admitted(night, brief)
    assert runs(night.claim(only=wanted)) == [wanted]
    assert night.claim(only=wanted) == []
    assert sorted(states(night.store)) == ["queued", "running"]


# -- the ceiling on running at once ---------------------------------------------------------------------------------


def test_as_many_run_at_once_as_the_ceiling_says_and_the_rest_steps_aside(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=Limits(concurrent=2))
    for _ in range(5):
        admitted(night, brief)
    assert len(night.claim()) == 2
    assert sorted(rows(night.store, "SELECT state, blocked FROM run")) == (
        [("queued", "concurrency")] * 3 + [("running", None)] * 2
    )


def test_whoever_stands_behind_a_full_automation_is_claimed_all_the_same(night: Night) -> None:
    full = an_automation(night.store, now=night.clock.now(), name="full", limits=Limits(concurrent=1), priority=1)
    other = an_automation(night.store, now=night.clock.now(), name="other", limits=FREE)
    for _ in range(10):
        admitted(night, full)
    wanted = admitted(night, other)
    assert wanted in runs(night.claim(room=3))


def test_the_end_of_a_run_lets_the_oldest_behind_it_go(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=Limits(concurrent=1))
    order = []
    for _ in range(3):
        order.append(admitted(night, brief))
        night.sleep(seconds=1)
    done = [run for _ in range(3) for run in runs(night.run_all(Ended.ok("x")))]
    assert done == order
    assert states(night.store) == ["succeeded"] * 3


def test_an_end_lets_go_as_many_as_there_is_room_for(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=Limits(concurrent=2))
    for _ in range(6):
        admitted(night, brief)
    first, second = night.claim()
    night.end((first, Ended.ok("x")))
    assert rows(night.store, "SELECT count(*) FROM run WHERE state = 'queued' AND blocked IS NULL") == [(1,)]
    assert len(night.claim()) == 1
    night.end((second, Ended.ok("x")))
    assert len(night.claim()) == 1


def test_where_there_is_no_ceiling_none_is_kept(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    for _ in range(30):
        admitted(night, brief)
    assert len(night.claim()) == 30


def test_runs_made_by_hand_count_against_the_ceiling_too(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=Limits(concurrent=1))
    by_hand = [admitted(night, brief, trigger="manual") for _ in range(2)]
    assert len(night.claim()) == 1
    assert sorted(run_row(night.store, r, "blocked") for r in by_hand if run_row(night.store, r, "state") != (
        "running",)) == [("concurrency",)]


# -- overlap --------------------------------------------------------------------------------------------------------


def test_what_may_not_overlap_goes_one_after_the_other(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), triggers=[TriggerSpec("hook", "call", overlap=Overlap.QUEUE)]
    )
    order = []
    for _ in range(3):
        order.append(admitted(night, brief, trigger="hook"))
        night.sleep(seconds=1)
    assert [runs(night.run_all(Ended.ok("x"))) for _ in range(4)] == [[order[0]], [order[1]], [order[2]], []]


def test_what_waits_for_its_next_attempt_still_stands_in_the_way(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), triggers=[TriggerSpec("hook", "call", overlap=Overlap.QUEUE)],
        retry=Retry(attempts=2, delays=(timedelta(seconds=10),), on=frozenset({"exception"})),
    )
    first = admitted(night, brief, trigger="hook")
    second = admitted(night, brief, trigger="hook")
    night.run_all(Ended.failed(ErrorClass.EXCEPTION, "no"))
    assert run_row(night.store, first, "state", "blocked") == ("queued", "time")
    assert night.claim() == []
    night.sleep(seconds=10)
    assert runs(night.run_all(Ended.ok("x"))) == [first]
    assert runs(night.claim()) == [second]


def test_the_replacement_starts_once_the_old_one_has_ended(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), triggers=[TriggerSpec("hook", "call", overlap=Overlap.REPLACE)]
    )
    old = admitted(night, brief, trigger="hook")
    [claimed] = night.claim()
    new = admitted(night, brief, trigger="hook")
    assert night.claim() == []
    assert night.store.read(lambda tx: tx.cancel_asked("wrk_1")) == [(old, 1, "superseded", new)]
    night.end((claimed, Ended.cancelled()))
    assert run_row(night.store, old, "state", "reason") == ("cancelled", "superseded")
    assert runs(night.claim()) == [new]


# -- paused, held, timed --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["paused", "auto_paused", "config_error"])
def test_runs_of_an_automation_that_sleeps_step_aside_until_it_wakes(night: Night, state: str) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    run, by_hand = admitted(night, brief), admitted(night, brief, trigger="manual")
    rows(night.store, "UPDATE automation SET state = ?", state)
    assert runs(night.claim()) == [by_hand]
    assert run_row(night.store, run, "state", "blocked") == ("queued", "paused")
    night.store.write(lambda tx: tx.unpause_runs(brief))
    rows(night.store, "UPDATE automation SET state = 'active'")
    assert runs(night.claim()) == [run]


@pytest.mark.parametrize("pauses", ["while one is going", "once one may start"])
def test_a_run_by_hand_does_not_wait_behind_runs_that_a_pause_holds(night: Night, pauses: str) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=Limits(concurrent=1))
    for _ in range(3):
        admitted(night, brief)
    [going] = night.claim()
    night.sleep(minutes=10)
    by_hand = admitted(night, brief, trigger="manual")
    assert night.claim() == []
    if pauses == "once one may start":
        night.end((going, Ended.ok("x")))
    rows(night.store, "UPDATE automation SET state = 'paused'")
    if pauses == "while one is going":
        night.end((going, Ended.ok("x")))
    assert runs(night.claim()) == [by_hand]
    assert set(rows(night.store, "SELECT blocked FROM run WHERE state = 'queued'")) == {("paused",)}


def test_a_run_with_a_time_is_claimed_at_that_time(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    run = admitted(night, brief)
    night.run_all(Ended.failed(ErrorClass.TRANSIENT, "503", retry_after=timedelta(minutes=2)))
    due = night.store.read(lambda tx: tx.next_timed())
    assert due is not None
    assert due >= night.clock.now() + 120_000_000
    night.sleep(microseconds=due - night.clock.now() - 1)
    assert night.claim() == []
    night.sleep(microseconds=1)
    [claimed] = night.claim()
    assert (claimed.work.run_id, claimed.work.attempt, claimed.work.token) == (run, 2, 2)


def test_a_run_whose_time_has_come_and_that_somebody_holds_is_left_for_the_next_round(
    migrated_postgres_url: str, clock: ManualClock
) -> None:
    night = Night(open_store(migrated_postgres_url, now=clock.now()), clock)
    an_automation(night.store, now=clock.now(), limits=FREE)
    wanted = [admitted(night, "aut_default_brief") for _ in range(2)]
    night.run_all(Ended.failed(ErrorClass.TRANSIENT, "503", retry_after=timedelta(minutes=2)))
    night.sleep(minutes=10)
    with psycopg.connect(migrated_postgres_url) as somebody:
        somebody.execute("SELECT 1 FROM run WHERE id = %s FOR UPDATE", (wanted[0],))
        assert runs(night.claim()) == wanted[1:]
    assert runs(night.claim()) == wanted[:1]
    night.store.close()


def test_a_held_run_comes_back_by_itself_and_has_lost_no_attempt(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    run = admitted(night, brief)
    night.end((night.claim()[0], Ended(Ending.HOLD, retry_after=timedelta(minutes=2), error="busy")))
    assert run_row(night.store, run, "state", "reason", "attempt", "error") == (
        "held", Reason.PROVIDER_UNAVAILABLE, 0, "busy"
    )
    assert night.claim() == []
    night.sleep(minutes=3)
    [claimed] = night.claim()
    assert (claimed.work.attempt, claimed.work.token) == (1, 2)
    assert steps(night.store, run) == ["queued", "running", "held", "queued", "running"]


def test_starts_are_noted_where_there_is_a_cooldown_and_none_by_hand(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), cooldown=timedelta(minutes=1))
    admitted(night, brief, trigger="manual")
    night.claim()
    assert rows(night.store, "SELECT last_started_at FROM automation") == [(None,)]
    admitted(night, brief)
    night.claim()
    assert rows(night.store, "SELECT last_started_at FROM automation") == [(night.clock.now(),)]
