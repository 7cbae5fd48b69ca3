"""stagger: what is due at one instant all over a desk starts a little apart, each trigger always by the same offset.

The offset is part of the schedule, so that preview, arming and firing cannot disagree. It is derived from names, never
drawn: the same before a definition is stored and after a restart. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Final

from nightporter.clock import HOUR, MINUTE, SECOND, Instant, micros
from nightporter.rules.schedule import slots_between
from nightporter.rules.zones import stretch_at
from nightporter.words import Definition, Schedule, TriggerSpec

MOST: Final = 5 * MINUTE
"""The largest offset is below it."""
BACKED_BY_MODELS: Final = frozenset({"agent", "cli_agent"})
"""Targets whose schedules are staggered unless they say `exact`, where they are due at the top of an hour."""
_LOOKED_AT: Final = 3


def staggered(definition: Definition) -> Definition:
    """The definition with the offset of each of its schedules."""
    triggers = tuple(_shifted(spec, definition) for spec in definition.triggers)
    return definition if triggers == definition.triggers else replace(definition, triggers=triggers)


def _shifted(spec: TriggerSpec, definition: Definition) -> TriggerSpec:
    if spec.schedule is None:
        return spec
    most = _most(spec, definition.target.kind)
    offset = 0
    if most:
        name = "\0".join((definition.workspace, definition.name, spec.name))
        drawn = int.from_bytes(blake2b(name.encode(), digest_size=8).digest())
        offset = drawn % (most // SECOND) * SECOND
    if offset == spec.schedule.offset:
        return spec
    return replace(spec, schedule=replace(spec.schedule, offset=offset))


def _most(spec: TriggerSpec, target: str) -> int:
    """The offset is below it; 0 is none."""
    schedule = spec.schedule
    if schedule is None or schedule.kind == "at" or spec.exact:
        return 0
    if spec.stagger is not None:
        return micros(spec.stagger)
    return MOST if target in BACKED_BY_MODELS and _on_the_hour(schedule) else 0


def _on_the_hour(schedule: Schedule) -> bool:
    """Whether it is due when the clock of its zone shows a whole hour."""
    plain = replace(schedule, offset=0)
    first = islice(slots_between(plain, Instant(0), Instant(200 * 366 * 24 * HOUR)), _LOOKED_AT)
    seconds = [slot // SECOND for slot in first]
    return bool(seconds) and all((s + stretch_at(schedule.timezone, s).offset) % 3600 == 0 for s in seconds)
