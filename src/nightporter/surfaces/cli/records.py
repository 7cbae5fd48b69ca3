"""What the desk kept: the inbox, the ledger's lines, deliveries."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from nightporter.clock import Instant
from nightporter.ledger import deliveries as list_deliveries
from nightporter.ledger import firings as list_firings
from nightporter.ledger import inbox as list_inbox
from nightporter.ledger import resolve
from nightporter.ledger.lines import FiringLine
from nightporter.ledger.moments import spoken
from nightporter.surfaces.cli.place import USUAL, Common, opened
from nightporter.surfaces.cli.runs import Count, Cursor, Which, since_when


def inbox(
    *, everything: Annotated[bool, Parameter(name="--all", help="Read ones too.")] = False,
    kind: Annotated[str, Parameter(
        help="Only of this kind: result, dead_letter, review, given_up, restart, heartbeat.")] = "",
    mark_read: Annotated[bool, Parameter(help="Mark what is shown as read.")] = False,
    limit: Count = 20, cursor: Cursor = "", common: Common = USUAL,
) -> None:
    """Messages from the desk, newest first. Showing them marks nothing as read, unless --mark-read says so."""
    with opened(common) as place:
        found = place.read(lambda tx: list_inbox(tx, unread=not everything, kind=kind, cursor=cursor, limit=limit))
        if place.out.as_json:
            place.out.json(found.as_json())
        else:
            for message in found.items:
                new = "" if message.read_at is not None else "new  "
                place.out.line(f"{spoken(message.created_at, place.config.timezone)}  {new}{message.title}")
                for line in message.text.rstrip().splitlines():
                    place.out.line(f"    {line}")
            if not found.items:
                place.out.line("Nothing in the inbox." if everything else "Nothing new in the inbox.")
            if found.next_cursor:
                place.out.note(f"more: --cursor {found.next_cursor}")
        if mark_read and found.items:
            place.change(lambda tx: tx.mark_read([m.id for m in found.items], now=place.clock.now()))


def firings(
    name: Which = None, *,
    did_not_run: Annotated[bool, Parameter(help="Only those that became no run.")] = False,
    verdict: Annotated[str, Parameter(help="Only those with this verdict.")] = "",
    since: Annotated[str | None, Parameter(help="Only those since: 2h, 7d, 07:30, or 2026-11-03T09:00.")] = None,
    limit: Count = 20, cursor: Cursor = "", common: Common = USUAL,
) -> None:
    """The ledger: every arrival with what became of it, newest first."""
    with opened(common) as place:
        began = Instant(0) if since is None else since_when(since, place)
        found = place.read(lambda tx: list_firings(
            tx, automation_id="" if name is None else resolve(tx, name), verdict=verdict, since=began,
            admitted_too=not did_not_run, cursor=cursor, limit=limit,
        ))
        if place.out.as_json:
            place.out.json(found.as_json())
            return
        zone = place.config.timezone
        place.out.table(("verdict", "firing", "automation", "source", "when", "became", "why"), [
            (f.verdict, f.id, f.automation, f.source, _when(f, zone), f.run_id or "",
             f"{f.reason_sentence} {f.detail}".strip()) for f in found.items
        ], empty="Nothing has arrived.")
        if found.next_cursor:
            place.out.note(f"more: --cursor {found.next_cursor}")


def _when(f: FiringLine, zone: str) -> str:
    if f.slots is not None and f.slots > 1 and f.slot_from is not None and f.slot_to is not None:
        least = "" if f.slots_exact else "at least "
        return f"{least}{f.slots} slots, {spoken(f.slot_from, zone)} to {spoken(f.slot_to, zone)}"
    return spoken(f.scheduled_for or f.slot_from or f.arrived_at, zone)


def deliveries(
    name: Which = None, *, state: Annotated[str, Parameter(help="Only those in this state.")] = "",
    limit: Count = 20, cursor: Cursor = "", common: Common = USUAL,
) -> None:
    """Results on their way, newest first."""
    with opened(common) as place:
        found = place.read(lambda tx: list_deliveries(
            tx, automation_id="" if name is None else resolve(tx, name), state=state, cursor=cursor, limit=limit
        ))
        if place.out.as_json:
            place.out.json(found.as_json())
            return
        zone = place.config.timezone
        place.out.table(("state", "destination", "automation", "run", "tries", "when", "evidence or why"), [
            (d.state, d.destination, d.automation, d.run_id, str(d.tries), spoken(d.ended_at or d.created_at, zone),
             d.evidence or d.error or d.reason_sentence) for d in found.items
        ], empty="No deliveries.")
        if found.next_cursor:
            place.out.note(f"more: --cursor {found.next_cursor}")
