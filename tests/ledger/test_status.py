"""`status` says who is alive, what waits, and whether what is due was looked at."""

from __future__ import annotations

import json
from pathlib import Path

from acting import a_worker, after, begin, finish, send, setting

from conftest import START
from nightporter import operations
from nightporter.ledger import Status, status
from nightporter.ledger.status import DeskWord
from nightporter.store import Store
from nightporter.store.locks import FileLock
from nightporter.words import Destination, Ended, ErrorClass, Limits, Overlap, Receipt, Retry, Sent, TriggerSpec
from words import a_clock_trigger, a_definition, an_automation, fire

NOW = START


def now_is(store: Store, now: int = NOW, host: str = "") -> Status:
    return store.read(lambda tx: status(tx, after(now), host=host))


def test_an_empty_desk_is_not_healthy_and_says_so_with_zeros(store: Store) -> None:
    shown = now_is(store).as_json()
    assert (shown["healthy"], shown["workers"], shown["due_evaluated_at"]) == (False, [], None)
    assert (shown["queued"], shown["running"], shown["dead_letters"], shown["inbox_unread"]) == (0, 0, 0, 0)
    assert (shown["store"], shown["schema_version"] >= 1) == (store.dialect, True)
    json.dumps(shown)


def test_a_desk_is_healthy_while_it_looks_at_what_is_due(store: Store) -> None:
    a_worker(store, NOW)
    setting(store, "due_evaluated_at", NOW)
    assert now_is(store, after(NOW, seconds=100)).healthy
    assert now_is(store, after(NOW, seconds=100)).due_evaluated_ago == 100.0
    assert not now_is(store, after(NOW, minutes=5)).healthy
    store.write(lambda tx: operations.stop(tx, by="ana", reason="enough", now=NOW))
    stopped = now_is(store, after(NOW, seconds=100))
    assert not stopped.healthy
    assert stopped.as_json()["stopped"] == {"by": "ana", "reason": "enough", "at": "2026-03-27T08:00:00Z"}


def test_workers_of_this_machine_are_alive_by_their_locks(store: Store, tmp_path: Path) -> None:
    (tmp_path / "free").write_text("")
    lock = FileLock(tmp_path / "held.lock")
    assert lock.take()
    for name, host, path in (
        ("wrk_a", "here", str(lock.path)), ("wrk_b", "here", str(tmp_path / "free")), ("wrk_c", "there", "/x"),
        ("wrk_d", "here", str(tmp_path / "on another machine of that name")),
    ):
        store.write(lambda tx, name=name, host=host, path=path: tx.join(  # type: ignore[misc]  # bound per turn
            name, role="desk", host=host, pid=1, lock_path=path, now=NOW
        ))
    found = now_is(store, NOW, host="here")
    assert {w.id: w.alive for w in found.workers} == {"wrk_a": True, "wrk_b": False, "wrk_c": None, "wrk_d": None}
    assert found.standby == 2
    assert found.healthy  # the living one is young and has had no occasion yet to say that it looked
    lock.let_go()
    assert not now_is(store, NOW, host="here").healthy


def test_what_waits_is_told_apart_by_what_it_waits_for(store: Store) -> None:
    queue = TriggerSpec("call", "call", overlap=Overlap.QUEUE)
    alone = an_automation(store, a_definition("alone", triggers=[queue]), now=NOW)
    fire(store, alone, now=NOW)
    begin(store, NOW)
    fire(store, alone, now=after(NOW, seconds=10))
    free = an_automation(store, a_definition("free", limits=Limits(concurrent=None)), now=NOW)
    fire(store, free, now=after(NOW, seconds=20))
    fire(store, free, now=after(NOW, seconds=25))
    found = now_is(store, after(NOW, seconds=30))
    assert {w.on: (w.runs, w.oldest) for w in found.waiting} == {"claim": (2, 10.0), "overlap": (1, 20.0)}
    assert (found.queued, found.running, found.longest_running) == (3, 1, 30.0)
    assert found.automations == {"active": 2}


