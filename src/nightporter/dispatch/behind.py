"""Who waits behind another run, and may go now."""

from __future__ import annotations

from collections.abc import Iterable

from nightporter.clock import Instant
from nightporter.states import ASLEEP
from nightporter.store import Tx


def release_behind(tx: Tx, automation_ids: Iterable[str], *, now: Instant) -> None:
    """Let go the runs that waited for another run of these automations, as far as their limits allow. One that a pause
    holds takes nobody's place: the claim that meets it sets it aside."""
    ids = set(automation_ids)
    waiting = tx.behind(ids)
    if not waiting:
        return
    counts = tx.going_counts({row[0] for row in waiting})
    free: list[str] = []
    for automation, run, blocked, concurrent, source, state in waiting:
        running, in_the_way = counts[automation]
        if blocked == "overlap" and in_the_way == 0:
            free.append(run)
            counts[automation] = (running, 1)
        elif blocked == "concurrency" and state in ASLEEP and source != "manual":
            free.append(run)
        elif blocked == "concurrency" and (concurrent is None or running < concurrent):
            free.append(run)
            counts[automation] = (running + 1, in_the_way)
    tx.unblock(free, now=now)
