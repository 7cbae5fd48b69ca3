"""The calendar of all automations: in order, with what is left out or held, changes of the clock, and who meets whom.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from acting import after

from conftest import START
from nightporter import operations
from nightporter.clock import HOUR, Instant, instant, rfc3339
from nightporter.ledger.calendar import ComingFire, calendar, mark, meetings
from nightporter.rules.schedule import next_due, parse
from nightporter.store import Store
from nightporter.words import Limits, QuietHours, TriggerSpec
from nightporter.words.bounds import Bounds, Days
from words import a_clock_trigger, a_definition, an_automation, rows

NOW = START


def timed(store: Store, name: str, expression: str, *, kind: str = "cron", timezone: str = "UTC", **rest: Any) -> str:
    trigger = a_clock_trigger(expression, kind=kind, timezone=timezone, anchor=NOW if kind == "every" else None)
    return an_automation(store, a_definition(name, triggers=[trigger], **rest), now=NOW)


def look(store: Store, now: int = NOW, **rest: Any) -> tuple[ComingFire, ...]:
    return store.read(lambda tx: calendar(tx, Instant(now), **rest))


def told(fires: tuple[ComingFire, ...]) -> list[tuple[str, str | None]]:
    return [(fire.automation, (rfc3339(fire.at) or "")[:16]) for fire in fires]


def test_the_fires_of_all_come_in_order_and_looking_moves_no_slot(store: Store) -> None:
    timed(store, "nine", "0 9 * * *")
    timed(store, "half", "30 * * * *")
    before = rows(store, "SELECT id, next_fire_at FROM trigger ORDER BY id")
    assert told(look(store, count=4)) == [
        ("half", "2026-03-27T08:30"), ("nine", "2026-03-27T09:00"), ("half", "2026-03-27T09:30"),
        ("half", "2026-03-27T10:30")]
    assert rows(store, "SELECT id, next_fire_at FROM trigger ORDER BY id") == before


@pytest.mark.parametrize(("bounds", "count"), [
    ({"until": after(NOW, hours=3)}, 3), ({"after": after(NOW, hours=3), "until": after(NOW, hours=5)}, 2),
    ({"count": 7}, 7),
])
def test_the_calendar_keeps_within_its_bounds(store: Store, bounds: dict[str, Any], count: int) -> None:
    timed(store, "half", "30 * * * *")
    found = look(store, **bounds)
    assert len(found) == count
    assert all(fire.at > bounds.get("after", NOW) for fire in found)


def test_one_automation_can_be_asked_for(store: Store) -> None:
    timed(store, "nine", "0 9 * * *")
    half = timed(store, "half", "30 * * * *")
    assert {fire.automation for fire in look(store, automation_id=half)} == {"half"}


def test_what_it_shows_is_what_the_schedule_has(store: Store) -> None:
    timed(store, "berlin", "15 2 * * *", timezone="Europe/Berlin")
    slot, schedule = NOW, parse("cron", "15 2 * * *", "Europe/Berlin")
    for fire in look(store, count=20):
        slot = next_due(schedule, slot) or NOW
        assert fire.at == slot


def test_who_shares_a_minute_is_named_also_where_the_count_ends(store: Store) -> None:
    for name in ("a", "b", "c"):
        timed(store, name, "0 9 * * *")
    timed(store, "alone", "30 9 * * *")
    [first] = look(store, count=1)
    assert (first.automation, first.meets) == ("a", ("b", "c"))
    assert look(store, count=4)[3].meets == ()


def test_what_is_left_out_says_why_and_does_not_run(store: Store) -> None:
    bounds = Bounds(days=(Days("2026-03-28", "2026-03-28", "the holiday"),))
    spec = TriggerSpec("clock", "clock", parse("cron", "0 9 * * *", "UTC", bounds=bounds))
    an_automation(store, a_definition("brief", triggers=[spec]), now=NOW)
    plain, left_out, _ = look(store, count=3)
    assert (plain.excluded, plain.runs) == (None, True)
    assert "the holiday" in (left_out.excluded or "")
    assert not left_out.runs


def held(fire: ComingFire) -> list[str]:
    return [gate.gate for gate in fire.gates if gate.holds]


def test_quiet_hours_that_will_hold_a_fire_are_named_and_only_at_that_fire(store: Store) -> None:
    timed(store, "brief", "0 9,23 * * *", quiet_hours=QuietHours(("22:00-07:00",), "UTC"))
    day, night = look(store, count=2)
    assert (held(day), held(night)) == ([], ["quiet_hours"])
    assert night.gates[0].text == "quiet hours until 2026-03-28 07:00 UTC"


def test_a_pause_holds_until_its_end_and_a_stop_holds_everything(store: Store) -> None:
    name = timed(store, "brief", "0 * * * *")
    until = after(NOW, hours=2, minutes=30)
    store.write(lambda tx: operations.pause(tx, name, by="ana", reason="", until=until, now=NOW))
    fires = look(store, count=3)
    assert [held(fire) for fire in fires] == [["paused"], ["paused"], []]
    assert fires[0].gates[0].text == "paused by ana until 2026-03-27 10:30 UTC"
    store.write(lambda tx: operations.stop(tx, by="ana", reason="", now=NOW))
    assert held(look(store, count=3)[2]) == ["stopped"]


def test_an_expiry_holds_what_comes_after_it(store: Store) -> None:
    timed(store, "brief", "0 * * * *", expires=after(NOW, hours=1, minutes=30))
    assert [held(fire) for fire in look(store, count=2)] == [[], ["expired"]]


def test_runs_that_are_used_up_hold_and_those_that_are_left_are_counted(store: Store) -> None:
    timed(store, "brief", "0 * * * *", limits=Limits(max_runs=3))
    [fire] = look(store, count=1)
    assert [gate.text for gate in fire.gates if gate.gate == "max_runs"] == ["3 of 3 runs left"]
    assert held(fire) == []


def test_a_trigger_that_is_off_or_unreadable_has_no_fires_and_keeps_nobody_else_from_theirs(store: Store) -> None:
    an_automation(store, a_definition("off", triggers=[TriggerSpec(
        "clock", "clock", a_clock_trigger().schedule, enabled=False)]), now=NOW)
    timed(store, "well", "0 9 * * *")
    bad = timed(store, "bad", "0 10 * * *")
    statement = f"UPDATE trigger SET schedule = '[\"cron\",\"x\",\"UTC\",null]' WHERE automation_id = '{bad}'"
    store.write(lambda tx: tx.sql._connection.execute(statement.encode() if tx.dialect == "postgres" else statement))  # type: ignore[attr-defined]
    assert {fire.automation for fire in look(store, count=5)} == {"well", "bad"}  # its armed slot is known, no more


@pytest.mark.parametrize(("zone", "at", "expected"), [
    ("Europe/Berlin", "2026-03-29T01:00", "gap"), ("Europe/Berlin", "2026-03-29T07:00", "change"),
    ("Europe/Berlin", "2026-03-28T07:00", ""), ("Europe/Berlin", "2026-10-25T00:30", "fold"),
    ("Europe/Berlin", "2026-10-25T01:30", "fold"), ("Europe/Berlin", "2026-10-25T02:30", "change"),
    ("Europe/Berlin", "2026-10-24T22:30", "change"), ("UTC", "2026-03-29T01:00", ""),
    ("Australia/Lord_Howe", "2026-04-04T14:45", "fold"), ("Australia/Lord_Howe", "2026-04-04T14:15", "change"),
    ("America/New_York", "2026-03-08T07:00", "gap"), ("America/New_York", "2026-11-01T05:30", "fold"),
])
def test_changes_of_the_clock_are_marked(zone: str, at: str, expected: str) -> None:
    assert mark(zone, instant(datetime.fromisoformat(at).replace(tzinfo=UTC))) == expected


def test_clusters_are_those_of_what_acts(store: Store) -> None:
    timed(store, "a", "0 9 * * *")
    asleep = timed(store, "b", "0 9 * * *")
    met = store.read(lambda tx: meetings(tx, NOW))
    assert [(cluster.names, cluster.times) for cluster in met] == [(("a", "b"), 7)]
    store.write(lambda tx: operations.pause(tx, asleep, by="ana", reason="", now=NOW))
    assert store.read(lambda tx: meetings(tx, NOW)) == []


def test_the_shape_of_a_fire_is_stable(store: Store) -> None:
    timed(store, "brief", "0 9 * * *", timezone="Europe/Berlin")
    [fire] = look(store, NOW - HOUR, count=1)
    shown = json.loads(json.dumps(fire.as_json()))
    assert set(shown) == {"automation", "automation_id", "trigger", "at", "local", "timezone", "mark", "excluded",
                          "gates", "meets", "runs"}
    assert {gate["gate"] for gate in shown["gates"]} == {"hourly_ceiling", "queue_full", "overlap"}
