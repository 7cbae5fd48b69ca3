"""What failed, and what a person makes of it: incidents, dead letters, and several of them run again at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from nightporter import operations
from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.ledger import Page, dead_letters, resolve, resolve_run
from nightporter.ledger.incidents import IncidentLine, incident, incidents, resolve_incident_id
from nightporter.ledger.lines import RunLine, reason_sentence
from nightporter.ledger.moments import spoken
from nightporter.store import Tx
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person
from nightporter.surfaces.cli.runs import Count, Cursor, show_runs, since_when
from nightporter.words import Verdict

Since = Annotated[str | None, Parameter(help="Only those that died since: 2h, 7d, 07:30, or 2026-11-03T09:00.")]
Why = Annotated[str, Parameter(help="Only those that ended for this reason.")]
Fault = Annotated[str, Parameter(help="Only those whose error has this in it, whatever its numbers, times and ids.")]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which dead letters are meant."""

    name: str | None
    since: str | None
    reason: str
    error: str
    limit: int


def dead_ones(place: Place, chosen: Chosen, cursor: str = "") -> Page[RunLine]:
    """Those that are meant, the latest first. Raises BadInput, NotFound."""
    began = Instant(0) if chosen.since is None else since_when(chosen.since, place)
    return place.read(lambda tx: dead_letters(
        tx, automation_id="" if chosen.name is None else resolve(tx, chosen.name), since=began, reason=chosen.reason,
        fault=chosen.error, cursor=cursor, limit=chosen.limit,
    ))


