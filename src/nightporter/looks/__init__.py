"""Looks: a run's free first step. One module per kind, and one line for each below.

A look only reads. It has half a minute, a few kilobytes of output, and no secret that its definition does not name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightporter.clock import Instant
    from nightporter.outside.guard import Guard
    from nightporter.outside.http import Web
    from nightporter.words import Looker

Check = Callable[..., dict[str, Any]]
"""As that of a runner: `check(config, folder=None)`."""


def registry(*, guard: Guard | None, web: Web, now: Callable[[], Instant]) -> Mapping[str, Looker]:
    """All kinds of looks."""
    from nightporter.looks.file import File
    from nightporter.looks.http import Http
    from nightporter.looks.python import Python
    from nightporter.looks.script import Script
    from nightporter.looks.sql import Sql

    return {
        "script": Script(guard),
        "python": Python(guard),
        "sql": Sql(),
        "http": Http(web, now),
        "file": File(),
    }


def checks() -> dict[str, Check]:
    """How the config of each kind is checked."""
    from nightporter.looks import file, http, python, script, sql

    return {
        "script": script.check,
        "python": python.check,
        "sql": sql.check,
        "http": http.check,
        "file": file.check,
    }
