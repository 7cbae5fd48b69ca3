"""Runners: what executes a target. One module per kind, and one line for each below.

Other packages add kinds through the entry point group `nightporter.runners`: an entry's name is the kind, and it
loads something that, called without arguments, gives a runner; its attribute `check`, where it has one, checks the
config. Imports are inside the functions: the child of a `python` target passes through this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightporter.clock import Instant
    from nightporter.outside.guard import Guard
    from nightporter.outside.http import Web
    from nightporter.words import QuickRunner, Runner

ENTRY_POINTS = "nightporter.runners"

Check = Callable[..., dict[str, Any]]
"""`check(config, folder=None)`: the config complete and normalised. Raises BadInput naming the key. `folder` is where
relative paths are counted from, by default the current one."""


def registry(
    *, guard: Guard | None, web: Web, now: Callable[[], Instant], functions: Mapping[str, Callable[..., Any]],
    report: Callable[[str], None],
) -> dict[str, Runner | QuickRunner]:
    """All runners by kind. `functions` is looked into at each call, so it may still be filled; `report` is told one
    line about each plug-in that had to be left out."""
    from nightporter.outside.plugs import plugged
    from nightporter.runners.echo import Echo
    from nightporter.runners.function import InProcess
    from nightporter.runners.http import Http
    from nightporter.runners.noop import Noop
    from nightporter.runners.python import Python
    from nightporter.runners.script import Script

    runners: dict[str, Runner | QuickRunner] = {
        "script": Script(guard),
        "python": Python(guard),
        "function": InProcess(functions),
        "http": Http(web, now),
        "echo": Echo(),
        "noop": Noop(),
    }
    for kind, make in plugged(ENTRY_POINTS, runners, report).items():
        try:
            runner = make()
            if not (callable(getattr(runner, "run", None)) or callable(getattr(runner, "run_now", None))):
                raise TypeError("it has neither run nor run_now")
            if not isinstance(getattr(runner, "opaque", None), bool):
                raise TypeError("it does not say whether it is opaque")
        except Exception as error:  # A stranger's code: whatever it raises costs that kind and nothing else.
            report(f"the runner {kind!r} of another package is left out: {type(error).__name__}: {error}")
        else:
            runners[kind] = runner
    return runners


def checks() -> dict[str, Check]:
    """How the config of each kind is checked."""
    from nightporter.outside.plugs import plugged
    from nightporter.runners import echo, function, http, noop, python, script

    known: dict[str, Check] = {
        "script": script.check,
        "python": python.check,
        "function": function.check,
        "http": http.check,
        "echo": echo.check,
        "noop": noop.check,
    }
    for kind, make in plugged(ENTRY_POINTS, known, lambda _: None).items():
        known[kind] = getattr(make, "check", None) or _unchecked
    return known


def _unchecked(config: object, folder: Path | None = None) -> dict[str, Any]:
    from nightporter.outside.options import mapping

    known = tuple(str(key) for key in config) if isinstance(config, Mapping) else ()
    return mapping(config, "config", known=known)
