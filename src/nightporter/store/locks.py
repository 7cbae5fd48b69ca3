"""File locks: held by a living process and by nobody else, whatever its pid; the kernel lets go when it dies."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from pathlib import Path

ROOM = 400
"""Bytes of a lock file that are kept free for a word. They are there from the start, so that one can be left when the
disk is full."""


class FileLock:
    """An exclusive lock on a file. The file stays when the lock goes: its name is not the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """True when it is ours now, or was already. False also where somebody just looks whether it is free, or took
        the file for a left-over between our opening and our locking it. Raises OSError when it cannot be opened."""
        if self._descriptor is not None:
            return True
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            ours = os.path.samestat(os.fstat(descriptor), self.path.stat())
        except (BlockingIOError, FileNotFoundError):
            ours = False
        if not ours:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        self.say("")
        return True

    def say(self, word: str) -> None:
        """Leave a word in the file for whoever looks, in place of the last one; empty is none."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):  # a disk that takes not even that: whoever looks sees it for himself
                os.pwrite(self._descriptor, word.encode(errors="replace")[:ROOM].ljust(ROOM, b"\n"), 0)

    def let_go(self, *, remove: bool = False) -> None:
        if self._descriptor is not None:
            if remove:
                self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def word_in(path: Path) -> str:
    """The word that the holder of the lock left; empty where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(ROOM).decode(errors="replace").strip()
    except OSError:
        return ""


def is_free(path: Path) -> bool:
    """Whether nobody holds the lock. False where that cannot be told, as when the file is not there: it may be on
    another machine that has the same name."""
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # a disk turned read-only has dead holders too
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held; or a network file system that locks no file that is open for reading
        return False
    finally:
        os.close(descriptor)
    return True
