"""What the rules take hold of: the night they are of, and whom they pick in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from model.aftermath import Aftermath
from model.desk import Worker
from model.trouble import TROUBLES, Trouble
from model.wishes import ENDINGS
from nightporter.clock import Instant
from nightporter.store import Store

T = TypeVar("T")

TROUBLE = st.sampled_from(TROUBLES)
PICK = st.integers(0, 11)
SOME = st.lists(PICK, min_size=1, max_size=4)
TAKER = st.sampled_from([None, None, 0, 1, 2])
"""Whose desk it is that admits, if it has a worker of its own."""
ENDS = st.sampled_from([*ENDINGS, "words", "words", "transient", "transient", "nonzero", "exception", "nothing"])


def trouble_of(drawn: tuple[Any, int] | None) -> Trouble | None:
    return None if drawn is None else Trouble(*drawn)


class Hands(RuleBasedStateMachine):
    """One night of one ledger, without its rules. A subclass of them says where its store comes from."""

    tally: ClassVar[Counter[str]] = Counter()
    examples: ClassVar[int] = 0

    def a_store(self, start: Instant) -> Store:
        raise NotImplementedError

    def leave_store(self, store: Store) -> None:
        store.close()

    def __init__(self) -> None:
        super().__init__()
        self.desk: Aftermath | None = None
        self.numbers = 0
        self.steady = True
        """The wall clock is never put back: then every instant can be looked at."""
        type(self).examples += 1

    @property
    def d(self) -> Aftermath:
        assert self.desk is not None
        return self.desk

    def an_automation(self, pick: int) -> Any:
        there = list(self.d.account.automations.values())
        return there[pick % len(there)]

    def a_worker(self, pick: int) -> Worker:
        """Mostly one that lives."""
        there = [w for w in self.d.workers if w.alive]
        return there[pick % len(there)] if there else self.d.join()

    def picked(self, from_: Sequence[T], picks: Sequence[int]) -> list[T]:
        return [from_[n] for n in dict.fromkeys(p % len(from_) for p in picks)] if from_ else []

    def a_taker(self, pick: int | None) -> Worker | None:
        return None if pick is None else self.a_worker(pick)

    def busy(self, pick: int, work: Callable[[Worker], None], *, sending: bool = False) -> None:
        """With a worker that has something in the air, whether it still is its own or not."""
        there = [w for w in self.d.workers if w.alive and (w.sending if sending else w.flying)]
        if there:
            work(there[pick % len(there)])
