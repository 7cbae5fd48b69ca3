"""Gather: many callers, one write function.

Items that arrive while the writer is busy are written together by the next turn, as one batch of set-based
statements. When a batch fails for a reason of its own, each item is tried alone, so that one bad item never
stops the rest.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from nightporter.errors import StoreError, StoreRefused
from nightporter.store.portion import Portion
from nightporter.store.tx import Tx
from nightporter.store.upshot import Upshot, Written
from nightporter.store.writer import Writer

I = TypeVar("I")  # noqa: E741  an item
R = TypeVar("R")
K = TypeVar("K")

Answered = list[tuple[K, Upshot[R]]]


@dataclass(slots=True)
class _Turn(Generic[K, I]):
    """One turn with the writer."""

    items: list[tuple[K, I]] | None = None
    """What it writes, tried again or not. None until its turn comes: whoever arrives before that is written too."""


class Gather(Generic[K, I, R]):
    """`work(tx, items)` gives one result an item; `answer([(key, upshot), ...])` is called on the writer's
    thread once that is known. `put` may be called from any thread."""

    def __init__(
        self, writer: Writer, work: Callable[[Tx, list[I]], list[R]], answer: Callable[[Answered[K, R]], None], *,
        limit: int = 500, patient: bool = False,
    ) -> None:
        self._writer = writer
        self._work = work
        self._answer = answer
        self._portion = Portion(limit, commit=lambda: writer.commit_seconds)
        self._patient = patient
        self._waiting: deque[tuple[K, I]] = deque()
        self._lock = threading.Lock()
        self._turn_to_come = False
        """Whether a turn is posted that has not taken its items."""

    def put(self, key: K, item: I) -> None:
        with self._lock:
            self._waiting.append((key, item))
            if self._turn_to_come:
                return
            self._turn_to_come = True
        self._post(_Turn())

    def _post(self, turn: _Turn[K, I]) -> None:
        self._writer.post(
            lambda tx: self._write(tx, turn), lambda upshot: self._tell(turn, upshot), patient=self._patient,
        )

    def _write(self, tx: Tx, turn: _Turn[K, I]) -> list[R]:
        items = [item for _, item in self._items_of(turn, self._portion.size)]
        with self._portion.taking(len(items)):
            return self._work(tx, items)

    def _tell(self, turn: _Turn[K, I], upshot: Upshot[list[R]]) -> None:
        items = self._items_of(turn, None)  # nothing was taken where the store was closed, or would not begin
        if isinstance(upshot, Written):
            self._answer([(key, Written(result)) for (key, _), result in zip(items, upshot.result, strict=True)])
        elif len(items) == 1 or (isinstance(upshot.error, StoreError) and not isinstance(upshot.error, StoreRefused)):
            self._answer([(key, upshot) for key, _ in items])
        else:
            for one in items:
                self._post(_Turn([one]))

    def _items_of(self, turn: _Turn[K, I], limit: int | None) -> list[tuple[K, I]]:
        """Its items, taken now if its turn has come only now; what is left beyond `limit` gets a turn of its own."""
        if turn.items is not None:
            return turn.items
        with self._lock:
            room = len(self._waiting) if limit is None else min(limit, len(self._waiting))
            turn.items = [self._waiting.popleft() for _ in range(room)]
            self._turn_to_come = left = bool(self._waiting)
        if left:
            self._post(_Turn())
        return turn.items
