"""The list of automations; in a module of its own, which imports next to nothing: it is what is asked most often."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from nightporter.clock import SECOND
from nightporter.errors import BadInput, location
from nightporter.ledger import automations, refused_files
from nightporter.ledger.lines import AutomationLine, run_line
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.status import CLOCK_BEHIND, clock_behind, stop_of
from nightporter.store import Tx
from nightporter.surfaces.cli.place import USUAL, Common, Place, opened
from nightporter.words import Reason


def list_(
    *, cursor: Annotated[str, Parameter(help="Go on where a page before ended.")] = "",
    limit: Annotated[int, Parameter(help="How many.")] = 200, common: Common = USUAL,
) -> None:
    """All automations with their state and why, their schedule, next fire and last outcome."""
    with opened(common) as place:
        found, refused, stop, behind = place.read(lambda tx: (
            automations(tx, cursor=cursor, limit=limit), refused_files(tx), stop_of(tx),
            clock_behind(tx, place.clock.now())))
        last = {} if place.out.as_json else place.read(lambda tx: {line.id: _last(tx, line) for line in found.items})
        if place.out.as_json:
            place.out.json({**found.as_json(), "refused_files": [file.as_json() for file in refused],
                            "stopped": None if stop is None else stop.as_json(), "clock_behind": behind / SECOND})
            return
        place.out.table(
            ("state", "name", "when", "next", "last", "queued", "running", "why"),
            [cells(line, last[line.id]) for line in found.items],
            empty="No automations yet: nightporter add makes one, and so does a file in the folder of definitions.",
        )
        if found.next_cursor:
            place.out.note(f"more: nightporter list --cursor {found.next_cursor}")
        if stop is not None:
            by = stop.by or "somebody"
            place.out.note(f"everything is stopped by {by}: nothing starts until nightporter stop --lift")
        if behind:
            place.out.note(CLOCK_BEHIND.format(lasting(behind)))
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


def cells(line: AutomationLine, last: str = "") -> tuple[str, ...]:
    """A row of the list."""
    schedules = [t.sentence + ("" if t.enabled else " (off)") for t in line.triggers if t.schedule or t.error]
    if line.error is not None:
        where = location(Path(str(line.error["path"])).name, line.error["line"], line.error["column"]) + ": "
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
    from nightporter.definitions import scan
    from nightporter.engine.places import definitions_of

    try:
        files = scan(definitions_of(place.config), default_timezone=place.config.timezone, now=place.clock.now())
    except BadInput as error:
        place.out.note(error.what)
        return
    known = refused | {row[3] for row in place.read(lambda tx: tx.automations_of_files())}
    new = [file.path.name for file in files if str(file.path) not in known]
    if new:
        place.out.note(f"not loaded yet, because no desk is running: {', '.join(new)} (nightporter up, or tick)")
