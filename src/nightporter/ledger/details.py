"""One automation, or one run, with everything the record has of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from nightporter.clock import Instant, micros, rfc3339
from nightporter.errors import NightporterError, NotFound
from nightporter.ledger import reads
from nightporter.ledger.lines import (
    AutomationLine,
    DeliveryLine,
    FiringLine,
    RunLine,
    delivery_line,
    firing_line,
    run_line,
    schedule_json,
)
from nightporter.ledger.moments import local, seconds
from nightporter.ledger.pages import plain
from nightporter.ledger.timeline import Effect, Step, Transition, Try, timeline
from nightporter.rules.schedule import slots_between
from nightporter.store import Tx
from nightporter.words import Definition, Look
from nightporter.words.kept import read_back

FIRES = 5
RECENT = 10
_FAR = 400 * 366 * 86_400_000_000


@dataclass(frozen=True, slots=True)
class Fire:
    """A coming slot."""

    at: Instant
    local: str | None
    timezone: str
    trigger: str

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Month:
    """How often an automation ran in a calendar month of its zone."""

    month: str
    runs: int
    succeeded: int
    quiet: int
    failed: int
    cancelled: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class AutomationDetail:
    """An automation with its definition, what comes and what was."""

    line: AutomationLine
    definition: Definition | None
    """With every default in place; None where none could ever be read."""
    next_fires: tuple[Fire, ...]
    recent_runs: tuple[RunLine, ...]
    recent_firings: tuple[FiringLine, ...]
    """With those that became no run."""
    open_deliveries: tuple[DeliveryLine, ...]
    months: tuple[Month, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.line.as_json(),
            "definition": None if self.definition is None else definition_json(self.definition),
            "next_fires": [fire.as_json() for fire in self.next_fires],
            "recent_runs": [run.as_json() for run in self.recent_runs],
            "recent_firings": [firing.as_json() for firing in self.recent_firings],
            "open_deliveries": [delivery.as_json() for delivery in self.open_deliveries],
            "months": [month.as_json() for month in self.months],
        }


def automation_detail(
    tx: Tx, automation_id: str, *, now: Instant, fires: int = FIRES, recent: int = RECENT
) -> AutomationDetail:
    """An automation by its id. Raises NotFound. Looking moves no slot."""
    line = reads.automation(tx, automation_id)
    if line is None:
        raise NotFound(f"no automation has the id {automation_id!r}", next="`nightporter list` shows what there is")
    return AutomationDetail(
        line=line, definition=_definition(tx, automation_id, line.version),
        next_fires=next_fires(line, now, fires),
        recent_runs=reads.runs(tx, automation_id=automation_id, limit=recent).items,
        recent_firings=reads.firings(tx, automation_id=automation_id, limit=recent).items,
        open_deliveries=tuple(delivery_line(row) for row in tx.read_deliveries_open(automation_id, recent)),
        months=tuple(Month(*row) for row in tx.read_months(automation_id, 12)),
    )


def next_fires(line: AutomationLine, now: Instant, count: int) -> tuple[Fire, ...]:
    """The next slots of all armed triggers together: the stored one, and those that follow it."""
    fires: list[Fire] = []
    for trigger in line.triggers:
        if trigger.next_fire_at is None or trigger.schedule is None:
            continue
        found = [trigger.next_fire_at]
        try:
            after = max(trigger.next_fire_at, now)
            for slot in slots_between(trigger.schedule, after, Instant(after + _FAR)):
                if len(found) == count:
                    break
                found.append(slot)
        except (NightporterError, ArithmeticError):
            pass  # the trigger's own line says that its schedule cannot be read
        fires += [Fire(at, local(at, trigger.timezone), trigger.timezone, trigger.name) for at in found[:count]]
    return tuple(sorted(fires, key=lambda fire: (fire.at, fire.trigger))[:count])


def definition_json(definition: Definition) -> dict[str, Any]:
    """A definition as surfaces show it: every default written out; durations are seconds, null is none."""
    limits, retry = definition.limits, definition.retry
    return {
        "name": definition.name, "description": definition.description, "owner": definition.owner,
        "workspace": definition.workspace, "timezone": definition.timezone,
        "target": {"kind": definition.target.kind, "config": dict(definition.target.config)},
        "triggers": [
            {
                "name": t.name, "kind": t.kind, "enabled": t.enabled,
                "overlap": None if t.overlap is None else str(t.overlap), "if": _look_json(t.look),
                "schedule": None if t.schedule is None else schedule_json(t.schedule),
                "stagger": _seconds(t.stagger), "exact": t.exact,
                "quiet_hours": None if t.quiet_hours is None else plain(t.quiet_hours),
                "threshold": None if t.threshold is None else {
                    "every": t.threshold.every, "within": _seconds(t.threshold.within)},
                "coalesce": None if t.coalesce is None else {
                    "window": _seconds(t.coalesce.window), "max_wait": _seconds(t.coalesce.max_wait),
                    "key": t.coalesce.key, "joins": t.coalesce.joins},
            }
            for t in definition.triggers
        ],
        "limits": {
            "per_hour": limits.per_hour, "queued": limits.queued, "concurrent": limits.concurrent,
            "timeout": None if limits.timeout is None else seconds(micros(limits.timeout)), "output": limits.output,
            "max_runs": limits.max_runs,
        },
        "retry": {
            "attempts": retry.attempts, "delays": [seconds(micros(delay)) for delay in retry.delays],
            "on": sorted(retry.on),
        },
        "if": _look_json(definition.look),
        "cooldown": seconds(micros(definition.cooldown)), "priority": definition.priority,
        "idempotent": definition.idempotent, "on_crash": definition.on_crash, "expires": rfc3339(definition.expires),
        "expires_after": None if definition.lasts is None else seconds(micros(definition.lasts)),
        "deliver": [
            {"name": d.name, "kind": d.kind, "config": dict(d.config), "on": sorted(d.on), "best_effort": d.best_effort,
             "quiet_hours": None if d.quiet_hours is None else plain(d.quiet_hours)}
            for d in definition.deliver
        ],
        "quiet_hours": None if definition.quiet_hours is None else plain(definition.quiet_hours),
        "hold_on_incident": definition.hold_on_incident,
    }


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else seconds(micros(span))


def _look_json(look: Look | None) -> dict[str, Any] | None:
    return None if look is None else {"kind": look.kind, "config": dict(look.config)}


def _definition(tx: Tx, automation_id: str, version: int) -> Definition | None:
    text = tx.read_definition(automation_id, version)
    if text is None:
        return None
    try:
        return Definition.from_json(text)
    except ValueError:  # the line shows it as broken; the rest can still be seen
        return None


@dataclass(frozen=True, slots=True)
class LookSeen:
    """What a run's look saw, or why it could not say."""

    kind: str
    answer: str
    text: str

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with its timeline and everything it left."""

    line: RunLine
    firing: FiringLine | None
    """The ledger line it came from; None past its retention."""
    text: str
    """What the firing said."""
    payload: Any
    steps: tuple[Step, ...]
    transitions: tuple[Transition, ...]
    output: str
    data: Any
    log: str
    effects: tuple[Effect, ...]
    deliveries: tuple[DeliveryLine, ...]
    tries: tuple[Try, ...]
    look: LookSeen | None

    def as_json(self) -> dict[str, Any]:
        tries: dict[str, list[dict[str, Any]]] = {}
        for one in self.tries:
            tries.setdefault(one.delivery_id, []).append(one.as_json())
        return {
            **self.line.as_json(),
            "firing": None if self.firing is None else self.firing.as_json(),
            "text": self.text, "payload": self.payload,
            "timeline": [step.as_json() for step in self.steps],
            "transitions": [transition.as_json() for transition in self.transitions],
            "looked": None if self.look is None else self.look.as_json(),
            "output": self.output, "data": self.data, "log": self.log,
            "effects": [effect.as_json() for effect in self.effects],
            "deliveries": [{**d.as_json(), "tried": tries.get(d.id, [])} for d in self.deliveries],
        }


def run_detail(tx: Tx, run_id: str) -> RunDetail:
    """A run by its id. Raises NotFound."""
    row = tx.read_run(run_id)
    if row is None:
        raise NotFound(f"no run has the id {run_id!r}", next="`nightporter runs` shows what there is")
    line = run_line(row)
    firing = tx.read_firing(line.firing_id)
    told: tuple[Any, ...] = tx.read_payload(line.carries) or ("", None, None)
    if line.merged and line.carries == line.firing_id:
        told = tx.joined([run_id]).get(run_id, told)
    look = tx.read_look(run_id)
    left = tx.read_output(run_id) or ("", None, "")
    transitions = tuple(Transition(*each) for each in tx.read_transitions(run_id))
    effects = tuple(Effect(*each) for each in tx.read_effects(run_id))
    deliveries = tuple(delivery_line(each) for each in tx.read_deliveries_of_run(run_id))
    tries = tuple(Try(*each) for each in tx.read_tries([d.id for d in deliveries]))
    return RunDetail(
        line=line, firing=None if firing is None else firing_line(firing), text=told[0], payload=_json(told[1]),
        steps=timeline(line, transitions, effects, deliveries, tries), transitions=transitions, output=left[0],
        data=_json(left[1]), log=left[2], effects=effects, deliveries=deliveries, tries=tries,
        look=None if look is None else LookSeen(*look),
    )


def _json(text: str | None) -> Any:
    """The value of stored JSON; the text itself where it is none."""
    if text is None:
        return None
    try:
        return read_back(text)
    except ValueError:
        return text
