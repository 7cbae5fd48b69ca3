"""What is not as it should be is said when it is found and when it is well again, and not each minute between."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from acting import a_worker, after, begin, die, finish

from conftest import START
from nightporter import operations
from nightporter.states import AutomationState
from nightporter.store import Store, Tx
from nightporter.sweep.flags import flag
from nightporter.words import Ended, Limits
from words import a_definition, an_automation, fire, rows

NOW = START


class Sweeps:
    """Sweeps, each with what it said."""

    def __init__(self, store: Store, heard: pytest.LogCaptureFixture) -> None:
        self.store, self.heard = store, heard
        heard.set_level(logging.INFO, logger="nightporter")

    def __call__(self, **later: float) -> list[str]:
        self.heard.clear()
        flag(self.store, after(NOW, **later), host="here")
        return [" ".join(r.getMessage().split()[:2]) for r in self.heard.records]

    def inbox(self) -> list[tuple[Any, ...]]:
        return list(rows(self.store, "SELECT kind, title, run_id, automation_id FROM inbox WHERE title LIKE ? "
                                     "ORDER BY id", "%for more than a day"))


@pytest.fixture
def sweep(store: Store, caplog: pytest.LogCaptureFixture) -> Sweeps:
    return Sweeps(store, caplog)


def test_what_is_stale_is_said_once_and_that_it_is_well_again_once(store: Store, sweep: Sweeps) -> None:
    worker = a_worker(store, NOW)
    fire(store, an_automation(store, a_definition(limits=Limits(timeout=None)), now=NOW), now=NOW)
    assert sweep(minutes=5) == []
    assert sweep(minutes=11) == ["account.flagged kind=stale_queued"]
    assert sweep(minutes=12) == sweep(minutes=13) == []
    claimed = begin(store, after(NOW, minutes=14), worker=worker)[0]
    assert sweep(minutes=14) == ["account.well_again kind=stale_queued"]
    assert sweep(minutes=45) == ["account.flagged kind=stale_running"]
    finish(store, claimed, Ended.ok("hi"), after(NOW, minutes=46))
    assert sweep(minutes=46) == ["account.well_again kind=stale_running"]
    assert sweep(minutes=47) == []


def test_two_desks_that_sweep_say_it_once(store: Store, sweep: Sweeps) -> None:
    a_worker(store, NOW)
    fire(store, an_automation(store, now=NOW), now=NOW)
    assert len(sweep(minutes=11) + sweep(minutes=11)) == 1


def test_what_is_found_again_is_said_again(store: Store, sweep: Sweeps) -> None:
    worker = a_worker(store, NOW)
    automation = an_automation(store, now=NOW)
    for _ in range(2):
        fire(store, automation, now=NOW)
        assert sweep(minutes=11) == ["account.flagged kind=stale_queued"]
        finish(store, begin(store, after(NOW, minutes=12), worker=worker)[0], Ended.ok("hi"), after(NOW, minutes=12))
        assert sweep(minutes=12) == ["account.well_again kind=stale_queued"]


def test_what_waits_for_a_person_for_a_day_is_put_before_one_once_more(store: Store, sweep: Sweeps) -> None:
    run = fire(store, an_automation(store, a_definition(runner="script"), now=NOW), now=NOW).run_id
    assert run is not None
    begin(store, NOW, worker=a_worker(store, NOW, name="wrk_gone"))
    die(store, "wrk_gone", NOW)
    sweep(hours=23)
    assert sweep.inbox() == []
    assert sweep(hours=25) == ["account.flagged kind=waits"]
    assert sweep(hours=26) == sweep(hours=49) == []
    [(kind, title, about, _)] = sweep.inbox()
    assert (kind, title, about) == ("review", "brief: a run has waited for your decision for more than a day", run)
    store.write(lambda tx: operations.review(tx, run, "dismiss", by="ana", now=after(NOW, hours=50)))
    assert "account.well_again kind=waits" in sweep(hours=50)
    assert len(sweep.inbox()) == 1


def test_a_proposal_that_nobody_answers_is_put_before_one_once_more(store: Store, sweep: Sweeps) -> None:
    automation = store.write(lambda tx: operations.define(
        tx, a_definition("idea"), truth="store", by="an agent", now=NOW, state=AutomationState.PROPOSED)).automation_id
    assert sweep(hours=23) == []
    assert sweep(hours=25) == ["account.flagged kind=waits"]
    assert sweep(hours=26) == []
    [(kind, title, _, about)] = sweep.inbox()
    assert (kind, title, about) == ("review", "idea has waited to be accepted for more than a day", automation)
    store.write(lambda tx: operations.enable(tx, automation, by="ana", now=after(NOW, hours=27)))
    assert sweep(hours=27) == ["account.well_again kind=waits"]


def test_a_flag_of_which_there_are_more_than_one_look_names_stays(
    store: Store, sweep: Sweeps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightporter.sweep.flags._ROOM", 1)
    a_worker(store, NOW)
    automation = an_automation(store, now=NOW)
    first, second = (fire(store, automation, f"e{n}", now=after(NOW, seconds=n)) for n in (1, 0))
    assert sweep(minutes=11) == ["account.flagged kind=stale_queued"]  # the older one
    fire(store, automation, "older", now=after(NOW, seconds=-5))
    assert sweep(minutes=12) == ["account.flagged kind=stale_queued"]
    assert sweep(minutes=13) == []
    assert rows(store, "SELECT count(*) FROM flag")[0][0] == 2
    assert first.run_id != second.run_id


def test_missed_slots_that_nobody_decides_about_are_put_before_one_once_more(store: Store, sweep: Sweeps) -> None:
    automation = an_automation(store, now=NOW)

    def write(tx: Tx) -> None:
        for n in range(3):
            statement = ("INSERT INTO missed_card (id, workspace, automation_id, trigger_id, firing_id, slot, state, "
                         f"created_at) VALUES ('c{n}', 'default', '{automation}', 't', 'f', {n}, 'pending', {NOW})")
            tx.sql._connection.execute(statement.encode() if tx.dialect == "postgres" else statement)  # type: ignore[attr-defined]

    store.write(write)
    assert sweep(hours=23) == []
    assert sweep(hours=25) == ["account.flagged kind=waits"]
    assert sweep(hours=26) == []
    [(kind, title, _, about)] = sweep.inbox()
    assert (kind, title, about) == (
        "review", "brief: missed slots have waited for your decision for more than a day", automation)
