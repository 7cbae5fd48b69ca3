"""Migrations: forward only, numbered, each in its own transaction; a backup first, and nobody at work meanwhile."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from nightporter import logs
from nightporter.clock import Instant, moment
from nightporter.errors import StoreLocked, StoreNewer
from nightporter.store.locks import is_free
from nightporter.store.named import for_postgres, migrations
from nightporter.store.sql_port import Row

log = logs.get(__name__)

LOOK_AGAIN = 0.1
"""Seconds between two looks at leases."""
WORKERS = "SELECT id, role, host, pid, beat, lock_path FROM worker WHERE ended_at IS NULL ORDER BY id"
"""Asked of the schema that is there, whichever it is: these columns stay."""

OURS = frozenset({"setting", "automation", "trigger", "firing", "run"})
"""Tables that every schema of this program has had: without them a store is somebody else's."""


class Schema(Protocol):
    """A store on its way forward, as its dialect offers it."""

    def version(self) -> int:
        """The store's number; 0 for an empty one."""

    def workers(self) -> list[Row]:
        """What `WORKERS` gives."""

    def back_up(self, before: int) -> Callable[[], None] | None:
        """Copy a store that holds something and still has that number; what takes the copy away again. None: another
        process was first, and made the copy too."""

    def apply(self, schema: str, number: int) -> None:
        """Apply one migration and record its number in one transaction, unless another process was first."""


def migrate(store: Schema, *, postgres: bool, lease: float) -> None:
    """Bring a store to this program's schema. `lease`: seconds after which a worker whose counter stands is dead.

    Raises StoreNewer when the store is ahead of this program, and StoreLocked when an older program is at work on it;
    both change nothing. A migration that fails leaves the schema that was there, and no backup of it.
    """
    known = migrations()
    last = known[-1][0]
    present = store.version()
    refuse_newer(present, last)
    if present == last:
        return
    forget = None
    if present and _alone(store, present, last, lease):
        forget = store.back_up(present)
    try:
        for number, schema in known:
            if number > present:
                store.apply(for_postgres(schema) if postgres else schema, number)
    except BaseException:
        if forget is not None and store.version() == present:
            forget()
        raise
    if present:
        log.info("store.migrated", before=present, now=last)


def newest() -> int:
    """The number of the schema that this program brings a store to."""
    return migrations()[-1][0]


def as_number(row: Row | None) -> int:
    """The number in a row of the settings; 0 where nobody can read one, which opening a store says."""
    return int(row[0]) if row is not None and str(row[0]).isdecimal() else 0


def refuse_newer(present: int, known: int) -> None:
    """Raises StoreNewer when a store has a schema beyond the newest that a program knows."""
    if present > known:
        raise StoreNewer(
            f"the store has schema {present}, this program knows {known}", why="a newer program has used it",
            next="install that newer version; this one leaves the store alone",
        )


def backup_name(number: int, now: int) -> str:
    """What a copy of a store is called that was made before migration `number`."""
    return f"before-{number:04d}-{moment(Instant(now)):%Y%m%dT%H%M%SZ}"


def _alone(store: Schema, present: int, last: int, lease: float) -> bool:
    """Wait until no worker of the older program can be alive: one of this machine is dead once its lock is free, any
    other once its counter stood still for a lease. False: another process has migrated meanwhile. Raises StoreLocked.
    """
    began = time.monotonic()
    seen: dict[str, int] = {}
    said = False
    while True:
        workers = store.workers()
        if store.version() != present:  # then who is at work there may be of this program
            return False
        undecided = []
        for worker, role, host, pid, beat, lock_path in workers:
            path = Path(lock_path)
            known = host == socket.gethostname() and bool(lock_path) and path.exists()
            if known and is_free(path):
                continue
            if known or seen.setdefault(worker, beat) != beat:
                raise StoreLocked(
                    f"an older program is at work on the store: {role} {pid} on {host}",
                    why=f"the store has schema {present}, this program brings it to {last}, and nothing may be under "
                        "way meanwhile",
                    next="stop it (SIGTERM lets its runs end), then start this one",
                )
            undecided.append(f"{role} {pid} on {host}")
        if not undecided or time.monotonic() - began > lease:
            return True
        if not said:
            log.warning("store.waits_for_leases", of=", ".join(undecided), seconds=lease)
            said = True
        time.sleep(LOOK_AGAIN)
