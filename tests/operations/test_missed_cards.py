"""Missed slots that wait for a person: run after all, dismissed, decided once, and dismissed with their automation."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from builders import Night

from nightporter import operations, sweep
from nightporter.clock import Instant, ManualClock
from nightporter.errors import Conflict, NotFound
from nightporter.ledger.missed import missed_cards, resolve_cards
from nightporter.store import Store
from nightporter.words import Answer, Missed, MissedPolicy, Overlap
from words import a_clock_trigger

HOURLY = a_clock_trigger("0 * * * *", missed=Missed(MissedPolicy.REVIEW))
CARDS = "SELECT state, decided_by, note, run_id FROM missed_card ORDER BY slot"


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    """Three hours were missed of `brief`."""
    night = Night(store, clock)
    night.runs["brief"] = night.define("brief", HOURLY)
    night.tick(hours=3, minutes=30)
    return night


def ids(night: Night) -> list[str]:
    """The cards that wait, the oldest slot first."""
    return [card.row.id for card in reversed(night.store.read(lambda tx: missed_cards(tx, night.now)))]


def execute(night: Night, card: str) -> Answer:
    return night.store.write(lambda tx: operations.execute_missed(tx, card, by="ann", now=night.now))


def dismiss(night: Night, card: str, note: str = "") -> None:
    night.store.write(lambda tx: operations.dismiss_missed(tx, card, by="ben", note=note, now=night.now))


def test_a_card_tells_its_slot_its_age_and_that_it_waits(night: Night) -> None:
    night.pass_time(minutes=5)
    told = [card.as_json() for card in night.store.read(lambda tx: missed_cards(tx, night.now))]
    assert [each["slot"] for each in told] == [f"2026-03-27T{hour}:00:00Z" for hour in ("11", "10", "09")]
    assert {(each["state"], each["age"], each["automation"], each["trigger"]) for each in told} == {
        ("pending", 300.0, "brief", "clock")}


def test_executing_a_card_runs_its_slot_late_and_leaves_its_line_as_it_is(night: Night) -> None:
    before = night.lines("id", "verdict", "reason", "slot_from", "slots")
    answer = execute(night, ids(night)[0])
    slot = Instant(night.sql("SELECT min(slot) FROM missed_card")[0][0])
    assert night.lines("scheduled_for", "external_id", "verdict", "sender", source="manual") == [
        (slot, "missed:2026-03-27T09:00:00Z", "admitted", "ann")]
    night.work()
    assert night.sql("SELECT scheduled_for, ran_late, catchup, state FROM run WHERE id = ?", answer.run_id) == [
        (slot, 1, 1, "succeeded")]
    assert night.sql(CARDS)[0] == ("executed", "ann", "", answer.run_id)
    assert night.lines("id", "verdict", "reason", "slot_from", "slots") == before
    assert night.found() == {}


def test_dismissing_a_card_writes_the_reason_and_runs_nothing(night: Night) -> None:
    before = night.lines("id", "verdict", "reason", "slot_from", "slots")
    dismiss(night, ids(night)[1], "the numbers came by mail")
    assert night.sql(CARDS)[1] == ("dismissed", "ben", "the numbers came by mail", None)
    assert night.sql("SELECT 1 FROM run") == []
    assert night.lines("id", "verdict", "reason", "slot_from", "slots") == before
    [told] = [c.as_json() for c in night.store.read(lambda tx: missed_cards(tx, night.now, decided=True))
              if c.row.state == "dismissed"]
    assert (told["reason"], told["note"]) == ("dismissed", "the numbers came by mail")
    assert night.found() == {}


@pytest.mark.parametrize("first", ["execute", "dismiss"])
@pytest.mark.parametrize("second", ["execute", "dismiss"])
def test_a_card_is_decided_once(night: Night, first: str, second: str) -> None:
    card = ids(night)[0]
    (execute if first == "execute" else dismiss)(night, card)
    with pytest.raises(Conflict, match=f"was {'executed' if first == 'execute' else 'dismissed'} already"):
        (execute if second == "execute" else dismiss)(night, card)
    assert len(night.sql("SELECT 1 FROM run")) == (first == "execute")
    assert night.found() == {}


def test_of_two_windows_that_decide_at_once_one_does(night: Night) -> None:
    card, outcomes = ids(night)[0], []
    together = threading.Barrier(2)

    def decide(how: str) -> None:
        together.wait()
        try:
            (execute if how == "executed" else dismiss)(night, card)
            outcomes.append(how)
        except Conflict:
            outcomes.append("too late")

    windows = [threading.Thread(target=decide, args=(how,)) for how in ("executed", "dismissed")]
    for window in windows:
        window.start()
    for window in windows:
        window.join()
    assert sorted(outcomes)[-1] == "too late"
    [(state, *_)] = night.sql("SELECT state FROM missed_card WHERE id = ?", card)
    assert state in outcomes
    assert len(night.sql("SELECT 1 FROM run")) == (state == "executed")
    assert night.found() == {}


def test_a_person_who_runs_one_waits_for_no_overlap(night: Night) -> None:
    answer = [execute(night, card) for card in ids(night)]
    assert len({each.run_id for each in answer}) == 3


def test_a_card_that_cannot_run_now_waits_on(night: Night) -> None:
    night.store.write(lambda tx: operations.stop(tx, by="ann", reason="too much", now=night.now))
    with pytest.raises(Conflict, match="cannot run now"):
        execute(night, ids(night)[0])
    assert len(ids(night)) == 3
    assert night.lines(source="manual") == []


def test_removing_an_automation_dismisses_its_cards(night: Night) -> None:
    cards = ids(night)
    night.remove(night.runs["brief"])
    assert night.sql(CARDS) == [("dismissed", "ann", "the automation was removed", None)] * 3
    with pytest.raises(Conflict, match=r"was removed"):
        execute(night, cards[0])
    assert night.found() == {}


def test_two_triggers_of_one_slot_are_two_runs(night: Night) -> None:
    both = night.define("both", a_clock_trigger("30 * * * *", missed=Missed(MissedPolicy.REVIEW)), a_clock_trigger(
        "30 * * * *", name="other", missed=Missed(MissedPolicy.REVIEW), overlap=Overlap.PARALLEL))
    night.tick(minutes=70)
    cards = [c.row.id for c in night.store.read(lambda tx: missed_cards(tx, night.now, automation_id=both))]
    assert len({execute(night, card).run_id for card in cards}) == 2
    assert {row[0] for row in night.lines("external_id", source="manual")} == {
        "missed:2026-03-27T12:30:00Z", "missed:2026-03-27T12:30:00Z@other"}
    assert night.found() == {}


def test_a_one_shot_that_was_completed_with_its_card_can_still_run(night: Night) -> None:
    once = night.define("once", a_clock_trigger("2026-03-27T12:00", kind="at"))
    night.tick(hours=2)
    assert night.row(once).state == "completed"
    [card] = night.store.read(lambda tx: missed_cards(tx, night.now, automation_id=once))
    execute(night, card.row.id)
    night.work()
    assert night.sql("SELECT state, ran_late FROM run") == [("succeeded", 1)]
    assert night.found() == {}


def test_cards_are_found_by_their_beginning_or_their_automation(night: Night) -> None:
    cards = ids(night)
    assert night.store.read(lambda tx: resolve_cards(tx, cards[0])) == [cards[0]]
    assert night.store.read(lambda tx: resolve_cards(tx, cards[0][:-3])) == [cards[0]]
    assert night.store.read(lambda tx: resolve_cards(tx, "brief")) == cards
    with pytest.raises(Conflict, match="more than one"):
        night.store.read(lambda tx: resolve_cards(tx, "msd_"))
    with pytest.raises(NotFound):
        night.store.read(lambda tx: resolve_cards(tx, "msd_ffff"))
    with pytest.raises(NotFound):
        execute(night, "msd_ffff")


def test_decided_cards_go_with_the_ledger_and_those_that_wait_stay(
    night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards = ids(night)
    dismiss(night, cards[0])
    execute(night, cards[1])
    night.work()
    night.store.write(lambda tx: tx.write_gap("down", Instant(night.now - 10), night.now, worker="w"))
    night.pause(night.runs["brief"])
    night.pass_time(days=29)
    keep = timedelta(days=7)
    while sweep.prune(night.store, keep_runs=keep, keep_ledger=keep, now=night.now):
        pass
    assert len(night.sql(CARDS)) == 3
    night.pass_time(days=2)
    monkeypatch.setattr(sweep.retention, "AT_ONCE", 1)
    turns = 1
    while sweep.prune(night.store, keep_runs=keep, keep_ledger=keep, now=night.now):
        turns += 1
    assert turns > 2, "it deletes so many at once, and no more"
    assert night.sql(CARDS) == [("pending", "", "", None)]
    assert night.sql("SELECT 1 FROM gap") == []
    assert night.found() == {}
