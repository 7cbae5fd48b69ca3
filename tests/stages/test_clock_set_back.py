"""The wall clock is set back while runs are under way: each run's record goes on in time, and nothing waits for it."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from night import Night

from nightporter import operations
from nightporter.admission import admit
from nightporter.clock import Instant, ManualClock
from nightporter.ledger.audit import audit
from nightporter.store import Store
from nightporter.words import Destination, Ended, Ending, ErrorClass, Limits, Overlap, Reason, Retry, TriggerSpec
from words import a_definition, a_firing, an_automation, rows, steps

WIDE = Limits(per_hour=None, queued=None, concurrent=None)
BACK = timedelta(minutes=-7)
AUTOMATIONS = ("plain", "opaque", "acting", "newest", "retried")
OF_ONE_RUN = {f"I-{n}" for n in (*range(20, 35), *range(39, 50))}
"""Checks that compare what is written of one run. Those that compare runs with one another go by the wall clock."""


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    store.write(lambda tx: tx.join("wrk_1", role="desk", host="", pid=1, lock_path="", now=clock.now()))
    for name, runner, overlap, rest in (
        ("plain", "echo", Overlap.PARALLEL, {}),
        ("opaque", "python", Overlap.PARALLEL, {}),
        ("acting", "function", Overlap.PARALLEL, {"idempotent": True}),
        ("newest", "echo", Overlap.REPLACE, {}),
        ("retried", "echo", Overlap.PARALLEL, {"retry": Retry(attempts=5, delays=(timedelta(seconds=30),))}),
    ):
        an_automation(store, a_definition(
            name, runner=runner, limits=WIDE, deliver=[Destination("hook", "webhook", {"url": "https://one.example"})],
            triggers=[TriggerSpec("hook", "call", overlap=overlap)], **rest,
        ), now=clock.now())
    return Night(store, clock)


def arrive(night: Night, *names: str) -> None:
    firings = [a_firing(f"aut_default_{name}", trigger="hook") for name in names]
    night.store.write(lambda tx: admit(tx, firings, now=night.clock.now()))


def act(night: Night, chance: random.Random, run: str, token: int) -> None:
    """An effect of a run, and perhaps word that it is done, with the clock set back between."""
    now = night.clock.now()

    def intend(began: Instant, at: int) -> Instant:
        return Instant(max(began, at))

    def intended(tx: object) -> None:
        attempt, began = tx.fence(run, token)  # type: ignore[attr-defined]  # it is a Tx
        tx.intend([(run, "mail", "mail", attempt, token)], now=intend(began, now))  # type: ignore[attr-defined]

    night.store.write(intended)
    night.clock.step(chance.choice([BACK, timedelta()]))
    if chance.random() < 0.7:
        night.store.write(lambda tx: tx.effect_done(run, "mail", "", now=night.clock.now()))


def a_turn(night: Night, chance: random.Random) -> None:
    def step() -> None:
        night.clock.advance(timedelta(seconds=chance.choice([1, 20, 40])))
        night.clock.step(chance.choice([BACK, timedelta(), timedelta()]))

    arrive(night, *AUTOMATIONS)
    step()
    claimed = night.claim(room=chance.randint(1, 9))
    step()
    for one in claimed:
        if one.work.kind == "function" and one.work.attempt == 1:
            act(night, chance, one.work.run_id, one.work.token)
    step()
    runs = [run for (run,) in rows(night.store, "SELECT id FROM run WHERE ended_at IS NULL ORDER BY id")]
    now = night.clock.now()
    if chance.random() < 0.3:
        night.store.write(lambda tx: operations.cancel_runs(
            tx, chance.sample(runs, min(2, len(runs))), reason=Reason.CANCELLED_BY, by="ada", now=now))
    if chance.random() < 0.2:
        night.recover()
        step()
    for (run,) in rows(night.store, "SELECT id FROM run WHERE state = 'review' ORDER BY id"):
        decision = chance.choice(["retry", "dismiss"])
        night.store.write(lambda tx, run=run, decision=decision: operations.review(  # type: ignore[misc]  # bound per turn
            tx, run, decision, by="ada", now=night.clock.now()))
    night.end(*[(one, chance.choice([
        Ended.ok("x"), Ended.ok(""), Ended.timed_out("t"), Ended.failed(ErrorClass.TRANSIENT, "503"),
        Ended(Ending.HOLD, retry_after=timedelta(seconds=30)), Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN),
    ])) for one in claimed])


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_while_the_clock_is_set_back_each_run_goes_on_in_time(night: Night, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(25):
        a_turn(night, chance)
        report = night.store.read(lambda tx: audit(tx, now=night.clock.now()))
        assert [check.examples for check in report.findings if check.id in OF_ONE_RUN] == []
    back = "SELECT count(*) FROM transition t JOIN transition p ON p.run_id = t.run_id AND p.seq = t.seq - 1 "
    assert rows(night.store, back + "WHERE t.at < p.at") == [(0,)]
    assert rows(night.store, "SELECT count(*) FROM effect WHERE done_at < intended_at") == [(0,)]
    assert rows(night.store, "SELECT count(*) FROM transition WHERE to_state = 'review'") != [(0,)]


def test_what_ended_after_the_clock_was_set_back_by_hours_is_delivered_now(night: Night) -> None:
    arrive(night, "plain")
    [one] = night.claim()
    night.clock.step(timedelta(hours=-3))
    night.end((one, Ended.ok("x")))
    assert [taken.parcel.run_id for taken in night.take()] == [one.work.run_id]


def test_a_retry_waits_its_delay_and_not_until_the_clock_is_where_it_was(night: Night) -> None:
    arrive(night, "retried")
    [one] = night.claim()
    night.clock.step(timedelta(hours=-3))
    night.end((one, Ended.failed(ErrorClass.TRANSIENT, "503")))
    assert night.claim() == []
    night.sleep(seconds=31)
    [again] = night.claim()
    night.end((again, Ended.ok("x")))
    assert steps(night.store, one.work.run_id) == ["queued", "running", "queued", "running", "succeeded"]
