"""Connections to a PostgreSQL server that may vanish without a word: how long either side waits for the other.

A cable that is pulled closes nothing. Here, the kernel gives up what nobody acknowledges, and a statement that stays
without an answer is asked after on another connection: what the server does not know of any more, or has done long
ago, is cut, and whoever waits for it gets an error. There, a session that fell silent in a transaction is ended, with
its locks, before its worker's lease is over.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from nightporter import logs
from nightporter.store.sql_port import Row

log = logs.get(__name__)

SESSION = (
    "-c synchronous_commit=on -c timezone=UTC -c jit=off -c idle_in_transaction_session_timeout=30000 "
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 -c tcp_user_timeout=25000"
)
"""What each session asks of the server. Milliseconds, and seconds for the keepalives."""
OURS = {
    "connect_timeout": 10, "keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""The same for this side; what the address of the store says stands over it."""
LOOKS_FOR_US = "SELECT set_config('client_connection_check_interval', '10s', false)"
"""That a client is gone is noticed while a statement waits, too; not every platform's server can."""

STATEMENTS = 500
"""Prepared ones that a session keeps; those with `@rows` have a few forms each."""


def parameters(url: str) -> dict[str, Any]:
    """How to connect, by libpq's names."""
    asked = {name: value for name, value in conninfo_to_dict(url).items() if value is not None}
    return {**OURS, **asked, "options": f"{SESSION} {asked.get('options', '')}".rstrip()}


class Line(psycopg.Connection[Row]):
    """A connection that says since when it waits for an answer."""

    waits_since: float | None = None

    def wait(self, *of: Any, **rest: Any) -> Any:
        self.waits_since = time.monotonic()
        try:
            return super().wait(*of, **rest)
        finally:
            self.waits_since = None


class Link:
    """The connections of one process to one server, and a thread that looks after those that wait for long."""

    def __init__(self, url: str, *, silence: float) -> None:
        """`silence`: seconds without an answer after which the server is asked about a statement."""
        self.parameters = parameters(url)
        self._silence = silence
        self._lines: weakref.WeakSet[Line] = weakref.WeakSet()
        self._alone = threading.Lock()
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="nightporter-link", daemon=True).start()

    def connect(self) -> Line:
        """A new connection, looked after. Raises psycopg's errors."""
        line = Line.connect(**self.parameters, autocommit=True)
        self.look_after(line)
        return line

    def look_after(self, line: psycopg.Connection[Row]) -> None:
        assert isinstance(line, Line)
        line.prepared_max = STATEMENTS
        with self._alone:
            self._lines.add(line)
        with contextlib.suppress(psycopg.DataError, psycopg.NotSupportedError, psycopg.ProgrammingError):
            line.execute(LOOKS_FOR_US)

    def close(self) -> None:
        """Look after nothing any more. The connections are closed by whoever has them."""
        self._closed.set()

    def _watch(self) -> None:
        asked: dict[int, float] = {}
        while not self._closed.wait(self._silence / 4):
            now = time.monotonic()
            with self._alone:
                lines = list(self._lines)
            waiting = {id(line): line for line in lines if now - (line.waits_since or now) > self._silence}
            asked = {key: at for key, at in asked.items() if key in waiting}
            for key, line in waiting.items():
                if now - asked.get(key, 0.0) > self._silence:
                    asked[key] = now
                    self._look_at(line, lines)

    def _look_at(self, line: Line, lines: list[Line]) -> None:
        state = self._asked_about(line)
        if state == "active" or line.waits_since is None:
            return
        log.warning("store.no_answer", seconds=round(time.monotonic() - line.waits_since), session=state or "unknown")
        # What is idle went the same way, as far as anybody knows; where nobody answers at all, so did all the rest.
        for other in lines:
            if other is line or other.waits_since is None or state is None:
                _cut(other)

    def _asked_about(self, line: Line) -> str | None:
        """What the server says of the session behind a connection: its state, `gone`, or None where it cannot be
        asked."""
        said: list[str] = []
        with contextlib.suppress(psycopg.Error):
            process = line.info.backend_pid

        def ask() -> None:
            with (
                contextlib.suppress(psycopg.Error),
                psycopg.connect(**{**self.parameters, "connect_timeout": max(2, int(self._silence))}) as other,
            ):
                row = other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", (process,)).fetchone()
                said.append("gone" if row is None or row[0] is None else str(row[0]))

        # On a thread of its own: the answer to this question, too, may stay away.
        thread = threading.Thread(target=ask, name="nightporter-ask", daemon=True)
        thread.start()
        thread.join(2 + 2 * self._silence)
        return said[0] if said else None


def _cut(line: Line) -> None:
    """End a connection under the hands of whoever waits for it: he gets an error."""
    with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(line.fileno())) as ours:
        ours.shutdown(socket.SHUT_RDWR)
