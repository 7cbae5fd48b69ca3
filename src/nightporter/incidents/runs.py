"""Runs: what their ends say of their automations. One that succeeds and was not failing costs nothing here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nightporter.clock import Instant
from nightporter.incidents.pausing import pause_by_the_desk
from nightporter.incidents.record import Fault, happened, in_force, over
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.store.tx_dispatch import Health
from nightporter.store.tx_incidents import Standing
from nightporter.words import Definition, IncidentKind


class Concluded(NamedTuple):
    """A run that has ended."""

    run_id: str
    automation_id: str
    good: bool
    """It succeeded, or had nothing to say."""
    counts: bool
    """It failed, and no hand started it."""
    reason: str
    error: str


@dataclass(slots=True)
class _Course:
    """What ended of one automation, in order: failures, perhaps a success, and failures after the last one."""

    before: list[Concluded]
    succeeded: bool
    after: list[Concluded]


def account_for(
    tx: Tx, ended: Sequence[Concluded], health: Sequence[Health], *, now: Instant
) -> dict[str, Standing]:
    """Incidents, alerts and pauses that follow from runs that have ended. `health`: of their automations, with these
    runs counted. By run, the incident that it is one of."""
    failing = {one.automation_id: one for one in health if one.failing}
    if not failing:
        return {}
    courses = {id: _Course([], False, []) for id in sorted(failing)}
    for run in ended:
        course = courses.get(run.automation_id)
        if course is None:
            continue
        if run.good:
            course.before += course.after
            course.succeeded, course.after = True, []
        elif run.counts:
            course.after.append(run)
    found = happened(tx, [_fault(run, 1) for c in courses.values() for run in c.before], now=now)
    over(tx, {id for id, c in courses.items() if c.succeeded}, IncidentKind.EXECUTION, now=now)
    found |= happened(
        tx, [_fault(run, failing[id].errors_in_a_row) for id, c in courses.items() for run in c.after], now=now)
    tx.stopped_failing({id for id, c in courses.items() if c.succeeded and not c.after})
    last = {id: c.after[-1] for id, c in courses.items() if c.after and failing[id].state == AutomationState.ACTIVE}
    definitions = in_force(tx, last)
    for id, run in last.items():
        _pause_if_due(tx, _fault(run, 1), found[run.run_id], failing[id], definitions[id], now)
    return found


def _fault(run: Concluded, in_a_row: int) -> Fault:
    return Fault(IncidentKind.EXECUTION, f"{run.automation_id}/{run.reason}", run.error, run.run_id,
                 run.automation_id, in_a_row, in_the_inbox=True)


def _pause_if_due(
    tx: Tx, fault: Fault, standing: Standing, health: Health, definition: Definition, now: Instant
) -> None:
    most = definition.failures.pause_after
    if most is not None and health.errors_in_a_row >= most:
        why = f"{health.errors_in_a_row} runs in a row have failed"
        pause_by_the_desk(tx, fault, standing, definition, why, now=now)
