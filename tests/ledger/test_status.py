"""`status` says who is alive, what waits, and whether what is due was looked at."""

from __future__ import annotations

import json
from pathlib import Path

from acting import a_worker, after, begin, finish, send, setting

from conftest import START
from nightporter import operations
from nightporter.ledger import Status, status
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
