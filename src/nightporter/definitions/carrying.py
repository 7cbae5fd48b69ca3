"""`target:`, `if:` and `deliver:`: what runs, what is looked at before, and where results go. The kinds themselves
check their configs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from nightporter.definitions import grammar
from nightporter.definitions.entry import Entry, entry_of
from nightporter.definitions.front_matter import Page
from nightporter.definitions.guards import quiet_hours_of
from nightporter.definitions.triggers import name_of
from nightporter.definitions.written import (
    Entries,
    Items,
    Place,
    Value,
    bad,
    choices_of,
    flag_of,
    misread,
    plain,
    wrong_type,
)
from nightporter.errors import BadInput
from nightporter.words import Destination, Look, Target

Check = Callable[..., Mapping[str, Any]]
"""`check(config, folder)`: the config complete. Relative paths are below `folder`; None is the current one. Raises
BadInput naming the key."""


def _looks() -> Mapping[str, Check]:
    from nightporter import looks

    return looks.checks()


@dataclass(frozen=True, slots=True)
class Checks:
    """The kinds of targets, destinations and looks there are, and what checks their configs."""

    targets: Mapping[str, Check]
    destinations: Mapping[str, Check]
    looks: Mapping[str, Check] = field(default_factory=_looks)

    @staticmethod
    def shipped() -> Checks:
        """Those that come with the program."""
        from nightporter import destinations, runners

        return Checks(runners.checks(), destinations.checks())


OUTCOMES: Final = ("report", "action", "needs_you", "failed")
_HERE: Final = ("./", "../")
_IN_CODE: Final = "function"


def target_of(root: Entries, page: Page, checks: Checks, folder: Path | None) -> Target:
    """What runs. A text below the front matter is what `echo` answers with.

    Relative paths are below `folder`, by default the current one.
    """
    written = root.get("target")
    if written is None:
        if not page.body:
            raise bad(Place(1, 1), "nothing is said to run", why="there is no `target` and no text below the keys",
                      next="write for example `target: {script: ./report.sh}`")
        return Target("echo", checked(checks.targets["echo"], {"prompt": page.body}, folder, page.body_place, {}))
    kinds = [kind for kind in checks.targets if kind != _IN_CODE]
    if isinstance(written, Entries) and _IN_CODE in written.values:
        raise bad(written.keys[_IN_CODE], "a `function` is given in code and cannot be named in a file",
                  next="write `python: package.module:function`")
    entry = entry_of("target", written, kinds, grammar.NOT_YET_TARGETS)
    config = _config(entry, grammar.TARGET_KEYS)
    if page.body:
        if entry.kind != "echo" or config:
            raise bad(page.body_place, f"the text below the keys is not used by the target `{entry.kind}`",
                      next="move it to `description`, or remove it")
        config["prompt"] = page.body
    if entry.kind == "script":
        config = _found_program(entry, config, folder)
    complete = checked(checks.targets[entry.kind], config, folder, entry.place, entry.options.keys)
    return Target(entry.kind, complete)


def look_of(value: Value, checks: Checks, folder: Path | None) -> Look:
    """What is looked at before the target runs; relative paths as there."""
    entry = entry_of("if", value, tuple(grammar.LOOK_KEYS), {})
    config = _config(entry, grammar.LOOK_KEYS)
    kind = "script" if entry.kind == "command" else entry.kind
    if kind == "script":
        config = _found_program(entry, config, folder)
    return Look(kind, checked(checks.looks[kind], config, folder, entry.place, entry.options.keys))


def _found_program(entry: Entry, config: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """A script's config with its program found. Raises BadDefinition where the shell would not find it."""
    config = _program(config, folder)
    if "cwd" not in config and str(config.get("command", "")).lstrip().startswith(_HERE):
        raise bad(entry.options.keys["command"], "the shell will not find what the command begins with",
                  why="it starts in the run's scratch folder, not beside this file",
                  next="add `cwd: .` for the folder of this file, or write the whole path")
    return config


