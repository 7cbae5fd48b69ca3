"""Deciding: what a person makes of what failed. Incidents are acknowledged or closed, dead letters run again or are
dismissed, and results that nobody took are sent no more."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from nightporter.clock import SECOND, Instant
from nightporter.errors import Conflict, NotFound
from nightporter.operations.work import replay
from nightporter.store import Tx
from nightporter.words import Answer, IncidentState, Verdict

APART = 2 * SECOND
"""Between the starts of runs that are replayed together: whatever failed under them is not overrun."""


def acknowledge(tx: Tx, incident_id: str, *, by: str, note: str, now: Instant) -> None:
    """Somebody knows of it: nobody is alerted of it any more, until it is over and comes back. Raises Conflict unless
    it is open."""
    if not tx.acknowledge(incident_id, by=by, note=note, now=now):
        raise Conflict(f"{incident_id} is {_state(tx, incident_id)} already")


def resolve_incident(tx: Tx, incident_id: str, *, by: str, note: str, now: Instant) -> None:
    """A person says that it is over. Nobody is told: whoever is to know of it says so. Raises Conflict when it is over
    already."""
    if not tx.resolve_incident(incident_id, by=by, note=note, now=now):
        raise Conflict(f"{incident_id} is {_state(tx, incident_id)} already")


def _state(tx: Tx, incident_id: str) -> IncidentState:
    row = tx.incident_row(incident_id)
    if row is None:
        raise NotFound(f"no incident has the id {incident_id}", next="`nightporter incidents` lists them")
    return IncidentState(row[7])


def replay_together(tx: Tx, run_ids: Sequence[str], *, by: str, now: Instant) -> list[tuple[str, Answer]]:
    """Run the work of several dead letters again, the oldest first and two seconds apart. Each becomes a run of
    its own, or not, as admission says; those that somebody has decided about meanwhile are left out."""
    tx.lock_automations(tx.automations_of_runs(run_ids))
    answers: list[tuple[str, Answer]] = []
    later: list[tuple[str, Instant]] = []
    for run_id in tx.dead_undecided(run_ids):
        answer = replay(tx, run_id, external_id=uuid4().hex, by=by, now=now)
        answers.append((run_id, answer))
        if answer.verdict is Verdict.ADMITTED and answer.run_id is not None:
            later.append((answer.run_id, Instant(now + APART * len(later))))
    tx.delay_runs(later[1:])
    return answers


def dismiss_dead(tx: Tx, run_ids: Sequence[str], *, by: str, now: Instant) -> int:
    """Take dead letters off the list, for good; how many. They stay what they are."""
    tx.lock_automations(tx.automations_of_runs(run_ids))  # as whoever runs them again does
    return len(tx.decide_dead([(run, "dismissed", None) for run in sorted(run_ids)], by=by, now=now))


def close_deliveries(tx: Tx, delivery_ids: Sequence[str], *, by: str, now: Instant) -> int:
    """Say of results that nobody took that they need not be sent any more; how many."""
    return len(tx.close_deliveries(delivery_ids, by=by, now=now))
