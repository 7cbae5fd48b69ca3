"""Automations: show, enable, disable, remove."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from nightporter import operations
from nightporter.clock import Instant, micros
from nightporter.definitions.grammar import MAIN_WORD
from nightporter.errors import BadInput
from nightporter.ledger import AutomationDetail, automation_detail, resolve
from nightporter.ledger.moments import asked_span, lasting, spoken
from nightporter.rules.durations import format_duration
from nightporter.rules.traps import collisions, traps_of
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.surfaces.cli.echo import schedules_of_others
from nightporter.surfaces.cli.listing import cells
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person
from nightporter.words import Definition, Look

Name = Annotated[str, Parameter(help="Its name or id, or the beginning of one.")]


def show(name: Name, *, common: Common = USUAL) -> None:
    """One automation: its definition with every default, what comes, what was, what is still to be delivered."""
    with opened(common) as place:
        found = place.read(lambda tx: automation_detail(tx, resolve(tx, name), now=place.clock.now()))
        warned = _warnings(place, found)
        if place.out.as_json:
            place.out.json({**found.as_json(), "warnings": list(warned)})
        else:
            _show(place, found, warned)


def _warnings(place: Place, found: AutomationDetail) -> tuple[str, ...]:
    """What its schedules do, and hardly as it was meant; of one that can fire."""
    if found.definition is None or found.line.state == AutomationState.COMPLETED:
        return ()
    now = place.clock.now()
    others = place.read(lambda tx: schedules_of_others(tx, found.line.id))
    warned = [trap.text for trap in traps_of(found.definition, now, desk_zone=place.config.timezone)]
    for trigger in found.line.triggers:
        if trigger.schedule is not None and trigger.next_fire_at is not None:
            warned += [trap.text for trap in collisions(trigger.schedule, others, now)]
    return tuple(dict.fromkeys(warned))


def _show(place: Place, found: AutomationDetail, warned: tuple[str, ...]) -> None:
    out, line, definition = place.out, found.line, found.definition
    row = cells(line)
    out.line(f"{line.name}: {line.state}" + (f", {row[-1]}" if row[-1] else ""))
    out.facts([
        ("id", line.id), ("owner", line.owner), ("workspace", line.workspace if line.workspace != "default" else ""),
        ("kept in", f"{line.truth} {line.path}".strip()), ("version", str(line.version)),
        ("runs", f"{line.target} {_does(definition)}".strip()), ("fires", row[2]),
        ("kept as", "\n".join(
            f"{t.schedule.kind} {t.schedule.expression}" for t in line.triggers if t.schedule is not None)),
        ("next", "\n".join(f"{spoken(f.at, f.timezone)}  {f.trigger}" for f in found.next_fires)),
        ("mind", "\n".join(warned)),
    ])
    if definition is not None:
        limits, retry = definition.limits, definition.retry
        if line.expires is not None:
            lasts = "" if definition.lasts is None else f", {format_duration(definition.lasts)} after it was renewed"
            out.facts([("expires", f"{spoken(line.expires, line.timezone)}{lasts}")])
        if definition.look is not None:
            out.facts([("looks at", _look(definition.look))])
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


def _does(definition: Definition | None) -> str:
    """What runs, on one line: a command, a function, an address, or the beginning of a text."""
    config = {} if definition is None else definition.target.config
    command = config.get("command")
    if isinstance(command, (list, tuple)):
        return shlex.join(str(word) for word in command)
    if "file" in config:
        return shlex.join([str(config["file"]), *(str(each) for each in config.get("args") or ())])
    if "url" in config:
        return f"{config.get('method') or ''} {config['url']}".strip()
    said = " ".join(str(command or config.get("call") or config.get("text") or "").split())
    return said if len(said) <= SHOWN else said[:SHOWN] + " ..."


SHOWN = 200


def _look(look: Look) -> str:
    main = look.config.get(MAIN_WORD.get(look.kind, "")) or look.config.get("file")
    said = " ".join(map(str, main)) if isinstance(main, list) else str(main or "")
    return f"{look.kind} {said}".strip()


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
    *names: Annotated[str, Parameter(help="Names or ids, or the beginnings of some.")],
    reason: Annotated[str, Parameter(help="Why, for those who ask.")] = "",
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Take automations out of the lists: what waits is cancelled, what runs is ended, their history stays. Of several,
    all are removed or none."""
    if not names:
        raise BadInput("nothing is said to be removed", next="name one or more: nightporter list shows them")

    def each(tx: Tx, automation_id: str, now: Instant) -> None:
        operations.remove(tx, automation_id, by=person(), reason=reason, now=now)

    if len(names) == 1:
        _change(names[0], each, dry_run, common)
        return
    with opened(common) as place:
        def work(tx: Tx) -> list[AutomationDetail]:
            now = place.clock.now()
            wanted = list(dict.fromkeys(resolve(tx, name) for name in names))
            tx.lock_automations(wanted)  # in the one order, whatever the order of the names
            for automation_id in wanted:
                each(tx, automation_id, now)
            return [automation_detail(tx, automation_id, now=now) for automation_id in wanted]

        found = place.change(work, dry_run=dry_run)
        if place.out.as_json:
            place.out.json({"items": [one.line.as_json() for one in found], "dry_run": dry_run})
            return
        for one in found:
            place.out.line(f"{one.line.name} {'would be' if dry_run else 'is'} {one.line.state}")


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
