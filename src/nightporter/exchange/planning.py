"""What becomes of each job that was found: new, already there, refused, or skipped; and counts that balance."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from nightporter.clock import Instant, rfc3339
from nightporter.errors import NightporterError
from nightporter.exchange.entry import Entry, Leftover, Off, Reading, Unread
from nightporter.exchange.translating import definition_of, marks_of, name_for
from nightporter.rules.schedule import next_due, sentence
from nightporter.words import Definition

FIRES = 3
"""How many coming fires of each schedule are shown."""


@dataclass(frozen=True, slots=True)
class Item:
    """One job, and what becomes of it."""

    entry: Entry
    mark: str
    name: str
    state: Literal["imported", "already", "refused", "skipped"]
    reason: str = ""
    definition: Definition | None = None
    automation_id: str | None = None
    off: Off | None = None
    """What became of it where it was; None where that was not asked for."""

    @property
    def is_here(self) -> bool:
        """Whether it acts, or could act, here."""
        return self.state in ("imported", "already") and self.automation_id is not None

    def as_json(self, now: Instant) -> dict[str, Any]:
        entry = self.entry
        return {
            "state": self.state, "reason": self.reason, "name": self.name, "automation_id": self.automation_id,
            "mark": self.mark,
            "source": {"kind": entry.source.kind, "path": entry.source.path, "line": entry.source.line or None,
                       "text": entry.text},
            "user": entry.user, "command": entry.shown, "runs": entry.command if isinstance(entry.command, str)
            else list(entry.command),
            "environment": dict(entry.environment), "cwd": entry.cwd or None,
            "schedules": [] if self.definition is None else [
                {"kind": schedule.kind, "expression": schedule.expression, "timezone": schedule.timezone,
                 "sentence": sentence(schedule), "next": [rfc3339(fire) for fire in fires],
                 "warning": warning or None}
                for schedule, fires, warning in self.schedules(now)
            ],
            "take_out": list(entry.off) or None,
            "taken_out": None if self.off is None else self.off.as_json(),
            "carried": list(entry.carried), "not_carried": [each.as_json() for each in entry.leftovers],
        }

    def schedules(self, now: Instant) -> list[tuple[Any, list[Instant], str]]:
        """Each schedule with its next fires and what is to be minded about it."""
        found = []
        for trigger, timing in zip(self.definition.triggers if self.definition else (), self.entry.timings,
                                   strict=False):
            schedule = trigger.schedule
            if schedule is None:
                continue
            if schedule.kind == "every" and schedule.anchor is None:
                schedule = replace(schedule, anchor=now)  # as it will be when it is stored
            fires: list[Instant] = []
            slot = next_due(schedule, now)
            while slot is not None and len(fires) < FIRES:
                fires.append(slot)
                slot = next_due(schedule, slot)
            found.append((schedule, fires, timing.warning))
        return found


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that was found, with what becomes of it."""

    readings: tuple[Reading, ...]
    items: tuple[Item, ...]
    unread: tuple[Unread, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Found, and what became of it."""
        states = ("imported", "already", "refused", "skipped")
        return {"found": sum(len(reading.entries) for reading in self.readings),
                **{state: sum(item.state == state for item in self.items) for state in states}}

    def check(self) -> None:
        """Raises AssertionError where something that was found is not accounted for, or counted twice."""
        found, *rest = self.counts.values()
        assert found == sum(rest), f"{found} found, but {sum(rest)} accounted for"
        for reading in self.readings:
            accounted = len(reading.entries) + reading.variables + reading.comments
            assert reading.lines in (0, accounted), f"{reading.path}: {reading.lines} lines, {accounted} accounted for"

    def changed(self, items: Iterable[Item]) -> Plan:
        return replace(self, items=tuple(items))


def plan(
    readings: Sequence[Reading], *, unread: Sequence[Unread] = (), present: Mapping[str, tuple[str, str]],
    taken: Collection[str], only: Collection[str] = (), me: str, now: Instant,
) -> Plan:
    """What an import would do. `present`: by mark, `(id, name)` of what was made of a job before; `taken`: names that
    are given; `only`: the names or sources asked for, where not everything is; `me`: whom the desk is taken to run
    as."""
    entries = [_as(me, entry) for reading in readings for entry in reading.entries]
    names = set(taken)
    items = []
    for entry, mark in zip(entries, marks_of(entries), strict=True):
        item = _item(entry, mark, present, names, only, now)
        if item.state == "imported":
            names.add(item.name)
        items.append(item)
    made = Plan(tuple(readings), tuple(items), tuple(unread))
    made.check()
    return made


def _item(
    entry: Entry, mark: str, present: Mapping[str, tuple[str, str]], names: set[str], only: Collection[str],
    now: Instant,
) -> Item:
    automation_id, name = present.get(mark, ("", ""))
    name = name or name_for(entry, mark, names)
    item = Item(entry, mark, name, "imported", automation_id=automation_id or None)
    if only and not _asked_for(entry, name, only):
        return replace(item, state="skipped", reason="it was not asked for")
    if entry.skipped:
        return replace(item, state="skipped", reason=entry.skipped)
    if entry.refused:
        return replace(item, state="refused", reason=entry.refused)
    try:
        definition = definition_of(entry, name, mark, now=now)
    except NightporterError as error:
        return replace(item, state="refused", reason=": ".join(part for part in (error.what, error.why) if part))
    if automation_id:
        return replace(item, state="already", reason=f"it is {name} here", definition=definition)
    return replace(item, definition=definition)


def _as(me: str, entry: Entry) -> Entry:
    if entry.user in ("", me):
        return entry
    return replace(entry, leftovers=(*entry.leftovers, Leftover(
        f"the user {entry.user}", f"it runs as whoever runs the desk, {me} if you do")))


def _asked_for(entry: Entry, name: str, only: Collection[str]) -> bool:
    source = entry.source
    return any(word in (name, source.path, source.where, PurePosixPath(source.path).name) for word in only)
