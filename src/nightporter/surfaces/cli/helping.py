"""`VERB --help`: everything that the documentation says of a verb, from the same places."""

from __future__ import annotations

import inspect
from textwrap import fill, wrap
from typing import Any, Literal, get_args, get_origin

from cyclopts import App

from nightporter.surfaces.cli.verbs import Verb

EXIT_CODES = {
    0: "Done. A run that had nothing to say is done too.",
    1: "It failed, or something is wrong here.",
    2: "What was written cannot be used.",
    3: "Nothing, or more than one thing, answers to that name.",
    4: "Somebody else was first, or it is already so.",
    5: "Not permitted.",
    6: "The store cannot be reached or used.",
    7: "It did not run: a gate objected.",
    8: "It waits for a person: a run that may have acted wants a review.",
    9: "It ran, and its result was not delivered, or not yet.",
    124: "It ran longer than it may, or had not ended when `--timeout` was over.",
    130: "Interrupted.",
}
"""What each code says to a shell, as docs/cli.md has them."""
_OF_RUNS = (7, 8, 9, 124)
_RUNNING = ("run", "replay")

WIDE = 100
_VALUES = {
    "home": "FOLDER", "config": "FOLDER", "store": "ADDRESS", "file": "FILE", "timezone": "ZONE", "timeout": "DURATION",
    "every": "DURATION", "since": "WHEN", "until": "WHEN", "at": "WHEN", "after": "WHEN", "anchor": "WHEN",
    "schedule": "CRON", "payload": "JSON", "name": "NAME", "http": "URL", "deliver": "WHERE", "destination": "NAME",
    "ical": "FILE", "state": "STATE", "verdict": "VERDICT", "kind": "KIND", "cursor": "CURSOR",
}


def help_of(app: App, verb: Verb) -> str:
    """The whole help of a verb."""
    command = app[verb.name]
    taken = [one for one in command.assemble_argument_collection() if one.names != ("*",)]
    words = [one for one in taken if one.index is not None]
    flags = [one for one in taken if one.index is None]
    everywhere = [one for one in flags if str(one.names[0])[2:] in ("home", "store", "config", "json", "no-color")]
    own = [one for one in flags if one not in everywhere]
    usage = ["nightporter", verb.name, *(_word(one) if one.required else f"[{_word(one)}]" for one in words)]
    told = inspect.getdoc(command.default_command) or verb.summary
    parts = ["Usage: " + " ".join([*usage, "[OPTIONS]"]),
             "\n\n".join(fill(" ".join(part.split()), WIDE, break_on_hyphens=False) for part in told.split("\n\n"))]
    if verb.aliases:
        parts.append(f"Also: {', '.join(verb.aliases)}")
    for head, rows in (
        ("Arguments", [(_word(one), _said(one)) for one in words]),
        ("Options", [(_flag(one), _said(one)) for one in own]),
        ("Options of every verb", [(_flag(one), _said(one)) for one in everywhere]),
        ("Exit codes", [(str(code), says) for code, says in EXIT_CODES.items()
                        if code not in _OF_RUNS or verb.name in _RUNNING or (code, verb.name) == (9, "deliver")]),
    ):
        if rows:
            parts.append(f"{head}:\n" + _rows(rows))
    return "\n\n".join(parts)


def _rows(rows: list[tuple[str, str]]) -> str:
    width = min(max(len(name) for name, _ in rows), 40)
    lines = []
    for name, says in rows:
        first, *more = wrap(says, WIDE - width - 4, break_on_hyphens=False) or [""]
        lines.append(f"  {name:<{width}}  {first}".rstrip())
        lines += [f"  {'':<{width}}  {line}" for line in more]
    return "\n".join(lines)


def _word(argument: Any) -> str:
    return str(argument.names[0]).lstrip("-").upper()


def _flag(argument: Any) -> str:
    names = ", ".join(str(name) for name in argument.names if name not in argument.negatives)
    if argument.hint is bool:
        return names
    return f"{names} {_value(argument)}"


def _value(argument: Any) -> str:
    if argument.hint is int:
        return "N"
    choices = _choices(argument.hint)
    return "|".join(choices) if choices else _VALUES.get(str(argument.names[0]).lstrip("-"), "TEXT")


def _choices(hint: Any) -> list[str]:
    """The words of a Literal, which may be one side of a union."""
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [word for side in get_args(hint) for word in _choices(side)]


def _said(argument: Any) -> str:
    says = str(argument.parameter.help or "")
    default = argument.field_info.default
    if isinstance(default, int) and not isinstance(default, bool):
        says += f" By default {default}."
    choices = _choices(argument.hint) if argument.index is not None else []
    return f"{says} One of {', '.join(choices)}." if choices else says
