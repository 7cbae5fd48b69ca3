"""`when:` and `triggers:`: the standing instructions that start an automation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, NoReturn

from nightporter.clock import Instant
from nightporter.definitions import grammar
from nightporter.definitions.bounding import bounds_of
from nightporter.definitions.entry import Entry, entry_of
from nightporter.definitions.guards import check_sense, guards_of
from nightporter.definitions.missed import check_overlap, missed_of
from nightporter.definitions.moments import instant_of
from nightporter.definitions.written import (
    Entries,
    Items,
    Place,
    Scalar,
    Value,
    bad,
    choice_of,
    flag_of,
    misread,
    text_of,
    wrong_type,
)
from nightporter.errors import BadInput, BadSchedule
from nightporter.rules import schedule, zones
from nightporter.rules.plain import BareDuration, NeedsNow, from_now_on, read_words
from nightporter.rules.plain.within import joined
from nightporter.words import Look, Missed, Overlap, Schedule, TriggerSpec
from nightporter.words.automation import ScheduleKind

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_RESERVED: Final = ("manual", "call")


@dataclass(frozen=True, slots=True)
class Setting:
    """What the rest of the definition says that a trigger depends on."""

    timezone: str
    now: Instant
    read_once: bool
    """The definition is not kept as text and read again: what it says may be counted from now."""
    overlap: Overlap | None
    missed: Missed | None = None
    folder: Path | None = None
    """Where the definition's file is."""
    beside: list[Path] = field(default_factory=list)
    """Files that were read with it: calendars."""
    look: Callable[[Value], Look] | None = None
    """How a trigger's own `if` is read."""


def name_of(value: Value) -> str:
    """The name of an automation, a trigger, a destination or a workspace."""
    name = text_of("name", value)
    if not NAME.fullmatch(name):
        raise bad(value.place, f"{name[:70]!r} is not a name",
                  why="a name has small letters, digits and dashes, 64 at most, and no dash at its start",
                  next=f"write {as_name(name) or 'something like morning-brief'}")
    return name


