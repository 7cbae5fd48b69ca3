"""`add`: an automation from words, or from a definition file, kept in the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from nightporter import operations
from nightporter.clock import Instant
from nightporter.definitions import read
from nightporter.errors import BadDefinition, BadInput, Conflict
from nightporter.ledger import automation_detail
from nightporter.ledger.details import AutomationDetail
from nightporter.ledger.moments import spoken
from nightporter.rules.plain import read_words
from nightporter.rules.traps import collisions, traps_of
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.surfaces.cli.echo import FIRES, Echo, echo_of, head, schedules_of_others
from nightporter.surfaces.cli.given import given_text
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person
from nightporter.words import Definition
from nightporter.words.kept import read_back

_FORMATS: dict[str, Literal["markdown", "yaml"]] = {".md": "markdown", ".yaml": "yaml", ".yml": "yaml"}
_BY_HAND = ("manual", "none", "by hand")


def add(
    when: Annotated[str | None, Parameter(
        help='When, as `when:` in a file: "weekdays at 07:30", "every 15m", "0 9 * * mon-fri", "tomorrow at 9", or '
        '"manual".'
    )] = None,
    text: Annotated[str | None, Parameter(help="What it says (the target `echo`), where nothing else runs.")] = None, *,
    name: Annotated[str | None, Parameter(help="What it is called: small letters, digits, dashes.")] = None,
    file: Annotated[Path | None, Parameter(help="Take all of it from a definition file; - is standard input.")] = None,
    script: Annotated[str | None, Parameter(help="A command for the shell.")] = None,
    python: Annotated[str | None, Parameter(help="A function: package.module:function.")] = None,
    http: Annotated[str | None, Parameter(help="An address to call.")] = None,
    timezone: Annotated[str | None, Parameter(help="An IANA zone; by default this desk's.")] = None,
    deliver: Annotated[tuple[str, ...], Parameter(
        help="Where results go, once for each: file=out.md, announce, none, or JSON as in a file."
    )] = (),
    timeout: Annotated[str | None, Parameter(help="How long a run may take: 5m, or none.")] = None,
    overlap: Annotated[Literal["skip", "queue", "parallel", "replace"] | None, Parameter(
        help="What a firing does while a run is going."
    )] = None,
    idempotent: Annotated[bool, Parameter(help="Doing it twice does no harm.")] = False,
    paused: Annotated[bool, Parameter(help="Keep it asleep until it is enabled.")] = False,
    reason: Annotated[str, Parameter(help="Why it is paused.")] = "",
    replace: Annotated[bool, Parameter(help="Change the one of that name, if there is one.")] = False,
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Make an automation. It is kept in the store; a file in the folder of definitions is the other way.

    The schedule is echoed as a sentence, with its zone, the form that is kept and its next fires, before anything is
    saved; what may not be meant so is said as well.
    """
    if reason and not paused:
        raise BadInput("--reason belongs to --paused", next="add --paused, or leave it out")
    with opened(common, make=True) as place:
        now = place.clock.now()
        words: dict[str, Any] = {
            "when": when, "text": text, "script": script, "python": python, "http": http, "timezone": timezone,
            "deliver": deliver, "timeout": timeout, "overlap": overlap, "idempotent": idempotent,
        }
        if file is not None:
            if given := [f"--{key}" if key not in ("when", "text") else key.upper()
                         for key, value in words.items() if value]:
                raise BadInput(f"{given[0]} is said by the file", next=f"leave {', '.join(given)} out, or --file")
            definition = _from_file(file, name, place, now)
        else:
            definition = _from_words(words, name, place, now)
        echoes = _echoes(definition, now)
        notes = () if file is not None or not definition.triggers else _notes(when, definition, now)
        if not place.out.as_json:
            _say(place, echoes, notes)
        made = place.change(
            lambda tx: _define(tx, definition, paused, reason, replace, place.clock.now()), dry_run=dry_run
        )
        warnings = _warnings(place, definition, made, now, asked_for_zone=timezone is not None)
        if place.out.as_json:
            place.out.json({
                **made.as_json(), "schedules": [echo.as_json() for echo in echoes], "notes": list(notes),
                "warnings": warnings, "dry_run": dry_run,
            })
        else:
            place.out.line(f"{'Would be saved' if dry_run else 'Saved'} as {made.line.name} ({made.line.state}).")
            for warning in warnings:
                place.out.note(f"mind: {warning}")
            if not dry_run and not place.somebody_works():
                place.out.note("no desk is running: nightporter up starts one")


