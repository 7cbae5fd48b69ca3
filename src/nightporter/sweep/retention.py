"""Retention: what has passed its time goes, a little at a time, so that nobody waits for it.

What may go is looked for on a snapshot beside the writer; only the deleting itself is a transaction, of as many rows
as are deleted within a few milliseconds. Counts by month are kept apart, and nothing here touches them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta

from nightporter.clock import SECOND, Clock, Instant, SystemClock, micros
from nightporter.store import Store, Tx
from nightporter.store.portion import Portion

CHUNKS = 20
"""Transactions of one kind in one go."""
AT_ONCE = 500
LEDGER_AT_LEAST = timedelta(days=30)


Portions = defaultdict[str, Portion]
"""How many rows a transaction deletes, by what they are."""


def portions(clock: Clock) -> Portions:
    """Measured by the wall: a lock is held for as long as the disk takes, and few rows may take long."""
    return defaultdict(lambda: Portion(1000, least=5, spent=lambda: clock.monotonic() / SECOND))


def prune(
    store: Store, *, keep_runs: timedelta, keep_ledger: timedelta, now: Instant, learnt: Portions | None = None
) -> bool:
    """Delete what has passed its time, and not much at once, because a sweep has other things to do. True when there
    is more to delete. `learnt`: from those before.

    Ended runs, and messages that were read, go after `keep_runs`; lines, logs, dead letters and what nobody read after
    `keep_ledger`: no sooner than the runs they are of, and 30 days at the least; alerts and incidents that are
    over likewise. A dead letter that nobody has seen stays, and so does what is not yet delivered, and whatever waits
    for a person.
    """
    sizes = portions(SystemClock()) if learnt is None else learnt
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
        _some(store, sizes["runs"], runs, lambda tx, after, room: tx.prunable_runs(
            after=after, bound=run_bound, before=before, dead_before=old, room=room)),
        _some(store, sizes["payloads"], Tx.prune_payloads, lambda tx, after, room: tx.prunable_payloads(
            after=after, bound=old_firing, room=room)),
        _some(store, sizes["firings"], firings, lambda tx, after, room: tx.prunable_firings(
            after=after, bound=old_firing, room=room)),
        _some(store, sizes["logs"], Tx.prune_transitions, lambda tx, after, room: tx.prunable_logs(
            after=after, bound=old_run, before=old, room=room)),
        _some_messages(store, sizes["messages"], before, old),
    ]
    store.write(lambda tx: tx.prune_workers(before=before))

    def alerts(tx: Tx) -> bool:
        deleted = tx.prune_alerts(before=before, room=AT_ONCE)
        if deleted:
            tx.raise_setting("pruned_before", before)
        return deleted == AT_ONCE

    left.append(store.write(alerts))
    left.append(store.write(lambda tx: tx.prune_missed(before=old, room=AT_ONCE)) == AT_ONCE)
    left.append(store.write(lambda tx: tx.prune_incidents(before=old, room=AT_ONCE)) == AT_ONCE)
    return any(left)


def _bound(kind: str, before: Instant) -> str:
    return f"{kind}_{before // 1000:011x}"


def _some(
    store: Store, portion: Portion, delete: Callable[[Tx, Sequence[str]], None],
    look: Callable[[Tx, str, int], list[str]],
) -> bool:
    """Delete some of a kind; each look goes on behind the one before, and what stays is not looked at twice. True when
    there may be more."""
    after, more = "", True
    for _ in range(CHUNKS):
        after, more = _a_portion(store, portion, delete, look, after)
        if not more:
            break
    return more


def _a_portion(
    store: Store, portion: Portion, delete: Callable[[Tx, Sequence[str]], None],
    look: Callable[[Tx, str, int], list[str]], after: str,
) -> tuple[str, bool]:
    """Delete what fits into one transaction: `(the last of it, whether there may be more)`."""
    room = portion.size
    ids = store.read(lambda tx: look(tx, after, room))

    def write(tx: Tx) -> None:
        with portion.taking(len(ids)):
            delete(tx, ids)

    if ids:
        store.write(write)
        after = ids[-1]
    return after, len(ids) >= room


def _some_messages(store: Store, portion: Portion, before: Instant, old: Instant) -> bool:
    for _ in range(CHUNKS):
        room = portion.size

        def write(tx: Tx, room: int = room) -> tuple[int, float]:
            began = portion.spent()
            return tx.prune_inbox(read_before=before, before=old, room=room), portion.spent() - began

        deleted, seconds = store.write(write)
        portion.learn(deleted, seconds)
        if deleted < room:
            return False
    return True
