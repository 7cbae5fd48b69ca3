"""Settings looked over before anything is done with them, whoever gave them: the environment, a flag or a program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightporter.config import VARIABLES, Config
from nightporter.errors import BadInput, BadSchedule
from nightporter.rules.zones import zone

_MAY_BE_NOTHING = ("drain", "patience", "boot_push")
_OWN = {
    field.name: field.default for field in fields(Config)
    if field.name in (
        "heartbeat", "heartbeat_to", "heartbeat_secret", "alert_to", "alert_secret", "deadman", "own_hosts",
    )
}
"""What the desk says of itself, and where: looked over where something is said."""
BEATS = 3
"""Renewals in a lease, at the least: one may come late."""


def checked(config: Config, environ: Mapping[str, str]) -> Config:
    """The same settings, paths as Path. Raises BadInput naming the setting, or the variable that it came from."""
    paths: dict[str, Any] = {}
    for field in fields(Config):
        value = getattr(config, field.name)
        match field.type:
            case "int":
                if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                    raise _unusable(field.name, value, "a whole number above 0")
            case "timedelta":
                if not isinstance(value, timedelta):
                    raise _unusable(field.name, value, "a timedelta")
                if value < timedelta(0) or (not value and field.name not in _MAY_BE_NOTHING):
                    raise _unusable(VARIABLES[field.name] if VARIABLES[field.name] in environ else field.name,
                                    f"{value.total_seconds():g} s", "a duration above 0")
            case "str":
                if not isinstance(value, str) or not value:
                    raise _unusable(field.name, value, "a text")
            case "Path" | "Path | None" if value is not None:
                if not isinstance(value, (str, os.PathLike)):
                    raise _unusable(field.name, value, "a path")
                paths[field.name] = Path(value)
            case _:
                if value is not None and not isinstance(value, (str, os.PathLike)):
                    raise _unusable(field.name, value, "a path")
    _check_zone(config.timezone, environ)
    if any(getattr(config, name) != usual for name, usual in _OWN.items()):
        from nightporter.destinations import own

        own.check(config)
    if config.lease < BEATS * config.beat:
        raise BadInput(
            f"a lease of {config.lease.total_seconds():g} s is too short for one that is renewed every "
            f"{config.beat.total_seconds():g} s", why="workers that live would be declared dead",
            next=f"set {VARIABLES['lease']} to {BEATS} times {VARIABLES['beat']} or more",
        )
    return replace(config, **paths)


def _unusable(named: str, value: object, takes: str) -> BadInput:
    return BadInput(f"{named} is {value!r}", why=f"it takes {takes}", next="leave it out for the default")


def _check_zone(name: str, environ: Mapping[str, str]) -> None:
    try:
        zone(name)
    except BadSchedule as error:
        if environ.get("NIGHTPORTER_TIMEZONE") == name:
            source = "NIGHTPORTER_TIMEZONE"
        elif environ.get("TZ", "").removeprefix(":") == name:
            source = "TZ"
        else:
            source = "timezone"
        instead = "" if source == "NIGHTPORTER_TIMEZONE" else "; NIGHTPORTER_TIMEZONE stands over what the machine says"
        raise BadInput(f"{source} is {name!r}: {error.what}", why=error.why, next=error.next + instead) from error
