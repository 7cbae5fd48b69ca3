"""file: files that are there, or that are others than at the last look whose run ended well."""

from __future__ import annotations

import glob
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from nightporter.errors import BadInput
from nightporter.looks.aside import OutOfTime, within
from nightporter.outside.options import mapping, need, typed
from nightporter.rules.looks import TIMEOUT, failed, nothing, of_watermark, something
from nightporter.runners.workplace import absolute
from nightporter.words import ErrorClass, Seen, Started, Work

_KEYS = ("path", "wake_on", "by", "first")
FILES = 1000
"""Files that one look takes in."""
_LISTED = 200
"""Of so many it is kept which is which, so that the target can be told what has changed."""
_CHUNK = 1 << 20


class _Unseen(Exception):
    """Whether there is something cannot be said."""


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`path`: a file, or a pattern with `*`, `?`, `[a-z]`, `**`. `wake_on`: `changed`, or `exists`. `by`: `content`, or
    `time` for time and size alone. `first`: what the first look makes of what it finds, `baseline` or `wake`."""
    given = mapping(config, "file", known=_KEYS, short="path")
    path = need(given, "file", "path", "path: inbox/*.csv")
    if not isinstance(path, str):
        raise BadInput("`file.path` is no text", why="it names a file, or a pattern", next="for example inbox/*.csv")
    given["path"] = absolute(path, folder)
    for key, choices in (("wake_on", ("changed", "exists")), ("by", ("content", "time")),
                         ("first", ("baseline", "wake"))):
        given[key] = one_of(given, "file", key, choices)
    return given


def one_of(given: Mapping[str, Any], what: str, key: str, choices: tuple[str, ...]) -> str:
    """One word of a closed list, by default the first. Raises BadInput."""
    word = typed(given, what, key, str, choices[0])
    if word not in choices:
        raise BadInput(f"`{what}.{key}` cannot be {word!r}", why=f"it takes {' or '.join(choices)}",
                       next=f"without it, it is {choices[0]}")
    return word


class File:
    """Looks at files, on a thread of its own."""

    kind = "file"
    launches = False

    def __init__(self, limit: timedelta = TIMEOUT) -> None:
        self._limit = limit

    async def look(self, config: Mapping[str, Any], work: Work, before: Any, started: Started) -> Seen:
        try:
            return await within(self._limit, lambda over: _look(config, before, over))
        except OutOfTime:
            return failed(ErrorClass.TIMEOUT, f"it took longer than {self._limit.total_seconds():g} s")


def _look(config: Mapping[str, Any], before: Any, over: threading.Event) -> Seen:
    try:
        found = list(_found(config["path"], over))
        if config["wake_on"] == "exists":
            return something("\n".join(found)) if found else nothing()
        marks = {path: mark for path in found if (mark := _mark(path, config["by"], over)) is not None}
    except PermissionError as error:
        return failed(ErrorClass.PERMISSION, str(error))
    except (_Unseen, OSError) as error:
        return failed(ErrorClass.CONFIGURATION, str(error))
    now: dict[str, Any] = {"mark": _digest(*(f"{path}\0{mark}" for path, mark in sorted(marks.items())))}
    if len(marks) <= _LISTED and sum(len(path) + 40 for path in marks) < 12_000:
        now["files"] = marks
    old = before.get("files") if isinstance(before, Mapping) else None
    return of_watermark(before, now, _changes(old, marks), first_wakes=config["first"] == "wake")


def _found(path: str, over: threading.Event) -> Iterator[str]:
    """The files of a path or pattern, sorted. Raises _Unseen where the folder they would be in is not there: that
    nothing is in it cannot be said."""
    pattern = glob.has_magic(path)
    home = Path(path).parent
    while glob.has_magic(str(home)):
        home = home.parent
    if not home.is_dir():
        raise _Unseen(f"the folder {str(home)!r} is not there")
    found: list[str] = []
    # Not pathlib: it makes a pattern of no path that is absolute.
    for each in glob.iglob(path, recursive=True) if pattern else [path] if os.path.lexists(path) else []:  # noqa: PTH207
        _go_on(over)
        if not pattern or not Path(each).is_dir():
            found.append(each)
        if len(found) > FILES:
            raise _Unseen(f"more than {FILES} files are there; name fewer")
    yield from sorted(found)


def _mark(path: str, by: str, over: threading.Event) -> str | None:
    """What tells whether a file is another one; None: it has gone meanwhile."""
    try:
        about = Path(path).stat()
        if by == "time" or not stat.S_ISREG(about.st_mode):
            return f"{about.st_mtime_ns}:{about.st_size}"
        digest = blake2b(digest_size=12)
        # What was a file a moment ago may be a pipe by now, and must not hold us up.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            while chunk := file.read(_CHUNK):
                _go_on(over)
                digest.update(chunk)
    except FileNotFoundError:
        return None
    return digest.hexdigest()


def _go_on(over: threading.Event) -> None:
    if over.is_set():
        raise _Unseen("its time is over")


def _changes(before: Any, now: Mapping[str, str]) -> str:
    if not isinstance(before, Mapping):
        return "\n".join(now)
    lines = [f"new: {path}" for path in now if path not in before]
    lines += [f"changed: {path}" for path, mark in now.items() if before.get(path, mark) != mark]
    return "\n".join([*lines, *(f"gone: {path}" for path in before if path not in now)])


def _digest(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(errors="surrogateescape"), digest_size=12).hexdigest()
