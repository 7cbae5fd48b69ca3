"""Holding a store's writer, so that what is posted meanwhile shares a group."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from nightporter.store import Tx
from nightporter.store.writer import Writer


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
