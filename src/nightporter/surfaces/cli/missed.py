"""Missed slots that wait for a person: listed, run late, dismissed."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from nightporter import operations
from nightporter.errors import BadInput, NightporterError
from nightporter.ledger import resolve
from nightporter.ledger.missed import missed_cards, resolve_cards
from nightporter.ledger.moments import lasting, spoken
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person

ACTIONS = ("list", "run", "dismiss")


def missed(
    action: Annotated[str, Parameter(help="list, run or dismiss; or an automation, whose own are listed.")] = "list",
    which: Annotated[str | None, Parameter(help="A missed time's id or its beginning, or an automation.")] = None, *,
    everything: Annotated[bool, Parameter(
        name="--all", help="List decided ones too; run or dismiss all that wait.")] = False,
    reason: Annotated[str, Parameter(help="Why it is dismissed.")] = "",
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="How many are listed.")] = 100,
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Times that were missed and wait for you, by `missed: review` or because a one-shot's moment passed.

    `run` runs one late, as of its time, whatever else runs; `dismiss` closes it. Of two who decide at once, one does.
    """
    if action not in ACTIONS:
        if which is not None:
            raise BadInput(f"{action} is nothing that can be done with a missed time", why="it is list, run or dismiss",
                           next="nightporter missed run CARD")
        action, which = "list", action
    with opened(common) as place:
        if action == "list":
            _list(place, which, everything, limit)
        else:
            _decide(place, action, which, everything, reason, dry_run)


def _list(place: Place, which: str | None, everything: bool, limit: int) -> None:
    now, zone = place.clock.now(), place.config.timezone
    cards = place.read(lambda tx: missed_cards(
        tx, now, automation_id="" if which is None else resolve(tx, which), decided=everything, limit=limit))
    if place.out.as_json:
        place.out.json({"items": [card.as_json() for card in cards]})
        return
    place.out.table(("state", "missed", "automation", "trigger", "slot", "waiting", "why"), [
        (c.row.state, c.row.id, c.row.automation, c.trigger, spoken(c.row.slot, zone),
         lasting(round(c.age * 1e6)) if c.row.state == "pending" else "", _why(c.row.state, c.row.run_id, c.row.note))
        for c in cards
    ], empty="Nothing missed waits for you." if not everything else "Nothing was missed.")
    if any(c.row.state == "pending" for c in cards):
        place.out.note("nightporter missed run ID runs one late; nightporter missed dismiss ID closes it")


def _why(state: str, run_id: str | None, note: str) -> str:
    return f"became {run_id}" if state == "executed" else note


def _decide(place: Place, action: str, which: str | None, everything: bool, reason: str, dry_run: bool) -> None:
    if (which is None) is not everything:
        raise BadInput(f"missed {action} wants one thing to decide about", why="an id, an automation, or --all",
                       next=f"nightporter missed {action} ID")
    if action == "run" and reason:
        raise BadInput("--reason says nothing for `missed run`", next="leave it out")
    by, now = person(), place.clock.now()
    if which is None:
        ids = [card.row.id for card in reversed(place.read(lambda tx: missed_cards(tx, now, limit=10_000)))]
    else:
        ids = place.read(lambda tx: resolve_cards(tx, which))
    done: list[dict[str, Any]] = []
    for card in ids:
        try:
            done.append(_one(place, action, card, by, reason, dry_run))
        except NightporterError as error:  # the others have their turn all the same
            if len(ids) == 1:
                raise
            done.append({"id": card, "done": False, "error": error.what, "why": error.why})
    if place.out.as_json:
        place.out.json({"items": done, "dry_run": dry_run})
    else:
        for each in done:
            place.out.line(_said(action, each, dry_run))
        if not done:
            place.out.line("Nothing missed waits there.")
    if action == "run" and done and not dry_run and not place.somebody_works():
        place.out.note("no desk is running: nightporter up, or nightporter tick")


def _one(place: Place, action: str, card: str, by: str, reason: str, dry_run: bool) -> dict[str, Any]:
    now = place.clock.now()
    if action == "run":
        answer = place.change(lambda tx: operations.execute_missed(tx, card, by=by, now=now), dry_run=dry_run)
        return {"id": card, "done": True, "run_id": answer.run_id}
    place.change(lambda tx: operations.dismiss_missed(tx, card, by=by, note=reason, now=now), dry_run=dry_run)
    return {"id": card, "done": True, "reason": "dismissed", "note": reason}


def _said(action: str, each: dict[str, Any], dry_run: bool) -> str:
    if not each["done"]:
        return f"{each['error']}: {each['why']}".rstrip(": ")
    if action == "dismiss":
        return f"{each['id']} {'would be' if dry_run else 'is'} dismissed"
    return f"{each['id']} {'would become' if dry_run else 'became'} {each['run_id']}"
