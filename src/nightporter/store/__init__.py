"""The store: the only SQL. `open_store` gives SQLite or PostgreSQL behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from nightporter.clock import Clock
from nightporter.config import Config
from nightporter.errors import BadInput, StoreUnwritable
from nightporter.store.kicks import Kicks
from nightporter.store.tx import Tx
from nightporter.store.writer import Writer

T = TypeVar("T")

__all__ = ["Store", "Tx", "open_store", "store_of"]


class Store(Protocol):
    """A database that keeps the ledger."""

    dialect: str
    writer: Writer
    kicks: Kicks
    read_only: StoreUnwritable | None
    """Why nothing can be written, of a store that was opened all the same, to be read."""

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run a write function in a transaction; returns once it is durable. Raises what it raised, or StoreError."""

    def read(self, look: Callable[[Tx], T]) -> T:
        """Run a reading function on one snapshot, on this thread."""

    def changed(self) -> bool:
        """Whether anybody may have committed since the last call, this process too: what a rider that fell left undone
        is found by that."""

    def clock(self, own: Clock) -> Clock:
        """The clock that all who use this store go by: its server's, or `own` where it has none. Raises StoreError."""

    def set_clock(self) -> None:
        """Look at the server's clock again, where there is one. To be called every second or so. Raises StoreError."""

    def backup(self, to: Path) -> None:
        """A consistent copy in one file, where the database is ours to copy."""

    def tend(self) -> None:
        """Keep what is on the disk small, and say what stands in the way; every minute or so. Raises StoreError."""

    def close(self) -> None: ...


def open_store(
    url: str, *, now: int, patience: float = 60.0, silence: float = 15.0, lease: float = 60.0,
    kick_folder: Path | None = None,
) -> Store:
    """Open, create or migrate a store: `postgresql://...`, `:memory:`, or a path. Raises StoreError and its kind.

    `patience`: seconds to wait for one that is locked or away. `silence`: seconds after which a server that does not
    answer is taken for gone, unless it says on another connection that it is still at work. `lease`: seconds that a
    worker of an older program may stand still before it counts as dead; the store is migrated when all are gone.
    """
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from nightporter.store.postgres import PostgresStore
        except ImportError as error:
            raise BadInput(
                "a PostgreSQL store needs its driver", why=str(error),
                next="pip install 'nightporter[postgres]', or in a clone: pip install -e '.[postgres]'"
            ) from error
        return PostgresStore(url, now=now, patience=patience, silence=silence, lease=lease)
    if "://" in url:
        raise BadInput(
            f"no store is called {url.split('://')[0]!r}", why="a store is a file or a PostgreSQL database",
            next="give a path, or postgresql://user@host/database",
        )
    from nightporter.store.sqlite import SqliteStore

    path = url if url == ":memory:" else Path(url)
    return SqliteStore(path, now=now, patience=patience, lease=lease, kick_folder=kick_folder)


def store_of(config: Config, clock: Clock) -> Store:
    """The store that a Config names, opened and migrated. Raises StoreError and its kind."""
    return open_store(
        config.store, now=clock.now(), patience=config.patience.total_seconds(), lease=config.lease.total_seconds(),
        # Well before the lease is over: a worker that is cut off shall know before others take what it holds.
        silence=max(config.lease.total_seconds() / 4, 1.0), kick_folder=config.state / "kicks",
    )
