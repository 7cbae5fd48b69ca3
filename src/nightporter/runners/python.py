"""python: a function by its import path, called in a process of its own.

A busy or crashing function is then the kernel's to contain, and a timeout really ends it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from nightporter.clock import rfc3339
from nightporter.errors import BadInput
from nightporter.outside.commands import Command, scrubbed
from nightporter.outside.guard import Guard
from nightporter.outside.options import items, mapping, need, typed, wrong
from nightporter.outside.processes import CutShort, Finished, NotStarted, run_child
from nightporter.runners import exits
from nightporter.runners.workplace import (
    PROCESS_KEYS,
    absolute,
    ceilings_of,
    declared_environment,
    folder_of,
    process_options,
    scratch_of,
)
from nightporter.words import Desk, Ended, ErrorClass, Work

_KEYS = ("call", "args", "path", *PROCESS_KEYS)
_CALL = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_DRESS = 13
"""Bytes of JSON that a byte of the report can take, with the same again as data: each a \\u escape at worst."""


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`call`: `package.module:function`. `args`: a map of its arguments. `path`: folders to import from, by default
    the definition's own. And `env`, `secrets`, `cwd`, `memory`, `files`, `cpu` as for a script. Raises BadInput."""
    given = mapping(config, "python", known=_KEYS, short="call")
    call = need(given, "python", "call", "call: reports.daily:main")
    if not isinstance(call, str) or not _CALL.fullmatch(call):
        raise BadInput(f"`python.call` cannot be {call!r}", why="it takes package.module:function",
                       next="for example reports.daily:main")
    args = typed(given, "python", "args", dict, {})
    if not all(isinstance(name, str) and name.isidentifier() for name in args):
        raise wrong("python", "args", args, "a map from names of parameters to values")
    given["args"] = args
    given["path"] = [absolute(one, folder) for one in items(given, "python", "path") or ["."]]
    return process_options(given, "python", folder)


class Python:
    """Calls functions in child processes of this interpreter."""

    kind = "python"
    opaque = True
    launches = True
    """Its start is marked with the child, before the child is let go."""

    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard

    async def run(self, work: Work, desk: Desk) -> Ended:
        with scratch_of(work) as scratch:
            try:
                command = command_of(work, scratch)
            except BadInput as error:
                return exits.misconfigured(error)
            try:
                finished = await run_child(command, partial(desk.child_started, work), self._guard)
            except CutShort as cut:
                return exits.cancelled(cut.finished, "")
            except NotStarted as error:
                return exits.unstartable(command, error)
        if finished.timed_out:
            return exits.timed_out(command, finished, "")
        return _ended(work, command, finished)


def command_of(work: Work, scratch: Path, look: Mapping[str, Any] | None = None) -> Command:
    """The child that calls the function. `look`: where it only looks, see `child`. Raises BadInput."""
    config = work.config
    # The desk's own import path stands behind what is declared: what it can import, its functions can.
    paths = [os.environ.get("PYTHONPATH", ""), str(Path(__file__).parents[2])]
    declared = {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path), "PYTHONUNBUFFERED": "1",
        **work.environment, **declared_environment(config),
    }
    order = {
        "call": config["call"], "args": config.get("args", {}), "path": config.get("path", []),
        "limit": work.output_limit,
        "run": {
            "id": work.run_id, "automation": work.automation, "payload": work.payload, "text": work.text,
            "attempt": work.attempt, "scheduled_for": rfc3339(work.scheduled_for), "look": work.look,
        },
        "look": look,
    }
    return Command(
        # -P: the scratch folder is no place to import from.
        argv=(sys.executable, "-P", "-m", "nightporter.runners.child"),
        environment=scrubbed(declared), cwd=folder_of(config, scratch),
        stdin=json.dumps(order, ensure_ascii=False).encode(), timeout=work.timeout,
        output_limit=work.output_limit, ceilings=ceilings_of(config), merged=True,
        answer_limit=work.output_limit * _DRESS + 65_536,
    )


def _ended(work: Work, command: Command, finished: Finished) -> Ended:
    log = exits.log_of(finished)
    try:
        said = json.loads(bytes(finished.answer.head))
    except ValueError:
        if finished.code:
            return exits.badly(command, finished, "")
        return Ended.failed(ErrorClass.EXCEPTION, f"its process ended before {work.config['call']} returned", log=log,
                            exit_code=0)
    if "problem" in said:
        kind = ErrorClass.CONFIGURATION if said["configuration"] else ErrorClass.EXCEPTION
        return Ended.failed(kind, said["problem"], log=log)
    return Ended.ok(said["text"], data=said["data"], log=log)
