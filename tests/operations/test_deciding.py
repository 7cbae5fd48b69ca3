"""Deciding: dead letters run again together or are dismissed, incidents are closed, and results are sent no more."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from armed import FREE
from night import Night
from turns import waits_for_a_lock

from nightporter import operations
from nightporter.clock import SECOND, ManualClock
from nightporter.errors import Conflict, NotFound
from nightporter.ledger import dead_letters
from nightporter.store import Store, Tx, open_store
from nightporter.words import Destination, Ended, ErrorClass, Receipt, Sent
from words import an_automation, fire, rows

HOOK = Destination("hook", "webhook", {"url": "https://hook.example/in"})


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def dead(night: Night, *errors: str, name: str = "brief") -> list[str]:
    """Dead letters of an automation, the oldest first."""
    automation = an_automation(night.store, now=night.clock.now(), name=name, limits=FREE)
    ids: list[str] = []
    for n, error in enumerate(errors):
        night.sleep(seconds=1)
        fire(night.store, automation, f"e-{n}", now=night.clock.now())
        ids += [one.work.run_id for one in night.run_all(Ended.failed(ErrorClass.EXCEPTION, error))]
    return ids


def listed(night: Night, **of: str) -> list[str]:
    return [line.id for line in night.store.read(lambda tx: dead_letters(tx, **of)).items]  # type: ignore[arg-type]


def test_dead_letters_that_run_again_together_start_two_seconds_apart_and_leave_the_list(night: Night) -> None:
    letters = dead(night, "a", "b", "c")
    now = night.clock.now()
    night.store.write(lambda tx: operations.replay_together(tx, letters, by="ana", now=now))
    found = rows(night.store, "SELECT replay_of, run_after - ? FROM run WHERE state = 'queued' ORDER BY run_after", now)
    assert found == [(letter, 2 * n * SECOND) for n, letter in enumerate(letters)]
    assert len(night.claim()) == 1
    night.sleep(seconds=4)
    assert len(night.claim()) == 2
    assert listed(night) == []
    assert rows(night.store, "SELECT count(*) FROM dead_letter l JOIN run r ON r.id = l.replayed_by") == [(3,)]
    assert rows(night.store, "SELECT DISTINCT state FROM run WHERE dead_at IS NOT NULL") == [("failed",)]


@pytest.mark.parametrize("meanwhile", ["replayed", "dismissed"])
def test_dead_letters_that_two_people_decide_about_at_once_are_decided_once(
    night: Night, store_url: str, meanwhile: str
) -> None:
    letters = dead(night, "a", "b")
    other = open_store(store_url, now=night.clock.now(), patience=20.0)
    decided, go_on = threading.Event(), threading.Event()

    def replay(tx: Tx) -> list[str]:
        return [run for run, _ in operations.replay_together(tx, letters, by="ana", now=night.clock.now())]

    def first(tx: Tx) -> None:
        if meanwhile == "replayed":
            replay(tx)
        else:
            operations.dismiss_dead(tx, letters, by="ben", now=night.clock.now())
        decided.set()
        assert go_on.wait(20)

    with ThreadPoolExecutor() as pool:
        one = pool.submit(other.write, first)
        assert decided.wait(20)
        second = pool.submit(night.store.write, replay)
        while other.dialect == "postgres" and not second.done() and not waits_for_a_lock(other):
            pass
        go_on.set()
        one.result(20)
        assert second.result(20) == []
    assert rows(night.store, "SELECT count(*) FROM run WHERE replay_of IS NOT NULL") == [
        (2 if meanwhile == "replayed" else 0,)]
    assert rows(night.store, "SELECT DISTINCT decision FROM dead_letter") == [(meanwhile,)]
    other.close()


def test_dead_letters_are_listed_by_the_fault_whatever_its_numbers(night: Night) -> None:
    first, other, second = dead(night, "no answer after 12 s", "no disk", "no answer after 7 s")
    assert listed(night, fault="no answer after 99 s") == [second, first]
    assert listed(night, reason="exception") == [second, other, first]
    assert listed(night, reason="timeout") == []


def test_what_is_dismissed_leaves_the_list_once_and_its_message_is_read(night: Night) -> None:
    one, other = dead(night, "a", "b")
    counts = [
        night.store.write(lambda tx: operations.dismiss_dead(tx, [one], by="ana", now=night.clock.now()))
        for _ in range(2)
    ]
    assert counts == [1, 0]
    assert listed(night) == [other]
    assert rows(night.store, "SELECT run_id FROM inbox WHERE read_at IS NULL") == [(other,)]


def test_an_incident_is_closed_once_and_one_that_is_not_there_is_not_found(night: Night) -> None:
    dead(night, "a")
    [(incident,)] = rows(night.store, "SELECT id FROM incident")

    def close(id: str) -> None:
        night.store.write(
            lambda tx: operations.resolve_incident(tx, id, by="ana", note="mended", now=night.clock.now()))

    close(incident)
    assert rows(night.store, "SELECT state, decided_by, note FROM incident") == [("resolved", "ana", "mended")]
    with pytest.raises(Conflict, match="is resolved already"):
        close(incident)
    with pytest.raises(NotFound):
        close("inc_x")


def test_a_result_that_need_not_be_sent_wants_nobody_until_it_is_sent_again(night: Night) -> None:
    automation = an_automation(night.store, now=night.clock.now(), deliver=[HOOK])
    fire(night.store, automation, "e", now=night.clock.now())
    night.run_all(Ended.ok("x"))
    [taken] = night.take()
    night.record((taken, Sent(Receipt.PERMANENT, error="410 gone")))
    delivery = taken.parcel.delivery_id
    night.store.write(lambda tx: operations.close_deliveries(tx, [delivery], by="ana", now=night.clock.now()))
    assert night.store.read(lambda tx: tx.sql.all("read_delivery_counts"))[0][3] == 0
    night.store.write(lambda tx: operations.resend(tx, delivery, now=night.clock.now()))
    assert rows(night.store, "SELECT state, closed_at FROM delivery") == [("pending", None)]
