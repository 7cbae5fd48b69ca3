"""Lists and details of automations, and the names by which things are found."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from acting import after, begin, finish
from paging import FILE, NOW, every_page

from nightporter import ledger, operations
from nightporter.clock import ManualClock
from nightporter.errors import BadDefinition, NotFound
from nightporter.store import Store
from nightporter.store.named import queries
from nightporter.words import (
    Ended,
    ErrorClass,
    Limits,
    Retry,
    Schedule,
)
from words import a_clock_trigger, a_definition, an_automation, fire, trigger_of

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
        "kind": "cron", "expression": "0 9 * * mon-fri", "timezone": "Europe/Berlin", "anchor": None, "bounds": None,
        "offset": 0.0,
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
        "per_hour": 120, "queued": None, "concurrent": 4, "timeout": None, "output": 1_000_000, "max_runs": None
    }
    assert detail["definition"]["retry"] == {"attempts": 3, "delays": [30.0, 60.0, 300.0], "on": ["transient"]}
    assert detail["definition"]["cooldown"] == 300.0
    assert detail["definition"]["target"] == {"kind": "echo", "config": {"prompt": "Good morning"}}
    assert detail["definition"]["deliver"][0] == {
        "name": "out", "kind": "file", "config": {"path": "out.txt"},
        "on": ["action", "failed", "needs_you", "report"], "best_effort": False, "quiet_hours": None,
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
    "read_set_aside", "read_month", "read_calendar",
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