def as_name(text: str) -> str:
    """The nearest name to a text; may be empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].rstrip("-")


def triggers_of(root: Entries, setting: Setting) -> tuple[TriggerSpec, ...]:
    """The triggers of a definition, `when:` first. Those that merely exist (`manual`, `call`) are not listed."""
    found: list[TriggerSpec] = []
    places: list[Place] = []
    when = root.get("when")
    if when is not None:
        found.append(
            TriggerSpec("clock", "clock", _bounded(_when(when, setting), root, root, setting, when.place),
                        overlap=setting.overlap, missed=setting.missed)
        )
        check_overlap(found[0], root.keys.get("missed", root.keys["when"]))
        places.append(root.keys["when"])
    listed = root.get("triggers")
    if listed is not None:
        if not isinstance(listed, Items):
            raise wrong_type("triggers", listed, "a list", next='write `- cron: "0 9 * * *"` below it')
        for item in listed:
            entry = entry_of("triggers", item, grammar.TRIGGERS, grammar.NOT_YET_TRIGGERS)
            trigger = _trigger(entry, setting, root)
            if setting.look is not None and (look := entry.options.get("if")) is not None:
                trigger = replace(trigger, look=setting.look(look))
            if trigger.kind == "clock" and when is not None:
                raise bad(entry.place, "`when` and a schedule under `triggers` cannot stand together",
                          why="`when` is the short form of a single schedule", next="move it under `triggers`")
            for earlier, place in zip(found, places, strict=True):
                if earlier.name == trigger.name:
                    _same_name(earlier, trigger, place, entry)
            found.append(trigger)
            places.append(entry.place)
    if setting.missed is not None and not any(trigger.kind == "clock" for trigger in found):
        raise bad(root.keys["missed"], "`missed` says nothing here", why="there is no schedule whose times could pass",
                  next="write a schedule, such as `when: every 1h`, or remove it")
    stray = next((key for key in grammar.BOUNDS if key in root.values), None)
    if stray is not None and not any(trigger.kind == "clock" for trigger in found):
        raise bad(root.keys[stray], f"`{stray}` says nothing here", why="there is no schedule that it would bound",
                  next="write a schedule, such as `when: every 1h`, or remove it")
    if setting.overlap is not None and not any(trigger.kind == "call" for trigger in found):
        found.append(TriggerSpec("call", "call", overlap=setting.overlap))
    return tuple(found)


def _same_name(earlier: TriggerSpec, trigger: TriggerSpec, place: Place, entry: Entry) -> NoReturn:
    if trigger.kind in _RESERVED:
        raise bad(entry.place, f"`{trigger.name}` stands here twice", why=f"the first one is in line {place.line}")
    raise bad(
        entry.options.keys.get("name", entry.place), f"two triggers have the name `{trigger.name}`",
        why=f"the other one is in line {place.line}; without a name a schedule is called `clock`",
        next="give this one a name: `name: evening`",
    )


def _trigger(entry: Entry, setting: Setting, root: Entries) -> TriggerSpec:
    known = grammar.TRIGGER_KEYS[entry.kind]
    check_sense(entry.kind, entry.options)
    grammar.check_keys(entry.options, known, f"in `{entry.kind}`", grammar.NOT_YET_TRIGGER_KEYS)
    options = entry.options
    enabled = options.get("enabled")
    overlap = options.get("overlap")
    is_clock = entry.kind in grammar.SCHEDULES
    trigger = TriggerSpec(
        name=entry.kind, kind=entry.kind,
        enabled=True if enabled is None else flag_of("enabled", enabled),
        # `manual` passes this gate, so a rule meant for all triggers says nothing of it.
        overlap=overlap_of(overlap) if overlap is not None else setting.overlap if entry.kind != "manual" else None,
        **guards_of(options, setting.timezone),
    )
    if not is_clock:
        return trigger
    name = options.get("name")
    named = "clock" if name is None else name_of(name)
    if name is not None and named in _RESERVED:
        raise bad(name.place, f"the name `{named}` is taken", why="every automation has a trigger of that name",
                  next="give this one another name")
    missed = options.get("missed")
    trigger = replace(
        trigger, name=named, kind="clock",
        schedule=_bounded(_schedule(entry, setting), entry.options, root, setting, entry.place),
        missed=setting.missed if missed is None else missed_of(missed),
    )
    check_overlap(trigger, options.keys.get("missed", entry.place))
    return trigger


def overlap_of(value: Value) -> Overlap:
    """What a firing does while another run is going."""
    return Overlap(choice_of("overlap", value, [str(each) for each in Overlap]))


def _schedule(entry: Entry, setting: Setting) -> Schedule:
    expression = entry.options.get("expression")
    if expression is None:
        raise bad(entry.place, f"`{entry.kind}` has no expression",
                  next=f"write `{entry.kind}: {_EXAMPLE[entry.kind]}`")
    timezone, zone_value = setting.timezone, entry.options.get("timezone")
    if zone_value is not None:
        timezone = timezone_of(zone_value)
    anchor, anchor_value = None, entry.options.get("anchor")
    if anchor_value is not None:
        try:
            anchor = instant_of(text_of("anchor", anchor_value), timezone)
        except BadSchedule as error:
            misread(anchor_value.place, error)
    return _parsed(_KINDS[entry.kind], _words(entry.kind, expression), timezone, expression.place, anchor)


def _bounded(found: Schedule, options: Entries, root: Entries, setting: Setting, place: Place) -> Schedule:
    """The schedule within what stands beside it, or else at the automation."""
    bounds = bounds_of(
        options, root, found.timezone, folder=setting.folder, now=setting.now, beside=setting.beside
    )
    try:
        return schedule.within(found, joined(found.bounds, bounds))
    except BadInput as error:
        misread(place, error)


_KINDS: Final[Mapping[str, ScheduleKind]] = {"cron": "cron", "every": "every", "at": "at", "rrule": "rrule"}
_EXAMPLE: Final = {"cron": '"0 9 * * mon-fri"', "every": "15m", "at": "2026-11-03T09:00",
                   "rrule": '"FREQ=WEEKLY;BYDAY=MO"'}


def _words(kind: str, value: Value) -> str:
    if isinstance(value, Scalar) and value.kind == "number":
        raise bad(value.place, f"`{kind}: {value.text}` does not say what is meant",
                  why="a number alone names no unit", next=f"write `{kind}: {_EXAMPLE[kind]}`")
    return text_of(kind, value, longest=1000)


def _parsed(
    kind: ScheduleKind, expression: str, timezone: str, place: Place, anchor: Instant | None = None
) -> Schedule:
    try:
        return schedule.parse(kind, expression, timezone, anchor=anchor)
    except BadInput as error:
        misread(place, error)


def timezone_of(value: Value) -> str:
    """The name of a zone that exists."""
    name = text_of("timezone", value)
    try:
        zones.zone(name)
    except BadInput as error:
        misread(value.place, error)
    return name


def _when(value: Value, setting: Setting) -> Schedule:
    if not isinstance(value, Scalar):
        raise wrong_type("when", value, "the text of one schedule", next="write more than one under `triggers`")
    if value.kind == "number":
        raise bad(value.place, f"`when: {value.text}` does not say when", why="a number alone names no unit",
                  next=f"write `when: every {value.text}m`, or a cron expression in quotes")
    words = text_of("when", value, longest=1000)
    try:
        return read_words(words, setting.timezone, now=setting.now if setting.read_once else None).schedule
    except BareDuration as error:
        duration = words.strip()
        once = from_now_on(f"in {duration}", setting.timezone, setting.now)
        raise bad(value.place, f"`when: {duration}` is ambiguous", why=error.why,
                  next=f"write `when: every {duration}`, or `when: {once}`") from error
    except NeedsNow as error:
        written = from_now_on(words, setting.timezone, setting.now)
        raise bad(value.place, f"`when: {words.strip()}` depends on the moment in which it is read",
                  why="a file is read again and again, and each time it would mean another one",
                  next=f"write `when: {written}`" if written else error.next) from error
    except BadInput as error:
        misread(value.place, error)
