"""What a desk needs of the machine: folders it may write, a file system that locks, programs that can be started."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nightporter.ledger.pages import plain

Severity = Literal["error", "warning", "note"]

_NETWORK = frozenset({
    "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "afs", "9p", "ceph", "glusterfs", "lustre", "gpfs", "ncpfs",
    "afpfs", "webdav", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.davfs2",
})
"""File systems whose locks and shared memory an SQLite file in WAL mode cannot rely on."""
MOUNTS = Path("/proc/mounts")
LARGE_LOG = 2**28
"""Bytes: several times what a desk leaves by itself."""
LITTLE_ROOM = 256 * 2**20
LEAST_ROOM = 16 * 2**20
"""Bytes. Less is no room: folding the log back may need as much."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    code: str
    severity: Severity
    what: str
    why: str = ""
    next: str = ""
    subject: str = ""
    """The automation, run or path it is about."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Home:
    """Where a desk lives on this machine."""

    state: Path
    folders: Sequence[Path] = ()
    """Others that it must be able to write."""
    store: Path | None = None
    """The file of an SQLite store."""


def home_findings(home: Home, *, mounts: str | None = None) -> Iterator[Finding]:
    """What is wrong with the folders. `mounts` is the text of /proc/mounts; None reads it where there is one."""
    for folder in dict.fromkeys((home.state, *home.folders)):
        yield from _writable(folder)
    yield from _private(home.state)
    if home.store is None:
        return
    yield from _takes_more(home.store)
    if mounts is None:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace") if MOUNTS.exists() else ""
    kind = file_system_of(home.store, mounts)
    if kind in _NETWORK:
        yield Finding(
            "network_file_system", "error", f"the store {home.store} lies on a network file system ({kind})",
            "its locks and shared memory do not hold there, and the store would be damaged sooner or later",
            "move the home to a local disk, or use a PostgreSQL store", str(home.store),
        )


def file_system_of(path: Path, mounts: str) -> str:
    """The type of the file system a path lies on, by the text of /proc/mounts; empty where it is not known."""
    real = os.path.realpath(path)
    best, kind = "", ""
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) < 3:
            continue
        point = parts[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # a later mount on the same point covers the earlier one
            best, kind = point, parts[2]
    return kind


def _writable(folder: Path) -> Iterator[Finding]:
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        yield Finding("unwritable", "error", f"{folder} cannot be a folder", f"{there} is a file",
                      "move it away, or choose another home", str(folder))
    elif not os.access(there, os.W_OK | os.X_OK):
        yield Finding("unwritable", "error", f"{folder} cannot be written by this user",
                      "" if there == folder else f"it is not there, and {there} cannot be written",
                      "change its owner or mode, or choose another home", str(folder))


def _takes_more(store: Path) -> Iterator[Finding]:
    """Whether the store's disk has room, and its file may grow."""
    if not store.exists():
        return
    if not os.access(store, os.W_OK):
        yield Finding("read_only", "error", f"the store {store} cannot be written by this user", "",
                      "change its owner or mode; is its disk mounted read-only?", str(store))
    beside = Path(f"{store}-wal")
    if beside.exists() and (size := beside.stat().st_size) > LARGE_LOG:
        yield Finding("log_grows", "warning", f"the log beside the store has {size // 2**20} MB",
                      "somebody has been reading for long, and until then it cannot be folded back",
                      "end the backup, or the SQL shell that is open", str(beside))
    disk = os.statvfs(store)
    left = disk.f_bavail * disk.f_frsize
    if LEAST_ROOM <= left < LITTLE_ROOM:
        yield Finding("disk_nearly_full", "warning", f"the disk that holds the store has {left // 2**20} MB left",
                      "a desk that cannot write starts nothing", f"df -h {store.parent}; free some space", str(store))
    if left < LEAST_ROOM:
        yield Finding("disk_full", "error", f"the disk that holds the store has {left // 2**20} MB left",
                      "a desk that cannot write starts nothing and takes no arrivals", "free some space", str(store))


def _private(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        return
    mode = stat.S_IMODE(folder.stat().st_mode)
    if mode & 0o077:
        yield Finding("open_home", "warning", f"others on this machine can look into {folder} (mode {mode:04o})",
                      "prompts, results and payloads lie there", f"chmod 700 {folder}", str(folder))


def program_findings(automation: str, config: Mapping[str, Any]) -> Iterator[Finding]:
    """What is wrong with the program that a `script` target names, as far as that can be seen without running it."""
    folder = config.get("cwd")
    if folder and not Path(str(folder)).is_dir():
        yield Finding("script_folder", "error", f"{automation} starts in {folder}, which is no folder", "",
                      "make the folder, or change `cwd`", automation)
        return
    word = config.get("file")
    command = config.get("command")
    if word is None and isinstance(command, (list, tuple)) and command:
        word = command[0]
    if word is None and isinstance(command, str):
        word = _first_word(command)
    if word is None:
        return
    path = str(config.get("env", {}).get("PATH") or os.environ.get("PATH", os.defpath))
    found = Path(str(folder or "."), str(word)) if "/" in str(word) else None
    if found is None:
        if shutil.which(str(word), path=path) is None:
            yield Finding("script_missing", "error", f"{automation} runs {word}, which is not on the PATH", "",
                          "install it, or write its whole path", automation)
    elif not found.exists():
        yield Finding("script_missing", "error", f"{automation} runs {word}, which is not there", "",
                      "put the program there, or change the path", automation)
    elif not found.is_file() or not os.access(found, os.X_OK):
        yield Finding("script_not_executable", "error", f"{automation} runs {word}, which cannot be executed", "",
                      f"chmod +x {found}", automation)


def _first_word(command: str) -> str | None:
    """The program of a shell command, where that is plain to see: a path. The shell's own words are left alone."""
    try:
        words = shlex.split(command, comments=False)
    except ValueError:  # an open quote: the shell will say so itself
        return None
    first = words[0] if words else ""
    return first if first.startswith("/") and not set(first) & set("$`*?;&|<>()") else None
