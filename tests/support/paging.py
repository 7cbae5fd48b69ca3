"""Lists of the ledger, page after page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from conftest import START
from nightporter.ledger.pages import Page
from nightporter.store import Store, Tx
from nightporter.words import (
    Destination,
)

NOW = START
FILE = Destination("out", "file", {"path": "out.txt"})


def every_page(store: Store, read: Callable[[Tx, str], Page[Any]]) -> list[Any]:
    """The items of all pages, and that no page lies about there being another."""
    items: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        found = store.read(lambda tx, at=cursor: read(tx, at))  # type: ignore[misc]  # bound per turn
        assert found.items
        items += found.items
        cursor = found.next_cursor
    return items
