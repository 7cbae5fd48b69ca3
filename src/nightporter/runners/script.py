"""script: a program in a process group of its own.

Takes the firing's payload as JSON on standard input, empty where there is none, and in a file that
`NIGHTPORTER_PAYLOAD_FILE` names. Standard output is the report, standard error the log.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from nightporter.errors import BadInput
from nightporter.outside.commands import Command, program, scrubbed
from nightporter.outside.guard import Guard
from nightporter.outside.options import mapping, need, typed, wrong
from nightporter.outside.processes import CutShort, NotStarted, run_child
from nightporter.runners import exits
from nightporter.runners.workplace import (
    PROCESS_KEYS,
    absolute,
    arguments,
    ceilings_of,
    declared_environment,
    folder_of,
    process_options,
    scratch_of,
)
from nightporter.words import Desk, Ended, Work

_KEYS = ("command", "file", "args", *PROCESS_KEYS)


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`command`: a list of arguments, or text for `/bin/sh -c`; or `file`: a program, with `args`. And `env`: names
    to text; `secrets`: names to references; `cwd`: instead of the scratch folder; `memory` (bytes, or 512m), `files`
    (descriptors), `cpu` (seconds).

    Relative `file` and `cwd` are below `folder`, by default the current one. Raises BadInput.
    """
    if isinstance(config, list):
        config = {"command": config}
    given = mapping(config, "script", known=_KEYS, short="command")
    if "file" in given:
        if "command" in given:
            raise BadInput("`script` has both `command` and `file`", why="only one of them can be run",
                           next="remove one of them")
        given["file"] = absolute(typed(given, "script", "file", str, ""), folder)
        if not isinstance(given.get("args", []), (list, tuple)):
            raise wrong("script", "args", given["args"], "a list of texts")
        given["args"] = arguments(given.get("args", []), "script", "args")
    else:
        command = need(given, "script", "command", 'command: ["backup.sh", "--quiet"]')
        if isinstance(command, str):
            if not command.strip():
                raise BadInput("`script.command` is empty", why="there is nothing to run", next="write a command")
        elif isinstance(command, (list, tuple)) and command:
            given["command"] = arguments(command, "script", "command")
        else:
            raise wrong("script", "command", command, "a list of arguments, or text for the shell")
        if "args" in given:
            raise BadInput("`script.args` belongs to `file`", why="a command has its arguments in itself",
                           next="write them into `command`")
    return process_options(given, "script", folder)


class Script:
    """Runs programs. Without a guard (tests, one-off use) children of a killed desk live on."""

    kind = "script"
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
            return await _ended(work, desk, command, self._guard)


async def _ended(work: Work, desk: Desk, command: Command, guard: Guard | None) -> Ended:
    try:
        finished = await run_child(command, partial(desk.child_started, work), guard)
    except CutShort as cut:
        return exits.cancelled(cut.finished, cut.finished.stdout.text)
    except NotStarted as error:
        return exits.unstartable(command, error)
    text = finished.stdout.text
    if finished.timed_out:
        return exits.timed_out(command, finished, text)
    if finished.code:
        return exits.badly(command, finished, text, by_shell=isinstance(work.config.get("command"), str))
    return Ended.ok(text, log=exits.log_of(finished), exit_code=0)


def command_of(work: Work, scratch: Path) -> Command:
    """The child that runs the program. Raises BadInput."""
    config = work.config
    cwd = folder_of(config, scratch)
    declared = {**work.environment, **declared_environment(config)}
    stdin = b""
    if work.payload is not None:
        stdin = json.dumps(work.payload, ensure_ascii=False).encode()
        declared["NIGHTPORTER_PAYLOAD_FILE"] = str(scratch / "payload.json")
        (scratch / "payload.json").write_bytes(stdin)
    environment = scrubbed(declared)
    if "file" in config:
        argv = (program(config["file"], environment["PATH"], cwd), *config.get("args", ()))
    elif isinstance(config["command"], str):
        argv = ("/bin/sh", "-c", config["command"])
    else:
        first, *others = config["command"]
        argv = (program(first, environment["PATH"], cwd), *others)
    return Command(argv=argv, environment=environment, cwd=cwd, stdin=stdin, timeout=work.timeout,
                   output_limit=work.output_limit, ceilings=ceilings_of(config))
