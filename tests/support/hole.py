"""A road to a PostgreSQL server that can be swallowed: what is sent on it is taken and goes nowhere, and nothing is
closed. So it is when a cable is pulled, on any machine."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

Place = str | tuple[str, int]
"""Where one listens or connects: a path, or an address and its port."""


class Pipe:
    """Listens somewhere and carries bytes elsewhere and back, on a thread."""

    def __init__(self, door: socket.socket, to: Place) -> None:
        self._door = door
        self._to = to
        self._swallowing = False
        self._pairs: dict[socket.socket, socket.socket | None] = {}
        """Both ends of each connection by one another; None: what comes from here goes nowhere, for good."""
        self._waker, self._bell = socket.socketpair()
        self._closing = False
        self._alone = threading.Lock()
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def swallow(self) -> None:
        """From now on nothing arrives, and nobody is told."""
        with self._alone:
            self._swallowing = True
            self._pairs = dict.fromkeys(self._pairs)

    def heal(self) -> None:
        """Who connects now gets through. What was swallowed stays so: its bytes are gone."""
        with self._alone:
            self._swallowing = False

    def wait(self) -> None:
        """For as long as it carries."""
        self._thread.join()

    def close(self) -> None:
        self._closing = True
        with contextlib.suppress(OSError):  # it was about to look by itself
            self._bell.send(b"x")
        self._thread.join(10)

    def _carry(self) -> None:
        with selectors.DefaultSelector() as ears:
            for each in (self._door, self._waker):
                ears.register(each, selectors.EVENT_READ)
            while not self._closing:
                for key, _ in ears.select():
                    with contextlib.suppress(OSError), self._alone:
                        if key.fileobj is self._door:
                            self._open(ears)
                        elif isinstance(key.fileobj, socket.socket) and key.fileobj in self._pairs:
                            self._pass_on(key.fileobj, ears)
        for each in (*self._pairs, self._door, self._waker, self._bell):
            each.close()

    def _open(self, ears: selectors.BaseSelector) -> None:
        near, _ = self._door.accept()
        ears.register(near, selectors.EVENT_READ)
        if self._swallowing:
            self._pairs[near] = None
            return
        far = socket.socket(socket.AF_UNIX if isinstance(self._to, str) else socket.AF_INET)
        try:
            far.connect(self._to)
        except OSError:  # the server is not there
            ears.unregister(near)
            near.close()
            return
        ears.register(far, selectors.EVENT_READ)
        self._pairs[near], self._pairs[far] = far, near

    def _pass_on(self, end: socket.socket, ears: selectors.BaseSelector) -> None:
        said = b""
        with contextlib.suppress(ConnectionError):
            said = end.recv(65536)
        other = self._pairs.get(end)
        if said and other is not None:
            other.sendall(said)
        if not said:
            for gone in (end, other):
                if gone is not None:
                    ears.unregister(gone)
                    self._pairs.pop(gone, None)
                    gone.close()


class Road(Pipe):
    """The way to a PostgreSQL server, by a port of its own."""

    def __init__(self, url: str, *, at: str = "127.0.0.1") -> None:
        asked = conninfo_to_dict(url)
        host, port = str(asked.get("host") or "127.0.0.1"), int(asked.get("port") or 5432)
        self._user, self._database = str(asked.get("user") or ""), str(asked.get("dbname") or "")
        door = socket.create_server((at, 0), backlog=64)
        self._at, self._port = at, door.getsockname()[1]
        super().__init__(door, f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port))

    def url(self, **options: object) -> str:
        """The address of the server by this road. `options`: settings of each session."""
        said = quote(" ".join(f"-c {name}={value}" for name, value in options.items()))
        return (f"postgresql://{self._user}@{self._at}:{self._port}/{self._database}?connect_timeout=2"
                + (f"&options={said}" if said else ""))


@contextmanager
def a_road(url: str, *, at: str = "127.0.0.1") -> Iterator[Road]:
    """A road for the time of the block."""
    road = Road(url, at=at)
    try:
        yield road
    finally:
        road.close()