def _warnings(
    place: Place, definition: Definition, made: AutomationDetail, now: Instant, *, asked_for_zone: bool
) -> list[str]:
    """What is as it was said, and hardly as it was meant."""
    found = []
    if made.line.state == AutomationState.COMPLETED:
        found.append("the moment it is to run at has passed, so it will not run by itself; say a later one with "
                     "--replace, or run it now with: nightporter run " + made.line.name)
    warned = traps_of(definition, now, desk_zone=None if asked_for_zone else place.config.timezone)
    found += [trap.text for trap in warned if trap.code != "passed"]
    others = place.read(lambda tx: schedules_of_others(tx, made.line.id))
    for trigger in definition.triggers:
        if trigger.schedule is not None and trigger.enabled:
            found += [trap.text for trap in collisions(trigger.schedule, others, now)]
    return list(dict.fromkeys(found))


def _define(
    tx: Tx, definition: Definition, paused: bool, reason: str, replace: bool, now: Instant
) -> AutomationDetail:
    if not replace and tx.automation_named(definition.name, workspace=definition.workspace):
        raise Conflict(f"there is an automation called {definition.name} already",
                       next="choose another --name, or add --replace to change it")
    done = operations.define(
        tx, definition, truth="store", by=person(), now=now, reason=reason,
        state=AutomationState.PAUSED if paused else AutomationState.ACTIVE,
    )
    if paused and done.change != "created":
        raise Conflict(f"{definition.name} is there already", next="nightporter disable pauses it")
    return automation_detail(tx, done.automation_id, now=now, fires=FIRES)


def _from_file(file: Path, name: str | None, place: Place, now: Instant) -> Definition:
    text = given_text(str(file), "the definition")
    form = "markdown" if str(file) == "-" and text.startswith("---") else _FORMATS.get(file.suffix.lower(), "yaml")
    path = str(file.absolute()) if str(file) != "-" else ""
    definition = read(text, path=path, format=form, default_timezone=place.config.timezone, now=now)
    if name is not None and name != definition.name:
        raise BadInput(f"the file calls it {definition.name}", next="leave --name out, or change the file")
    return definition


def _from_words(words: dict[str, Any], name: str | None, place: Place, now: Instant) -> Definition:
    """The definition that the words say, through the one grammar of files."""
    if name is None:
        raise BadInput("the automation has no name", next="add --name morning-brief")
    targets = [(key, words[key]) for key in ("script", "python", "http") if words[key] is not None]
    if words["text"] is not None:
        targets.append(("echo", words["text"]))
    if len(targets) != 1:
        raise BadInput(
            "nothing is said to run" if not targets else "more than one thing is said to run",
            next="give a text, or one of --script, --python and --http",
        )
    entries: dict[str, Any] = {"name": name, "target": dict(targets)}
    if words["when"] is None:
        raise BadInput("nothing is said about when", next='write for example "every 15m", or "manual"')
    if words["when"].strip().lower() not in _BY_HAND:
        entries["when"] = words["when"]
    for key in ("timezone", "overlap"):
        if words[key] is not None:
            entries[key] = words[key]
    if words["idempotent"]:
        entries["idempotent"] = True
    if words["timeout"] is not None:
        entries["limits"] = {"timeout": words["timeout"]}
    if words["deliver"]:
        entries["deliver"] = [_destination(text) for text in words["deliver"]]
    try:
        # JSON is YAML, so what is said here is checked as a file is.
        return read(
            json.dumps(entries), format="yaml", default_timezone=place.config.timezone, now=now, read_once=True
        )
    except BadDefinition as error:
        error.line = error.column = 0  # of a text that nobody has seen
        raise


def _destination(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return read_back(text)
        except ValueError as error:
            raise BadInput(f"--deliver {text} is no JSON", why=str(error),
                           next='write for example {"webhook": "https://..."}') from error
    kind, said, value = text.partition("=")
    return {kind: value} if said else kind


def _notes(when: str | None, definition: Definition, now: Instant) -> tuple[str, ...]:
    """How the words were read."""
    return () if when is None else read_words(when, definition.timezone, now=now).notes


def _echoes(definition: Definition, now: Instant) -> list[Echo]:
    """What was understood."""
    return [
        echo_of(trigger.schedule, now) for trigger in definition.triggers if trigger.schedule is not None
    ]


def _say(place: Place, echoes: list[Echo], notes: tuple[str, ...]) -> None:
    """What was understood, before it is saved."""
    for echo in echoes:
        head(place.out, echo.schedule)
        if not echo.fires:
            place.out.line("  never: that has passed" if echo.schedule.kind == "at" else "  never")
        for fire in echo.fires:
            place.out.line(f"  {spoken(fire, echo.schedule.timezone)}")
    if not echoes:
        place.out.line("No schedule: it runs when a person asks or a program calls it.")
    for note in notes:
        place.out.note(f"note: {note}")
