"""python: a function that looks, called in a process of its own. What is empty is nothing: None, False, {}.

It may take `state`, which is what it kept before, beside `payload`, `text` and `run`. What it raises is no look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightporter.errors import BadInput
from nightporter.looks.script import asked, unanswered
from nightporter.outside.guard import Guard
from nightporter.outside.processes import NotStarted, run_child
from nightporter.rules.looks import TIMEOUT, failed, of_value
from nightporter.runners import exits
from nightporter.runners import python as target
from nightporter.runners.workplace import scratch_of
from nightporter.words import ErrorClass, Seen, Started, Work


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """The keys of a `python` target. Raises BadInput."""
    return target.check(config, folder)


class Python:
    """Calls functions that look."""

    kind = "python"
    launches = True

    def __init__(self, guard: Guard | None = None, limit: timedelta = TIMEOUT) -> None:
        self._guard = guard
        self._limit = limit

    async def look(self, config: Mapping[str, Any], work: Work, before: Any, started: Started) -> Seen:
        with scratch_of(work) as scratch:
            work = asked(config, work, before, self._limit, scratch)
            try:
                command = target.command_of(work, scratch, look={"state": before, "folder": str(scratch)})
            except BadInput as error:
                return failed(ErrorClass.CONFIGURATION, exits.one_line(error))
            try:
                finished = await run_child(command, started, self._guard)
            except NotStarted as error:
                return unanswered(exits.unstartable(command, error))
        if finished.timed_out:
            return unanswered(exits.timed_out(command, finished, ""))
        try:
            said = json.loads(bytes(finished.answer.head))
        except ValueError:
            if finished.code:
                return unanswered(exits.badly(command, finished, ""))
            return failed(ErrorClass.EXCEPTION, f"its process ended before {config['call']} returned")
        if "problem" in said:
            kind = ErrorClass.CONFIGURATION if said["configuration"] else ErrorClass.EXCEPTION
            return failed(kind, said["problem"])
        return of_value(said["text"] if said["data"] is None else said["data"])
