"""The files of a machine, or of a copy of one below some folder; read, never written, and never left."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath
from typing import Final

from nightporter.exchange.entry import Unread

LARGEST: Final = 1_000_000
"""Bytes of one file."""
_LINKS: Final = 40


class Unreadable(Exception):
    """A file or a folder is there and cannot be read; its text says why."""


class Tree:
    """Paths as the machine knows them; links are followed as they would be there, within the root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unread: list[Unread] = []

    @property
    def is_machine(self) -> bool:
        """Whether it is this machine itself."""
        return self.root == Path("/")

    def read(self, path: str) -> bytes | None:
        """The content; None where there is no such file. What cannot be read is noted, and is None too."""
        try:
            return self._read(path)
        except Unreadable as error:
            self.pass_by(path, str(error))
            return None

    def _read(self, path: str) -> bytes | None:
        place = self.locate(path)
        if place is None:
            return None
        try:
            about = place.stat()
            if not stat.S_ISREG(about.st_mode):
                raise Unreadable("it is no ordinary file")
            with place.open("rb") as file:
                content = file.read(LARGEST + 1)
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error
        if len(content) > LARGEST:
            raise Unreadable(f"it is larger than {LARGEST // 1000} KB")
        return content

    def names(self, folder: str) -> list[str]:
        """What stands in a folder, sorted; nothing where there is none. What cannot be listed is noted."""
        place = self.locate(folder)
        if place is None:
            return []
        try:
            return sorted(each.name for each in place.iterdir()) if place.is_dir() else []
        except OSError as error:
            self.pass_by(folder, error.strerror or str(error))
            return []

    def is_file(self, path: str) -> bool:
        place = self.locate(path)
        return place is not None and place.is_file()

    def is_executable(self, path: str) -> bool:
        """Whether anybody may execute it."""
        place = self.locate(path)
        try:
            return place is not None and place.is_file() and bool(place.stat().st_mode & 0o111)
        except OSError:
            return False

    def link_of(self, path: str) -> str | None:
        """Where a link leads to, as it is written; None where it is none."""
        parent = self.locate(str(PurePosixPath(path).parent))
        try:
            return None if parent is None else str((parent / PurePosixPath(path).name).readlink())
        except OSError:
            return None

    def may_enter(self, folder: str) -> bool:
        """Whether what is in a folder can be looked into; noted where it cannot."""
        place = self.locate(folder)
        if place is None or os.access(place, os.X_OK):
            return True
        self.pass_by(folder, "Permission denied")
        return False

    def pass_by(self, path: str, why: str) -> None:
        """Note that something is not read; the first reason is kept."""
        if all(each.path != path for each in self.unread):
            self.unread.append(Unread(path, why))

    def locate(self, path: str) -> Path | None:
        """The real place of a path with its links followed; None where it is not there."""
        waiting = [part for part in PurePosixPath(path).parts if part != "/"][::-1]
        at, links = self.root, 0
        while waiting:
            part = waiting.pop()
            if part == ".." or "\0" in part:
                at = at.parent if part == ".." and at != self.root else at
                continue
            try:
                target = PurePosixPath((at / part).readlink())
            except OSError:  # no link, or not there
                at = at / part
                continue
            links += 1
            if links > _LINKS:
                self.pass_by(path, "its links lead in a circle")
                return None
            if target.is_absolute():
                at = self.root
            waiting += [each for each in target.parts if each != "/"][::-1]
        try:
            at.lstat()
        except PermissionError:
            return at  # whoever reads it is told
        except (OSError, ValueError):
            return None
        return at
