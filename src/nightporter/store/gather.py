"""Gather: many callers, one write function.

Items that arrive while the writer is busy are written together by the next turn, as one batch of set-based
statements. When a batch fails for a reason of its own, each item is tried alone, so that one bad item never
stops the rest.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from nightporter.errors import StoreError, StoreRefused
from nightporter.store.tx import Tx
from nightporter.store.writer import Writer

I = TypeVar("I")  # noqa: E741  an item
R = TypeVar("R")
K = TypeVar("K")

Answered = list[tuple[K, R | None, BaseException | None]]


class Gather(Generic[K, I, R]):
    """`work(tx, items)` gives one result an item; `answer([(key, result, error), ...])` is called on the writer's
    thread once they are durable. `put` may be called from any thread."""

    def __init__(
        self, writer: Writer, work: Callable[[Tx, list[I]], list[R]], answer: Callable[[Answered[K, R]], None], *,
        limit: int = 500,
    ) -> None:
        self._writer = writer
        self._work = work
        self._answer = answer
        self._limit = limit
        self._waiting: deque[tuple[K, I]] = deque()
        self._lock = threading.Lock()
        self._posted = False

    def put(self, key: K, item: I) -> None:
        with self._lock:
            self._waiting.append((key, item))
            if self._posted:
                return
            self._posted = True
        self._post(None)

    def _post(self, fixed: list[tuple[K, I]] | None) -> None:
        batch: list[tuple[K, I]] = fixed or []

        def work(tx: Tx) -> list[R]:
            if not batch:  # taken when its turn comes, not when it was posted: whoever came meanwhile rides too
                with self._lock:
                    while self._waiting and len(batch) < self._limit:
                        batch.append(self._waiting.popleft())
                    self._posted = bool(self._waiting)
                if self._posted:
                    self._post(None)
            return self._work(tx, [item for _, item in batch])

        def answer(results: list[R] | None, error: BaseException | None) -> None:
            if not batch:  # closed before its turn came
                with self._lock:
                    batch.extend(self._waiting)
                    self._waiting.clear()
                    self._posted = False
            if error is None:
                assert results is not None
                self._answer([(key, result, None) for (key, _), result in zip(batch, results, strict=True)])
            elif len(batch) == 1 or (isinstance(error, StoreError) and not isinstance(error, StoreRefused)):
                self._answer([(key, None, error) for key, _ in batch])
            else:
                for item in batch:
                    self._post([item])

        self._writer.post(work, answer)
