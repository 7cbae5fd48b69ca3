"""The units of a machine: in which folders they lie, what enables them, and what drop-ins add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from nightporter.exchange.people import Person
from nightporter.exchange.specifiers import Manager
from nightporter.exchange.tree import Tree
from nightporter.exchange.unit_file import Setting, Settings, held, settings_in

_SYSTEM: Final = (
    "/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/etc/systemd/system",
    "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system",
)
_FOR_ALL: Final = ("/etc/systemd/user", "/run/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user",
                   "/lib/systemd/user")
_NOTHING: Final = "/dev/null"
_ROOT: Final = Person("root", "/root", 0)
_NOBODY: Final = 60_000
"""User ids of people are below it."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit with all that was said of it."""

    name: str
    path: str
    """Where its file is; empty where there is none."""
    settings: Settings
    masked: bool = False
    alias_of: str = ""
    transient: bool = False
    unread: bool = False
    """Its file is there and cannot be read."""


def managers(tree: Tree, people: Mapping[str, Person]) -> Iterator[Manager]:
    """The system's manager, what is run for every user, and each user's."""
    root = people.get("root", _ROOT)
    yield Manager(_SYSTEM, _SYSTEM, root, is_system=True)
    yield Manager(_FOR_ALL, _FOR_ALL, Person("", ""), is_system=False, for_all=True)
    for person in people.values():
        if not person.home.startswith("/") or not (person.uid == 0 or 1000 <= person.uid < _NOBODY):
            continue
        if not tree.may_enter(person.home):
            continue
        said, run = f"{person.home}/.config/systemd", f"/run/user/{person.uid}"
        running = [f"{run}/systemd/{each}" for each in ("user.control", "transient", "user")]
        running = running if tree.may_enter(run) else []
        above = (f"{said}/user.control", *running[:2], f"{said}/user")
        below = (*running[2:], f"{person.home}/.local/share/systemd/user")
        yield Manager((*above, _FOR_ALL[0], *below, *_FOR_ALL[1:]), (*above, *below), person, is_system=False)


class Units:
    """The units of one manager."""

    def __init__(self, tree: Tree, manager: Manager) -> None:
        self._tree = tree
        self._manager = manager
        self._names = {folder: tree.names(folder) for folder in manager.folders}
        self.enabled: dict[str, str] = {}
        """By unit, the link that has it started."""
        self._find_links()

    def timers(self) -> list[str]:
        """The names of all timers that are this manager's own, sorted."""
        named = {name for folder in self._manager.own for name in self._names[folder] if name.endswith(".timer")}
        return sorted(named | {name for name in self.enabled if name.endswith(".timer")})

    def unit(self, name: str) -> Unit:
        """A unit with its drop-ins; one without a path where there is none."""
        for each in (name, _template_of(name)):
            for folder in self._manager.folders:
                if each and each in self._names[folder]:
                    return self._made(name, f"{folder}/{each}")
        return Unit(name, "", held(self._drop_ins(name)))

    def instances_of(self, template: str) -> list[str]:
        return [name for name in self.timers() if name != template and _template_of(name) == template]

    def _made(self, name: str, path: str) -> Unit:
        leads = self._tree.link_of(path) or ""
        if leads == _NOTHING:
            return Unit(name, path, Settings(), masked=True)
        other = PurePosixPath(leads).name
        if other and other not in (name, _template_of(name)) and other.endswith((".timer", ".service")):
            return Unit(name, path, held([self._read(path), *self._drop_ins(other)]), alias_of=other)
        if leads and self._tree.locate(path) is None:
            self._tree.pass_by(path, "its link leads nowhere")
        content = self._tree.read(path)
        return Unit(name, path, held([settings_in(content or b""), *self._drop_ins(name)]), masked=content == b"",
                    transient="/transient/" in path, unread=content is None)

    def _read(self, path: str) -> list[Setting]:
        return settings_in(self._tree.read(path) or b"")

    def _drop_ins(self, name: str) -> Iterator[list[Setting]]:
        """The files of `name.d` and of its template, prefixes and type: by their own names, each name once."""
        stem, _, kind = name.rpartition(".")
        prefix, at, _ = stem.partition("@")
        homes = [name, *([f"{prefix}@.{kind}"] if at and stem != f"{prefix}@" else []),
                 *(f"{prefix[: place + 1]}.{kind}" for place in range(len(prefix) - 2, 0, -1) if prefix[place] == "-")]
        found: dict[str, str] = {}
        folders = self._manager.folders
        # Where a folder stands counts for more than how closely its drop-ins are meant; the type comes last of all.
        for folder, home in [*((folder, home) for folder in folders for home in homes),
                             *((folder, kind) for folder in folders)]:
            if f"{home}.d" in self._names[folder]:
                for file in self._tree.names(f"{folder}/{home}.d"):
                    if file.endswith(".conf") and not file.startswith("."):
                        found.setdefault(file, f"{folder}/{home}.d/{file}")
        for file in sorted(found):
            if self._tree.link_of(found[file]) != _NOTHING:
                yield self._read(found[file])

    def _find_links(self) -> None:
        met: set[str] = set()
        for folder in self._manager.own:
            for home in self._names[folder]:
                if not home.endswith((".wants", ".requires")):
                    continue
                for name in self._tree.names(f"{folder}/{home}"):
                    path = f"{folder}/{home}/{name}"
                    if f"{home}/{name}" in met:
                        continue
                    met.add(f"{home}/{name}")
                    leads = self._tree.link_of(path) or ""
                    if leads == _NOTHING:
                        continue
                    self.enabled.setdefault(name, path)
                    other = PurePosixPath(leads).name
                    if other.endswith(".timer") and "@." not in other:
                        self.enabled.setdefault(other, path)


def is_template(name: str) -> bool:
    return name.rpartition(".")[0].endswith("@")


def _template_of(name: str) -> str:
    """`foo@.timer` for `foo@bar.timer`; empty for a unit that is no instance."""
    stem, _, kind = name.rpartition(".")
    prefix, at, instance = stem.partition("@")
    return f"{prefix}@.{kind}" if at and instance else ""
