"""Cancelling what waits: it ends with all that follows from an end, whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from night import Night

from nightporter import operations
from nightporter.clock import ManualClock, instant
from nightporter.dispatch import Definitions, cancel
from nightporter.store import Store, Tx
from nightporter.words import Ended, Ending, Reason
from words import a_clock_trigger, a_definition, an_automation, fire, rows, run_row

How = Callable[[Tx, str, Night], None]


def by_a_person(tx: Tx, run: str, night: Night) -> None:
    operations.cancel_runs(tx, [run], reason=Reason.CANCELLED_BY, by="ada", now=night.clock.now())


def by_dispatch(tx: Tx, run: str, night: Night) -> None:
    cancel(tx, [(run, "cancelled_by", "ada")], Definitions(), now=night.clock.now())


@pytest.fixture
def night(store: Store) -> Night:
    """An hour before the month ends in Greenwich; it is over in Auckland."""
    return Night(store, ManualClock(datetime(2026, 3, 31, 23, 0, tzinfo=UTC)))


def waiting(night: Night, **of: Any) -> str:
    brief = an_automation(night.store, a_definition(**of), now=night.clock.now())
    return str(fire(night.store, brief, now=night.clock.now()).run_id)


@pytest.mark.parametrize("how", [by_a_person, by_dispatch])
@pytest.mark.parametrize(("zone", "month"), [("UTC", "2026-03"), ("Pacific/Auckland", "2026-04")])
def test_a_cancelled_run_counts_in_its_automations_month(night: Night, how: How, zone: str, month: str) -> None:
    run = waiting(night, timezone=zone)
    night.store.write(lambda tx: how(tx, run, night))
    assert run_row(night.store, run, "state", "reason", "cancel_by") == ("cancelled", "cancelled_by", "ada")
    assert rows(night.store, "SELECT month, runs, cancelled FROM rollup_month") == [(month, 1, 1)]
    assert rows(night.store, "SELECT last_run_id, last_outcome FROM automation") == [(run, "cancelled")]


@pytest.mark.parametrize("how", [by_a_person, by_dispatch])
def test_a_one_shot_whose_run_is_cancelled_has_its_outcome(night: Night, how: How) -> None:
    brief = an_automation(
        night.store, a_definition(triggers=[a_clock_trigger("2026-03-31T23:00", kind="at")]), now=night.clock.now()
    )
    run = str(fire(night.store, brief, now=night.clock.now()).run_id)
    night.store.write(lambda tx: how(tx, run, night))
    assert rows(night.store, "SELECT state FROM automation") == [("completed",)]


def test_a_held_run_is_cancelled_from_where_it_is_and_one_that_runs_is_left_alone(night: Night) -> None:
    held, running = waiting(night, name="held"), waiting(night, name="running")
    [one] = [claimed for claimed in night.claim() if claimed.work.run_id == held]
    night.end((one, Ended(Ending.HOLD)))
    asked = [(run, "cancelled_by", "ada") for run in (held, running, "run_nobody")]
    ended = night.store.write(lambda tx: cancel(tx, asked, Definitions(), now=night.clock.now()))
    assert ended == ["aut_default_held"]
    assert rows(
        night.store, "SELECT from_state, to_state FROM transition WHERE run_id = ? ORDER BY seq DESC LIMIT 1", held
    ) == [("held", "cancelled")]
    assert run_row(night.store, running, "state") == ("running",)


def test_a_run_whose_definition_cannot_be_read_is_cancelled_all_the_same(night: Night) -> None:
    run = waiting(night)
    rows(night.store, "UPDATE automation_version SET definition = '{}'")
    night.store.write(lambda tx: by_dispatch(tx, run, night))
    assert run_row(night.store, run, "state") == ("cancelled",)
    assert rows(night.store, "SELECT month FROM rollup_month") == [("2026-03",)]
    assert instant(datetime(2026, 3, 31, 23, 0, tzinfo=UTC)) == run_row(night.store, run, "ended_at")[0]
