"""What was understood of a schedule, said back: its sentence with the zone, its normalised form, its next fires."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nightporter.clock import Instant, rfc3339
from nightporter.ledger import automations
from nightporter.rules.exclusions import next_running
from nightporter.rules.plain import normalised
from nightporter.rules.schedule import sentence, wants_anchor
from nightporter.store import Tx
from nightporter.surfaces.cli.out import Out
from nightporter.words import Schedule

FIRES = 5


@dataclass(frozen=True, slots=True)
class Echo:
    """A schedule as it was understood."""

    schedule: Schedule
    fires: tuple[Instant, ...]

    def as_json(self) -> dict[str, Any]:
        schedule = self.schedule
        return {
            "sentence": sentence(schedule), "timezone": schedule.timezone, "kind": schedule.kind,
            "expression": schedule.expression, "normalised": normalised(schedule),
            "fires": [rfc3339(fire) for fire in self.fires],
        }


def fires_of(schedule: Schedule, after: Instant, count: int = FIRES) -> tuple[Instant, ...]:
    """The next fires; slots that are left out are none, as far as there are others."""
    found: list[Instant] = []
    slot = next_running(schedule, after)
    while slot is not None and len(found) < count:
        found.append(slot)
        slot = next_running(schedule, slot)
    return tuple(found)


def echo_of(schedule: Schedule, now: Instant, count: int = FIRES) -> Echo:
    """A schedule as it will be when it is stored at this moment."""
    counted = replace(schedule, anchor=now) if wants_anchor(schedule) else schedule
    return Echo(schedule, fires_of(counted, now, count))


def head(out: Out, schedule: Schedule) -> None:
    """The sentence, and the form that is kept."""
    out.line(f"{sentence(schedule)}  [{schedule.kind} {schedule.expression}]")


def schedules_of_others(tx: Tx, automation_id: str) -> dict[str, Schedule]:
    """The armed schedules of all other automations, by the name of the automation."""
    found: dict[str, Schedule] = {}
    for line in automations(tx, limit=500).items:
        for trigger in line.triggers:
            if line.id != automation_id and trigger.next_fire_at is not None and trigger.schedule is not None:
                found[line.name if trigger.name == "clock" else f"{line.name}/{trigger.name}"] = trigger.schedule
    return found