def test_deliveries_dead_letters_and_messages_are_counted(store: Store) -> None:
    file = Destination("out", "file", {"path": "out.txt"})
    automation = an_automation(
        store, a_definition(deliver=[file], retry=Retry(attempts=1), triggers=[a_clock_trigger()]), now=NOW
    )
    for n, sent in enumerate([Sent(Receipt.PERMANENT, error="404"), Sent(Receipt.TRANSIENT, error="503")]):
        at = after(NOW, seconds=n)
        fire(store, automation, now=at)
        finish(store, begin(store, at)[0], Ended.ok("hi"), at)
        send(store, sent, at)
    fire(store, automation, now=after(NOW, seconds=5))
    at = after(NOW, seconds=5)
    finish(store, begin(store, at)[0], Ended.failed(ErrorClass.EXCEPTION, "no"), at)
    found = now_is(store, after(NOW, seconds=6))
    assert (found.deliveries_pending, found.deliveries_sending, found.deliveries_failed) == (2, 0, 1)
    assert found.next_try_at is not None
    assert after(NOW, seconds=1) < found.next_try_at <= at
    assert (found.dead_letters, found.inbox_unread) == (1, 2)
    assert (found.armed, found.next_fire_at) == (1, after(NOW, hours=1))


def test_a_desk_that_lives_and_does_not_look_is_frozen_and_not_running(store: Store, tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "held.lock")
    assert lock.take()
    store.write(lambda tx: tx.join("wrk_a", role="desk", host="here", pid=1, lock_path=str(lock.path), now=NOW))
    assert now_is(store, after(NOW, seconds=100), host="here").desk is DeskWord.RUNNING  # young
    setting(store, "due_evaluated_at", after(NOW, minutes=3))
    assert now_is(store, after(NOW, minutes=4), host="here").desk is DeskWord.RUNNING
    frozen = now_is(store, after(NOW, minutes=6), host="here")
    assert (frozen.desk, frozen.healthy, frozen.due_evaluated_ago) == (DeskWord.FROZEN, False, 180.0)
    lock.let_go()
    assert now_is(store, after(NOW, minutes=6), host="here").desk is DeskWord.GONE


def test_a_desk_that_drains_is_not_running(store: Store) -> None:
    a_worker(store, NOW, name="wrk_a")
    setting(store, "due_evaluated_at", NOW)
    assert now_is(store).desk is DeskWord.RUNNING
    store.write(lambda tx: tx.drains("wrk_a", now=after(NOW, seconds=5)))
    found = now_is(store, after(NOW, seconds=6))
    assert (found.desk, found.healthy, found.standby) == (DeskWord.DRAINING, False, 0)
    assert found.workers[0].draining_at == after(NOW, seconds=5)
    a_worker(store, NOW, name="wrk_b")
    assert now_is(store, after(NOW, seconds=6)).desk is DeskWord.RUNNING


def test_how_far_the_answers_are_behind_is_said_and_what_comes(store: Store) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    assert now_is(store).due_behind == 0
    [coming] = now_is(store).coming
    assert (coming.automation, coming.trigger, coming.at) == ("brief", "clock", after(NOW, hours=1))
    assert now_is(store, after(NOW, hours=1, seconds=90)).due_behind == 90.0


def test_gaps_of_the_clock_incidents_and_missed_slots_that_wait_are_said(store: Store) -> None:
    def write(statement: str, *parameters: object) -> None:
        def work(tx):  # type: ignore[no-untyped-def]  # any transaction
            text = statement if tx.dialect == "sqlite" else statement.replace("?", "%s").encode()
            tx.sql._connection.execute(text, parameters)

        store.write(work)

    found = now_is(store)
    assert (found.gaps, found.incidents, found.missed_cards) == ((), {}, 0)
    for kind, since, until in (("sleep", after(NOW, hours=-9), after(NOW, hours=-1)),
                               ("down", after(NOW, days=-9), after(NOW, days=-8))):
        write("INSERT INTO gap (kind, gap_from, gap_to, worker) VALUES (?, ?, ?, 'w')", kind, since, until)
    for n, state in enumerate(("pending", "pending", "executed")):
        write("INSERT INTO missed_card (id, workspace, automation_id, trigger_id, firing_id, slot, state, created_at) "
              "VALUES (?, 'default', 'a', 'a/clock', 'f', ?, ?, ?)", f"c{n}", NOW + n, state, NOW)
    for n, state in enumerate(("open", "acknowledged", "resolved")):
        write("INSERT INTO incident (id, workspace, automation_id, kind, route, signature, state, count, first_at, "
              "last_at, subject, error) VALUES (?, 'default', 'a', 'execution', 'r', ?, ?, 1, ?, ?, 'run', '')",
              f"i{n}", str(n), state, NOW, NOW)
    found = now_is(store)
    assert [(gap.kind, gap.since, gap.until) for gap in found.gaps] == [
        ("sleep", after(NOW, hours=-9), after(NOW, hours=-1))]
    assert (found.incidents, found.missed_cards) == ({"open": 1, "acknowledged": 1}, 2)
    json.dumps(found.as_json())
