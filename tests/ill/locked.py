"""Somebody else holds the store's only lock for a while: a backup tool, a careless SQL shell."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import apsw

from fire.house import House, until
from nightporter.clock import SystemClock

SECOND = 1_000_000


@dataclass(frozen=True)
class Held:
    """When it was held, and what went on outside meanwhile."""

    begun: int
    ended: int
    starts: int
    """Starts that were seen outside while it was held, of runs that were claimed before."""


def hold(house: House, seconds: float) -> Held:
    """Hold the lock for so long. SQLite's lock is not fair: whoever asks last may be first."""
    with contextlib.closing(apsw.Connection(house.store)) as careless:
        careless.set_busy_timeout(60_000)
        careless.execute("BEGIN IMMEDIATE")
        begun = SystemClock().now()
        time.sleep(min(1.0, seconds / 3))  # what was let go before it was taken has begun by now
        before = len(house.lines("starts"))
        time.sleep(seconds - min(1.0, seconds / 3))
        starts = len(house.lines("starts")) - before
        ended = SystemClock().now()
        careless.execute("ROLLBACK")
    return Held(begun, ended, starts)


def wrong(house: House, held: Held) -> Iterator[str]:
    """What is not as it should be of what fell due while it was held, once all that was answered."""
    due = f"scheduled_for > {held.begun + SECOND} AND scheduled_for < {held.ended - SECOND}"
    until(lambda: not house.ledger.count(f"trigger WHERE next_fire_at <= {held.ended}"), "what fell due is answered")
    if not house.ledger.count(f"firing WHERE {due}"):
        yield "nothing fell due meanwhile"
    if early := house.ledger.rows(f"SELECT id FROM firing WHERE {due} AND arrived_at < {held.ended - SECOND // 2}"):
        yield f"lines say that they were written while nobody could write: {early[:3]}"
    run_or_skipped = "verdict IN ('admitted', 'skipped')"
    if missed := house.ledger.rows(f"SELECT id, verdict FROM firing WHERE {due} AND NOT {run_or_skipped}"):
        yield f"slots were neither run nor skipped: {missed[:3]}"
    wrong_mark = house.ledger.rows(
        "SELECT id FROM run WHERE started_at IS NOT NULL AND scheduled_for IS NOT NULL "
        "AND ran_late <> CASE WHEN started_at - scheduled_for > 300000000 THEN 1 ELSE 0 END")
    if wrong_mark:
        yield f"runs are marked late that were not, or not marked: {wrong_mark[:3]}"
    if held.starts:
        yield f"{held.starts} starts were seen while nothing could be written down"
    if dead := house.ledger.rows("SELECT id FROM worker WHERE ended_how = 'dead'"):
        yield f"a worker was declared dead: {dead}"
    # One that could not be written down as started is given back and says why; none ends by it.
    by_it = "state = 'failed' OR (error LIKE '%locked%' AND ended_at IS NOT NULL)"
    if blamed := house.ledger.rows(f"SELECT id, error FROM run WHERE {by_it}"):
        yield f"runs are blamed for it: {blamed[:3]}"
