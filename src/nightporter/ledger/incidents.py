"""Incidents as they are read: faults that recur, each with how often and since when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant
from nightporter.errors import BadInput, NotFound
from nightporter.ledger.finding import resolve
from nightporter.ledger.pages import Page, id_before, page, plain, room
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.words import IncidentState

LIMIT = 50


@dataclass(frozen=True, slots=True)
class IncidentLine:
    """One incident."""

    id: str
    workspace: str
    automation_id: str
    automation: str
    kind: str
    route: str
    """The automation and why its runs fail, the trigger, or the receiver's lane."""
    signature: str
    """The error without what changes from time to time."""
    state: str
    count: int
    first_at: Instant
    last_at: Instant
    subject: str
    """The latest run, trigger or delivery."""
    error: str
    """Of the latest."""
    notified_at: Instant | None
    decided_at: Instant | None
    decided_by: str
    note: str
    resolved_at: Instant | None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def incident_line(row: Row) -> IncidentLine:
    """A row of `read_incidents`."""
    return IncidentLine(*row)


def incidents(
    tx: Tx, *, automation_id: str = "", state: str = "", ended: bool = False, cursor: str = "", limit: int = LIMIT
) -> Page[IncidentLine]:
    """Those that stand, the newest first; `ended`: those that are over too. Raises BadInput for a state that there is
    none of."""
    if state and state not in list(IncidentState):
        raise BadInput(f"{state!r} is no state of an incident", next=f"one of {', '.join(IncidentState)}")
    size = room(limit)
    rows = tx.incident_rows(
        automation_id=automation_id, state=state, ended=ended, before=id_before(cursor, "inc") or "~", room=size + 1)
    return page(rows, size, incident_line, lambda line: line.id)


def incident(tx: Tx, incident_id: str) -> IncidentLine:
    """One of them. Raises NotFound."""
    row = tx.incident_row(incident_id)
    if row is None:
        raise NotFound(f"no incident has the id {incident_id}", next="`nightporter incidents --all` lists them")
    return incident_line(row)


def resolve_incident_id(tx: Tx, asked: str) -> str:
    """The id of the incident whose id is, or begins, so; of an automation by name, of the one that stands alone. Raises
    NotFound."""
    found = tx.incidents_like(asked) if asked.startswith("inc_") else [
        row[0] for row in tx.incident_rows(automation_id=resolve(tx, asked), room=20)
    ]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise NotFound(f"{asked!r} may mean {len(found)} incidents", why=", ".join(found), next="write one id in full")
    raise NotFound(f"no incident answers to {asked!r}", next="`nightporter incidents` lists them")
