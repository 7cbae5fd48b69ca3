"""Doubts: claims whose commit was made or not, because its answer was lost on the way.

Whoever claimed them has begun nothing. The next transaction of the same kind looks whether they stand, before it
claims anything: those that do are taken up as if the answer had come, and nobody takes them for dead work.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Generic, TypeVar

from nightporter.clock import SECOND, Clock

T = TypeVar("T")
Claim = tuple[str, int]

LONGEST = 30 * SECOND
"""How long a server may take to finish a commit whose asker is gone; what does not stand by then never will."""


class Doubts(Generic[T]):
    """Claims in doubt, each known by `key`. Used on the writer's thread only."""

    def __init__(self, clock: Clock, key: Callable[[T], Claim]) -> None:
        self._clock = clock
        self._key = key
        self._items: dict[Claim, tuple[T, int]] = {}

    @property
    def claims(self) -> list[Claim]:
        return list(self._items)

    def note(self, claimed: Iterable[T]) -> None:
        """The answer to the commit that claimed them was lost."""
        now = self._clock.monotonic()
        for one in claimed:
            self._items.setdefault(self._key(one), (one, now))

    def standing(self, found: Collection[Claim]) -> list[T]:
        """Those of `found`, which the store has under our claim. The others are forgotten after a while."""
        oldest = self._clock.monotonic() - LONGEST
        self._items = {key: kept for key, kept in self._items.items() if key in found or kept[1] > oldest}
        return [one for key, (one, _) in self._items.items() if key in found]

    def settle(self, claimed: Iterable[T]) -> None:
        """They are in hand: taken up now, or claimed anew under the same number."""
        if self._items:
            for one in claimed:
                self._items.pop(self._key(one), None)
