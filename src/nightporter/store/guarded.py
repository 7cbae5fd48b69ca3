"""A store in memory has one connection, which readers borrow between groups of writes."""

from __future__ import annotations

import threading
from typing import Any

from nightporter.store.tx import Tx
from nightporter.store.writer import Transactions


class Guarded:
    """The transactions of a store in memory, whose one connection readers borrow between groups."""

    def __init__(self, inner: Transactions, turn: threading.RLock) -> None:
        self._inner = inner
        self._turn = turn

    def begin(self) -> Tx:
        self._turn.acquire()
        return self._inner.begin()

    def commit(self) -> None:
        self._inner.commit()
        self._turn.release()

    def rollback(self) -> None:
        self._inner.rollback()
        self._turn.release()

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
