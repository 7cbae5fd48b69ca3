"""Whose turn it is: a writer is held, so that what is posted meanwhile shares a group, or waits for another."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nightporter.store import Store, Tx
from nightporter.store.writer import Writer
from words import rows


@contextmanager
def held(writer: Writer) -> Iterator[None]:
    """The writer stands still inside the block; what is posted there is taken together afterwards."""
    here, go = threading.Event(), threading.Event()

    def wait(tx: Tx) -> None:
        here.set()
        go.wait(30)

    writer.post(wait, lambda upshot: None)
    here.wait(30)
    try:
        yield
    finally:
        go.set()


def waits_for_a_lock(store: Store) -> bool:
    """Whether somebody in this PostgreSQL database stands still until another lets go."""
    return bool(rows(store, "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
                            "AND wait_event_type = 'Lock'"))
