"""Lists and details of runs and of what goes with them: each row is there, in order, page after page."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from acting import a_worker, after, begin, finish, send, setting
from paging import FILE, NOW, every_page

from nightporter import ledger, operations
from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.sources.clock import settle
from nightporter.store import Store, Tx
from nightporter.words import (
    Destination,
    Ended,
    ErrorClass,
    Limits,
    Overlap,
    Receipt,
    Retry,
    Sent,
    TriggerSpec,
)
from words import a_clock_trigger, a_definition, an_automation, fire

# -- runs ---------------------------------------------------------------------------------------------------------


def test_runs_come_newest_first_page_by_page_over_all_and_of_one_automation(store: Store) -> None:
    one = an_automation(store, a_definition("one"), now=NOW)
    two = an_automation(store, a_definition("two"), now=NOW)
    made = [
        (name, str(fire(store, automation, now=after(NOW, seconds=n)).run_id))
        for n, (name, automation) in enumerate([("one", one), ("two", two)] * 4)
    ]
    newest = [run for _, run in reversed(made)]
    assert [r.id for r in every_page(store, lambda tx, at: ledger.runs(tx, cursor=at, limit=3))] == newest
    of_two = every_page(store, lambda tx, at: ledger.runs(tx, automation_id=two, cursor=at, limit=3))
    assert [r.id for r in of_two] == [run for name, run in reversed(made) if name == "two"]
    since = after(NOW, seconds=5)
    assert [r.id for r in store.read(lambda tx: ledger.runs(tx, since=since)).items] == newest[:3]
    assert [r.id for r in store.read(lambda tx: ledger.runs(tx, automation_id=two, since=since)).items] == newest[:3:2]


def test_runs_of_one_instant_are_each_on_one_page(store: Store) -> None:
    automation = an_automation(store, a_definition(limits=Limits(concurrent=None)), now=NOW)
    made = {str(fire(store, automation, now=NOW).run_id) for _ in range(7)}
    found = every_page(store, lambda tx, at: ledger.runs(tx, automation_id=automation, cursor=at, limit=2))
    assert (len(found), {r.id for r in found}) == (7, made)


@pytest.mark.parametrize("state", ["queued", "running", "succeeded", "failed", "review", "held"])
def test_runs_of_a_state_are_found_among_others(store: Store, state: str) -> None:
    automation = an_automation(store, a_definition(runner="script", limits=Limits(concurrent=None)), now=NOW)
    runs = [str(fire(store, automation, now=after(NOW, seconds=n)).run_id) for n in range(6)]
    claimed = {c.work.run_id: c for c in begin(store, after(NOW, seconds=9), room=6)}
    later = after(NOW, seconds=10)
    from nightporter.words import Ending, Reason

    finish(store, claimed[runs[0]], Ended.ok("text"), later)  # type: ignore[index]  # ids are text
    finish(store, claimed[runs[1]], Ended.failed(ErrorClass.EXCEPTION, "no"), later)  # type: ignore[index]
    finish(store, claimed[runs[2]], Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN), later)  # type: ignore[index]
    finish(store, claimed[runs[3]], Ended(Ending.HOLD, error="429"), later)  # type: ignore[index]
    waits = str(fire(store, automation, now=later).run_id)
    expected = {
        "succeeded": [runs[0]], "failed": [runs[1]], "review": [runs[2]], "held": [runs[3]],
        "running": [runs[5], runs[4]], "queued": [waits],
    }[state]
    assert [r.id for r in store.read(lambda tx: ledger.runs(tx, state=state)).items] == expected
    of_one = store.read(lambda tx: ledger.runs(tx, state=state, automation_id=automation))
    assert [r.id for r in of_one.items] == expected
    if len(expected) > 1:
        one_by_one = every_page(store, lambda tx, at: ledger.runs(tx, state=state, cursor=at, limit=1))
        assert [r.id for r in one_by_one] == expected


def test_a_state_or_a_cursor_that_is_none_is_refused(store: Store) -> None:
    with pytest.raises(BadInput, match="no state of a run"):
        store.read(lambda tx: ledger.runs(tx, state="done"))
    with pytest.raises(BadInput, match="no cursor of this list"):
        store.read(lambda tx: ledger.dead_letters(tx, cursor="tomorrow"))
    lists: list[Callable[[Tx], object]] = [
        lambda tx: ledger.runs(tx, cursor="tomorrow"), lambda tx: ledger.firings(tx, cursor="tomorrow"),
        lambda tx: ledger.deliveries(tx, cursor="tomorrow"), lambda tx: ledger.inbox(tx, cursor="tomorrow"),
        lambda tx: ledger.automations(tx, cursor="tomorrow"),
    ]
    for read in lists:
        with pytest.raises(BadInput, match="'tomorrow' is no cursor of this list"):
            store.read(read)
    with pytest.raises(BadInput, match="'foo' is no kind of message"):
        store.read(lambda tx: ledger.inbox(tx, kind="foo"))
    with pytest.raises(BadInput, match="shows nothing"):
        store.read(lambda tx: ledger.firings(tx, limit=0))


def test_the_detail_of_a_run_tells_its_whole_way(store: Store) -> None:
    automation = an_automation(
        store,
        a_definition(triggers=[a_clock_trigger()], deliver=[FILE], runner="script",
                     retry=Retry(attempts=2, delays=(timedelta(seconds=30),))),
        now=NOW,
    )
    slot = after(NOW, hours=1)
    store.write(lambda tx: settle(tx, automation, now=after(slot, seconds=2)))
    worker = a_worker(store, NOW)
    first = begin(store, after(slot, seconds=2.5), worker=worker)[0]
    finish(store, first, Ended.failed(ErrorClass.TRANSIENT, "503", log="try one"), after(slot, seconds=3))
    second = begin(store, after(slot, minutes=2), worker=worker)[0]
    run, token = second.work.run_id, second.work.token
    store.write(lambda tx: tx.intend([(run, "mail:1", "mail", 2, token)], now=after(slot, minutes=2)))
    store.write(lambda tx: tx.effect_done(run, "mail:1", "https://mail/1", now=after(slot, minutes=2, seconds=1)))
    good = Ended.ok("Two letters.", data={"letters": 2}, log="try two")
    finish(store, second, good, after(slot, minutes=2, seconds=2))
    send(store, Sent(Receipt.TRANSIENT, error="disk full"), after(slot, minutes=3))
    send(store, Sent(Receipt.DELIVERED, evidence="/home/out.txt"), after(slot, minutes=9))

    shown = store.read(lambda tx: ledger.run_detail(tx, run)).as_json()
    assert (shown["state"], shown["outcome"], shown["attempt"], shown["late"]) == ("succeeded", "action", 2, 2.5)
    assert (shown["duration"], shown["ran_late"], shown["scheduled_for"]) == (2.0, False, "2026-03-27T09:00:00Z")
    assert [(s["what"], s["after"]) for s in shown["timeline"]] == [
        ("due", 0.0), ("admitted", 2.0), ("started", 2.5), ("again", 3.0), ("started", 120.0), ("effect", 121.0),
        ("ended", 122.0), ("try", 180.0), ("try", 540.0), ("delivered", 540.0),
    ]
    assert shown["timeline"][3]["text"].startswith("queued again. It could not be reached")
    assert (shown["output"], shown["data"], shown["log"]) == ("Two letters.", {"letters": 2}, "try two")
    assert [(e["name"], e["state"], e["permalink"]) for e in shown["effects"] if e["name"] == "mail"] == [
        ("mail", "done", "https://mail/1")
    ]
    delivery = shown["deliveries"][0]
    assert (delivery["state"], delivery["evidence"], delivery["tries"]) == ("delivered", "/home/out.txt", 2)
    assert [(t["n"], t["result"], t["error"]) for t in delivery["tried"]] == [
        (1, "transient", "disk full"), (2, "delivered", "")
    ]
    assert [t["to_state"] for t in shown["transitions"]] == ["queued", "running", "queued", "running", "succeeded"]
    assert shown["firing"]["verdict"] == "admitted"
    json.dumps(shown)


def test_a_run_keeps_what_it_was_told(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    run = str(fire(store, automation, now=NOW, text="hello", payload='{"n": 1}').run_id)
    detail = store.read(lambda tx: ledger.run_detail(tx, run))
    assert (detail.text, detail.payload) == ("hello", {"n": 1})


# -- firings, dead letters, deliveries, inbox ---------------------------------------------------------------------


def test_firings_show_every_one_that_did_not_run(store: Store) -> None:
    automation = an_automation(
        store, a_definition(triggers=[TriggerSpec("call", "call", overlap=Overlap.SKIP)]), now=NOW
    )
    other = an_automation(store, a_definition("other"), now=NOW)
    fire(store, automation, "a", now=NOW)
    fire(store, automation, "b", now=after(NOW, seconds=1))
    fire(store, automation, "a", now=after(NOW, seconds=2))
    fire(store, other, "c", now=after(NOW, seconds=3))
    everything = every_page(store, lambda tx, at: ledger.firings(tx, cursor=at, limit=2))
    assert [(f.external_id, f.verdict, f.reason) for f in everything] == [
        ("c", "admitted", None), ("a", "repeated", "suppressed_duplicate"), ("b", "skipped", "overlap"),
        ("a", "admitted", None),
    ]
    of_one = every_page(store, lambda tx, at: ledger.firings(
        tx, automation_id=automation, admitted_too=False, cursor=at, limit=1
    ))
    assert [f.external_id for f in of_one] == ["a", "b"]
    assert of_one[1].reason_sentence == "The run before it had not ended, and the overlap policy is to skip."
    skipped = store.read(lambda tx: ledger.firings(tx, verdict="skipped")).items
    assert [f.external_id for f in skipped] == ["b"]


def test_collapsed_lines_say_how_many_slots_they_stand_for(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger("* * * * *")]), now=NOW)
    store.write(lambda tx: settle(tx, automation, now=after(NOW, days=1)))
    collapsed = store.read(lambda tx: ledger.firings(tx, verdict="collapsed")).items[0].as_json()
    assert (collapsed["slots"], collapsed["slots_exact"]) == (480, False)
    assert collapsed["slot_from"] == "2026-03-27T08:01:00Z"


def test_dead_letters_come_latest_first_and_are_listed_until_they_are_gone(store: Store) -> None:
    automation = an_automation(store, a_definition(retry=Retry(attempts=1)), now=NOW)
    dead = []
    for n in range(3):
        dead.append(str(fire(store, automation, now=after(NOW, seconds=n)).run_id))
        finish(store, begin(store, after(NOW, seconds=n))[0], Ended.failed(ErrorClass.EXCEPTION, "no"),
               after(NOW, seconds=n))
    fire(store, automation, now=after(NOW, seconds=5))
    found = every_page(store, lambda tx, at: ledger.dead_letters(tx, cursor=at, limit=2))
    assert [r.id for r in found] == dead[::-1]
    assert store.read(lambda tx: ledger.dead_letters(tx, automation_id="aut_other")).items == ()
    notices = store.read(lambda tx: ledger.inbox(tx, unread=True, kind="dead_letter")).items
    assert [n.run_id for n in notices] == dead[::-1]


def test_a_dead_letter_is_listed_until_a_replay_of_it_became_a_run(store: Store) -> None:
    automation = an_automation(store, a_definition(retry=Retry(attempts=1)), now=NOW)
    dead = str(fire(store, automation, now=NOW).run_id)
    finish(store, begin(store, NOW)[0], Ended.failed(ErrorClass.EXCEPTION, "no"), NOW)

    def listed() -> list[str]:
        letters = store.read(lambda tx: ledger.dead_letters(tx)).items
        assert store.read(lambda tx: tx.read_dead_count()) == len(letters)
        return [letter.id for letter in letters]

    def replay(now: Instant) -> str | None:
        key = f"by hand {now}"
        return store.write(lambda tx: operations.replay(tx, dead, external_id=key, by="ann", now=now)).run_id

    setting(store, "stopped", "{}")
    assert replay(after(NOW, seconds=1)) is None
    assert listed() == [dead], "a replay that did not run replays nothing"
    store.write(operations.lift)
    again = replay(after(NOW, seconds=2))
    assert listed() == []
    assert again != replay(after(NOW, seconds=3)), "it may be replayed as often as somebody wants"
    assert store.read(lambda tx: ledger.run_detail(tx, dead)).line.state == "failed"
    finish(store, begin(store, after(NOW, seconds=4), run=again)[0], Ended.failed(ErrorClass.EXCEPTION, "no"),
           after(NOW, seconds=4))
    assert listed() == [again], "one that fails again is a letter of its own"


def test_open_deliveries_are_those_under_way_and_those_that_failed(store: Store) -> None:
    automation = an_automation(store, a_definition(deliver=[FILE]), now=NOW)
    for n, sent in enumerate([
        Sent(Receipt.DELIVERED, evidence="x"), Sent(Receipt.PERMANENT, error="404"),
        Sent(Receipt.TRANSIENT, error="503"),
    ]):
        at = after(NOW, minutes=n * 10)
        fire(store, automation, now=at)
        finish(store, begin(store, at)[0], Ended.ok("hi"), at)
        send(store, sent, at)
    every = every_page(store, lambda tx, at: ledger.deliveries(tx, cursor=at, limit=2))
    assert [d.state for d in every] == ["pending", "given_up", "delivered"]
    open = store.read(lambda tx: ledger.automation_detail(tx, automation, now=NOW)).open_deliveries
    assert [d.state for d in open] == ["pending", "given_up"]
    assert [d.id for d in store.read(lambda tx: ledger.deliveries(tx, state="given_up")).items] == [every[1].id]
    assert open[0].next_try_at is not None


def test_the_inbox_shows_what_is_unread_until_it_is_read(store: Store) -> None:
    automation = an_automation(store, a_definition(deliver=[Destination("announce", "announce")]), now=NOW)
    for n in range(3):
        fire(store, automation, now=after(NOW, seconds=n))
        finish(store, begin(store, after(NOW, seconds=n))[0], Ended.ok(f"letter {n}"), after(NOW, seconds=n))
    texts = [m.text for m in every_page(store, lambda tx, at: ledger.inbox(tx, unread=True, cursor=at, limit=2))]
    assert texts == ["letter 2", "letter 1", "letter 0"]
    newest = store.read(lambda tx: ledger.inbox(tx)).items[0]
    store.write(lambda tx: tx.mark_read([newest.id], now=after(NOW, seconds=9)))
    assert [m.text for m in store.read(lambda tx: ledger.inbox(tx, unread=True)).items] == texts[1:]
    read = every_page(store, lambda tx, at: ledger.inbox(tx, cursor=at, limit=2))
    assert [m.text for m in read] == texts
    assert read[0].read_at == after(NOW, seconds=9)
    assert read[0].automation == "brief"
