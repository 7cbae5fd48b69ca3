"""A portion: how much of what waits goes into one write, so that nobody waits long behind it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AIM = 0.012
"""Seconds that a portion is to take where a commit takes less."""
FIRST = 64
"""What is tried before anything was learnt."""


class Portion:
    """Learns from each write how many take AIM, or as long as a commit takes on a slow disk: smaller ones would only
    make more commits. Measured by the thread's own time, for the same reason: a machine that does much else makes
    every write longer. For one thread at a time."""

    def __init__(
        self, most: int, *, least: int = 16, commit: Callable[[], float] = lambda: 0.0,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        """`commit` says how long one takes now; `spent` is the clock, in seconds, that a write is measured by."""
        self._most = most
        self._commit = commit
        self.spent = spent
        self._least = min(least, most)
        self.size = min(FIRST, most)

    @contextmanager
    def taking(self, count: int) -> Iterator[None]:
        """Measure the writing of `count`."""
        began = self.spent()
        yield
        self.learn(count, self.spent() - began)

    def learn(self, count: int, seconds: float) -> None:
        """`count` took so long. What a small one took says little: most of it is for the write itself."""
        aim = max(AIM, self._commit())
        if count and (seconds > aim or 2 * count >= self.size):
            fits = int(count * aim / seconds) if seconds > 0 else self._most
            self.size = min(max((self.size + fits) // 2, self._least), self._most)
