"""Kicks: after a commit, whoever waits for that kind of row is rung, in this process and the others.

A kick carries topics only (`due`, `queued`, `delivery`, `cancel`, ...), never data: the row is the truth, the kick
saves the wait. Every loop also looks by itself each second, so a kick that is lost costs a second and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

Listener = Callable[[frozenset[str]], None]


LONGEST_ADDRESS = 100
"""A socket's path may have 107 bytes; a file name of ours takes some of them."""


class Kicks:
    """Within one process."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._foreign: list[Listener] = []

    def listen(self, listener: Listener, *, foreign: bool = False) -> Callable[[], None]:
        """Call `listener(topics)` after each commit that kicked, or after those of other processes only (`foreign`);
        it must not block. Returns how to stop."""
        listeners = self._foreign if foreign else self._listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def ring(self, topics: frozenset[str]) -> None:
        """Tell this process and the others."""
        self._tell(topics)

    def others(self) -> bool:
        """Whether other processes share the store, as far as is known."""
        return False

    def close(self) -> None: ...

    def _tell(self, topics: frozenset[str], *, foreign: bool = False) -> None:
        for listener in [*self._listeners, *(self._foreign if foreign else ())]:
            listener(topics)


class DatagramKicks(Kicks):
    """Between processes on one machine: each listens on a datagram socket in a folder they share."""

    def __init__(self, folder: Path) -> None:
        """Raises OSError where the folder cannot be made."""
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._handle: int | None = None
        self._folder = folder
        if len(str(folder)) + 40 >= LONGEST_ADDRESS:
            # The kernel follows this name to the folder, however long the folder's own name is.
            self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            self._folder = Path(f"/proc/self/fd/{self._handle}")
        self._path = self._folder / f"{os.getpid()}-{id(self):x}.kick"
        self._out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._out.setblocking(False)
        self._in: socket.socket | None = None
        self._peers: list[Path] = []
        self._looked = -1

    def listen(self, listener: Listener, *, foreign: bool = False) -> Callable[[], None]:
        stop = super().listen(listener, foreign=foreign)  # before anything is heard, or the first ring is lost
        if self._in is None:
            self._in = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._in.bind(str(self._path))
            threading.Thread(target=self._hear, name="nightporter-kicks", daemon=True).start()
        return stop

    def ring(self, topics: frozenset[str]) -> None:
        self._tell(topics)
        self._look()
        message = " ".join(sorted(topics)).encode()
        for peer in self._peers:
            try:
                self._out.sendto(message, str(peer))
            except ConnectionRefusedError:
                peer.unlink(missing_ok=True)  # its process died without tidying up
                self._looked = -1
            except OSError:
                pass  # full: it will look anyway; gone: it left a moment ago

    def others(self) -> bool:
        self._look()
        return bool(self._peers)

    def close(self) -> None:
        self._listeners.clear()
        self._foreign.clear()
        if self._in is not None:
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # a hearing thread may not be in recv just now
                self._in.shutdown(socket.SHUT_RDWR)
            self._in.close()
        self._out.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _look(self) -> None:
        # The folder's own time changes when a peer comes or goes; listing it on every commit would cost more.
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:  # somebody removed the folder: there is nobody to ring
            self._peers, self._looked = [], -1
            return
        if changed != self._looked:
            self._looked = changed
            self._peers = [p for p in self._folder.glob("*.kick") if p != self._path]

    def _hear(self) -> None:
        assert self._in is not None
        while True:
            try:
                message = self._in.recv(4096)
            except OSError:
                return
            if not message:
                return
            self._tell(frozenset(message.decode().split()), foreign=True)
