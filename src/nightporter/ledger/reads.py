"""Lists: automations, runs, firings with every one that did not run, dead letters, deliveries, the inbox.

Newest first, except for automations, which come by name. A page says where the next one begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant
from nightporter.errors import BadInput, location
from nightporter.ledger.lines import (
    AutomationLine,
    DeliveryLine,
    FiringLine,
    InboxLine,
    RunLine,
    automation_line,
    delivery_line,
    error_of,
    firing_line,
    inbox_line,
    run_line,
    trigger_line,
)
from nightporter.ledger.pages import Page, cursor_at, id_before, no_cursor, page, place_of, plain, room
from nightporter.rules.faults import signature
from nightporter.states import DeliveryState, RunState
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.words import Reason, Verdict

LIMIT = 50
EVER = Instant(0)
INBOX_KINDS = (
    "result", "dead_letter", "review", "given_up", "restart", "heartbeat", "incident", "auto_paused", "recovered",
)


def automations(tx: Tx, *, cursor: str = "", limit: int = 200) -> Page[AutomationLine]:
    """All that are not removed, paused and broken ones too, by workspace and name."""
    workspace, mark, name = cursor.partition("/")
    if cursor and not mark:
        raise no_cursor(cursor)
    size = room(limit)
    rows = tx.read_automations(after=(workspace, name), room=size + 1)
    lines = _with_triggers(tx, rows[:size])
    more = len(rows) > size
    return Page(tuple(lines), f"{lines[-1].workspace}/{lines[-1].name}" if more else None)


def automation(tx: Tx, automation_id: str) -> AutomationLine | None:
    """One automation's line, removed or not; None when there is no such id."""
    row = tx.read_automation(automation_id)
    return None if row is None else _with_triggers(tx, [row])[0]


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A definition file that no automation comes of, and why."""

    path: str
    line: int
    column: int
    what: str
    why: str
    next: str

    @property
    def where(self) -> str:
        """The path, with line and column where they are known."""
        return location(self.path, self.line, self.column)

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def refused_files(tx: Tx) -> tuple[RefusedFile, ...]:
    """The files whose automation is another's by name, and others that cannot be taken; by path."""
    return tuple(
        RefusedFile(path, *(error[key] for key in ("line", "column", "what", "why", "next")))
        for path, error in ((path, error_of(text, path)) for path, text in tx.refused_files())
    )


def _with_triggers(tx: Tx, rows: list[Row]) -> list[AutomationLine]:
    ids = [row[0] for row in rows]
    triggers: dict[str, list[Row]] = {}
    for trigger in tx.read_triggers(ids):
        triggers.setdefault(trigger[0], []).append(trigger)
    loads = tx.read_loads(ids)
    return [
        automation_line(row, tuple(trigger_line(t) for t in triggers.get(row[0], [])), loads.get(row[0], (0, 0, 0, 0)))
        for row in rows
    ]


def runs(
    tx: Tx, *, automation_id: str = "", state: str = "", since: Instant = EVER, cursor: str = "", limit: int = LIMIT
) -> Page[RunLine]:
    """Runs, newest first: by when they were due, or by admission within one automation. `since` counts likewise.

    Raises BadInput for a state that there is none of.
    """
    _one_of(state, RunState, "state of a run")
    size = room(limit)
    if automation_id:
        rows = tx.read_runs_of(automation_id, before=place_of(cursor), since=since, state=state, room=size + 1)
        return page(rows, size, run_line, lambda line: cursor_at(line.queued_at, line.id))
    rows = tx.read_runs(before=id_before(cursor, "run"), since=since, state=state, room=size + 1)
    return page(rows, size, run_line, lambda line: line.id)


def dead_letters(
    tx: Tx, *, automation_id: str = "", since: Instant = EVER, reason: str = "", fault: str = "", cursor: str = "",
    limit: int = LIMIT,
) -> Page[RunLine]:
    """Runs that used up their attempts, or ended in a way that is not tried again, and that nobody has decided about;
    the latest death first.

    `fault`: an error like theirs, see `rules.faults.signature`, or a part of one. Raises BadInput for a reason that
    there is none of.
    """
    _one_of(reason, Reason, "reason")
    size = room(limit)
    wanted = signature(fault)
    place, found = place_of(cursor), list[Row]()
    while len(found) <= size:
        rows = tx.read_runs_dead(before=place, automation_id=automation_id, since=since, reason=reason, room=size + 1)
        lines = [run_line(row) for row in rows]
        found += [row for row, line in zip(rows, lines, strict=True) if wanted in signature(line.error)]
        if len(rows) <= size:
            break
        place = (lines[-1].dead_at or 0, lines[-1].id)
    return page(found[:size + 1], size, run_line, lambda line: cursor_at(line.dead_at or 0, line.id))


def firings(
    tx: Tx, *, automation_id: str = "", verdict: str = "", admitted_too: bool = True, since: Instant = EVER,
    cursor: str = "", limit: int = LIMIT,
) -> Page[FiringLine]:
    """Lines of the ledger, the latest arrival first. `admitted_too=False`: only what became no run."""
    _one_of(verdict, Verdict, "verdict")
    size = room(limit)
    if automation_id:
        rows = tx.read_firings_of(automation_id, before=place_of(cursor), since=since, verdict=verdict,
                                  admitted_too=admitted_too, room=size + 1)
        return page(rows, size, firing_line, lambda line: cursor_at(line.arrived_at, line.id))
    rows = tx.read_firings(before=id_before(cursor, "fir"), since=since, verdict=verdict, admitted_too=admitted_too,
                           room=size + 1)
    return page(rows, size, firing_line, lambda line: line.id)


def deliveries(
    tx: Tx, *, automation_id: str = "", state: str = "", cursor: str = "", limit: int = LIMIT
) -> Page[DeliveryLine]:
    """Deliveries, newest first."""
    _one_of(state, DeliveryState, "state of a delivery")
    size = room(limit)
    rows = tx.read_deliveries(before=id_before(cursor, "del"), automation_id=automation_id, state=state, room=size + 1)
    return page(rows, size, delivery_line, lambda line: line.id)


def inbox(
    tx: Tx, *, unread: bool = False, kind: str = "", cursor: str = "", limit: int = LIMIT
) -> Page[InboxLine]:
    """Messages, newest first. Reading the list marks nothing as read. Raises BadInput for a kind that there is none of.
    """
    _one_of(kind, INBOX_KINDS, "kind of message")
    size = room(limit)
    if unread:
        rows = tx.read_inbox_unread(before=place_of(cursor), kind=kind, room=size + 1)
        return page(rows, size, inbox_line, lambda line: cursor_at(line.created_at, line.id))
    rows = tx.read_inbox(before=id_before(cursor, "inb"), kind=kind, room=size + 1)
    return page(rows, size, inbox_line, lambda line: line.id)


def _one_of(word: str, known: Iterable[str], what: str) -> None:
    if word and word not in [str(each) for each in known]:
        raise BadInput(f"{word!r} is no {what}", next=f"possible: {', '.join(str(each) for each in known)}")
