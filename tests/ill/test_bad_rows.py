"""Rows that cannot be read, under a desk at work: each is named once, the others go on, and a mended one comes back by
itself."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import apsw
import pytest
from shell import Shell

from fire.accounts import audited
from fire.house import House, a_house, until
from fire.recorder import a_world

pytest_plugins = ["homes"]

SPOILT = {
    "clock-1": ("schedule", '["cron","banana","UTC",null]'),
    "clock-2": ("schedule", '["cron","* * * * * *","Mars/Olympus",null]'),
    "clock-3": ("schedule", '["moon","* * * * * *","UTC",null]'),
    "clock-4": ("schedule", "{"),
    "clock-5": ("policy", "[]"),
    "clock-6": ("policy", "[" * 5000),
    "clock-7": ("next_fire_at", 2**62),
    "clock-8": ("next_fire_at", 2**63 - 1),
}
IN_THE_PAST = ("clock-9", ("next_fire_at", 10**15)), ("clock-10", ("next_fire_at", -(2**63)))


def test_a_desk_goes_on_beside_rows_that_nobody_can_read(nobodys_place: Path, tmp_path: Path) -> None:
    store = tmp_path / "ledger.db"
    with a_world(tmp_path) as world, a_house(tmp_path, str(store), world) as house:
        desk = house.open("crowd").ready()
        whole = {name: _row(store, name) for name in SPOILT}
        for name, (column, value) in [*SPOILT.items(), *IN_THE_PAST]:
            _write(store, name, column, value)
        shell = Shell(house.home, house.store)
        until(lambda: _named(shell) >= {_trigger(store, name) for name in SPOILT}, "doctor names each of them")
        _all_fire(house, store, [f"clock-{n}" for n in range(11, 50)])
        _all_fire(house, store, [name for name, _ in IN_THE_PAST])  # what is long past is answered by one line
        said = [finding["subject"] for finding in shell("doctor", "--json").json["items"]]
        assert [said.count(_trigger(store, name)) for name in SPOILT] == [1] * len(SPOILT)
        assert desk.whole_log().count("clock.unreadable_trigger") <= len(SPOILT)
        for name, (column, _) in SPOILT.items():
            _write(store, name, column, whole[name][column])
        _all_fire(house, store, list(SPOILT))
        assert desk.stop() == 0, desk.log()
        past = tuple(_trigger(store, name) for name, _ in IN_THE_PAST)
        assert [one for one in audited(house) if not any(trigger in one for trigger in past)] == []


@pytest.mark.parametrize("state", ["banana", "", "QUEUED"])
def test_a_run_in_a_state_that_is_none_is_named_and_stops_nobody(
    state: str, shell: Shell
) -> None:
    shell.write("hello.md", "---\nname: hello\n---\nHello.\n")
    assert shell("tick").code == 0
    assert shell("run", "hello").code == 0
    [run] = shell("runs", "--json").json["items"]
    _sql(shell.home / "nightporter.sqlite", "UPDATE run SET state = ?", state)
    assert run["id"] in _named(shell)
    assert shell("run", "hello", "--wait").code == 0
    assert f"does not know, {state!r}" in shell("explain", run["id"]).out
    _sql(shell.home / "nightporter.sqlite", "UPDATE run SET state = 'succeeded' WHERE id = ?", run["id"])
    assert run["id"] not in _named(shell)


def _named(shell: Shell) -> set[str]:
    return {finding["subject"] for finding in shell("doctor", "--json").json["items"]
            if finding["code"] in ("unreadable_row", "quarantined")}


def _all_fire(house: House, store: Path, names: Sequence[str]) -> None:
    """Each of them answers another slot from now on, by a run."""
    lines = "SELECT trigger_id, count(*) FROM firing WHERE verdict IN ('admitted', 'skipped') GROUP BY 1"
    wanted = [_trigger(store, name) for name in names]
    before = dict(house.ledger.rows(lines))
    until(lambda: all(dict(house.ledger.rows(lines)).get(t, 0) > before.get(t, 0) + 1 for t in wanted),
          f"slots of {len(names)} clocks are answered")


def _trigger(store: Path, name: str) -> str:
    [(trigger,)] = _sql(store, "SELECT t.id FROM trigger t JOIN automation a ON a.id = t.automation_id "
                               "WHERE a.name = ? AND t.kind = 'clock'", name)
    return str(trigger)


def _row(store: Path, name: str) -> dict[str, object]:
    columns = ("schedule", "policy", "next_fire_at")
    [row] = _sql(store, f"SELECT {', '.join(columns)} FROM trigger WHERE id = ?", _trigger(store, name))
    return dict(zip(columns, row, strict=True))


def _write(store: Path, name: str, column: str, value: object) -> None:
    _sql(store, f"UPDATE trigger SET {column} = ? WHERE id = ?", value, _trigger(store, name))


def _sql(store: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    with contextlib.closing(apsw.Connection(str(store))) as connection:
        connection.set_busy_timeout(5000)
        return list(connection.execute(statement, values))