def destinations_of(root: Entries, checks: Checks, timezone: str) -> tuple[Destination, ...]:
    """Where results go; to the inbox when nothing is said."""
    written = root.get("deliver")
    if written is None:
        return (Destination("announce", "announce"),)
    items = written.items if isinstance(written, Items) else (written,)
    if not items:
        raise wrong_type("deliver", written, "at least one destination", next="write `deliver: none` for none")
    found: dict[str, Place] = {}
    destinations: list[Destination] = []
    for item in items:
        destination, place = _destination(item, checks, timezone)
        if destination.name in found:
            raise bad(
                place, f"two destinations have the name `{destination.name}`",
                why=f"the other one is in line {found[destination.name].line}; without a name it is the kind",
                next="give this one a name: `name: copy`",
            )
        if destination.kind == "none" and len(items) > 1:
            raise bad(place, "`none` stands beside other destinations", next="remove it, or the others")
        found[destination.name] = place
        destinations.append(destination)
    return tuple(destinations)


def _destination(item: Value, checks: Checks, timezone: str) -> tuple[Destination, Place]:
    entry = entry_of("deliver", item, tuple(checks.destinations), grammar.NOT_YET_DESTINATIONS)
    own = grammar.DESTINATION_KEYS.get(entry.kind)
    if own is not None:
        grammar.check_keys(entry.options, (*grammar.DELIVER_OPTIONS, *own), f"in `{entry.kind}`",
                           grammar.NOT_YET_DELIVER_KEYS)
    name, on, best_effort, quiet = (entry.options.get(key) for key in grammar.DELIVER_OPTIONS)
    config = {key: plain(value) for key, value in entry.options.without(*grammar.DELIVER_OPTIONS).values.items()}
    complete = checked(checks.destinations[entry.kind], config, None, entry.place, entry.options.keys)
    destination = Destination(entry.kind if name is None else name_of(name), entry.kind, complete)
    if on is not None or best_effort is not None:
        destination = Destination(
            destination.name, destination.kind, complete,
            on=destination.on if on is None else choices_of("on", on, OUTCOMES),
            best_effort=best_effort is not None and flag_of("best_effort", best_effort),
        )
    if quiet is not None:
        if entry.kind in ("silent", "none"):
            raise bad(entry.options.keys["quiet_hours"], f"`quiet_hours` says nothing for `{entry.kind}`",
                      why="nobody hears of what is kept there", next="remove it")
        hours = quiet_hours_of(quiet, timezone, of_destination=True)
        destination = replace(destination, quiet_hours=hours if hours.spans else None)
    return destination, entry.options.keys.get("name", entry.place)


def _config(entry: Entry, known: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    own = known.get(entry.kind)
    if own is not None:
        grammar.check_keys(entry.options, own, f"in `{entry.kind}`", {})
    return {key: plain(value) for key, value in entry.options.values.items()}


def checked(
    check: Check, config: Mapping[str, Any], folder: Path | None, place: Place, keys: Mapping[str, Place]
) -> Mapping[str, Any]:
    """A kind's config as its check completes it. Raises BadDefinition at the key that is to blame."""
    try:
        return check(config, folder)
    except BadInput as error:
        # A check knows no places; the key that its message names in backticks is the best one there is.
        words = (word for quoted in error.what.split("`")[1::2] for word in quoted.split("."))
        named = next((keys[word] for word in words if word in keys), place)
        misread(named, error)


_PATH_FIRST: Final = re.compile(r"(?:~|\.{0,2})/[^$&|;<>()`\\*?\[\]{}#!\n]+")
"""`./report.sh --daily`: a path and words, and nothing that only a shell understands."""


def _program(config: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """A script's config with what begins with a path made the program that stands there; other texts are for the
    shell, and other lists begin with a program of the search path."""
    command = config.get("command")
    if isinstance(command, list) and command and isinstance(command[0], str) and command[0].startswith(_HERE):
        return {**config, "command": [os.path.normpath((folder or Path.cwd()) / command[0]), *command[1:]]}
    if not isinstance(command, str) or "file" in config or "args" in config:
        return config
    if not _PATH_FIRST.fullmatch(command.strip()):
        return config
    try:
        file, *arguments = shlex.split(command)
    except ValueError:  # A quote without its end: the shell says so better.
        return config
    others = {key: value for key, value in config.items() if key != "command"}
    return {"file": file, **({"args": arguments} if arguments else {}), **others}
