"""A cutter: stands between a desk and its PostgreSQL server, reads what goes by, and cuts connections at their COMMIT.

It speaks TCP to the desk and whatever the server's address says to the server, which may be another from one moment to
the next. A cut comes before the COMMIT is handed on, or after it, its answer lost; chance decides.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo


@dataclass
class Cutter:
    """Where the server is, and how often a COMMIT is its connection's last word."""

    server: str
    """libpq's words for where it is."""
    chance: random.Random
    share: float = 0.0
    """Of the commits that are cut."""
    away: bool = False
    """Nobody gets through."""
    before: int = 0
    """Cuts before the COMMIT was handed on."""
    after: int = 0
    """Cuts after it."""
    _open: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listener: socket.socket = field(default_factory=socket.socket)

    def url(self) -> str:
        """The server's address through here."""
        said = conninfo_to_dict(self.server)
        host, port = self._listener.getsockname()
        return (f"postgresql://{said['user']}@{host}:{port}/{said['dbname']}"
                "?sslmode=disable&gssencmode=disable")

    def hang_up(self) -> None:
        """Cut everybody who is connected."""
        with self._lock:
            for end in self._open:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        """Until the listening socket is closed."""
        while True:
            try:
                desk, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(desk,), daemon=True).start()

    def _connect(self, desk: socket.socket) -> None:
        server = None if self.away else _reach(self.server)
        if server is None:
            desk.close()
            return
        with self._lock:
            self._open |= {desk, server}
        threading.Thread(target=self._answers, args=(server, desk), daemon=True).start()
        try:
            self._questions(desk, server)
        except OSError:
            pass  # one of the two has gone
        finally:
            self._end(desk, server)

    def _end(self, *ends: socket.socket) -> None:
        with self._lock:
            self._open -= set(ends)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _answers(self, server: socket.socket, desk: socket.socket) -> None:
        try:
            while heard := server.recv(65536):
                desk.sendall(heard)
        except OSError:
            pass
        with contextlib.suppress(OSError):
            desk.shutdown(socket.SHUT_RDWR)

    def _questions(self, desk: socket.socket, server: socket.socket) -> None:
        commits: set[bytes] = set()
        """Names of prepared statements that are a COMMIT."""
        waiting = b""
        begun = False
        while heard := desk.recv(65536):
            waiting += heard
            whole, waiting, begun, commit = _frames(waiting, begun, commits)
            if commit and self.chance.random() < self.share:
                if self.chance.random() < 0.5:
                    self.before += 1
                    return
                self.after += 1
                with contextlib.suppress(OSError):
                    desk.shutdown(socket.SHUT_RDWR)  # whatever the server answers, nobody hears it
                server.sendall(whole)
                return
            server.sendall(whole)


def _frames(data: bytes, begun: bool, commits: set[bytes]) -> tuple[bytes, bytes, bool, bool]:
    """`(whole messages, what is left, whether the connection is past its greeting, whether a COMMIT is among them)`."""
    at, found = 0, False
    while True:
        head = 5 if begun else 4
        if len(data) - at < head:
            break
        length = int.from_bytes(data[at + head - 4 : at + head], "big") + head - 4
        if len(data) - at < length:
            break
        if begun:
            found |= _is_commit(data[at : at + 1], data[at + 5 : at + length], commits)
        begun, at = True, at + length
    return data[:at], data[at:], begun, found


def _is_commit(kind: bytes, body: bytes, commits: set[bytes]) -> bool:
    match kind:
        case b"Q":
            return body.startswith(b"COMMIT")
        case b"P":
            name, text, *_ = body.split(b"\0")
            if text.startswith(b"COMMIT"):
                commits.add(name)
            else:
                commits.discard(name)
            return False
        case b"B":
            return body.split(b"\0")[1] in commits
        case _:
            return False


def _reach(server: str) -> socket.socket | None:
    said = conninfo_to_dict(server)
    host, port = str(said.get("host") or "localhost"), int(said.get("port") or 5432)
    try:
        if host.startswith("/"):
            end = socket.socket(socket.AF_UNIX)
            end.connect(str(Path(host) / f".s.PGSQL.{port}"))
            return end
        return socket.create_connection((host, port))
    except OSError:
        return None


@contextlib.contextmanager
def a_cutter(server: str, *, seed: int, share: float = 0.0) -> Iterator[Cutter]:
    """One that stands there for the time of the block. `server`: its address."""
    cutter = Cutter(make_conninfo(server), random.Random(seed), share)
    cutter._listener.bind(("127.0.0.1", 0))
    cutter._listener.listen(64)
    threading.Thread(target=cutter.serve, daemon=True).start()
    try:
        yield cutter
    finally:
        cutter._listener.close()
        cutter.hang_up()
