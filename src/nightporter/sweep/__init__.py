"""sweep: what repairs the ledger. One function for each thing it mends; what passes its time is in `retention`.

    Promise       Nothing stays claimed by a worker that is dead, and nothing of a living one is taken away. What has
                  passed its time is pruned in small pieces, so that no lock is held for long.
    Takes         Worker leases; runs and deliveries of dead workers; old rows.
    Leaves        Queued runs, runs for review, pending deliveries, fewer rows.
    Picked up by  dispatch, delivery; a person, for reviews
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from nightporter import logs
from nightporter.clock import SECOND, Clock, Instant, micros
from nightporter.delivery import Destinations
from nightporter.delivery import recover as recover_deliveries
from nightporter.dispatch import Definitions, Runners
from nightporter.dispatch import recover as recover_runs
from nightporter.outside.groups import end_group
from nightporter.states import ENDED
from nightporter.store import Store
from nightporter.store.locks import is_free
from nightporter.sweep.retention import portions, prune

log = logs.get(__name__)

STOOD_STILL = 5 * SECOND
"""An observer that could not renew its own lease for this long, or for half a lease if that is longer, stood still."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was taken from dead workers."""

    workers: int = 0
    requeued: int = 0
    review: int = 0
    failed: int = 0
    deliveries: int = 0

    def __add__(self, other: Recovered) -> Recovered:
        return Recovered(
            self.workers + other.workers, self.requeued + other.requeued, self.review + other.review,
            self.failed + other.failed, self.deliveries + other.deliveries,
        )


class Leases:
    """Who is dead. A pid proves nothing: a free lock does at once, a lease that stands still does after a while.

    The while is counted on the observer's own monotonic clock, from when it first saw the lease standing, so that no
    wall clock kills anybody. It is counted only while the observer renews its own lease: what keeps that from being
    written (a paused machine, a lock held for long, a store that is away) may keep everybody's.
    """

    def __init__(self, clock: Clock, *, host: str, lease: timedelta) -> None:
        self._clock = clock
        self.host = host
        self._lease = micros(lease)
        self._seen: dict[str, tuple[int, int]] = {}
        self._renewed_at = clock.monotonic()
        self._alone = threading.Lock()  # the poll and the sweep both ask

    def renewed(self) -> None:
        """The observer's own lease is renewed: to be said each time."""
        with self._alone:
            now = self._clock.monotonic()
            if self._too_long(now):
                log.warning("sweep.stood_still", seconds=(now - self._renewed_at) // SECOND)
                self._seen = {}
            self._renewed_at = now

    def dead(self, workers: Sequence[tuple[object, ...]]) -> list[str]:
        """The dead among `Tx.workers()`. Looked at every second or so, nobody is missed for longer than that."""
        with self._alone:
            now = self._clock.monotonic()
            before = {} if self._too_long(now) else self._seen
            self._seen = {}
            found = []
            for worker, _, host, _, beat, lock_path, _ in workers:
                worker, beat = str(worker), int(str(beat))
                last, since = before.get(worker, (-1, now))
                self._seen[worker] = (beat, since if last == beat else now)
                if (host == self.host and lock_path and is_free(Path(str(lock_path)))) or (
                    now - self._seen[worker][1] >= self._lease
                ):
                    found.append(worker)
            return found

    def _too_long(self, now: int) -> bool:
        return now - self._renewed_at > max(self._lease // 2, STOOD_STILL)


def take_from_dead(
    store: Store, leases: Leases, runners: Runners, destinations: Destinations, *, me: str, now: Callable[[], Instant]
) -> Recovered:
    """Find dead workers, end their children, and take their runs and deliveries back. `me` is never among them."""
    workers, owing = store.read(lambda tx: (tx.workers(), tx.workers_owing()))
    total = Recovered()
    for worker in dict.fromkeys([*leases.dead(workers), *owing]):
        if worker != me:
            total += bury(store, worker, runners, destinations, host=leases.host, now=now)
    return total


def bury(
    store: Store, worker: str, runners: Runners, destinations: Destinations, *, host: str, now: Callable[[], Instant]
) -> Recovered:
    """Declare one worker dead and take back what it held. Its children end before its runs are queued again."""
    if store.write(lambda tx: tx.end_worker(worker, "dead", now=now())):
        log.warning("sweep.worker_dead", worker=worker)
    end_children(store, worker, host=host)
    counts: Counter[str] = Counter()
    while True:
        one = store.write(lambda tx: recover_runs(tx, worker, runners, Definitions(), now=now()))
        counts.update(one)
        if not any(one.values()):
            break
    deliveries = 0
    while n := store.write(lambda tx: recover_deliveries(tx, worker, destinations, now=now())):
        deliveries += n
    return Recovered(1, counts["requeued"], counts["review"], counts["failed"], deliveries)


def end_children(store: Store, worker: str, *, host: str) -> int:
    """End the process groups that a dead worker left on this machine; how many were still there."""
    children = store.read(lambda tx: tx.children_of(worker))
    ended = 0
    for run, _, where, group, birth in children:
        if where == host and end_group(group, birth):
            ended += 1
            log.warning("sweep.child_ended", run=run, process_group=group)
    return ended


def tidy(store: Store, state: Path) -> None:
    """Delete what desks that died left in the folder `state`: the scratch folders of runs that have ended or are not
    known any more, and the locks of workers that are ended. A run that may still go on, or that a person may want to
    look into, keeps its folder; a lock stays until all that its worker held is taken back, for it proves the death.
    """
    folders = {path: path.name.partition("-")[0] for path in (state / "scratch").glob("run_*")}
    locks = {path: path.stem for path in (state / "locks").glob("wrk_*.lock")}
    states, alive, owing = store.read(lambda tx: (
        tx.run_states(set(folders.values())), {row[0] for row in tx.workers()}, tx.workers_owing()
    ))
    ended = set(locks.values()) - alive - set(owing)
    for path, run in folders.items():
        if run not in states or states[run][0] in ENDED:
            shutil.rmtree(path, ignore_errors=True)
    for path, worker in locks.items():
        if worker in ended and is_free(path):
            path.unlink(missing_ok=True)
    store.write(lambda tx: tx.forget_quarantined_runs())


def name_what_nobody_runs(store: Store, runners: Runners) -> None:
    """Log the kinds of runs that wait for a runner that this process does not have; another one may."""
    for kind, runs, _ in store.read(lambda tx: tx.queued_by_kind()):
        if kind not in runners:
            log.warning("sweep.no_runner_here", kind=kind, runs=runs)


__all__ = [
    "Leases", "Recovered", "bury", "end_children", "name_what_nobody_runs", "portions", "prune",
    "take_from_dead", "tidy",
]
