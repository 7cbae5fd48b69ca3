"""Admission: one line for each firing, one run for each telling, and the reasons why not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from nightporter.admission import admit
from nightporter.clock import HOUR, SECOND, Instant, ManualClock
from nightporter.errors import NotFound
from nightporter.rules.gates import PAYLOAD_LIMIT
from nightporter.store import Store
from nightporter.store.tx_sweep import STOPPED
from nightporter.words import (
    Answer,
    Firing,
    Limits,
    Overlap,
    Reason,
    RunId,
    Settled,
    TriggerSpec,
    Verdict,
    run_id_for,
)
from words import a_clock_trigger, a_firing, an_automation, fire, rows, run_row, states, steps, trigger_of

FREE = Limits(per_hour=None, queued=None, concurrent=None)


def lines(store: Store) -> list[tuple[Any, ...]]:
    """`(external id, dedupe key, verdict, reason, run)` of the ledger."""
    return rows(store, "SELECT external_id, dedupe_key, verdict, reason, run_id FROM firing ORDER BY id")


def slot(store: Store, automation: str, at: Instant, *, now: Instant, name: str = "clock") -> Answer:
    """A firing of the clock for one slot."""
    return fire(store, automation, f"slot {at}", now=now, trigger=name, scheduled_for=at)


# -- what an ordinary firing leaves ---------------------------------------------------------------------------------


def test_a_firing_becomes_a_queued_run_with_its_line_and_its_first_transition(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), owner="ada", workspace="lab", priority=20)
    answer = fire(store, brief, "e-1", now=clock.now(), sender="grace")
    assert (answer.verdict, answer.reason) == (Verdict.ADMITTED, None)
    assert answer.run_id == run_id_for(trigger_of(brief), "e-1", clock.now())
    assert lines(store) == [("e-1", "e-1", "admitted", None, answer.run_id)]
    assert run_row(
        store, answer.run_id, "workspace", "source", "version", "runner", "state", "blocked", "attempts", "attempt",
        "token", "seq", "rank", "queued_at", "has_payload",
    ) == (
        "lab", "call", 1, "echo", "queued", None, 3, 0, 0, 1, clock.now() + 20 * 10 * SECOND, clock.now(), 0,
    )
    assert steps(store, answer.run_id) == ["queued"]
    assert rows(store, "SELECT sender, owner, workspace, source FROM firing") == [("grace", "ada", "lab", "call")]
    assert rows(store, "SELECT firings, runs, last_verdict FROM trigger WHERE id = ?", trigger_of(brief)) == [
        (1, 1, "admitted")
    ]


def test_what_a_firing_carries_is_kept_beside_it(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    answer = fire(store, brief, now=clock.now(), text="héllo", payload='{"a": 1}', metadata='{"m": 2}')
    assert rows(store, "SELECT firing_id, text, payload, metadata FROM firing_payload") == [
        (answer.firing_id, "héllo", '{"a": 1}', '{"m": 2}')
    ]
    assert run_row(store, answer.run_id, "has_payload") == (1,)


def carried(store: Store, answer: Answer) -> tuple[Any, ...]:
    """`(text, payload, metadata)` that a line keeps."""
    [found] = rows(store, "SELECT text, payload, metadata FROM firing_payload WHERE firing_id = ?", answer.firing_id)
    return found


def test_what_became_no_run_keeps_what_it_carried_too(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), limits=Limits(per_hour=1, queued=None, concurrent=None))
    what: dict[str, Any] = {"text": "héllo", "payload": '{"a": 1}', "metadata": '{"m": 2}'}
    told = [fire(store, brief, key, now=clock.now(), **what) for key in ("e-1", "e-1", "e-2")]
    rows(store, "UPDATE automation SET state = 'paused'")
    told.append(fire(store, brief, "e-3", now=clock.now(), **what))
    assert [answer.reason for answer in told] == [
        None, Reason.SUPPRESSED_DUPLICATE, Reason.HOURLY_CEILING, Reason.PAUSED
    ]
    assert [carried(store, answer) for answer in told] == [("héllo", '{"a": 1}', '{"m": 2}')] * 4
    fire(store, brief, "e-4", now=clock.now())
    assert rows(store, "SELECT count(*) FROM firing_payload") == [(4,)], "what carries nothing leaves nothing"


def test_of_what_is_too_large_the_head_is_kept_whatever_the_verdict(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    large = '{"a": "' + "é" * PAYLOAD_LIMIT + '"}'
    told = [fire(store, brief, "e-1", now=clock.now(), text="read this", payload=large) for _ in range(2)]
    rows(store, "UPDATE automation SET state = 'paused'")
    told.append(fire(store, brief, "e-2", now=clock.now(), text="read this", payload=large))
    assert [answer.reason for answer in told] == [
        Reason.PAYLOAD_TOO_LARGE, Reason.SUPPRESSED_DUPLICATE, Reason.PAUSED
    ]
    for answer in told:
        assert carried(store, answer) == (f"read this\n{large}"[:2_000], None, None)


def test_a_run_knows_what_caused_it(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    answer = fire(store, brief, now=clock.now(), root=RunId("run_0"), depth=3, replay_of=RunId("run_9"))
    assert run_row(store, answer.run_id, "root", "depth", "replay_of") == ("run_0", 3, "run_9")
    assert rows(store, "SELECT root, depth FROM firing") == [("run_0", 3)]


def test_the_slot_of_a_clock_firing_is_kept_with_its_run_and_its_line(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[a_clock_trigger()])
    at = Instant(clock.now() - SECOND)
    answer = slot(store, brief, at, now=clock.now())
    assert run_row(store, answer.run_id, "scheduled_for", "source") == (at, "clock")
    assert rows(store, "SELECT scheduled_for, arrived_at FROM firing") == [(at, clock.now())]


def test_a_run_made_by_hand_goes_before_the_others(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    ordinary = fire(store, brief, now=clock.now())
    by_hand = fire(store, brief, now=clock.now(), trigger="manual")
    assert run_row(store, by_hand.run_id, "rank", "priority") == (clock.now() + 30 * SECOND, 3)
    assert run_row(store, ordinary.run_id, "rank") > run_row(store, by_hand.run_id, "rank")


def test_dispatch_is_rung_for_a_run_and_not_for_a_refusal(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    rung: list[int] = []
    store.writer.ride("queued", lambda tx: rung.append(1), lambda _: None)
    fire(store, brief, "e-1", now=clock.now())
    fire(store, brief, "e-1", now=clock.now())
    assert rung == [1]


def test_a_firing_of_an_unknown_trigger_is_an_error_and_nothing_is_written(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    with pytest.raises(NotFound, match="aut_x/call"):
        store.write(lambda tx: admit(tx, [a_firing(brief), a_firing("aut_x")], now=clock.now()))
    assert lines(store) == []
    assert states(store) == []


def test_no_firings_are_no_work(store: Store, clock: ManualClock) -> None:
    assert store.write(lambda tx: admit(tx, [], now=clock.now())) == []


# -- told twice -----------------------------------------------------------------------------------------------------


def test_what_was_told_before_stands_and_the_repeat_has_its_line(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    first = fire(store, brief, "e-1", now=clock.now())
    clock.advance(timedelta(days=1))
    again = fire(store, brief, "e-1", now=clock.now())
    assert (again.verdict, again.reason, again.run_id) == (
        Verdict.REPEATED, Reason.SUPPRESSED_DUPLICATE, first.run_id
    )
    assert again.firing_id != first.firing_id
    assert first.run_id is not None
    assert first.run_id in again.detail
    assert lines(store) == [
        ("e-1", "e-1", "admitted", None, first.run_id),
        ("e-1", None, "repeated", "suppressed_duplicate", first.run_id),
    ]
    assert states(store) == ["queued"]


def test_what_is_told_twice_in_one_batch_runs_once(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    answers = store.write(
        lambda tx: admit(tx, [a_firing(brief, "e-1"), a_firing(brief, "e-1"), a_firing(brief, "e-1")], now=clock.now())
    )
    assert [a.verdict for a in answers] == [Verdict.ADMITTED, Verdict.REPEATED, Verdict.REPEATED]
    assert len({a.firing_id for a in answers}) == 3
    assert states(store) == ["queued"]


def test_the_same_id_at_another_trigger_is_another_telling(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[TriggerSpec("hook", "call")])
    assert fire(store, brief, "e-1", now=clock.now()).verdict is Verdict.ADMITTED
    assert fire(store, brief, "e-1", now=clock.now(), trigger="hook").verdict is Verdict.ADMITTED


def test_repeats_in_one_instant_have_lines_of_their_own_in_whatever_batches_they_come(
    store: Store, clock: ManualClock
) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[TriggerSpec("hook", "call")])

    def telling(trigger: str) -> Firing:
        return a_firing(brief, "e-1", trigger=trigger)

    batches = [["call", "hook", "call"], ["call"], ["hook", "call"], ["call", "call"]]
    for batch in batches:
        store.write(lambda tx, batch=batch: admit(tx, [telling(t) for t in batch], now=clock.now()))  # type: ignore[misc]
    assert len(lines(store)) == sum(map(len, batches))


# -- refusals that keep no key, and those that do -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "reason"),
    [(Limits(per_hour=1), Reason.HOURLY_CEILING), (Limits(queued=1), Reason.QUEUE_FULL)],
)
def test_a_refusal_that_asks_to_try_again_lets_the_same_telling_through_later(
    store: Store, clock: ManualClock, limits: Limits, reason: Reason
) -> None:
    brief = an_automation(store, now=clock.now(), limits=limits)
    fire(store, brief, "e-1", now=clock.now())
    refused = fire(store, brief, "e-2", now=clock.now())
    assert refused.reason is reason
    assert rows(store, "SELECT dedupe_key FROM firing WHERE external_id = 'e-2'") == [(None,)]
    clock.advance(timedelta(hours=1))
    store.write(lambda tx: tx.cancel([(run_of(store, "e-1"), "cancelled_by", "test")], now=clock.now()))
    later = fire(store, brief, "e-2", now=clock.now())
    assert later.verdict is Verdict.ADMITTED


def run_of(store: Store, external: str) -> str:
    [(run,)] = rows(store, "SELECT run_id FROM firing WHERE external_id = ? AND run_id IS NOT NULL", external)
    return str(run)


def test_any_other_refusal_is_final_for_its_telling(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[TriggerSpec("hook", "call", overlap=Overlap.SKIP)])
    fire(store, brief, "e-1", now=clock.now())
    assert fire(store, brief, "e-2", now=clock.now(), trigger="hook").reason is Reason.OVERLAP
    again = fire(store, brief, "e-2", now=clock.now(), trigger="hook")
    assert (again.verdict, again.run_id) == (Verdict.REPEATED, None)
    assert again.detail == "the first telling became no run"


def test_a_slot_of_the_clock_is_answered_once_whatever_the_answer(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[a_clock_trigger()], limits=Limits(per_hour=1))
    fire(store, brief, now=clock.now())
    at = clock.now()
    assert slot(store, brief, at, now=clock.now()).reason is Reason.HOURLY_CEILING
    assert rows(store, "SELECT dedupe_key IS NOT NULL FROM firing WHERE source = 'clock'") == [(True,)]
    clock.advance(timedelta(hours=2))
    assert slot(store, brief, at, now=clock.now()).verdict is Verdict.REPEATED


def test_a_telling_whose_sender_named_no_id_is_never_a_repeat(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), limits=FREE)
    fire(store, brief, "drawn-1", now=clock.now(), drawn=True)
    assert lines(store)[0][1] is None
    clock.advance(timedelta(seconds=1))
    assert fire(store, brief, "drawn-1", now=clock.now(), drawn=True).verdict is Verdict.ADMITTED


# -- the gates, as they stand in the store --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "reason"),
    [("paused", Reason.PAUSED), ("auto_paused", Reason.PAUSED), ("proposed", Reason.PAUSED),
     ("config_error", Reason.CONFIGURATION), ("removed", Reason.DELETED)],
)
def test_an_automation_that_does_not_act_skips_with_its_reason(
    store: Store, clock: ManualClock, state: str, reason: Reason
) -> None:
    brief = an_automation(store, now=clock.now(), state=state)
    answer = fire(store, brief, now=clock.now())
    assert (answer.verdict, answer.reason, answer.run_id) == (Verdict.SKIPPED, reason, None)
    assert states(store) == []
    assert [(v, r) for _, _, v, r, _ in lines(store)] == [("skipped", str(reason))]


def test_a_trigger_that_is_switched_off_skips_and_the_others_do_not(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[TriggerSpec("hook", "call", enabled=False)])
    assert fire(store, brief, now=clock.now(), trigger="hook").reason is Reason.DISABLED
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED


def test_an_expired_automation_skips_from_its_instant_on(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), expires=Instant(clock.now() + SECOND))
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED
    clock.advance(timedelta(seconds=1))
    assert fire(store, brief, now=clock.now()).reason is Reason.EXPIRED


def test_a_stopped_desk_admits_nothing_not_even_by_hand(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    store.write(lambda tx: tx.put_setting(STOPPED, "{}"))
    assert fire(store, brief, now=clock.now()).reason is Reason.STOPPED
    assert fire(store, brief, now=clock.now(), trigger="manual").reason is Reason.STOPPED
    store.write(lambda tx: tx.drop_setting(STOPPED))
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED


def test_a_payload_is_measured_in_bytes_with_its_text(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now())
    fits = fire(store, brief, now=clock.now(), text="é" * (PAYLOAD_LIMIT // 2 - 1), payload="{}")
    assert fits.verdict is Verdict.ADMITTED
    large = fire(store, brief, now=clock.now(), text="é" * (PAYLOAD_LIMIT // 2), payload="{}")
    assert (large.verdict, large.reason) == (Verdict.REFUSED, Reason.PAYLOAD_TOO_LARGE)
    assert large.detail == f"{PAYLOAD_LIMIT + 2} bytes; the limit is {PAYLOAD_LIMIT}"


def test_the_cooldown_counts_from_the_last_start(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), cooldown=timedelta(minutes=10), limits=FREE)
    first = fire(store, brief, now=clock.now())
    assert fire(store, brief, now=clock.now()).reason is Reason.COOLDOWN
    store.write(lambda tx: tx.cancel([(str(first.run_id), "cancelled_by", "test")], now=clock.now()))
    store.write(lambda tx: tx.note_starts([brief], now=clock.now()))
    clock.advance(timedelta(minutes=9, seconds=59))
    answer = fire(store, brief, now=clock.now())
    assert answer.reason is Reason.COOLDOWN
    assert "the cooldown is 600 s" in answer.detail
    clock.advance(timedelta(seconds=1))
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED


def test_a_run_made_by_hand_that_still_waits_cools_nothing_down(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), cooldown=timedelta(minutes=10))
    fire(store, brief, now=clock.now(), trigger="manual")
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED


def test_the_hourly_ceiling_slides(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), limits=Limits(per_hour=2, queued=None))
    began = clock.now()
    fire(store, brief, now=clock.now())
    clock.advance(timedelta(minutes=30))
    fire(store, brief, now=clock.now())
    refused = fire(store, brief, now=clock.now())
    assert refused.reason is Reason.HOURLY_CEILING
    assert refused.detail == "the ceiling is 2 an hour; free again at 2026-03-27T09:00:00Z"
    clock.advance(timedelta(minutes=30) - timedelta(microseconds=1))
    assert fire(store, brief, now=clock.now()).reason is Reason.HOURLY_CEILING
    clock.advance(timedelta(microseconds=1))
    assert clock.now() - began == HOUR
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED
    assert fire(store, brief, now=clock.now()).reason is Reason.HOURLY_CEILING


def test_runs_made_by_hand_use_no_hour_and_no_place_in_the_line(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), limits=Limits(per_hour=1, queued=1))
    for _ in range(3):
        assert fire(store, brief, now=clock.now(), trigger="manual").verdict is Verdict.ADMITTED
    assert fire(store, brief, now=clock.now()).verdict is Verdict.ADMITTED
    assert fire(store, brief, now=clock.now()).reason is Reason.HOURLY_CEILING
    assert fire(store, brief, now=clock.now(), trigger="manual").verdict is Verdict.ADMITTED


def test_the_waiting_line_has_an_end(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), limits=Limits(per_hour=None, queued=2))
    assert [fire(store, brief, now=clock.now()).reason for _ in range(3)] == [None, None, Reason.QUEUE_FULL]


def test_the_ceiling_on_running_at_once_is_no_reason_not_to_admit(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), limits=Limits(concurrent=1))
    assert [fire(store, brief, now=clock.now()).verdict for _ in range(3)] == [Verdict.ADMITTED] * 3


# -- overlap --------------------------------------------------------------------------------------------------------


def hook(overlap: Overlap) -> TriggerSpec:
    return TriggerSpec("hook", "call", overlap=overlap)


def start(store: Store, run: str | None, *, now: Instant) -> None:
    store.write(lambda tx: tx.claim([str(run)], worker="wrk_1", now=now))


def test_skip_leaves_the_newer_out(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[hook(Overlap.SKIP)])
    first = fire(store, brief, now=clock.now(), trigger="hook")
    second = fire(store, brief, now=clock.now(), trigger="hook")
    assert second.reason is Reason.OVERLAP
    assert second.detail == f"{first.run_id} had not ended"


def test_queue_lets_it_wait_its_turn(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[hook(Overlap.QUEUE)])
    runs = [fire(store, brief, now=clock.now(), trigger="hook").run_id for _ in range(3)]
    assert [run_row(store, r, "state", "blocked") for r in runs] == [
        ("queued", None), ("queued", "overlap"), ("queued", "overlap")
    ]


def test_parallel_goes_beside(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[hook(Overlap.PARALLEL)])
    runs = [fire(store, brief, now=clock.now(), trigger="hook").run_id for _ in range(2)]
    assert [run_row(store, r, "blocked") for r in runs] == [(None,), (None,)]


def test_replace_takes_the_place_of_what_has_not_started(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[hook(Overlap.REPLACE)])
    old = fire(store, brief, now=clock.now(), trigger="hook").run_id
    new = fire(store, brief, now=clock.now(), trigger="hook").run_id
    assert run_row(store, old, "state", "reason", "cancel_by") == ("cancelled", "superseded", new)
    assert run_row(store, new, "state", "blocked") == ("queued", None)
    assert steps(store, old) == ["queued", "cancelled"]
    assert rows(store, "SELECT month, runs, cancelled FROM rollup_month") == [("2026-03", 1, 1)]


def test_replace_asks_what_is_running_to_end_and_starts_after_it(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[hook(Overlap.REPLACE)])
    running = fire(store, brief, now=clock.now(), trigger="hook").run_id
    start(store, running, now=clock.now())
    older = fire(store, brief, now=clock.now(), trigger="hook").run_id
    newest = fire(store, brief, now=clock.now(), trigger="hook").run_id
    assert run_row(store, running, "state", "cancel_reason", "cancel_by") == ("running", "superseded", older)
    assert run_row(store, older, "state", "reason") == ("cancelled", "superseded")
    assert run_row(store, newest, "state", "blocked") == ("queued", "overlap")


def test_replace_in_one_batch_keeps_the_newest(store: Store, clock: ManualClock) -> None:
    brief = an_automation(
        store, now=clock.now(), triggers=[hook(Overlap.REPLACE)], limits=Limits(per_hour=None, queued=2)
    )
    answers = store.write(lambda tx: admit(tx, [a_firing(brief, trigger="hook") for _ in range(5)], now=clock.now()))
    assert [a.verdict for a in answers] == [Verdict.ADMITTED] * 5
    assert [run_row(store, a.run_id, "state")[0] for a in answers] == ["cancelled"] * 4 + ["queued"]


def test_a_run_made_by_hand_goes_beside_whatever_is_going(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[TriggerSpec("manual", "manual", overlap=Overlap.QUEUE)])
    fire(store, brief, now=clock.now())
    assert run_row(store, fire(store, brief, now=clock.now(), trigger="manual").run_id, "blocked") == (None,)


def test_what_waits_for_a_person_is_in_nobodys_way(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[hook(Overlap.SKIP)])
    old = fire(store, brief, now=clock.now(), trigger="hook").run_id
    start(store, old, now=clock.now())
    store.write(lambda tx: tx.set_aside([(old, 1, "shutdown", "")]))
    assert fire(store, brief, now=clock.now(), trigger="hook").verdict is Verdict.ADMITTED


# -- slots that the clock has answered itself -----------------------------------------------------------------------


def test_slots_that_were_settled_leave_one_line_and_no_run(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), triggers=[a_clock_trigger()])
    settled = Settled(
        trigger_of(brief, "clock"), "collapsed:x", Verdict.COLLAPSED, Reason.MISSED_POLICY, Instant(1), Instant(9), 7,
        exact=False,
    )
    [answer] = store.write(lambda tx: admit(tx, [settled], now=clock.now()))
    assert (answer.verdict, answer.reason, answer.run_id) == (Verdict.COLLAPSED, Reason.MISSED_POLICY, None)
    assert rows(store, "SELECT slot_from, slot_to, slots, slots_exact FROM firing") == [(1, 9, 7, 0)]
    [again] = store.write(lambda tx: admit(tx, [settled], now=clock.now()))
    assert again.verdict is Verdict.REPEATED
    assert states(store) == []


def test_settled_slots_are_asked_at_no_gate(store: Store, clock: ManualClock) -> None:
    brief = an_automation(store, now=clock.now(), state="paused", triggers=[a_clock_trigger()])
    settled = Settled(
        trigger_of(brief, "clock"), "paused:x", Verdict.COLLAPSED, Reason.PAUSED, Instant(1), Instant(9), 7
    )
    [answer] = store.write(lambda tx: admit(tx, [settled], now=clock.now()))
    assert answer.verdict is Verdict.COLLAPSED


def test_free_again_is_told_for_the_automations_own_ceiling_in_a_mixed_batch(store: Store, clock: ManualClock) -> None:
    tight = an_automation(store, now=clock.now(), name="tight", limits=Limits(per_hour=1))
    wide = an_automation(store, now=clock.now(), name="wide", limits=Limits(per_hour=9))
    fire(store, tight, now=clock.now())
    clock.advance(timedelta(minutes=10))
    answers = store.write(lambda tx: admit(tx, [a_firing(tight), a_firing(wide)], now=clock.now()))
    assert answers[0].detail == "the ceiling is 1 an hour; free again at 2026-03-27T09:00:00Z"
