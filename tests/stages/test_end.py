"""Ending: what became of an attempt and everything that follows from it, in one transaction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from night import Night

from nightporter.clock import ManualClock, instant
from nightporter.dispatch import Claimed
from nightporter.errors import LostClaim
from nightporter.states import RunState
from nightporter.store import Store
from nightporter.words import (
    Destination,
    Ended,
    Ending,
    ErrorClass,
    Limits,
    Outcome,
    Reason,
    Retry,
)
from words import a_clock_trigger, an_automation, fire, rows, run_row, states, steps

FREE = Limits(per_hour=None, queued=None, concurrent=None)
HOOK = Destination("hook", "webhook", {"url": "https://one.example.org/in"})
FILE = Destination("file", "file", {"path": "x"})
DESK = Destination("desk", "announce")
AUDIT = Destination("audit", "silent")


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def claimed(night: Night, **of: Any) -> Claimed:
    """One run of a new automation, claimed."""
    brief = an_automation(night.store, now=night.clock.now(), **of)
    fire(night.store, brief, "e-1", now=night.clock.now())
    [one] = night.claim()
    return one


def inbox(night: Night) -> list[tuple[Any, ...]]:
    return rows(night.store, "SELECT kind, title, text, owner, workspace FROM inbox ORDER BY kind")


# -- the run itself -------------------------------------------------------------------------------------------------


def test_an_end_is_the_runs_last_change_and_says_all_that_is_known(night: Night) -> None:
    one = claimed(night)
    night.sleep(seconds=3)
    [result] = night.end((one, Ended.ok("three things", data={"n": 3}, log="warning", exit_code=0)))
    assert result is not None
    assert (result.state, result.outcome) == (RunState.SUCCEEDED, Outcome.REPORT)
    assert run_row(
        night.store, one.work.run_id, "state", "outcome", "reason", "error", "exit_code", "ended_at", "seq", "dead_at"
    ) == ("succeeded", "report", None, "", 0, night.clock.now(), 3, None)
    assert rows(night.store, "SELECT text, data, log FROM run_output") == [("three things", '{"n": 3}', "warning")]
    assert steps(night.store, one.work.run_id) == ["queued", "running", "succeeded"]


def test_a_failure_says_why_and_leaves_a_dead_letter_and_one_notice(night: Night) -> None:
    one = claimed(night, owner="ada", workspace="lab")
    night.end((one, Ended.failed(ErrorClass.NONZERO_EXIT, "exit 3", exit_code=3, log="Traceback")))
    assert run_row(night.store, one.work.run_id, "state", "outcome", "reason", "error_class", "error", "exit_code",
                   "dead_at") == (
        "failed", "failed", "nonzero_exit", "nonzero_exit", "exit 3", 3, night.clock.now()
    )
    [(kind, title, text, owner, workspace)] = inbox(night)
    assert (kind, title, owner, workspace) == ("dead_letter", "brief failed", "ada", "lab")
    assert "exit 3" in text
    assert f"nightporter replay {one.work.run_id}" in text


def test_a_timeout_is_a_dead_letter_and_is_never_tried_again(night: Night) -> None:
    everything = Retry(attempts=9, on=frozenset({"transient", "nonzero_exit", "exception"}))
    one = claimed(night, retry=everything)
    night.end((one, Ended.timed_out("too long")))
    assert run_row(night.store, one.work.run_id, "state", "reason") == ("timed_out", "timeout")
    assert [k for k, *_ in inbox(night)] == ["dead_letter"]
    night.sleep(days=1)
    assert night.claim() == []


def test_having_nothing_to_say_is_a_quiet_success(night: Night) -> None:
    one = claimed(night, deliver=[HOOK, DESK])
    night.end((one, Ended.ok("")))
    assert run_row(night.store, one.work.run_id, "state", "outcome", "reason") == ("skipped", "noop", "no_op")
    assert rows(night.store, "SELECT 1 FROM delivery") == []
    assert inbox(night) == []


def test_a_cancelled_run_tells_who_and_why_and_is_no_dead_letter(night: Night) -> None:
    one = claimed(night)
    night.store.write(lambda tx: tx.ask_to_cancel([(one.work.run_id, "cancelled_by", "ada")], now=night.clock.now()))
    night.end((one, Ended(Ending.CANCELLED, error="cancelled by ada")))
    assert run_row(night.store, one.work.run_id, "state", "reason", "cancel_by", "error", "dead_at", "outcome") == (
        "cancelled", "cancelled_by", "ada", "cancelled by ada", None, None
    )
    assert inbox(night) == []


@pytest.mark.parametrize(
    "ended",
    [Ended.failed(ErrorClass.TRANSIENT, "503"), Ended(Ending.HOLD), Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN)],
    ids=["retry", "hold", "shutdown"],
)
def test_a_run_that_somebody_asked_to_cancel_does_not_start_again(night: Night, ended: Ended) -> None:
    one = claimed(night)
    night.store.write(lambda tx: tx.ask_to_cancel([(one.work.run_id, "superseded", "run_9")], now=night.clock.now()))
    night.end((one, ended))
    assert run_row(night.store, one.work.run_id, "state", "reason") == ("cancelled", "superseded")
    night.sleep(days=2)
    assert night.claim() == []


# -- retries --------------------------------------------------------------------------------------------------------


def test_a_passing_error_is_tried_as_often_as_is_allowed_and_then_dead(night: Night) -> None:
    one = claimed(night, retry=Retry(attempts=3, delays=(timedelta(seconds=10),)))
    waits = []
    for attempt in (1, 2, 3):
        night.end((one, Ended.failed(ErrorClass.TRANSIENT, f"try {attempt}")))
        if attempt < 3:
            assert run_row(night.store, one.work.run_id, "state", "blocked", "reason", "error") == (
                "queued", "time", "unreachable", f"try {attempt}"
            )
            due = night.store.read(lambda tx: tx.next_timed())
            assert due is not None
            waits.append((due - night.clock.now()) / 1_000_000)
            night.sleep(seconds=10)
            [one] = night.claim()
    assert run_row(night.store, one.work.run_id, "state", "error", "attempt", "token") == ("failed", "try 3", 3, 3)
    assert all(1 <= wait <= 10 for wait in waits)
    assert waits[0] != waits[1], "the waits are spread"
    assert [k for k, *_ in inbox(night)] == ["dead_letter"]
    assert steps(night.store, one.work.run_id) == [
        "queued", "running", "queued", "running", "queued", "running", "failed"
    ]


def test_what_the_last_attempt_left_is_what_is_kept(night: Night) -> None:
    one = claimed(night, runner="function", deliver=[HOOK])
    night.end((one, Ended.failed(ErrorClass.TRANSIENT, "503", text="half a report", log="first")))
    assert rows(night.store, "SELECT text, log FROM run_output") == [("half a report", "first")]
    night.sleep(minutes=1)
    [again] = night.claim()
    night.store.write(lambda tx: tx.intend([(again.work.run_id, "k", "mail", 2, 2)], now=night.clock.now()))
    night.store.write(lambda tx: tx.effect_done(again.work.run_id, "k", "", now=night.clock.now()))
    night.end((again, Ended.ok("")))
    assert run_row(night.store, again.work.run_id, "state", "outcome") == ("succeeded", "action")
    [taken] = night.take()
    assert taken.parcel.body["data"]["text"] == ""
    assert [text for (text,) in rows(night.store, "SELECT text FROM run_output")] in ([], [""])


# -- fencing --------------------------------------------------------------------------------------------------------


def test_an_old_claim_changes_nothing(night: Night) -> None:
    old = claimed(night, deliver=[HOOK, DESK], idempotent=True)
    night.recover()
    new = Night(night.store, night.clock, worker="wrk_2").claim()[0]
    assert (old.work.token, new.work.token) == (1, 2)
    before = everything(night)
    assert night.end((old, Ended.ok("from the dead"))) == [None]
    assert everything(night) == before
    [result] = night.end((new, Ended.ok("from the living")))
    assert result is not None
    assert rows(night.store, "SELECT text FROM run_output") == [("from the living",)]


def test_an_old_claim_that_ends_in_one_batch_with_the_new_changes_nothing_either(night: Night) -> None:
    old = claimed(night, deliver=[HOOK], idempotent=True)
    night.recover()
    [new] = night.claim()
    first, second = night.end((old, Ended.ok("old")), (new, Ended.ok("new")))
    assert first is None
    assert second is not None
    assert rows(night.store, "SELECT text FROM run_output") == [("new",)]
    assert rows(night.store, "SELECT runs FROM rollup_month") == [(1,)]


def test_an_end_told_twice_is_written_once(night: Night) -> None:
    one = claimed(night, deliver=[HOOK])
    assert night.end((one, Ended.ok("x")))[0] is not None
    before = everything(night)
    assert night.end((one, Ended.ok("x"))) == [None]
    assert everything(night) == before


def everything(night: Night) -> list[list[tuple[Any, ...]]]:
    tables = ("run", "run_output", "transition", "delivery", "inbox", "rollup_month", "automation", "effect", "child")
    return [sorted(rows(night.store, f"SELECT * FROM {table}"), key=repr) for table in tables]


def test_what_a_runner_writes_is_fenced_too(night: Night) -> None:
    old = claimed(night, idempotent=True)
    assert night.store.write(lambda tx: tx.fence(old.work.run_id, 1))[0] == 1
    night.recover()
    night.claim()
    with pytest.raises(LostClaim):
        night.store.write(lambda tx: tx.fence(old.work.run_id, 1))
    assert night.store.write(lambda tx: tx.fence(old.work.run_id, 2))[0] == 2


def test_ends_are_written_together_and_each_has_its_result(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    for n in range(60):
        fire(night.store, brief, f"e-{n}", now=night.clock.now())
    all_claimed = night.claim()
    endings = [Ended.ok("x"), Ended.ok(""), Ended.timed_out("t"), Ended.failed(ErrorClass.TRANSIENT, "503"),
               Ended.cancelled(), Ended(Ending.HOLD)]
    results = night.end(*[(c, endings[n % 6]) for n, c in enumerate(all_claimed)])
    assert [r.state for r in results[:6] if r] == [
        RunState.SUCCEEDED, RunState.SKIPPED, RunState.TIMED_OUT, RunState.QUEUED, RunState.CANCELLED, RunState.HELD
    ]
    assert sorted(set(states(night.store))) == ["cancelled", "held", "queued", "skipped", "succeeded", "timed_out"]
    assert rows(night.store, "SELECT runs, succeeded, quiet, failed, cancelled FROM rollup_month") == [
        (40, 10, 10, 10, 10)
    ]


# -- where the result goes ------------------------------------------------------------------------------------------


def test_deliveries_are_made_with_the_end_one_for_each_destination(night: Night) -> None:
    one = claimed(night, deliver=[HOOK, FILE, Destination("calm", "webhook", {}, best_effort=True)])
    night.end((one, Ended.ok("report")))
    found = rows(
        night.store, "SELECT destination, kind, lane, state, best_effort, next_try_at, tries, event_id FROM delivery "
        "ORDER BY destination"
    )
    now = night.clock.now()
    assert [row[:7] for row in found] == [
        ("calm", "webhook", "webhook", "pending", 1, now, 0), ("file", "file", "file", "pending", 0, now, 0),
        ("hook", "webhook", "webhook:one.example.org", "pending", 0, now, 0),
    ]
    assert len({row[7] for row in found}) == 3


def test_no_delivery_is_made_before_the_run_has_ended(night: Night) -> None:
    one = claimed(night, deliver=[HOOK])
    night.end((one, Ended.failed(ErrorClass.TRANSIENT, "503")))
    assert rows(night.store, "SELECT 1 FROM delivery") == []


def test_an_announced_result_is_in_the_inbox_with_the_end(night: Night) -> None:
    one = claimed(night, deliver=[DESK, AUDIT], owner="ada", workspace="lab")
    night.end((one, Ended.ok("the report")))
    assert inbox(night) == [("result", "brief: report", "the report", "ada", "lab")]
    [(audit, noted), (desk, message)] = rows(
        night.store, "SELECT state, evidence FROM delivery WHERE ended_at IS NOT NULL ORDER BY destination"
    )
    assert (audit, desk, noted) == ("delivered", "delivered", "kept in the ledger")
    assert rows(night.store, "SELECT id FROM inbox") == [(message,)]


def test_a_long_result_is_cut_for_the_inbox_and_kept_whole_with_the_run(night: Night) -> None:
    one = claimed(night, deliver=[DESK])
    night.end((one, Ended.ok("x" * 50_000)))
    assert len(inbox(night)[0][2]) == 20_000
    assert rows(night.store, "SELECT length(text) FROM run_output") == [(50_000,)]


def test_a_failure_is_announced_once(night: Night) -> None:
    one = claimed(night, deliver=[DESK, HOOK])
    night.end((one, Ended.timed_out("too long")))
    assert [kind for kind, *_ in inbox(night)] == ["dead_letter"]
    assert rows(night.store, "SELECT destination FROM delivery") == [("hook",)]


def test_delivery_is_rung_in_the_same_commit(night: Night) -> None:
    one = claimed(night, deliver=[HOOK])
    seen: list[int] = []
    night.store.writer.ride(
        "delivery", lambda tx: len(tx.delivery_candidates(night.clock.now(), 10, ())), seen.append
    )
    night.end((one, Ended.ok("x")))
    assert seen == [1]


# -- health and months ----------------------------------------------------------------------------------------------


def health(night: Night) -> tuple[Any, ...]:
    [found] = rows(
        night.store,
        "SELECT last_run_id, last_outcome, last_success_at, last_failure_at, errors_in_a_row FROM automation",
    )
    return found


def test_errors_in_a_row_are_counted_and_a_success_ends_the_row(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    counts = []
    outcomes = [Ended.timed_out("t"), Ended.failed(ErrorClass.EXCEPTION, "x"), Ended.cancelled(), Ended.ok(""),
                Ended.timed_out("t")]
    for n, ended in enumerate(outcomes):
        fire(night.store, brief, f"e-{n}", now=night.clock.now())
        night.run_all(ended)
        counts.append(health(night)[4])
    assert counts == [1, 2, 2, 0, 1]


def test_health_tells_of_the_last_run_the_last_success_and_the_last_failure(night: Night) -> None:
    one = claimed(night)
    good = night.clock.now()
    night.end((one, Ended.ok("x")))
    assert health(night) == (one.work.run_id, "report", good, None, 0)
    night.sleep(hours=1)
    fire(night.store, "aut_default_brief", "e-2", now=night.clock.now())
    [bad] = night.run_all(Ended.timed_out("t"))
    assert health(night) == (bad.work.run_id, "failed", good, night.clock.now(), 1)


def test_health_of_many_ends_in_one_batch_is_that_of_one_after_the_other(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    for n in range(4):
        fire(night.store, brief, f"e-{n}", now=night.clock.now())
    ends = [Ended.timed_out("t"), Ended.ok("x"), Ended.timed_out("t"), Ended.timed_out("t")]
    night.end(*zip(night.claim(), ends, strict=True))
    assert health(night)[4] == 2


def test_an_attempt_that_is_tried_again_is_no_error_of_the_automation(night: Night) -> None:
    one = claimed(night)
    night.end((one, Ended.failed(ErrorClass.TRANSIENT, "503")))
    assert health(night) == (None, None, None, None, 0)
    assert rows(night.store, "SELECT 1 FROM rollup_month") == []


@pytest.mark.parametrize(
    ("timezone", "at", "month"),
    [
        ("UTC", datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC), "2026-03"),
        ("UTC", datetime(2026, 4, 1, tzinfo=UTC), "2026-04"),
        ("Pacific/Kiritimati", datetime(2026, 3, 31, 9, 59, 59, tzinfo=UTC), "2026-03"),
        ("Pacific/Kiritimati", datetime(2026, 3, 31, 10, 0, tzinfo=UTC), "2026-04"),
        ("Asia/Kathmandu", datetime(2026, 3, 31, 18, 14, 59, tzinfo=UTC), "2026-03"),
        ("Asia/Kathmandu", datetime(2026, 3, 31, 18, 15, tzinfo=UTC), "2026-04"),
        ("America/Los_Angeles", datetime(2027, 1, 1, 7, 59, tzinfo=UTC), "2026-12"),
    ],
)
def test_a_run_counts_in_the_month_that_it_is_in_the_automations_zone(
    store: Store, timezone: str, at: datetime, month: str
) -> None:
    night = Night(store, ManualClock(at))
    night.end((claimed(night, timezone=timezone), Ended.ok("x")))
    assert rows(store, "SELECT month, runs, succeeded FROM rollup_month") == [(month, 1, 1)]


def test_months_add_up(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    for n, ended in enumerate([Ended.ok("x"), Ended.ok(""), Ended.timed_out("t"), Ended.cancelled()]):
        fire(night.store, brief, f"e-{n}", now=night.clock.now())
        night.run_all(ended)
    assert rows(night.store, "SELECT runs, succeeded, quiet, failed, cancelled FROM rollup_month") == [(4, 1, 1, 1, 1)]


# -- one-shots ------------------------------------------------------------------------------------------------------


def one_shot(night: Night) -> str:
    at = a_clock_trigger("2026-03-27T09:00", kind="at")
    return an_automation(night.store, now=night.clock.now(), triggers=[at])


def fire_the_slot(night: Night, brief: str) -> None:
    slot = instant(datetime(2026, 3, 27, 9, tzinfo=UTC))
    night.clock.advance(timedelta(hours=1))
    night.store.write(lambda tx: tx.disarm([f"{brief}/clock"]))
    fire(night.store, brief, "slot", now=night.clock.now(), trigger="clock", scheduled_for=slot)


@pytest.mark.parametrize("ended", [Ended.ok("x"), Ended.ok(""), Ended.timed_out("t")], ids=["ok", "quiet", "failed"])
def test_a_one_shot_with_an_outcome_is_completed(night: Night, ended: Ended) -> None:
    brief = one_shot(night)
    fire_the_slot(night, brief)
    night.run_all(ended)
    assert rows(night.store, "SELECT state, state_by FROM automation") == [("completed", "desk")]


def test_a_one_shot_whose_moment_is_still_to_come_is_not_completed_by_a_run_by_hand(night: Night) -> None:
    brief = one_shot(night)
    fire(night.store, brief, now=night.clock.now(), trigger="manual")
    night.run_all(Ended.ok("x"))
    assert rows(night.store, "SELECT state FROM automation") == [("active",)]


def test_an_automation_without_a_moment_of_its_own_is_never_completed(night: Night) -> None:
    night.end((claimed(night), Ended.ok("x")))
    assert rows(night.store, "SELECT state FROM automation") == [("active",)]


# -- shut down ------------------------------------------------------------------------------------------------------

SHUTDOWN = Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN)


def test_a_shutdown_gives_back_what_had_not_acted_with_its_attempt(night: Night) -> None:
    one = claimed(night, runner="script")
    night.end((one, SHUTDOWN))
    assert run_row(night.store, one.work.run_id, "state", "attempt", "reason", "blocked") == (
        "queued", 0, "shutdown", None
    )
    [again] = night.claim()
    assert (again.work.attempt, again.work.token) == (1, 2)


def test_a_shutdown_sets_aside_what_may_have_acted_and_asks_a_person_once(night: Night) -> None:
    one = claimed(night, runner="python", owner="ada")
    night.end((one, SHUTDOWN))
    assert run_row(night.store, one.work.run_id, "state", "reason", "ended_at") == ("review", "shutdown", None)
    [(kind, title, text, owner, _)] = inbox(night)
    assert (kind, title, owner) == ("review", "brief may have acted and did not end", "ada")
    assert f"nightporter review {one.work.run_id} retry" in text
    assert rows(night.store, "SELECT state FROM effect") == [("intended",)], "what a person decides by is kept"


def test_a_shutdown_gives_back_what_may_be_repeated(night: Night) -> None:
    one = claimed(night, runner="python", idempotent=True)
    night.end((one, SHUTDOWN))
    assert run_row(night.store, one.work.run_id, "state") == ("queued",)


def test_a_child_that_was_let_go_counts_as_having_acted(night: Night) -> None:
    one = claimed(night, runner="script")
    night.store.write(lambda tx: tx.write_child(
        one.work.run_id, 1, worker="wrk_1", host="here", group=42, started=7
    ))
    night.end((one, SHUTDOWN))
    assert run_row(night.store, one.work.run_id, "state") == ("review",)


def test_an_attempt_that_ended_leaves_no_open_question(night: Night) -> None:
    one = claimed(night, runner="python")
    night.store.write(lambda tx: tx.write_child(
        one.work.run_id, 1, worker="wrk_1", host="here", group=42, started=7
    ))
    night.end((one, Ended.failed(ErrorClass.TRANSIENT, "503")))
    assert rows(night.store, "SELECT state FROM effect") == [("done",)]
    assert rows(night.store, "SELECT 1 FROM child") == []


# -- effects --------------------------------------------------------------------------------------------------------


def test_an_effect_makes_an_action_of_a_report(night: Night) -> None:
    one = claimed(night, runner="function")
    night.store.write(lambda tx: tx.intend([(one.work.run_id, "k", "mail", 1, 1)], now=night.clock.now()))
    night.store.write(lambda tx: tx.effect_done(one.work.run_id, "k", "https://x", now=night.clock.now()))
    night.end((one, Ended.ok("sent")))
    assert run_row(night.store, one.work.run_id, "outcome") == ("action",)


def test_the_mark_of_a_start_is_no_effect(night: Night) -> None:
    one = claimed(night, runner="python")
    night.end((one, Ended.ok("x")))
    assert run_row(night.store, one.work.run_id, "outcome") == ("report",)


