"""Lists and details: each row is there, in order, page after page, in the shape that surfaces promise."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from acting import a_worker, after, begin, finish, send, setting

from conftest import START
from nightporter import ledger, operations
from nightporter.clock import Instant, ManualClock
from nightporter.errors import BadDefinition, BadInput, NotFound
from nightporter.ledger.pages import Page
from nightporter.sources.clock import settle
from nightporter.store import Store, Tx
from nightporter.store.named import queries
from nightporter.words import (
    Destination,
    Ended,
    ErrorClass,
    Limits,
    Overlap,
    Receipt,
    Retry,
    Schedule,
    Sent,
    TriggerSpec,
)
from words import a_clock_trigger, a_definition, an_automation, fire, trigger_of

NOW = START
FILE = Destination("out", "file", {"path": "out.txt"})


def every_page(store: Store, read: Callable[[Tx, str], Page[Any]]) -> list[Any]:
    """The items of all pages, and that no page lies about there being another."""
    items: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        found = store.read(lambda tx, at=cursor: read(tx, at))  # type: ignore[misc]  # bound per turn
        assert found.items
        items += found.items
        cursor = found.next_cursor
    return items


# -- automations --------------------------------------------------------------------------------------------------


def test_paused_and_broken_automations_are_always_listed_and_removed_ones_never(store: Store) -> None:
    an_automation(store, a_definition("awake"), now=NOW)
    sleeping = an_automation(store, a_definition("sleeping"), now=NOW)
    gone = an_automation(store, a_definition("gone"), now=NOW)
    until = after(NOW, days=2)
    store.write(lambda tx: operations.pause(tx, sleeping, by="ana", reason="holiday", until=until, now=NOW))
    store.write(lambda tx: operations.remove(tx, gone, by="ana", now=NOW))
    error = BadDefinition("unknown key `whne`", why="it is no key", next="write `when`", path="b.md", line=3, column=5)
    store.write(lambda tx: operations.break_file(
        tx, error, path="b.md", name="broken", workspace="default", default_timezone="UTC", now=NOW
    ))
    shown = store.read(lambda tx: ledger.automations(tx)).as_json()
    assert [(i["name"], i["state"]) for i in shown["items"]] == [
        ("awake", "active"), ("broken", "config_error"), ("sleeping", "paused")
    ]
    assert shown["next_cursor"] is None
    broken, paused = shown["items"][1], shown["items"][2]
    assert broken["error"] == error.as_json()
    assert (broken["truth"], broken["path"]) == ("file", "b.md")
    assert (paused["state_reason"], paused["state_by"], paused["state_until"]) == (
        "holiday", "ana", "2026-03-29T08:00:00Z"
    )


def test_an_automation_in_the_list_says_when_it_fires_and_how_it_has_been(store: Store) -> None:
    automation = an_automation(
        store, a_definition(triggers=[a_clock_trigger("0 9 * * mon-fri", timezone="Europe/Berlin")], retry=Retry(1)),
        now=NOW,
    )
    fire(store, automation, now=NOW)
    finish(store, begin(store, NOW)[0], Ended.failed(ErrorClass.EXCEPTION, "no"), after(NOW, seconds=1))
    fire(store, automation, now=after(NOW, seconds=2))
    fire(store, automation, now=after(NOW, seconds=2))
    begin(store, after(NOW, seconds=2))
    line = store.read(lambda tx: ledger.automations(tx)).items[0].as_json()
    assert (line["next_fire_at"], line["next_fire_local"], line["timezone"]) == (
        "2026-03-30T07:00:00Z", "2026-03-30T09:00:00+02:00", "Europe/Berlin"
    )
    assert (line["last_outcome"], line["errors_in_a_row"], line["last_failure_at"]) == (
        "failed", 1, "2026-03-27T08:00:01Z"
    )
    assert (line["queued"], line["running"], line["target"]) == (1, 1, "echo")
    clock = next(t for t in line["triggers"] if t["name"] == "clock")
    assert (clock["kind"], clock["overlap"], clock["timezone"]) == ("clock", "skip", "Europe/Berlin")
    assert clock["schedule"] == {
        "kind": "cron", "expression": "0 9 * * mon-fri", "timezone": "Europe/Berlin", "anchor": None
    }
    assert clock["sentence"] == "At 09:00 on Monday to Friday, Europe/Berlin"
    assert [t["name"] for t in line["triggers"]] == ["call", "clock", "manual"]
    json.dumps(line)


def test_automations_come_page_by_page_by_workspace_and_name(store: Store) -> None:
    for name in ("c", "a", "b"):
        an_automation(store, a_definition(name), now=NOW)
    an_automation(store, a_definition("a", workspace="attic"), now=NOW)
    found = every_page(store, lambda tx, cursor: ledger.automations(tx, cursor=cursor, limit=2))
    assert [(a.workspace, a.name) for a in found] == [
        ("attic", "a"), ("default", "a"), ("default", "b"), ("default", "c")
    ]


def test_a_trigger_that_cannot_be_read_says_so_and_hides_nothing_else(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    store.write(lambda tx: tx.arm([(trigger_of(automation, "clock"), NOW, "", 2, '["cron","nonsense","UTC",null]')]))
    line = store.read(lambda tx: ledger.automations(tx)).items[0]
    sentences = {t.name: t.sentence for t in line.triggers}
    assert sentences["clock"].startswith("cannot be read: ")
    assert len(sentences) == 3
    assert line.next_fire_at == NOW
    detail = store.read(lambda tx: ledger.automation_detail(tx, automation, now=NOW))
    assert [f.at for f in detail.next_fires] == [NOW]


def test_the_detail_of_an_automation_shows_every_default_and_what_comes(store: Store) -> None:
    automation = an_automation(
        store,
        a_definition(
            triggers=[
                a_clock_trigger("0 9 * * *", timezone="Europe/Berlin"),
                a_clock_trigger("6h", kind="every", name="often", anchor=NOW),
            ],
            limits=Limits(timeout=None, queued=None), cooldown=timedelta(minutes=5), deliver=[FILE],
            config={"prompt": "Good morning"},
        ),
        now=NOW,
    )
    detail = store.read(lambda tx: ledger.automation_detail(tx, automation, now=NOW, fires=3)).as_json()
    assert detail["definition"]["limits"] == {
        "per_hour": 120, "queued": None, "concurrent": 4, "timeout": None, "output": 1_000_000
    }
    assert detail["definition"]["retry"] == {"attempts": 3, "delays": [30.0, 60.0, 300.0], "on": ["transient"]}
    assert detail["definition"]["cooldown"] == 300.0
    assert detail["definition"]["target"] == {"kind": "echo", "config": {"prompt": "Good morning"}}
    assert detail["definition"]["deliver"][0] == {
        "name": "out", "kind": "file", "config": {"path": "out.txt"},
        "on": ["action", "failed", "needs_you", "report"], "best_effort": False,
    }
    assert [t["schedule"]["anchor"] for t in detail["definition"]["triggers"]] == [None, "2026-03-27T08:00:00Z"]
    assert [(f["at"], f["local"], f["trigger"]) for f in detail["next_fires"]] == [
        ("2026-03-27T14:00:00Z", "2026-03-27T14:00:00+00:00", "often"),
        ("2026-03-27T20:00:00Z", "2026-03-27T20:00:00+00:00", "often"),
        ("2026-03-28T02:00:00Z", "2026-03-28T02:00:00+00:00", "often"),
    ]
    json.dumps(detail)


def test_looking_moves_no_slot(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    late = after(NOW, days=4)
    before = store.read(lambda tx: tx.triggers(automation))
    store.read(lambda tx: ledger.automation_detail(tx, automation, now=late))
    store.read(lambda tx: ledger.automations(tx))
    assert store.read(lambda tx: tx.triggers(automation)) == before


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


# -- names --------------------------------------------------------------------------------------------------------


def test_a_name_an_id_or_the_beginning_of_one_finds_an_automation(store: Store) -> None:
    brief = an_automation(store, a_definition("brief"), now=NOW)
    an_automation(store, a_definition("brief-late"), now=NOW)
    watch = an_automation(store, a_definition("watch"), now=NOW)
    assert store.read(lambda tx: ledger.resolve(tx, "brief")) == brief
    assert store.read(lambda tx: ledger.resolve(tx, "wat")) == watch
    assert store.read(lambda tx: ledger.resolve(tx, watch)) == watch
    with pytest.raises(NotFound, match="may mean 2 automations") as several:
        store.read(lambda tx: ledger.resolve(tx, "bri"))
    assert "brief-late" in several.value.why
    with pytest.raises(NotFound, match="no automation is called 'wahtch'") as none:
        store.read(lambda tx: ledger.resolve(tx, "wahtch"))
    assert none.value.next == "did you mean watch?"
    with pytest.raises(NotFound):
        store.read(lambda tx: ledger.resolve(tx, "w_t"))


def test_one_name_in_two_workspaces_is_ambiguous(store: Store) -> None:
    an_automation(store, a_definition("brief"), now=NOW)
    home = an_automation(store, a_definition("brief", workspace="home"), now=NOW)
    with pytest.raises(NotFound, match="may mean 2"):
        store.read(lambda tx: ledger.resolve(tx, "brief"))
    assert store.read(lambda tx: ledger.resolve(tx, "brief", workspace="home")) == home


def test_a_run_is_found_by_its_id_its_beginning_or_as_the_latest_of_an_automation(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    with pytest.raises(NotFound, match="brief has no runs"):
        store.read(lambda tx: ledger.resolve_run(tx, "brief"))
    first = str(fire(store, automation, now=NOW).run_id)
    second = str(fire(store, automation, now=after(NOW, hours=1)).run_id)
    assert store.read(lambda tx: ledger.resolve_run(tx, "brief")) == second
    assert store.read(lambda tx: ledger.resolve_run(tx, first)) == first
    assert store.read(lambda tx: ledger.resolve_run(tx, first[:-3])) == first
    with pytest.raises(NotFound, match="may mean 2 runs"):
        store.read(lambda tx: ledger.resolve_run(tx, "run_"))
    with pytest.raises(NotFound, match="no run has the id"):
        store.read(lambda tx: ledger.resolve_run(tx, "run_ffff"))
    with pytest.raises(NotFound, match="no firing has an id like"):
        store.read(lambda tx: ledger.resolve_firing(tx, "brief"))


# -- how it is read -----------------------------------------------------------------------------------------------

SCANS = {
    # Each of these reads a table that is small, or is meant to read all of it.
    "read_automation_states", "read_automations", "read_automation_names", "read_definitions", "read_broken",
    "read_quarantine", "store_check", "read_desk_at", "read_desk_after", "read_queue", "read_running",
    "read_set_aside", "read_month",
}


def test_lists_walk_an_index_and_scan_no_table_that_grows(tmp_path: Path, clock: ManualClock) -> None:
    import apsw

    from nightporter.store import open_store

    open_store(str(tmp_path / "ledger.db"), now=clock.now()).close()
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    reading = {name: query for name, query in queries("sqlite").items() if name.startswith("read_")}
    assert len(reading) > 50
    for name, query in reading.items():
        given: Any = {} if not query.columns else tuple("" for _ in (*query.columns, *query.parameters))
        bindings = given if query.columns else _Anything()
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", bindings)]
        grown = [p for p in plan if p.startswith("SCAN") and p.split()[1] in (
            "run", "firing", "f", "delivery", "d", "o", "p", "s", "transition", "t", "i", "inbox"
        ) and "INDEX" not in p]
        assert not grown or name in SCANS, (name, plan)
    connection.close()


class _Anything(dict[str, Any]):
    """Binds every parameter there is."""

    def __missing__(self, key: str) -> str:
        return ""


def test_a_schedule_in_json_keeps_its_anchor_as_an_instant() -> None:
    from nightporter.ledger.pages import plain

    assert plain(Schedule("every", "6h", "UTC", NOW))["anchor"] == "2026-03-27T08:00:00Z"
