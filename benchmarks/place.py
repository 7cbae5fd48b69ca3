"""Where the stores of a measurement live: on a real disk, in a folder that is removed afterwards."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
PAGE = 4096


@contextmanager
def place(parent: Path) -> Iterator[Path]:
    """A new folder under `parent`. Raises SystemExit where the files would only be in memory."""
    parent.mkdir(parents=True, exist_ok=True)
    kind = file_system(parent)
    if kind in IN_MEMORY:
        raise SystemExit(f"{parent} is on {kind}, where nothing is ever durable; name a folder on a disk with --dir")
    folder = Path(tempfile.mkdtemp(prefix=".desk-bench-", dir=parent))
    folder.chmod(0o755)  # the database server may run as another user
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def file_system(folder: Path) -> str:
    """The kind of file system that holds a folder, as the kernel names it; empty where it does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return ""
    whole = folder.resolve()
    best, kind = -1, ""
    for _, point, name, *_ in mounts:
        at = Path(point.replace("\\040", " "))
        if (whole == at or at in whole.parents) and len(at.parts) >= best:
            best, kind = len(at.parts), name
    return kind


def syncs_per_second(folder: Path, seconds: float = 0.5) -> float:
    """How often a second the disk makes one overwritten page durable."""
    path = folder / "sync.bin"
    with path.open("wb", buffering=0) as file:
        file.write(bytes(PAGE))
        os.fsync(file.fileno())
        count, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            os.pwrite(file.fileno(), count.to_bytes(8, "little") * (PAGE // 8), 0)
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return count / spent
