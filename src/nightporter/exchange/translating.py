"""A foreign job -> a definition, through the one grammar of files."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Final

from nightporter.clock import Instant
from nightporter.definitions import read
from nightporter.definitions.triggers import as_name
from nightporter.errors import BadDefinition
from nightporter.exchange.entry import Entry
from nightporter.words import Definition

_MARK: Final = re.compile(r"\[import:([0-9a-f]{10})\]")


def marks_of(entries: Sequence[Entry]) -> list[str]:
    """A mark for each job, by which it is known again: the same as long as its place, user, times and command are.

    A line that moves within its file keeps its mark; the second of two equal lines has another one.
    """
    seen: dict[tuple[str, ...], int] = {}
    marks = []
    for entry in entries:
        said = (entry.source.kind, entry.source.path, entry.user, entry.text)
        seen[said] = seen.get(said, 0) + 1
        marks.append(sha256("\0".join([*said, str(seen[said])]).encode("utf-8", "replace")).hexdigest()[:10])
    return marks


def mark_in(description: str) -> str | None:
    """The mark of the job that an automation was made of, where it was made of one."""
    match = _MARK.search(description)
    return None if match is None else match[1]


def name_for(entry: Entry, mark: str, taken: set[str]) -> str:
    """A name that nobody has: the job's own, else the same with the beginning of its mark."""
    base = as_name(entry.label)[:50].rstrip("-") or "job"
    for name in (base, f"{base}-{mark[:4]}", f"{base}-{mark}"):
        if name not in taken:
            return name
    return f"{base[:50]}-{mark}-{len(taken)}"


def definition_of(entry: Entry, name: str, mark: str, *, now: Instant) -> Definition:
    """What the job becomes. Raises BadDefinition where it cannot be said."""
    target: dict[str, Any] = {
        "command": entry.command if isinstance(entry.command, str) else list(entry.command),
        "env": dict(entry.environment),
    }
    if entry.cwd:
        target["cwd"] = entry.cwd
    about = entry.about.rstrip(".")
    description = (f"{about}. " if about else "") + f"Imported from {entry.source.where} [import:{mark}]"
    said: dict[str, Any] = {
        "name": name, "description": description, **({"owner": entry.user} if entry.user else {}),
        "timezone": entry.timings[0].timezone if entry.timings else "UTC",
        "target": {"script": target}, **entry.keys,
    }
    if entry.timings:
        said["triggers"] = _triggers(entry)
    try:
        # JSON is YAML, so what is said here is checked as a file is.
        return read(json.dumps(said), format="yaml", default_timezone="UTC", now=now)
    except BadDefinition as error:
        error.line = error.column = 0  # of a text that nobody has seen
        raise


def _triggers(entry: Entry) -> list[dict[str, Any]]:
    triggers: list[dict[str, Any]] = []
    for number, timing in enumerate(entry.timings, 1):
        options: dict[str, Any] = {"expression": timing.expression, "timezone": timing.timezone, **timing.options}
        if number > 1:
            options["name"] = f"clock-{number}"
        triggers.append({timing.kind: options})
    return triggers
