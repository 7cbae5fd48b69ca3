"""Kicks between machines: NOTIFY and LISTEN."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

import psycopg

from nightporter import logs
from nightporter.store.kicks import Kicks, Listener
from nightporter.store.postgres_link import Link
from nightporter.store.sql_port import Row

log = logs.get(__name__)

CHANNEL = "nightporter"


class PostgresKicks(Kicks):
    """NOTIFY after the commit, coalesced, on a connection of its own; LISTEN on another."""

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self.sender = secrets.token_hex(8)
        """What tells our own notes from those of others: a process id is the same on two machines."""
        self._pending: set[str] = set()
        self._bell = threading.Condition()
        self._closing = False
        self._sender: threading.Thread | None = None
        self._hearer: threading.Thread | None = None

    def listen(self, listener: Listener, *, foreign: bool = False) -> Callable[[], None]:
        stop = super().listen(listener, foreign=foreign)  # before anything is heard, or the first ring is lost
        if self._hearer is None:
            self._hearer = threading.Thread(target=self._hear, name="nightporter-listen", daemon=True)
            self._hearer.start()
        return stop

    def ring(self, topics: frozenset[str]) -> None:
        self._tell(topics)
        with self._bell:
            self._pending |= topics
            if self._sender is None:
                self._sender = threading.Thread(target=self._send, name="nightporter-notify", daemon=True)
                self._sender.start()
            self._bell.notify()

    def close(self) -> None:
        self._listeners.clear()
        self._foreign.clear()
        with self._bell:
            self._closing = True
            self._bell.notify()
        for thread in (self._sender, self._hearer):
            if thread is not None:
                thread.join(2)

    def _send(self) -> None:
        connection: psycopg.Connection[Row] | None = None
        told = False
        while True:
            with self._bell:
                while not self._pending and not self._closing:
                    self._bell.wait()
                topics, self._pending = self._pending, set()
                if not topics:
                    break
            try:
                if connection is None or connection.closed:
                    connection = self._link.connect()
                    # A note is not kept: without this, each would wait for the disk as a commit of rows does.
                    connection.execute("SET synchronous_commit = off")
                connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"{self.sender} " + " ".join(sorted(topics))))
                told = False
            except psycopg.Error as error:
                # The others look by themselves each second; a lost kick is only a wait.
                told = told or _told("store.notify_failed", error)
                connection = None
                time.sleep(0.1)
        if connection is not None:
            connection.close()

    def _hear(self) -> None:
        told = False
        while not self._closing:
            try:
                with self._link.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    told = False
                    # What a gap may have hidden.
                    self._tell(frozenset({"due", "queued", "delivery", "cancel"}), foreign=True)
                    while not self._closing:
                        connection.execute("SELECT 1")  # whoever only listens would never learn that nobody speaks
                        for note in connection.notifies(timeout=0.5):
                            sender, *topics = note.payload.split()
                            if sender != self.sender:
                                self._tell(frozenset(topics), foreign=True)
            except psycopg.Error as error:
                told = told or _told("store.listen_failed", error)
                time.sleep(0.5)


def _told(event: str, error: psycopg.Error) -> bool:
    """Say it, the first time: for as long as the server is away, it goes wrong again and again."""
    log.info(event, error=str(error).strip())
    return True
