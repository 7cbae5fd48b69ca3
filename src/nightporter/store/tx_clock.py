"""The clock source's part of a transaction: armed slots, versions of schedules, pauses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

from nightporter.clock import Instant
from nightporter.errors import NightporterError
from nightporter.rules.schedule import wall_of
from nightporter.store.tx_automations import TriggerRow
from nightporter.store.tx_base import TxBase
from nightporter.words import Schedule
from nightporter.words.automation import ScheduleKind, plain
from nightporter.words.bounds import Bounds
from nightporter.words.kept import read_back


@dataclass(frozen=True, slots=True)
class Armed:
    """A trigger whose slot is set."""

    trigger_id: str
    automation_id: str
    schedule: str
    """As stored: `schedule_text`."""
    version: int
    next_fire_at: Instant
    policy: str
    tzdata: str


def as_armed(automation_id: str, trigger: TriggerRow) -> Armed | None:
    """The same of a trigger's row; None where no slot is set."""
    if trigger.next_fire_at is None or trigger.schedule is None:
        return None
    return Armed(trigger.id, automation_id, trigger.schedule, trigger.version, trigger.next_fire_at, trigger.policy,
                 trigger.tzdata)


@dataclass(frozen=True, slots=True)
class Stale:
    """A trigger whose slot was computed with another release of the zone data."""

    armed: Armed
    wall: int | None
    """Seconds: what the clock of the zone showed at the slot; None where the schedule does not go by it."""
    owed_since: Instant | None
    """Slots after it are owed under its schedule."""
    answered_at: Instant | None
    """When one of its slots was last answered."""


def schedule_text(schedule: Schedule) -> str:
    """A schedule as it is stored."""
    said: list[object] = [schedule.kind, schedule.expression, schedule.timezone, schedule.anchor]
    if schedule.bounds is not None or schedule.offset:
        said.append(None if schedule.bounds is None else plain(schedule.bounds))
    if schedule.offset:
        said.append(schedule.offset)
    return json.dumps(said, separators=(",", ":"))


@lru_cache(maxsize=4096)
def schedule_from(text: str) -> Schedule:
    """The inverse. Raises ValueError when it is not one."""
    try:
        first, further = (said := read_back(text))[:4], said[4:]
        bounds = [None if raw is None else Bounds.of(raw) for raw in further[:1]]
        found = Schedule(*first, *bounds, *further[1:])
    except (TypeError, KeyError) as error:
        raise ValueError(f"it is no schedule: {error}") from error
    if found.kind not in get_args(ScheduleKind) or not isinstance(found.anchor, int | None):
        raise ValueError(f"it is no schedule: {text[:100]}")
    if not (isinstance(found.expression, str) and isinstance(found.timezone, str) and isinstance(found.offset, int)):
        raise ValueError(f"it is no schedule: {text[:100]}")
    return found


def _wall(schedule: str | None, slot: Instant | None) -> int | None:
    if schedule is None or slot is None:
        return None
    try:
        return wall_of(schedule_from(schedule), slot)
    except (NightporterError, ValueError, TypeError):
        return None  # the clock puts the trigger aside when its slot comes


class ClockTx(TxBase):
    def due(self, now: Instant, room: int) -> list[Armed]:
        """Armed triggers whose slot has come, earliest first."""
        return [Armed(*r) for r in self.sql.all("trigger_due", now=now, room=room)]

    def due_next(self, now: Instant, room: int) -> list[Armed]:
        """Armed triggers whose slot has come; where there are none, those whose slot comes next. Earliest first."""
        return [Armed(*r) for r in self.sql.all("trigger_due_next", now=now, room=room)]

    def advance(self, moves: Sequence[tuple[Armed, Instant | None]], *, tzdata: str) -> set[str]:
        """Move slots on from where they were read to their next. Returns the triggers that were still there, under the
        same schedule."""
        read = [(armed.trigger_id, armed.version, armed.next_fire_at) for armed, _ in moves]
        still = {r[0] for r in self.sql.each("trigger_armed_still", read)}
        self.sql.each("trigger_advance", [
            (a.trigger_id, a.version, a.next_fire_at, slot, tzdata, _wall(a.schedule, slot))
            for a, slot in moves if a.trigger_id in still
        ])
        return still

    def arm(self, rows: Sequence[tuple[str, Instant | None, str, int, str | None]]) -> None:
        """Set slots: `(trigger, next, tzdata, version, schedule)`."""
        self.sql.each("trigger_arm", [
            (trigger, slot, tzdata, _wall(schedule, slot), version, schedule)
            for trigger, slot, tzdata, version, schedule in rows
        ])
        self.kicks.add("due")

    def disarm(self, trigger_ids: Sequence[str]) -> None:
        self.sql.each("trigger_disarm", [(t,) for t in trigger_ids])

    def stale_zones(self, tzdata: str, room: int, *, after: str = "") -> list[Stale]:
        """Armed triggers computed with another release of the zone data, by their ids."""
        return [
            Stale(Armed(*r[:7]), r[7], r[8], r[9])
            for r in self.sql.all("trigger_stale_zones", tzdata=tzdata, room=room, after=after)
        ]

    def quarantine_trigger(self, trigger_id: str, error: str, *, now: Instant) -> None:
        """Take a trigger that cannot be read out of the loop, named and once."""
        self.sql.run("trigger_quarantine", id=trigger_id, error=error)
        self.sql.run("quarantine_write", subject="trigger", key=trigger_id, error=error, now=now)

    def quarantined_triggers(self) -> list[str]:
        return [r[0] for r in self.sql.all("trigger_quarantined")]

    def release_trigger(self, trigger_id: str) -> None:
        self.sql.run("trigger_release", id=trigger_id)
        self.sql.run("quarantine_release", subject="trigger", key=trigger_id)

    def open_version(self, trigger_id: str, version: int, schedule: Schedule, *, tzdata: str, at: Instant) -> None:
        """From `at` on, slots strictly after it are owed under this schedule."""
        self.sql.run(
            "trigger_version_open", trigger_id=trigger_id, version=version, schedule=schedule_text(schedule),
            timezone=schedule.timezone, tzdata=tzdata, valid_from=at,
        )

    def close_version(self, trigger_id: str, *, at: Instant) -> None:
        """Slots after `at` are not owed under the version now open."""
        self.sql.run("trigger_version_close", trigger_id=trigger_id, valid_to=at)

    def renew_version(
        self, armed: Armed, schedule: Schedule, slot: Instant | None, *, tzdata: str, at: Instant
    ) -> None:
        """The same schedule under another release of the zone data: what is owed after `at` is owed under a version of
        its own."""
        self.close_version(armed.trigger_id, at=at)
        self.open_version(armed.trigger_id, armed.version + 1, schedule, tzdata=tzdata, at=at)
        self.arm([(armed.trigger_id, slot, tzdata, armed.version + 1, armed.schedule)])

    def open_pause(self, automation_id: str, reason: str, *, at: Instant) -> None:
        self.sql.run("pause_open", automation_id=automation_id, paused_from=at, reason=reason)

    def close_pause(self, automation_id: str, *, at: Instant) -> tuple[Instant, str] | None:
        """End the open pause: `(from, reason)`, or None when there was none."""
        row = self.sql.one("pause_close", automation_id=automation_id, paused_to=at)
        return None if row is None else (row[0], row[1])
