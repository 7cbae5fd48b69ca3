"""script: a program that looks. It ends with 0, and prints what there is to do, or nothing.

It gets what it kept before in `NIGHTPORTER_STATE`, a text as it is and any other value as JSON. A program that ends
with another code, or does not end, has not looked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightporter.errors import BadInput
from nightporter.outside.commands import Command
from nightporter.outside.guard import Guard
from nightporter.outside.processes import NotStarted, run_child
from nightporter.outside.readonly import wrapped
from nightporter.rules.looks import OUTPUT_LIMIT, TIMEOUT, failed, of_output
from nightporter.runners import exits
from nightporter.runners import script as target
from nightporter.runners.workplace import scratch_of
from nightporter.words import Ended, ErrorClass, Seen, Started, Work

STATE = "NIGHTPORTER_STATE"


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """The keys of a `script` target. Raises BadInput."""
    return target.check(config, folder)


class Script:
    """Runs programs that look."""

    kind = "script"
    launches = True

    def __init__(self, guard: Guard | None = None, limit: timedelta = TIMEOUT) -> None:
        self._guard = guard
        self._limit = limit

    async def look(self, config: Mapping[str, Any], work: Work, before: Any, started: Started) -> Seen:
        with scratch_of(work) as scratch:
            try:
                command = target.command_of(asked(config, work, before, self._limit, scratch), scratch)
            except BadInput as error:
                return failed(ErrorClass.CONFIGURATION, exits.one_line(error))
            command = replace(command, argv=wrapped(command.argv, scratch))
            try:
                finished = await run_child(command, started, self._guard)
            except NotStarted as error:
                return unanswered(exits.unstartable(command, error))
        if finished.timed_out:
            return unanswered(exits.timed_out(command, finished, ""))
        if finished.code:
            shell = isinstance(config.get("command"), str)
            return unanswered(exits.badly(_as_written(command), finished, "", by_shell=shell))
        return of_output(finished.stdout.text)


def asked(config: Mapping[str, Any], work: Work, before: Any, limit: timedelta, scratch: Path) -> Work:
    """A run's work as a runner of programs takes it, but the look's."""
    kept = "" if before is None else before if isinstance(before, str) else json.dumps(before, ensure_ascii=False)
    env = {STATE: kept, "TMPDIR": str(scratch), **config.get("env", {})}
    return replace(work, config={**config, "env": env}, timeout=limit, output_limit=OUTPUT_LIMIT)


def unanswered(ended: Ended) -> Seen:
    """A child that came to no answer."""
    return failed(ended.error_class or ErrorClass.EXCEPTION, ended.error)


def _as_written(command: Command) -> Command:
    """With the program first that its definition names."""
    return replace(command, argv=command.argv[command.argv.index("--") + 1 :])
