"""Automations: list, show, enable, disable, remove."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from nightporter import operations
from nightporter.clock import Instant, micros
from nightporter.definitions import scan
from nightporter.engine.places import definitions_of
from nightporter.errors import BadInput
from nightporter.ledger import AutomationDetail, automation_detail, automations, refused_files, resolve
from nightporter.ledger.lines import AutomationLine, run_line
from nightporter.ledger.moments import asked_span, lasting, spoken
from nightporter.store import Tx
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person
from nightporter.words import Reason

Name = Annotated[str, Parameter(help="Its name or id, or the beginning of one.")]


def list_(
    *, cursor: Annotated[str, Parameter(help="Go on where a page before ended.")] = "",
    limit: Annotated[int, Parameter(help="How many.")] = 200, common: Common = USUAL,
) -> None:
    """All automations with their state and why, their schedule, next fire and last outcome."""
    with opened(common) as place:
        found, refused = place.read(lambda tx: (automations(tx, cursor=cursor, limit=limit), refused_files(tx)))
        last = {} if place.out.as_json else place.read(lambda tx: {line.id: _last(tx, line) for line in found.items})
        if place.out.as_json:
            place.out.json({**found.as_json(), "refused_files": [file.as_json() for file in refused]})
            return
        place.out.table(
            ("state", "name", "when", "next", "last", "queued", "running", "why"),
            [_row(line, last[line.id]) for line in found.items],
            empty="No automations yet: nightporter add makes one, and so does a file in the folder of definitions.",
        )
        if found.next_cursor:
            place.out.note(f"more: nightporter list --cursor {found.next_cursor}")
        for file in refused:
            why = f": {file.why}" if file.why else ""
            place.out.note(f"not taken: {file.where}: {file.what}{why}")
        _mention_unread_files(place, {file.path for file in refused})


def _last(tx: Tx, line: AutomationLine) -> str:
    """How its last run ended: what it amounted to, or why it amounted to nothing."""
    row = None if line.last_run_id is None else tx.read_run(line.last_run_id)
    if row is not None:
        run = run_line(row)
        if run.reason == Reason.DISMISSED:
            return "dismissed"
        if run.state in ("timed_out", "cancelled"):
            return run.state.replace("_", " ")
    return line.last_outcome or ""


def _row(line: AutomationLine, last: str = "") -> tuple[str, ...]:
    schedules = [t.sentence + ("" if t.enabled else " (off)") for t in line.triggers if t.schedule or t.error]
    if line.error is not None:
        where = f"{Path(str(line.error['path'])).name}:{line.error['line']}:{line.error['column']}: "
        why = where + str(line.error["what"])
    else:
        until = "" if line.state_until is None else f" until {spoken(line.state_until, line.timezone)}"
        by = f" by {line.state_by}" if line.state == "paused" and line.state_by else ""
        why = (line.state_reason + until + by).strip()
    why += "".join(f" trigger {t.name} cannot be read: {t.error}" for t in line.triggers if t.error)
    errors = f" ({line.errors_in_a_row} errors in a row)" if line.errors_in_a_row > 1 else ""
    return (
        line.state, line.name, "; ".join(schedules) or ("by hand or call" if line.triggers else ""),
        "" if line.next_fire_at is None else spoken(line.next_fire_at, line.timezone),
        last + errors, str(line.queued or ""), str(line.running or ""), why,
    )


def _mention_unread_files(place: Place, refused: set[str]) -> None:
    """Say which definition files no desk has read yet: they are neither in the list nor refused."""
    if place.somebody_works():
        return
    try:
        files = scan(definitions_of(place.config), default_timezone=place.config.timezone, now=place.clock.now())
    except BadInput as error:
        place.out.note(error.what)
        return
    known = refused | {row[3] for row in place.read(lambda tx: tx.automations_of_files())}
    new = [file.path.name for file in files if str(file.path) not in known]
    if new:
        place.out.note(f"not loaded yet, because no desk is running: {', '.join(new)} (nightporter up, or tick)")


def show(name: Name, *, common: Common = USUAL) -> None:
    """One automation: its definition with every default, what comes, what was, what is still to be delivered."""
    with opened(common) as place:
        found = place.read(lambda tx: automation_detail(tx, resolve(tx, name), now=place.clock.now()))
        if place.out.as_json:
            place.out.json(found.as_json())
        else:
            _show(place, found)


def _show(place: Place, found: AutomationDetail) -> None:
    out, line, definition = place.out, found.line, found.definition
    row = _row(line)
    out.line(f"{line.name}: {line.state}" + (f", {row[-1]}" if row[-1] else ""))
    out.facts([
        ("id", line.id), ("owner", line.owner), ("workspace", line.workspace if line.workspace != "default" else ""),
        ("kept in", f"{line.truth} {line.path}".strip()), ("version", str(line.version)),
        ("runs", line.target), ("fires", row[2]),
        ("next", "\n".join(f"{spoken(f.at, f.timezone)}  {f.trigger}" for f in found.next_fires)),
    ])
    if definition is not None:
        limits, retry = definition.limits, definition.retry
        out.line("limits")
        out.facts([
            ("timeout", "none" if limits.timeout is None else lasting(micros(limits.timeout))),
            ("concurrent", _or_none(limits.concurrent)), ("queued", _or_none(limits.queued)),
            ("per hour", _or_none(limits.per_hour)), ("output", f"{limits.output} bytes"),
            ("cooldown", lasting(micros(definition.cooldown)) if definition.cooldown else "none"),
            ("overlap", ", ".join(f"{t.name} {t.overlap}" for t in line.triggers)),
            ("attempts", f"{retry.attempts}, after {', '.join(sorted(retry.on))} errors"),
            ("if a worker dies", definition.on_crash or ("retry" if definition.idempotent else "retry where nothing "
                                                         "can have happened, else review")),
            ("delivers", "\n".join(f"{d.name} ({d.kind}) on {', '.join(sorted(d.on))}" for d in definition.deliver)),
        ])
    if found.recent_runs:
        out.line("runs")
        out.table(("state", "run", "when", "late", "why"), [
            (r.state, r.id, spoken(r.scheduled_for or r.queued_at, line.timezone),
             "" if r.late is None else lasting(round(r.late * 1e6)), r.error or r.reason_sentence)
            for r in found.recent_runs
        ])
    missed = [f for f in found.recent_firings if f.verdict != "admitted"]
    if missed:
        out.line("did not run")
        out.table(("verdict", "firing", "when", "why"), [
            (f.verdict, f.id, spoken(f.scheduled_for or f.slot_from or f.arrived_at, line.timezone),
             f"{f.reason_sentence} {f.detail}".strip()) for f in missed
        ])
    if found.open_deliveries:
        out.line("not delivered")
        out.table(("state", "destination", "run", "why"), [
            (d.state, d.destination, d.run_id, d.error or d.reason_sentence) for d in found.open_deliveries
        ])


def _or_none(value: int | None) -> str:
    return "none" if value is None else str(value)


def enable(name: Name, *, dry_run: DryRun = False, common: Common = USUAL) -> None:
    """Let an automation act again, from now on. The slots it slept through are one line of the ledger."""
    _change(name, lambda tx, id, now: operations.enable(tx, id, by=person(), now=now), dry_run, common)


def disable(
    name: Name, *, reason: Annotated[str, Parameter(help="Why, for those who ask.")] = "",
    until: Annotated[str | None, Parameter(help="When it ends by itself: 2h, 07:30, or 2026-11-03T09:00.")] = None,
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Pause an automation: nothing fires it but a person, and what is queued waits."""

    def pause(tx: Tx, automation_id: str, now: Instant) -> None:
        end = None if until is None else asked_span(until, common.settings().timezone, now, ahead=True)
        operations.pause(tx, automation_id, by=person(), reason=reason, until=end, now=now)

    _change(name, pause, dry_run, common)


def remove(
    name: Name, *, reason: Annotated[str, Parameter(help="Why, for those who ask.")] = "",
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Take an automation out of the lists: what waits is cancelled, what runs is ended, its history stays."""

    _change(name, lambda tx, id, now: operations.remove(tx, id, by=person(), reason=reason, now=now), dry_run, common)


def _change(name: str, act: Callable[[Tx, str, Instant], None], dry_run: bool, common: Common) -> None:
    """Do something to an automation, and show what it is then."""
    with opened(common) as place:
        def work(tx: Tx) -> AutomationDetail:
            now = place.clock.now()  # when it has its turn: the clock may have answered slots while it waited
            automation_id = resolve(tx, name)
            act(tx, automation_id, now)
            return automation_detail(tx, automation_id, now=now)

        found = place.change(work, dry_run=dry_run)
        line = found.line
        if place.out.as_json:
            place.out.json({**line.as_json(), "dry_run": dry_run})
            return
        until = "" if line.state_until is None else f" until {spoken(line.state_until, line.timezone)}"
        next = "" if line.next_fire_at is None else f"; next {spoken(line.next_fire_at, line.timezone)}"
        place.out.line(f"{line.name} {'would be' if dry_run else 'is'} {line.state}{until}{next}")
