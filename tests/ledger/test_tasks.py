"""Work that is not as it should be is found by kind, with what to do; and what is merely held back is not."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from acting import a_worker, after, begin, die, finish, send
from builders import Night

from conftest import START
from nightporter.clock import Instant, ManualClock
from nightporter.ledger.tasks import NEXT, Kind, Tasks, tasks
from nightporter.outside.groups import birth_of
from nightporter.store import Store
from nightporter.store.locks import FileLock
from nightporter.words import Destination, Ended, Limits, Overlap, Receipt, Sent, TriggerSpec
from words import a_clock_trigger, a_definition, an_automation, fire, rows

NOW = START


def look(store: Store, now: int, host: str = "", room: int = 20) -> dict[str, Tasks]:
    found = store.read(lambda tx: tasks(tx, Instant(now), host=host, room=room))
    assert [some.kind for some in found] == list(Kind)
    return {str(some.kind): some for some in found}


def counts(store: Store, now: int, host: str = "") -> dict[str, int]:
    return {kind: some.count for kind, some in look(store, now, host).items() if some.count}


def tamper(store: Store, statement: str, *parameters: object) -> None:
    def work(tx):  # type: ignore[no-untyped-def]  # any transaction
        text = statement if tx.dialect == "sqlite" else statement.replace("?", "%s").encode()
        tx.sql._connection.execute(text, parameters)

    store.write(work)


def test_a_desk_that_is_well_has_no_such_work(store: Store) -> None:
    a_worker(store, NOW)
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    fire(store, automation, now=NOW)
    finish(store, begin(store, NOW)[0], Ended.ok("hi"), NOW)
    assert counts(store, after(NOW, minutes=30)) == {}


def test_a_run_that_could_have_been_claimed_for_ten_minutes_is_stale(store: Store) -> None:
    a_worker(store, NOW)
    run = fire(store, an_automation(store, now=NOW), now=NOW).run_id
    assert counts(store, after(NOW, minutes=10)) == {}
    late = after(NOW, minutes=10, seconds=1)
    assert counts(store, late) == {"stale_queued": 1}
    [item] = look(store, late)["stale_queued"].items
    assert (item.subject, item.automation, item.since) == (run, "brief", NOW)
    assert item.next.startswith(f"nightporter explain {run}")
    json.dumps(item.as_json())


def test_a_run_that_waits_with_a_cause_is_not_stale(store: Store) -> None:
    late = after(NOW, minutes=30)
    fire(store, an_automation(store, now=NOW), now=NOW)
    assert counts(store, late) == {}  # nobody is there to take it
    a_worker(store, after(NOW, minutes=25))
    assert counts(store, late) == {}  # somebody is, for five minutes
    queue = TriggerSpec("call", "call", overlap=Overlap.QUEUE)
    alone = an_automation(store, a_definition("alone", triggers=[queue], limits=Limits(timeout=None)), now=NOW)
    other = a_worker(store, NOW, role="worker")
    fire(store, alone, now=after(NOW, minutes=25))
    begin(store, after(NOW, minutes=25), worker=other, room=5)
    fire(store, alone, now=NOW)
    assert counts(store, late) == {}


@pytest.mark.parametrize(("timeout", "minutes", "found"), [
    (5, 6, 0), (5, 7, 1), (None, 30, 0), (None, 31, 1), (120, 31, 0), (120, 122, 1),
])
def test_a_run_is_stale_beyond_its_timeout_and_without_one_after_half_an_hour(
    store: Store, timeout: int | None, minutes: int, found: int
) -> None:
    limits = Limits(timeout=None if timeout is None else timedelta(minutes=timeout))
    run = fire(store, an_automation(store, a_definition(limits=limits), now=NOW), now=NOW).run_id
    begin(store, NOW)
    stale = look(store, after(NOW, minutes=minutes))["stale_running"]
    assert [item.subject for item in stale.items] == [run] * found == [run] * stale.count


def test_a_run_whose_worker_is_gone_is_lost_until_somebody_decides(store: Store, tmp_path: Path) -> None:
    (tmp_path / "free.lock").write_text("")
    store.write(lambda tx: tx.join("wrk_here", role="desk", host="here", pid=9, lock_path=str(tmp_path / "free.lock"),
                                   now=NOW))
    run = fire(store, an_automation(store, a_definition(runner="script"), now=NOW), now=NOW).run_id
    begin(store, NOW, worker="wrk_here")
    assert counts(store, after(NOW, seconds=1)) == {}
    assert counts(store, after(NOW, seconds=1), host="here") == {"lost": 1}  # its lock is free
    die(store, "wrk_here", after(NOW, seconds=2))
    later = look(store, after(NOW, minutes=5))["lost"]
    assert [item.subject for item in later.items] == [run]
    assert f"nightporter review {run} retry" in later.items[0].next


def test_a_result_that_was_not_delivered_is_found_unless_it_was_best_effort(store: Store) -> None:
    for name, best_effort in (("kept", False), ("lost", True)):
        out = Destination("out", "file", {"path": "out.txt"}, best_effort=best_effort)
        fire(store, an_automation(store, a_definition(name, deliver=[out]), now=NOW), now=NOW)
        finish(store, begin(store, NOW)[0], Ended.ok("hi"), NOW)
    send(store, Sent(Receipt.PERMANENT, error="404"), NOW)
    [item] = look(store, after(NOW, seconds=1))["delivery_failed"].items
    assert (item.automation, item.what.endswith("was not delivered to out: 404")) == ("kept", True)


def test_what_an_ended_worker_still_holds_is_missing_cleanup(store: Store) -> None:
    a_worker(store, NOW, name="wrk_other")
    fire(store, an_automation(store, now=NOW), now=NOW)
    begin(store, NOW, worker=a_worker(store, NOW, name="wrk_gone"))
    store.write(lambda tx: tx.end_worker("wrk_gone", "dead", now=NOW))
    assert counts(store, after(NOW, seconds=30)) == {}  # a sweep is about to take it back
    found = counts(store, after(NOW, minutes=5))
    assert found == {"missing_cleanup": 1, "lost": 1}


def test_processes_of_a_run_that_has_ended_are_missing_cleanup_on_their_machine(store: Store) -> None:
    a_worker(store, NOW)
    fire(store, an_automation(store, now=NOW), now=NOW)
    claimed = begin(store, NOW)[0]
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as left:
        birth = birth_of(left.pid)
        assert birth is not None
        tamper(store, "INSERT INTO child (run_id, token, worker, host, process_group, started) "
                      "VALUES (?, 1, ?, ?, ?, ?)", claimed.work.run_id, "wrk", "here", os.getpgid(left.pid), birth)
        assert counts(store, after(NOW, minutes=2), host="here") == {}
        finish(store, claimed, Ended.ok("hi"), NOW)
        assert counts(store, after(NOW, minutes=2), host="elsewhere") == {}
        found = look(store, after(NOW, minutes=2), host="here")["missing_cleanup"]
        assert [item.subject for item in found.items] == [claimed.work.run_id]
        left.kill()
        left.wait()
    assert counts(store, after(NOW, minutes=2), host="here") == {}


def test_a_slot_that_passed_while_a_desk_is_there_is_found(store: Store) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    late = after(NOW, hours=1, minutes=2)
    assert counts(store, late) == {}
    a_worker(store, NOW)
    [item] = look(store, late)["slot_in_the_past"].items
    assert (item.automation, item.since) == ("brief", after(NOW, hours=1))


def test_slots_told_twice_and_instants_that_contradict_one_another_are_found(store: Store) -> None:
    night = Night(store, ManualClock(NOW))
    night.define("brief", a_clock_trigger("0 * * * *"))
    night.hours(2)
    assert counts(store, night.now) == {}
    slots = rows(store, "SELECT id, scheduled_for FROM firing WHERE source = 'clock' ORDER BY id")
    tamper(store, "UPDATE firing SET scheduled_for = ? WHERE id = ?", slots[0][1], slots[1][0])
    assert look(store, night.now)["duplicate_slot"].count >= 1
    tamper(store, "UPDATE firing SET scheduled_for = ? WHERE id = ?", slots[1][1], slots[1][0])
    tamper(store, "UPDATE run SET started_at = started_at - 7200000000")
    assert look(store, night.now)["inconsistent_timestamps"].count >= 2


def test_all_are_counted_and_the_first_are_named(store: Store) -> None:
    a_worker(store, NOW)
    automation = an_automation(store, now=NOW)
    for n in range(5):
        fire(store, automation, f"e{n}", now=after(NOW, seconds=n))
    found = look(store, after(NOW, hours=1), room=2)["stale_queued"]
    assert (found.count, [item.since for item in found.items]) == (5, [NOW, after(NOW, seconds=1)])


def test_every_kind_says_what_to_do() -> None:
    assert set(NEXT) == set(Kind)


def test_a_living_desk_of_this_machine_is_nobodys_loss(store: Store, tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "held.lock")
    assert lock.take()
    store.write(lambda tx: tx.join("wrk_here", role="desk", host="here", pid=9, lock_path=str(lock.path), now=NOW))
    fire(store, an_automation(store, now=NOW), now=NOW)
    begin(store, NOW, worker="wrk_here")
    assert counts(store, after(NOW, seconds=1), host="here") == {}
    lock.let_go()
    assert counts(store, after(NOW, seconds=1), host="here") == {"lost": 1}


def test_of_an_alert_that_did_not_arrive_the_incident_is_named_and_what_somebody_closed_is_not_found(
    store: Store
) -> None:
    out = Destination("out", "file", {"path": "out.txt"})
    fire(store, an_automation(store, a_definition(deliver=[out]), now=NOW), now=NOW)
    finish(store, begin(store, NOW)[0], Ended.ok("hi"), NOW)
    send(store, Sent(Receipt.PERMANENT, error="404"), NOW)
    tamper(store, "UPDATE delivery SET alert = 'opened'")
    [item] = look(store, after(NOW, seconds=1))["delivery_failed"].items
    assert item.what.startswith("the alert about ")
    assert item.next == "nightporter inbox has a copy of what it says"
    tamper(store, "UPDATE delivery SET closed_at = ?", NOW)
    assert counts(store, after(NOW, seconds=1)) == {}
