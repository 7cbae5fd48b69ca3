"""The timers of systemd on a machine: each with the service it starts, as one job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.exchange.cron_machine import House
from nightporter.exchange.entry import Entry, Leftover, Reading, Source
from nightporter.exchange.people import Person
from nightporter.exchange.service import work_of
from nightporter.exchange.specifiers import Filling, Manager, filling_of
from nightporter.exchange.timer import times_of
from nightporter.exchange.tree import Tree
from nightporter.exchange.unit_file import Settings, held, settings_in
from nightporter.exchange.unit_tree import Unit, Units, is_template, managers

_OTHERS: Final = ("Requires", "Requisite", "BindsTo", "Wants", "Upholds", "OnFailure", "OnSuccess")
_KEYS: Final[dict[str, Any]] = {
    "overlap": "skip", "retry": "none", "deliver": [{"announce": {"on": ["failed"]}}],
}
"""What systemd does and we would do otherwise: nothing is tried again, and nobody is told of what went well."""


def scan_systemd(tree: Tree, house: House, now: Instant) -> Iterator[Reading]:
    """Every timer of the system, of all users together and of each user."""
    for manager in managers(tree, house.people):
        units = Units(tree, manager)
        for name in units.timers():
            unit = units.unit(name)
            entry = _legible(_entry(units, unit, manager, tree, house, now))
            yield Reading(entry.source.path, (entry,))


def _entry(units: Units, unit: Unit, manager: Manager, tree: Tree, house: House, now: Instant) -> Entry:
    path = unit.path if not unit.path.endswith("@.timer") else units.enabled.get(unit.name, unit.path)
    path = path or units.enabled.get(unit.name, unit.name)
    entry = Entry(Source("systemd", path), "\n".join(unit.settings.lines("Timer")), user=manager.person.name,
                  label=unit.name.removesuffix(".timer"), shown=unit.name)
    if unit.masked:
        return entry.skip("it is masked")
    if unit.alias_of:
        return entry.skip(f"it is another name of {unit.alias_of}")
    if is_template(unit.name):
        count = len(units.instances_of(unit.name))
        return entry.skip("it is a template, whose instances are listed one by one" if count else
                          "it is a template, and no instance of it is enabled")
    if not (unit.path and (unit.transient or unit.name in units.enabled)):
        if not unit.path:
            return entry.refuse("a link enables it, and there is no such unit")
        return entry.skip("nothing enables it, so it is not run there either")
    if unit.unread:
        return entry.refuse("its file cannot be read")
    try:
        fill = filling_of(unit.name, unit.path, manager, tree)
        return _with_service(entry, units, unit, fill, manager, tree, house, now)
    except BadInput as error:
        return entry.refuse(": ".join(part for part in (error.what, error.why) if part))


def _with_service(
    entry: Entry, units: Units, unit: Unit, fill: Filling, manager: Manager, tree: Tree, house: House, now: Instant
) -> Entry:
    started = fill(unit.settings.last("Timer", "Unit")) or unit.name.removesuffix(".timer") + ".service"
    if not started.endswith(".service"):
        raise BadInput(f"it starts {started[:80]}", why="that is no service, so it runs no program")
    service = units.unit(started)
    entry = replace(entry, off=_off(unit, manager),
                    text="\n".join([*unit.settings.lines("Timer"), *service.settings.lines("Service")]),
                    about=_about(unit.settings, service.settings))
    if service.masked or service.unread or not service.path:
        raise BadInput(f"it starts {started[:80]}",
                       why="that service is masked" if service.masked else "its file cannot be read" if service.unread
                       else "there is no such service")
    times = times_of(_filled(unit.settings, "Timer", fill), house.timezone, now)
    if times.refused:
        return entry.refuse(times.refused)
    work = work_of(service.settings, filling_of(started, service.path, manager, tree), manager.person,
                   is_system=manager.is_system, home_of=lambda name: _person(house, name))
    leftovers = [*times.leftovers, *work.leftovers, *_surroundings(unit.settings), *_surroundings(service.settings)]
    if manager.for_all:
        leftovers.insert(0, Leftover("a run for every user", "there each user's systemd runs it; here it is one job"))
    return replace(
        entry, user=work.user, shown=work.shown, timings=tuple(times.timings), command=work.command,
        environment=work.environment, cwd=work.cwd,
        keys={**_KEYS, "limits": {"timeout": work.timeout, "per_hour": "none"}},
        carried=(*times.carried, *work.carried, "its output stays with the run, a failure comes to the inbox"),
        leftovers=tuple(dict.fromkeys(leftovers)),
    )


def _filled(settings: Settings, section: str, fill: Filling) -> Settings:
    """The section with its specifiers filled in. Raises BadInput."""
    text = "\n".join([f"[{section}]", *(fill(line) for line in settings.lines(section))])
    return held([settings_in(text.encode("utf-8", "surrogateescape"))])


def _person(house: House, name: str) -> Person | None:
    if name.isascii() and name.isdigit():
        return next((person for person in house.people.values() if str(person.uid) == name), None)
    return house.people.get(name)


def _about(timer: Settings, service: Settings) -> str:
    said = service.last("Unit", "Description") or timer.last("Unit", "Description")
    return "" if "%" in said else " ".join(said.split())[:300]


def _surroundings(settings: Settings) -> Iterator[Leftover]:
    for key in settings.keys("Unit"):
        if key.startswith(("Condition", "Assert")):
            for value in settings.all("Unit", key):
                yield Leftover(f"{key}={value[:80]}", "it is not asked here; a look (`if:`) can be")
        elif key in _OTHERS:
            yield Leftover(f"{key}={' '.join(settings.all('Unit', key))[:120]}", "no other unit is started here")


def _off(unit: Unit, manager: Manager) -> tuple[str, ...]:
    """The command that takes a timer out where it is."""
    verb = ("stop",) if unit.transient else ("disable", "--now")
    whose = () if manager.is_system else ("--global",) if manager.for_all else ("--user",)
    if manager.for_all:
        verb = ("disable",)  # there is no one systemd that could stop it
    return ("systemctl", *whose, *verb, *(["--"] if unit.name.startswith("-") else []), unit.name)


def _legible(entry: Entry) -> Entry:
    """An entry in which everything can be written as UTF-8; what is not is refused."""
    texts = [*([entry.command] if isinstance(entry.command, str) else entry.command), *entry.environment.values(),
             *entry.environment, entry.cwd, entry.user, *(timing.expression for timing in entry.timings)]
    broken = any("\0" in text or _shown(text) != text for text in texts)
    entry = replace(
        entry, source=replace(entry.source, path=_shown(entry.source.path)), text=_shown(entry.text),
        label=_shown(entry.label), about=_shown(entry.about), shown=_shown(entry.shown), user=_shown(entry.user),
        refused=_shown(entry.refused), carried=tuple(map(_shown, entry.carried)),
        leftovers=tuple(Leftover(_shown(each.what), _shown(each.why)) for each in entry.leftovers),
        off=tuple(map(_shown, entry.off)),
    )
    if not broken:
        return entry
    return replace(entry, timings=(), command="", environment={}, cwd="", carried=(), leftovers=(),
                   refused=entry.refused or "it has a NUL or bytes that are not UTF-8, which a definition cannot keep")


def _shown(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
