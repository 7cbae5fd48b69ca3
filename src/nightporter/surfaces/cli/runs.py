"""Runs: lists, one step by step, why, cancel, review."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from cyclopts import Parameter

from nightporter import operations
from nightporter.clock import Instant
from nightporter.errors import BadInput, Conflict
from nightporter.ledger import Page, RunDetail, resolve, resolve_run, run_detail
from nightporter.ledger import explain as explain_it
from nightporter.ledger import runs as list_runs
from nightporter.ledger.lines import RunLine, run_line
from nightporter.ledger.moments import asked_span, lasting, spoken
from nightporter.states import ENDED, RunState
from nightporter.store import Tx
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person
from nightporter.words import Reason, Sight

Run = Annotated[str, Parameter(help="The run's id, its beginning, or an automation: its latest run.")]
Which = Annotated[str | None, Parameter(help="Of this automation only.")]
Count = Annotated[int, Parameter(name=["--limit", "-n"], help="How many.")]
Cursor = Annotated[str, Parameter(help="Go on where a page before ended.")]
LOOK_EVERY = 0.25


def runs(
    name: Which = None, *, state: Annotated[str, Parameter(help="Only those in this state.")] = "",
    since: Annotated[str | None, Parameter(help="Only those since: 2h, 7d, 07:30, or 2026-11-03T09:00.")] = None,
    limit: Count = 20, cursor: Cursor = "", common: Common = USUAL,
) -> None:
    """Runs, newest first."""
    with opened(common) as place:
        began = Instant(0) if since is None else since_when(since, place)
        found = place.read(lambda tx: list_runs(
            tx, automation_id="" if name is None else resolve(tx, name), state=state, since=began, cursor=cursor,
            limit=limit,
        ))
        show_runs(place, found, "No runs.")


def since_when(text: str, place: Place) -> Instant:
    """The instant that a span or a moment means. Raises BadSchedule."""
    return asked_span(text, place.config.timezone, place.clock.now())


def show_runs(place: Place, found: Page[RunLine], empty: str) -> None:
    """A page of runs."""
    if place.out.as_json:
        place.out.json(found.as_json())
        return
    zone = place.config.timezone
    place.out.table(("state", "run", "automation", "due", "late", "took", "attempt", "why"), [
        (r.state, r.id, r.automation, spoken(r.scheduled_for or r.queued_at, zone),
         "" if r.late is None else lasting(round(r.late * 1e6)),
         "" if r.duration is None else lasting(round(r.duration * 1e6)),
         f"{r.attempt} of {r.attempts}" if r.attempt > 1 else "", " ".join((r.error or r.reason_sentence).split()))
        for r in found.items
    ], empty=empty)
    if found.next_cursor:
        place.out.note(f"more: --cursor {found.next_cursor}")


def logs(
    run: Run, *, follow: Annotated[bool, Parameter(name=["--follow", "-f"], help="Stay until it has ended.")] = False,
    common: Common = USUAL,
) -> None:
    """A run step by step, then what it reported and what it printed beside. With --follow its steps appear as they are
    taken; what it says and prints is shown once it has ended and its results have too."""
    with opened(common) as place:
        run_id = place.read(lambda tx: resolve_run(tx, run))
        shown = 0
        while True:
            detail = place.read(lambda tx: run_detail(tx, run_id))
            if not place.out.as_json:
                shown += _show_steps(place, detail, shown)
            if not follow or _over(detail):
                break
            time.sleep(LOOK_EVERY)
        if place.out.as_json:
            place.out.json(detail.as_json())
            return
        looked = detail.look
        if looked is not None and looked.answer == Sight.SOMETHING and looked.text:
            place.out.line(f"-- its look ({looked.kind}) found")
            place.out.line(looked.text.rstrip("\n"))
        for head, text in (("said", detail.output), ("printed", detail.log), ("error", detail.line.error)):
            if text:
                place.out.line(f"-- {head}")
                place.out.line(text.rstrip("\n"))


def _show_steps(place: Place, detail: RunDetail, shown: int) -> int:
    """The steps after those shown; how many."""
    if not shown:
        place.out.line(f"{detail.line.id}  {detail.line.automation}")
    for step in detail.steps[shown:]:
        attempt = f" (attempt {step.attempt})" if step.what == "started" and (step.attempt or 0) > 1 else ""
        place.out.line(f"{spoken(step.at, place.config.timezone)}  {step.what:<13} {step.text}{attempt}")
    return len(detail.steps) - shown


def _over(detail: RunDetail) -> bool:
    state = detail.line.state  # whatever stands there
    return state == RunState.REVIEW or (
        state in ENDED and all(d.state not in ("pending", "sending") for d in detail.deliveries)
    )


def explain(
    subject: Annotated[str, Parameter(help="An automation, a run, or a firing.")],
    moment: Annotated[str | None, Parameter(help="With an automation: as --at.")] = None, *,
    at: Annotated[str | None, Parameter(
        help="With an automation: 07:30, or 2026-11-03T07:30; past, or to come.")] = None,
    common: Common = USUAL,
) -> None:
    """Why it ran, ran late, ended and was delivered as it was, or did not run; or what will become of a slot that
    comes, and what it will be asked. In a paragraph, and the facts below."""
    if moment is not None and at is not None:
        raise BadInput("a moment and --at say the same", next="leave one of them out")
    at = moment if at is None else at
    with opened(common) as place:
        found = place.read(lambda tx: explain_it(tx, subject, place.clock.now(), at=at))
        run_id = found.run_id
        goes_on = found.kind == "automation" or (
            run_id is not None and place.read(lambda tx: run_detail(tx, run_id)).line.state not in ENDED)
        works = place.somebody_works()
    if place.out.as_json:
        place.out.json(found.as_json())
    else:
        place.out.line(found.text)
        place.out.facts([(fact.name, fact.value) for fact in found.facts])
        if goes_on and not works:
            place.out.note("no desk is running, so nothing comes of it: nightporter up starts one")


def cancel(run: Run, *, dry_run: DryRun = False, common: Common = USUAL) -> None:
    """End a run: one that waits ends at once, one that runs is ended by its worker, its processes with it."""
    with opened(common) as place:
        run_id = place.read(lambda tx: resolve_run(tx, run))
        by = person()

        def end(tx: Tx) -> tuple[int, int]:
            done = operations.cancel_runs(tx, [run_id], reason=Reason.CANCELLED_BY, by=by, now=place.clock.now())
            if done == (0, 0):
                row = run_line(tx.read_run(run_id) or ())
                asked = row.state == "running" and row.cancel_at is not None
                raise Conflict(f"{run_id} {'is being ended already' if asked else f'is {row.state} already'}",
                               next=f"nightporter explain {run_id}")
            return done

        at_once, asked = place.change(end, dry_run=dry_run)
        place.out.answer({"run_id": run_id, "cancelled": at_once, "asked": asked, "dry_run": dry_run},
                         f"{run_id} {'would be ' if dry_run else ''}{'cancelled' if at_once else 'asked to end'}")


def review(
    run: Run, decision: Annotated[Literal["retry", "dismiss"], Parameter(help="Again, or closed.")], *,
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Decide about a run that may have acted and did not end: `retry` runs it again, `dismiss` closes it."""
    with opened(common) as place:
        run_id = place.read(lambda tx: resolve_run(tx, run))
        by = person()
        place.change(lambda tx: operations.review(tx, run_id, decision, by=by, now=place.clock.now()), dry_run=dry_run)
        after = {"retry": "queued again", "dismiss": "closed"}[decision]
        place.out.answer({"run_id": run_id, "decision": decision, "dry_run": dry_run},
                         f"{run_id} {'would be' if dry_run else 'is'} {after}")
        if decision == "retry" and not dry_run and not place.somebody_works():
            place.out.note("no desk is running: nightporter up, or nightporter tick")

