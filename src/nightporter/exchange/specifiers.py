"""The specifiers of units: `%i`, `%h` and their like, filled in as the manager that runs the unit would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from nightporter.errors import BadInput
from nightporter.exchange.people import Person
from nightporter.exchange.tree import Tree

_SPECIFIER: Final = re.compile(r"%([A-Za-z0-9%])")
"""What else stands behind a % is text to systemd, and so is a % at the end; a letter that means nothing it refuses."""
_ESCAPED: Final = re.compile(r"\\x([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Manager:
    """One manager of units: the system's, or that of a user."""

    folders: tuple[str, ...]
    """Where its units are, the first one that has a unit first."""
    own: tuple[str, ...]
    """Those of them whose timers are listed as its own."""
    person: Person
    is_system: bool
    for_all: bool = False
    """Its units are run for every user."""


class Filling:
    """Fills the specifiers of one unit."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def __call__(self, text: str) -> str:
        """Raises BadInput where one of them cannot be known here."""
        return _SPECIFIER.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        letter = match[1]
        if letter not in self._values:
            raise BadInput(f"%{letter} cannot be filled in here", why="only that machine's systemd knows what it is",
                           next="write there what it stands for, or %% for a %")
        return self._values[letter]


def filling_of(unit: str, path: str, manager: Manager, tree: Tree) -> Filling:
    """What the specifiers of a unit stand for. Those that only a running system knows are not among them."""
    stem = unit.rpartition(".")[0]
    prefix, at, instance = stem.partition("@")
    home, person = manager.person.home, manager.person
    system = manager.is_system
    last = prefix.rpartition("-")[2]
    values = {
        "%": "%", "n": unit, "N": stem, "p": prefix, "P": unescaped(prefix), "i": instance, "I": unescaped(instance),
        "j": last, "J": unescaped(last), "f": "/" + unescaped(instance if at else prefix).lstrip("/"),
        "h": home, "u": person.name, "y": path, "Y": str(PurePosixPath(path).parent), "T": "/tmp",
        "V": "/var/tmp",
        "S": "/var/lib" if system else f"{home}/.local/state", "C": "/var/cache" if system else f"{home}/.cache",
        "L": "/var/log" if system else f"{home}/.local/state/log", "E": "/etc" if system else f"{home}/.config",
    }
    if person.uid >= 0:
        values |= {"U": str(person.uid), "t": "/run" if system else f"/run/user/{person.uid}"}
    if host := _word(tree, "/etc/hostname"):
        values |= {"H": host, "l": host.partition(".")[0]}
    if machine := _word(tree, "/etc/machine-id"):
        values["m"] = machine
    if manager.for_all:
        for letter in "huUtSCLE":
            values.pop(letter, None)
    return Filling(values)


def unescaped(text: str) -> str:
    """`srv-data` -> `srv/data`, `\\x2d` -> `-`: how systemd writes paths in names."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text.replace("-", "/"))


def _word(tree: Tree, path: str) -> str:
    return (tree.read(path) or b"").decode("utf-8", "replace").strip()
