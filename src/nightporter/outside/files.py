"""Files: written whole or not at all, and only below the folder they belong to."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from nightporter.errors import NotPermitted


def inside(base: Path, path: str | Path) -> Path:
    """`path` below `base`, with every link followed. Raises NotPermitted when it would leave `base`.

    An absolute path is accepted where it lies inside.
    """
    home = Path(os.path.realpath(base))
    target = Path(os.path.realpath(home / path))
    if target == home or not target.is_relative_to(home):
        raise NotPermitted(
            f"{str(path)!r} does not stay below {str(base)!r}",
            why="a path with .., a link or a leading / leads out of the folder that is allowed",
            next=f"write a path relative to {str(base)!r}",
        )
    return target


def read_regular(path: Path, most: int) -> bytes:
    """The first `most` bytes of a file. Raises OSError for what is none: a named pipe would hold us until somebody
    writes to it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a file with content", str(path))
        return file.read(most)


def write_durably(path: Path, content: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None) -> None:
    """Replace `path` by `content` in one step; on disk when this returns. Makes missing folders (0700). `owner`: user
    and group of the file, where they are not the caller's.

    A reader sees the old file or the new one, whole. Raises OSError; then the old file is untouched.
    """
    make_folder_durably(path.parent)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def make_folder_durably(folder: Path) -> None:
    """Make a folder and its parents where they are missing (0700); their names are on disk when this returns. Raises
    OSError."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(mode=0o700, exist_ok=True)
    for new in missing:
        _sync_folder(new.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
