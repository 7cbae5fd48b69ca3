"""Retention: what has passed its time goes, a little at a time, so that nobody waits for it.

What may go is looked for on a snapshot beside the writer; only the deleting itself is a transaction, of as many rows
as are deleted within a few milliseconds. Counts by month are kept apart, and nothing here touches them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from nightporter.clock import SECOND, Clock, Instant, SystemClock, micros
from nightporter.store import Store, Tx

T = TypeVar("T")

CHUNKS = 20
"""Transactions of one kind in one go."""
LEDGER_AT_LEAST = timedelta(days=30)


class Pace:
    """How many rows a transaction deletes, by what they are: as many as take `ENOUGH`, however slow the disk is."""

    FIRST, LEAST, MOST = 100, 5, 1000
    ENOUGH = SECOND // 100
    """Nobody waits longer than 50 ms for a lock; most wait much less."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._monotonic = (clock or SystemClock()).monotonic
        self._rooms: dict[str, int] = {}
        self.longest = 0
        """Microseconds of the longest transaction so far, without its commit."""

    def room(self, of: str) -> int:
        """How many rows of a kind the next transaction may take."""
        return self._rooms.get(of, self.FIRST)

    def write(self, store: Store, of: str, work: Callable[[Tx], T]) -> T:
        """Run a write function, and learn from how long it took."""
        spent = 0

        def timed(tx: Tx) -> T:
            nonlocal spent
            began = self._monotonic()
            done = work(tx)
            spent = self._monotonic() - began
            return done

        done = store.write(timed)
        self.longest = max(self.longest, spent)
        room = self.room(of)
        if spent > self.ENOUGH:
            room = room * self.ENOUGH // spent
        elif spent < self.ENOUGH // 2:
            room += room // 2
        self._rooms[of] = max(self.LEAST, min(self.MOST, room))
        return done


def prune(
    store: Store, *, keep_runs: timedelta, keep_ledger: timedelta, now: Instant, pace: Pace | None = None
) -> bool:
    """Delete what has passed its time, and not much at once, because a sweep has other things to do. True when there
    is more to delete. `pace`: what was learnt before.

    Ended runs, and messages that were read, go after `keep_runs`; lines, logs, dead letters and what nobody read after
    `keep_ledger`: no sooner than the runs they are of, and 30 days at the least. A dead letter that nobody has seen
    stays, and so does what is not yet delivered, and whatever waits for a person.
    """
    pace = pace or Pace()
    before = Instant(now - micros(keep_runs))
    old = Instant(now - micros(max(keep_ledger, keep_runs, LEDGER_AT_LEAST)))
    run_bound, old_run, old_firing = (_bound("run", before), _bound("run", old), _bound("fir", old))

    def runs(tx: Tx, ids: Sequence[str]) -> None:
        tx.raise_setting("pruned_before", before)  # what went by a shorter time, or another clock, is gone
        tx.prune_runs(ids, before=before, dead_before=old)

    def firings(tx: Tx, ids: Sequence[str]) -> None:
        tx.raise_setting("ledger_pruned_before", old)
        tx.prune_firings(ids)

    left = [
        _some(store, pace, "runs", runs, lambda tx, after, room: tx.prunable_runs(
            after=after, bound=run_bound, before=before, dead_before=old, room=room)),
        _some(store, pace, "payloads", Tx.prune_payloads, lambda tx, after, room: tx.prunable_payloads(
            after=after, bound=old_firing, room=room)),
        _some(store, pace, "firings", firings, lambda tx, after, room: tx.prunable_firings(
            after=after, bound=old_firing, room=room)),
        _some(store, pace, "logs", Tx.prune_transitions, lambda tx, after, room: tx.prunable_logs(
            after=after, bound=old_run, before=old, room=room)),
        _some_messages(store, pace, before, old),
    ]
    store.write(lambda tx: tx.prune_workers(before=before))
    return any(left)


def _bound(kind: str, before: Instant) -> str:
    return f"{kind}_{before // 1000:011x}"


def _some(
    store: Store, pace: Pace, of: str, delete: Callable[[Tx, Sequence[str]], None],
    look: Callable[[Tx, str, int], list[str]],
) -> bool:
    """Delete some of a kind; each look goes on behind the one before, and what stays is not looked at twice. True when
    there may be more."""
    after, more = "", True
    for _ in range(CHUNKS):
        after, more = _a_portion(store, pace, of, delete, look, after)
        if not more:
            break
    return more


def _a_portion(
    store: Store, pace: Pace, of: str, delete: Callable[[Tx, Sequence[str]], None],
    look: Callable[[Tx, str, int], list[str]], after: str,
) -> tuple[str, bool]:
    """Delete what fits into one transaction: `(the last of it, whether there may be more)`."""
    room = pace.room(of)
    ids = store.read(lambda tx: look(tx, after, room))
    if ids:
        pace.write(store, of, lambda tx: delete(tx, ids))
        after = ids[-1]
    return after, len(ids) >= room


def _some_messages(store: Store, pace: Pace, before: Instant, old: Instant) -> bool:
    for _ in range(CHUNKS):
        room = pace.room("messages")
        gone = pace.write(store, "messages", partial(Tx.prune_inbox, read_before=before, before=old, room=room))
        if gone < room:
            return False
    return True
