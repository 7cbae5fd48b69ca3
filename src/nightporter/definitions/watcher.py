"""Hot reload: what changed in the folder, once it has been quiet for 300 ms.

The watcher looks when it is asked to and keeps no thread. Looking at size and times, rather than asking the system
for events, works on every file system and cannot go deaf.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nightporter.clock import Instant
from nightporter.definitions.carrying import Checks
from nightporter.definitions.folder import Found, definition_names, look, one_owner_each
from nightporter.errors import BadDefinition, BadInput
from nightporter.words import Definition

QUIET: Final = 300_000
"""Microseconds for which a file must not have changed before it is read."""

_Stamp = tuple[int, ...]
"""Size, times of content and of attributes, and inode, of a file and of those that are read with it: a change of mode
or a replaced file counts too."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that became different in the folder."""

    kind: Literal["changed", "vanished", "error"]
    path: Path
    name: str
    """Of the automation; empty where the file has none of its own."""
    workspace: str
    digest: str = ""
    definition: Definition | None = None
    """Of `changed`."""
    error: BadDefinition | None = None
    """Of `error`; the last good definition is the store's to keep."""


@dataclass(slots=True)
class _Seen:
    stamp: _Stamp | None
    """None: the file is not there."""
    since: int
    read: bool = False


class Watcher:
    """Looks at one folder again and again, and says what became different.

    `found` is what the caller already knows of it, from `scan`; without it every file is news.
    """

    def __init__(
        self, folder: Path, found: Iterable[Found] = (), *, default_timezone: str, checks: Checks | None = None
    ) -> None:
        self.folder = folder
        self._default_timezone = default_timezone
        self._checks = checks
        self._current = {each.path: each for each in found}
        self._as_read: dict[Path, Found] = {}
        """Before names were given to one owner each: when an owner goes, the next in line is still known."""
        self._seen: dict[Path, _Seen] = {}
        self._beside = {each.path.name: each.beside for each in self._current.values() if each.beside}
        """Of files that others are read with: the others."""
        self._listed: dict[str, _Stamp | None] | None = None
        self._waiting = False
        """Some file has changed and is not read yet; otherwise a look at the same list is done at once."""
        self._trouble: BadDefinition | None = None

    def tick(self, monotonic: int, now: Instant) -> list[Change]:
        """What became different and has been quiet since, vanished files first. `monotonic` is in microseconds.

        A folder that cannot be listed, or is gone with the files that were in it, is one error of its own; what was
        known of its files stays.
        """
        try:
            listed = {name: self._stamped(name) for name in definition_names(self.folder)}
            if not listed and self._current and not self.folder.is_dir():
                # Moved, or on a disk that is away: nobody took the files out one by one.
                raise BadInput(f"the folder {str(self.folder)!r} is gone", why="its automations go on as they were",
                               next="put it back; to be rid of them, put an empty one there")
        except BadInput as error:
            return self._troubled(error)
        changes = self._recovered()
        if listed == self._listed and not self._waiting:
            return changes
        self._listed = listed
        stamps = {Path(self.folder, name): stamp for name, stamp in listed.items()}
        paths = {*stamps, *self._current, *self._seen}
        quiet = {path for path in paths if self._is_quiet(path, stamps.get(path), monotonic)}
        self._waiting = any(not seen.read for path, seen in self._seen.items() if path not in quiet)
        if not quiet:
            return changes
        for path in sorted(quiet):
            self._read(path, monotonic, now)
        before = self._current
        resolved = one_owner_each(
            [self._as_read.get(path) or before[path] for path in {*self._as_read, *before} if self._is_there(path)],
            before,
        )
        self._current = {each.path: each for each in resolved}
        self._seen = {path: seen for path, seen in self._seen.items() if seen.stamp is not None or not seen.read}
        return changes + _differences(before, self._current)

    def _is_quiet(self, path: Path, stamp: _Stamp | None, monotonic: int) -> bool:
        seen = self._seen.get(path)
        if seen is None or seen.stamp != stamp:
            self._seen[path] = _Seen(stamp, monotonic)
            return False
        return not seen.read and monotonic - seen.since >= QUIET

    def _read(self, path: Path, monotonic: int, now: Instant) -> None:
        seen = self._seen[path]
        previous = self._as_read.get(path) or self._current.get(path)
        found = None if seen.stamp is None else look(
            path, previous, default_timezone=self._default_timezone, now=now, checks=self._checks
        )
        after = self._stamped(path.name)
        if after != seen.stamp:
            # Somebody wrote while we read: what we have may be half of it.
            self._seen[path] = _Seen(after, monotonic)
            self._waiting = True
            return
        seen.read = True
        self._beside.pop(path.name, None)
        if found is not None and found.beside:
            self._beside[path.name] = found.beside
            self._seen[path] = _Seen(self._stamped(path.name), monotonic, read=True)
        if found is not None:
            self._as_read[path] = found
        else:
            self._as_read.pop(path, None)

    def _stamped(self, name: str) -> _Stamp | None:
        stamp = _stamp(f"{self.folder}/{name}")
        if stamp is None or name not in self._beside:
            return stamp
        return sum((_stamp(path) or (0,) for path in self._beside[name]), stamp)

    def _is_there(self, path: Path) -> bool:
        """Whether a file counts as present: one that is gone does until its absence has been quiet."""
        seen = self._seen[path]
        return not (seen.stamp is None and seen.read)

    def _troubled(self, error: BadInput) -> list[Change]:
        trouble = BadDefinition(error.what, why=error.why, next=error.next, path=str(self.folder))
        if self._trouble is not None and str(self._trouble) == str(trouble):
            return []
        self._trouble = trouble
        return [Change("error", self.folder, "", "default", error=trouble)]

    def _recovered(self) -> list[Change]:
        if self._trouble is None:
            return []
        self._trouble = None
        return [Change("vanished", self.folder, "", "default")]


def _stamp(path: Path | str) -> _Stamp | None:
    try:
        about = os.stat(path)  # noqa: PTH116 - called ten times a second for every file
    except OSError:
        try:
            about = os.lstat(path)  # a link to nothing is there, and is an error of its own
        except OSError:
            return None
    return about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino


def _differences(before: dict[Path, Found], after: dict[Path, Found]) -> list[Change]:
    owned = {(each.workspace, each.name) for each in after.values() if each.name}
    vanished: list[Change] = []
    for path, each in before.items():
        left = after.get(path)
        key = (each.workspace, each.name)
        if (left is None and not each.name) or (each.name and key not in owned):
            vanished.append(Change("vanished", path, each.name, each.workspace))
    errors: list[Change] = []
    changed: list[Change] = []
    for path, each in after.items():
        earlier = before.get(path)
        if earlier is not None and _same(earlier, each):
            continue
        into = errors if each.definition is None else changed
        into.append(Change("changed" if each.definition else "error", path, each.name, each.workspace, each.digest,
                           each.definition, each.error))
    return vanished + errors + changed


def _same(one: Found, other: Found) -> bool:
    return (one.name, one.workspace, one.definition, str(one.error)) == (
        other.name, other.workspace, other.definition, str(other.error)
    )
