"""Workplace: what every target with a process of its own may say about where and under what limits it works."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nightporter.errors import BadInput
from nightporter.outside import secrets
from nightporter.outside.commands import Ceilings
from nightporter.outside.options import texts, typed, wrong
from nightporter.words import Work

_CEILINGS = ("memory", "files", "cpu")
PROCESS_KEYS = ("env", "secrets", "cwd", *_CEILINGS)
_SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def process_options(given: dict[str, Any], what: str, folder: Path | None) -> dict[str, Any]:
    """The keys that every target with a process of its own has: env, secrets, cwd, memory, files, cpu."""
    given["env"] = texts(given, what, "env")
    given["secrets"] = {
        name: secrets.check_reference(one, f"{what}.secrets.{name}")
        for name, one in texts(given, what, "secrets").items()
    }
    for name in (*given["env"], *given["secrets"]):
        if not name.isascii() or not name.replace("_", "a").isalnum() or name[:1].isdigit():
            raise BadInput(f"`{what}.env` cannot have the name {name!r}", why="it is no name of a variable",
                           next="use letters, digits and _")
    if "cwd" in given:
        given["cwd"] = absolute(typed(given, what, "cwd", str, ""), folder)
    if isinstance(given.get("memory"), str):
        given["memory"] = _bytes(given["memory"], what)
    for key in _CEILINGS:
        if key in given and typed(given, what, key, int, 0) <= 0:
            raise BadInput(f"`{what}.{key}` cannot be {given[key]}", why="it takes a number above 0",
                           next=f"remove `{key}` for no limit of its own")
    return given


def absolute(path: str, folder: Path | None) -> str:
    """A path of a definition made absolute; `~` is the home folder of the user the desk runs as."""
    if not path:
        raise BadInput("a path is empty", why="it names nothing", next="write a path or remove the key")
    return str((folder or Path.cwd()) / Path(path).expanduser())


def arguments(values: Sequence[Any], what: str, key: str) -> list[str]:
    """A list of arguments as text. Raises BadInput for what is neither text nor a number."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise wrong(what, key, value, "a list of texts")
    return [str(value) for value in values]


def _bytes(text: str, what: str) -> int:
    number, unit = text[:-1].strip(), text[-1:].lower()
    if unit in _SIZES and number.isascii() and number.isdigit():
        return int(number) * _SIZES[unit]
    if text.isascii() and text.isdigit():
        return int(text)
    raise wrong(what, "memory", text, "a number of bytes, or one with k, m or g, such as 512m")


def declared_environment(config: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a config, secrets looked up now. Raises BadInput where one is not there."""
    named = {name: secrets.resolve(reference) for name, reference in config.get("secrets", {}).items()}
    return {**config.get("env", {}), **named}


def ceilings_of(config: Mapping[str, Any]) -> Ceilings:
    return Ceilings(**{key: config[key] for key in _CEILINGS if key in config})


def folder_of(config: Mapping[str, Any], scratch: Path) -> Path:
    """Where the child works. Raises BadInput where the declared folder is not there."""
    cwd = Path(config.get("cwd", scratch))
    if not cwd.is_dir():
        raise BadInput(f"the folder {str(cwd)!r} is not there", why="`cwd` names it as the place to work in",
                       next="make it, or correct `cwd`")
    return cwd


@contextmanager
def scratch_of(work: Work) -> Iterator[Path]:
    """The run's own folder; one for the moment where the desk gave none."""
    if work.scratch is not None:
        yield work.scratch
        return
    folder = tempfile.mkdtemp(prefix="nightporter-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
