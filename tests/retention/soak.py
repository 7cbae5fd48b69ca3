"""Retention at size: 1,000 runs an hour, day after day, and the sweep behind them.

A round is one day. The first day is worked by the stages, the others are copies of it; each evening somebody reads the
inbox and the sweep deletes what has passed its time. Published: the longest lock, the size by day, the largest log,
rows deleted a second.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builders import Night

from nightporter import sweep
from nightporter.clock import DAY, Instant, ManualClock, SystemClock
from nightporter.store import Store, open_store
from retention.days import (
    DERIVED,
    MONTH,
    WEEK,
    automations,
    copying,
    month_of,
    months,
    read_the_inbox,
    work_a_day,
)
from soak.order import Order

RUNS = 24_000
"""A day."""
DAYS = 45
LIMIT = 0.050
"""Seconds that nobody may hold the store's lock."""


@dataclass
class Locks:
    """How long each transaction of this process held the store's lock, its commit included."""

    seconds: list[float] = field(default_factory=list)

    @contextmanager
    def watched(self, store: Store) -> Iterator[None]:
        transactions: Any = store.writer._transactions
        begin, commit = transactions.begin, transactions.commit
        began = 0.0

        def begun() -> Any:
            nonlocal began
            tx = begin()
            began = time.perf_counter()
            return tx

        def committed() -> None:
            commit()
            self.seconds.append(time.perf_counter() - began)

        transactions.begin, transactions.commit = begun, committed
        try:
            yield
        finally:
            transactions.begin, transactions.commit = begin, commit


def soak(order: Order) -> list[str]:
    """Let days pass. A round is one day, on each database asked for."""
    found: list[str] = []
    with order.postgres() as databases:
        # Days pass in seconds here, so that the server has to look for what is dead as much more often.
        for setting in ("autovacuum = on", "autovacuum_naptime = '1s'"):
            databases.admin.execute(f"ALTER SYSTEM SET {setting}".encode())
        databases.admin.execute("SELECT pg_reload_conf()")
        for kind in order.stores:
            store = str(order.folder / "ledger.db") if kind == "sqlite" else databases.create("kept", migrated=True)
            figures, wrong = _days(store, order.rounds or DAYS)
            order.publish(figures, kind)
            print(f"{kind}: {figures}", flush=True)
            found += [f"{kind}: {one}" for one in wrong]
    return found


def _days(store_url: str, days: int) -> tuple[dict[str, Any], list[str]]:
    clock = ManualClock(Instant(SystemClock().now() // DAY * DAY - days * DAY))
    wrong: list[str] = []
    locks, learnt = Locks(), sweep.portions(SystemClock())
    sizes: list[float] = []
    logs: list[float] = []
    deleted, spent = 0, 0.0
    with closing(open_store(store_url, now=clock.now())) as store:
        night = Night(store, clock)
        ids = automations(night)
        began = night.now
        ever = Counter(work_a_day(night, ids, RUNS, batches=240))
        with copying(store_url, since=began) as copier:
            for day in range(1, days):
                night.pass_time(days=1)
                copier.put(day, month_of(night))
                ever[month_of(night)] += RUNS
                read_the_inbox(night)
                before, at = _rows(night), time.perf_counter()
                with locks.watched(store):
                    while sweep.prune(store, keep_runs=WEEK, keep_ledger=MONTH, now=night.now, learnt=learnt):
                        store.tend()
                spent += time.perf_counter() - at
                deleted += before - _rows(night)
                logs.append(_log(store_url))
                store.tend()
                sizes.append(_size(night, store_url))
                if months(night) != ever:
                    wrong.append(f"after day {day} the months tell of {months(night)}, and there were {ever}")
        wrong += _unbounded(night, days)
        wrong += [f"{check}: {count} violation(s)" for check, count in night.found().items() if check not in DERIVED]
    if max(locks.seconds) > LIMIT and not store_url.startswith("postgresql:"):
        wrong.append(f"a lock was held for {max(locks.seconds) * 1000:.0f} ms")
    if days > 40 and max(sizes[38:]) > 1.1 * statistics.median(sizes[32:38]):
        wrong.append(f"the store went on growing: {sizes[32:]} MB")
    return {
        "days": days, "runs": days * RUNS, "deleted": deleted, "deleted_per_second": round(deleted / max(spent, 0.001)),
        "transactions": len(locks.seconds), "longest_lock_ms": round(max(locks.seconds) * 1000, 1),
        "lock_p99_ms": round(sorted(locks.seconds)[int(len(locks.seconds) * 0.99)] * 1000, 1),
        "size_mb_by_day": sizes, "largest_log_mb": max(logs),
    }, wrong


def _unbounded(night: Night, days: int) -> Iterator[str]:
    """What there is more of than the days that it is kept for, and one that has just passed."""
    [(dead,)] = night.sql("SELECT count(*) FROM run WHERE dead_at IS NOT NULL")
    for what, bound in (
        ("run WHERE dead_at IS NULL", 8), ("firing", 31), ("(SELECT DISTINCT run_id FROM transition) AS t", 31),
        ("run WHERE dead_at IS NOT NULL", 31),
    ):
        [(count,)] = night.sql(f"SELECT count(*) FROM {what}")
        of = dead / min(days, 31) if "IS NOT NULL" in what else RUNS
        if count > bound * of + 1:
            yield f"{count} of {what}: more than {bound} days of {of:.0f}"


def _rows(night: Night) -> int:
    tables = ("firing", "firing_payload", "run", "run_output", "transition", "effect", "delivery", "delivery_try",
              "inbox")
    return sum(int(night.sql(f"SELECT count(*) FROM {table}")[0][0]) for table in tables)


def _size(night: Night, store: str) -> float:
    """Megabytes of the whole store."""
    if store.startswith("postgresql:"):
        [(size,)] = night.sql("SELECT pg_database_size(current_database())")
        return round(int(size) / 1e6, 1)
    return round(Path(store).stat().st_size / 1e6, 1)


def _log(store: str) -> float:
    """Megabytes of the log beside a file."""
    beside = Path(f"{store}-wal")
    return round(beside.stat().st_size / 1e6, 1) if beside.exists() else 0.0
