"""A disk that can be ill, as SQLite sees one: a VFS above the real one, loaded in the desk process under test.

*Lossy*: what was written and not synced is remembered, with what stood there before, in books beside the store that
outlive the process. `power_loss` then leaves of it what a disk may: each sector as it was at some moment since the last
sync, files as long as they were at some moment, a file that was made and whose folder was not synced perhaps gone.

*Full*, *read-only*: writes that need room, or any writes, fail as the file system would have them fail.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

SECTOR = 512
_HEAD = struct.Struct("<cqqq")
"""What happened (w, t), where, how long the bytes that follow are, how long the file was before."""


@dataclass
class Illness:
    """What the disk of this process has just now. Changed by whoever tests, read by every write."""

    lossy: bool = False
    full: frozenset[str] = frozenset()
    """Kinds of files that cannot grow: `db`, `wal`."""
    read_only: bool = False
    refused: int = 0
    """Writes that failed for it."""
    dies: tuple[str, int] = ("", 0)
    """At its so manieth `write` or `sync` from now on the process dies, with all that are of its group."""

    def passes(self, what: str) -> None:
        kind, left = self.dies
        if kind == what:
            self.dies = (kind, left - 1)
            if left == 1:
                os.killpg(0, signal.SIGKILL)


@dataclass
class _Book:
    """What happened to one file since it was last synced."""

    path: str
    log: int
    lock: threading.Lock = field(default_factory=threading.Lock)


class IllDisk(apsw.VFS):
    """Registers itself as the VFS that connections get."""

    def __init__(self, illness: Illness) -> None:
        self.illness = illness
        self._books: dict[str, _Book] = {}
        self._lock = threading.Lock()
        super().__init__("ill", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if self.illness.read_only and path and flags[0] & apsw.SQLITE_OPEN_READWRITE:
            if not Path(path).exists():
                raise apsw.CantOpenError("Read-only file system")
            flags[0] = flags[0] & ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE) | apsw.SQLITE_OPEN_READONLY
        made = bool(path) and not Path(path).exists()
        book = self._book(path, made) if path and self.illness.lossy else None
        return _File(self.illness, book, path or "", name, flags)

    def _book(self, path: str, made: bool) -> _Book:
        with self._lock:
            if path not in self._books:
                self._books[path] = _Book(path, os.open(f"{path}.unsynced", os.O_CREAT | os.O_RDWR | os.O_APPEND))
                if made:
                    Path(f"{path}.new").touch()
            return self._books[path]


class _File(apsw.VFSFile):
    def __init__(self, illness: Illness, book: _Book | None, path: str, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self._illness = illness
        self._book = book
        self._kind = "wal" if path.endswith("-wal") else "db"
        self._path = path

    def xWrite(self, data: bytes, offset: int) -> None:
        self._may_write(offset + len(data))
        if self._book is None:
            super().xWrite(data, offset)
            return
        with self._book.lock:
            size = self.xFileSize()
            before = self.xRead(min(len(data), max(0, size - offset)), offset) if offset < size else b""
            self._note(b"w", offset, before, size, len(data))
            super().xWrite(data, offset)
        self._illness.passes("write")

    def xTruncate(self, newsize: int) -> None:
        self._may_write(0)
        if self._book is None:
            super().xTruncate(newsize)
            return
        with self._book.lock:
            size = self.xFileSize()
            if newsize < size:
                self._note(b"t", newsize, self.xRead(size - newsize, newsize), size, size - newsize)
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if self._illness.read_only:
            self._illness.refused += 1
            raise apsw.IOError("Read-only file system")
        if self._book is None:
            super().xSync(flags)
            return
        self._illness.passes("sync")
        with self._book.lock:
            os.ftruncate(self._book.log, 0)
        if self._path.endswith(("-wal", "-journal")):  # SQLite syncs the folder with the first sync of what it made
            for new in Path(self._path).parent.glob("*.new"):
                new.unlink(missing_ok=True)

    def _note(self, what: bytes, offset: int, before: bytes, size: int, length: int) -> None:
        assert self._book is not None
        os.write(self._book.log, _HEAD.pack(what, offset, length, size) + struct.pack("<q", len(before)) + before)

    def _may_write(self, end: int) -> None:
        if self._illness.read_only:
            self._illness.refused += 1
            raise apsw.IOError("Read-only file system")
        if self._kind in self._illness.full and end > self.xFileSize():
            self._illness.refused += 1
            raise apsw.FullError("No space left on device")


@dataclass(frozen=True)
class Loss:
    """What a power loss took."""

    sectors: int
    """Sectors that are not as the last write left them."""
    cut: int
    """Files that are not as long as they were."""
    gone: int
    """Files whose name was lost."""


def power_loss(store: Path, chance: random.Random) -> Loss:
    """The power of the machine goes; no process has the store open any more. What is left is what was synced, and of
    the rest whatever chance leaves."""
    sectors = cut = gone = 0
    for path in (store, Path(f"{store}-wal"), Path(f"{store}-journal")):
        book, new = Path(f"{path}.unsynced"), Path(f"{path}.new")
        if book.exists():
            if path.exists():
                lost, shorter = _lose(path, list(_events(book.read_bytes())), chance)
                sectors += lost
                cut += shorter
            book.unlink()
        if new.exists():
            new.unlink()
            if path.exists() and chance.random() < 0.5:
                path.unlink()
                gone += 1
    Path(f"{store}-shm").unlink(missing_ok=True)  # it never was on the disk
    return Loss(sectors, cut, gone)


def _events(log: bytes) -> Iterator[tuple[bytes, int, int, int, bytes]]:
    """`(what, offset, length, size before, bytes before)` of each event, oldest first; one that was cut short by the
    death of its process never happened."""
    at = 0
    while at + _HEAD.size + 8 <= len(log):
        what, offset, length, size = _HEAD.unpack_from(log, at)
        (kept,) = struct.unpack_from("<q", log, at + _HEAD.size)
        at += _HEAD.size + 8
        if at + kept > len(log):
            return
        yield what, offset, length, size, log[at : at + kept]
        at += kept


def _lose(path: Path, events: list[tuple[bytes, int, int, int, bytes]], chance: random.Random) -> tuple[int, int]:
    """Leave each sector as it was at some moment since the sync; `(sectors that changed by it, files cut)`."""
    now = bytearray(path.read_bytes())
    images: dict[int, list[bytes]] = defaultdict(list)
    sizes = [len(now)]
    state = bytearray(now)
    for what, offset, length, size, before in reversed(events):  # back in time, one write after another
        touched = range(offset // SECTOR, (offset + max(length, 1) - 1) // SECTOR + 1)
        for sector in touched:
            if not images[sector]:
                images[sector].append(bytes(state[sector * SECTOR : (sector + 1) * SECTOR]))
        if what == b"w":
            state[offset : offset + len(before)] = before
            del state[size:]
        else:
            state[offset:] = before
        sizes.append(size)
        for sector in touched:
            images[sector].append(bytes(state[sector * SECTOR : (sector + 1) * SECTOR]))
    synced = len(state)
    length = chance.choice([len(now), synced, chance.choice(sizes)])
    left = bytearray(now[:length]) + bytearray(max(0, length - len(now)))
    lost = 0
    for sector, versions in images.items():
        chosen = chance.choice(versions)
        begin = sector * SECTOR
        if begin >= length:
            continue
        piece = (chosen + bytes(SECTOR))[: min(SECTOR, length - begin)]
        lost += piece != bytes(left[begin : begin + SECTOR])
        left[begin : begin + len(piece)] = piece
    path.write_bytes(left)
    return lost, int(length != len(now))


def forget(store: Path) -> None:
    """The machine was stopped in order: everything is on the disk."""
    for path in store.parent.glob(f"{store.name}*.unsynced"):
        path.unlink()
    for path in store.parent.glob(f"{store.name}*.new"):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