def dead(
    name: Annotated[str | None, Parameter(help="Of this automation only.")] = None, *,
    since: Since = None, reason: Why = "", error: Fault = "",
    run: Annotated[str | None, Parameter(help="Only this one.")] = None,
    dismiss: Annotated[bool, Parameter(help="Take those that are shown off the list, for good.")] = False,
    limit: Count = 20, cursor: Cursor = "", dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Dead letters: runs that used up their attempts, or failed in a way that is not tried again. `replay` runs one
    again as a new run, `replay --dead` several; either leaves the list, and so does what is dismissed."""
    with opened(common) as place:
        chosen = Chosen(name, since, reason, error, limit)
        if not dismiss:
            if run is not None:
                raise BadInput("--run belongs to --dismiss", next=f"nightporter explain {run} says how it died")
            show_runs(place, dead_ones(place, chosen, cursor), "No dead letters.")
            return
        if run is not None and (name, since, reason, error, cursor) != (None, None, "", "", ""):
            raise BadInput("--run is one dead letter, and the filters are about many", next="leave one of them out")
        shown = [] if run else dead_ones(place, chosen, cursor).items
        ids = [place.read(lambda tx: resolve_run(tx, run))] if run else [r.id for r in shown]
        by = person()
        count = place.change(lambda tx: operations.dismiss_dead(tx, ids, by=by, now=place.clock.now()), dry_run=dry_run)
        place.out.answer({"dismissed": count, "dry_run": dry_run},
                         f"{_many(count, 'dead letter')} {'would be ' if dry_run else ''}dismissed")


def replay_dead(place: Place, chosen: Chosen, *, dry_run: bool) -> int:
    """Run those that are meant again, the oldest first, two seconds apart. 7: none of them would."""
    found = dead_ones(place, chosen)
    lines, more = found.items, found.next_cursor
    by = person()
    answers = place.change(
        lambda tx: operations.replay_together(tx, [r.id for r in lines], by=by, now=place.clock.now()), dry_run=dry_run)
    told = [
        {"run_id": run, "verdict": str(answer.verdict), "reason": None if answer.reason is None else str(answer.reason),
         "reason_sentence": reason_sentence(answer.reason), "new_run_id": None if dry_run else answer.run_id}
        for run, answer in answers
    ]
    admitted = sum(answer.verdict is Verdict.ADMITTED for _, answer in answers)
    if place.out.as_json:
        place.out.json({"replayed": admitted, "dry_run": dry_run, "more": more is not None, "runs": told})
    else:
        names = {r.id: r.automation for r in lines}
        place.out.table(("automation", "run", "becomes"), [
            (names[one["run_id"] or ""], one["run_id"] or "",
             one["new_run_id"] or ("a new run" if one["verdict"] == Verdict.ADMITTED else one["reason_sentence"] or ""))
            for one in told
        ], empty="No dead letters.")
        if told:
            place.out.note(f"{_many(admitted, 'run')} {'would be ' if dry_run else ''}queued, two seconds apart")
        if gone := len(lines) - len(answers):
            place.out.note(f"{_many(gone, 'dead letter')} left out: somebody has decided meanwhile")
        if more:
            place.out.note("there are more: --limit takes a larger number")
        if admitted and not dry_run and not place.somebody_works():
            place.out.note("no desk is running: nightporter up, or nightporter tick")
    return 7 if lines and not admitted else 0


def incidents_(
    action: Annotated[Literal["list", "show", "ack", "resolve"], Parameter(help="What to do.")] = "list",
    which: Annotated[str | None, Parameter(help="An incident's id, its beginning, or an automation.")] = None, *,
    note: Annotated[str, Parameter(help="Words to keep with it.")] = "",
    state: Annotated[str, Parameter(help="Only those in this state.")] = "",
    all_: Annotated[bool, Parameter(name="--all", help="Those that are over too.")] = False,
    limit: Count = 20, cursor: Cursor = "", dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Incidents: faults that recur, each once, with how often and since when. `ack` says that you know: nobody is
    alerted of it any more. `resolve` says that it is over; a success says so by itself."""
    with opened(common) as place:
        if action == "list":
            _list(place, which, state, all_, limit, cursor)
            return
        if which is None:
            raise BadInput(f"incidents {action} needs an incident", next="`nightporter incidents` lists them")
        incident_id = place.read(lambda tx: resolve_incident_id(tx, which))
        if action == "show":
            _show(place, place.read(lambda tx: incident(tx, incident_id)))
            return
        by = person()

        def decide(tx: Tx) -> IncidentLine:
            work = operations.acknowledge if action == "ack" else operations.resolve_incident
            work(tx, incident_id, by=by, note=note, now=place.clock.now())
            return incident(tx, incident_id)

        line = place.change(decide, dry_run=dry_run)
        place.out.answer({**line.as_json(), "dry_run": dry_run},
                         f"{incident_id} {'would be' if dry_run else 'is'} {line.state}")


def _list(place: Place, which: str | None, state: str, ended: bool, limit: int, cursor: str) -> None:
    found = place.read(lambda tx: incidents(
        tx, automation_id="" if which is None else resolve(tx, which), state=state, ended=ended, cursor=cursor,
        limit=limit,
    ))
    if place.out.as_json:
        place.out.json(found.as_json())
        return
    zone = place.config.timezone
    place.out.table(("state", "incident", "what", "times", "since", "last", "error"), [
        (i.state, i.id, _what(i), str(i.count), spoken(i.first_at, zone), spoken(i.last_at, zone),
         " ".join(i.error.split()))
        for i in found.items
    ], empty="No incidents.")
    if found.next_cursor:
        place.out.note(f"more: --cursor {found.next_cursor}")


def _what(line: IncidentLine) -> str:
    return line.route if line.kind == "delivery" else line.automation


def _show(place: Place, line: IncidentLine) -> None:
    if place.out.as_json:
        place.out.json(line.as_json())
        return
    zone = place.config.timezone
    place.out.line(f"{line.id}  {line.state}  {_what(line)}")
    for head, text in (
        ("about", {"execution": "runs that fail", "schedule": "a schedule that cannot be made sense of",
                   "delivery": "a receiver that takes nothing"}.get(line.kind, line.kind)),
        ("where", line.route), ("times", str(line.count)), ("since", spoken(line.first_at, zone)),
        ("last", f"{spoken(line.last_at, zone)}, {line.subject}"), ("error", " ".join(line.error.split())),
        ("alike", line.signature),
        ("told", spoken(line.notified_at, zone) if line.notified_at else "nobody beside the inbox yet"),
        ("decided", f"{spoken(line.decided_at, zone)} by {line.decided_by}" if line.decided_at else ""),
        ("note", line.note), ("over", spoken(line.resolved_at, zone) if line.resolved_at else ""),
    ):
        if text:
            place.out.line(f"  {head:<8} {text}")


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
