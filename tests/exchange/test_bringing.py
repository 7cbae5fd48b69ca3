"""What was brought over is known again, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import tab

from nightporter.clock import ManualClock
from nightporter.exchange import Plan, bring, plan, present
from nightporter.exchange.entry import Reading
from nightporter.operations import enable, remove
from nightporter.store import Store
from nightporter.store.tx_automations import AutomationRow


def planned(store: Store, clock: ManualClock, reading: Reading) -> Plan:
    marks, names = store.read(present)
    return plan([reading], present=marks, taken=names, me="ana", now=clock.now())


def brought(store: Store, clock: ManualClock, reading: Reading, folder: Path | None = None) -> Plan:
    made = planned(store, clock, reading)
    return made.changed(bring(store, item, by="ana", now=clock.now, folder=folder) if item.state == "imported" else item
                        for item in made.items)


def row(store: Store, automation_id: str | None) -> AutomationRow:
    found = store.write(lambda tx: tx.lock_automation(automation_id or ""))
    assert found is not None
    return found


def test_what_was_brought_over_is_there_already_whatever_became_of_it(store: Store, clock: ManualClock) -> None:
    (item,) = brought(store, clock, tab("0 3 * * * /bin/x\n")).items
    assert (row(store, item.automation_id).state, row(store, item.automation_id).truth) == ("paused", "store")
    store.write(lambda tx: enable(tx, item.automation_id or "", by="ana", now=clock.now()))
    (again,) = brought(store, clock, tab("A=1\n0 3 * * * /bin/x\n")).items
    assert (again.state, again.automation_id, again.name) == ("already", item.automation_id, "x")
    assert row(store, item.automation_id).state == "active"


def test_what_was_removed_may_be_brought_over_anew(store: Store, clock: ManualClock) -> None:
    (item,) = brought(store, clock, tab("0 3 * * * /bin/x\n")).items
    store.write(lambda tx: remove(tx, item.automation_id or "", by="ana", now=clock.now()))
    (again,) = brought(store, clock, tab("0 3 * * * /bin/x\n")).items
    assert (again.state, again.automation_id == item.automation_id) == ("imported", False)


def test_a_name_that_was_given_meanwhile_costs_one_job(store: Store, clock: ManualClock) -> None:
    first = planned(store, clock, tab("0 3 * * * /bin/x\n0 3 * * * /bin/y\n"))
    brought(store, clock, tab("0 4 * * * /bin/x\n"))
    made = [bring(store, item, by="ana", now=clock.now) for item in first.items]
    assert [(item.state, item.reason) for item in made] == [
        ("refused", "an automation called x came to be meanwhile"), ("imported", "")]


def test_a_file_that_cannot_be_written_is_said(
    store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nightporter.exchange.bringing.write_durably", full)
    (item,) = brought(store, clock, tab("0 3 * * * /bin/x\n"), tmp_path / "automations").items
    assert (item.state, item.reason) == ("refused", "its file cannot be written: No space left on device")
    assert store.read(present) == ({}, set())
