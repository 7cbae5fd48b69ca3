"""The sweeper: what the engine repairs at boot and now and then. All of it blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nightporter import logs
from nightporter.clock import Clock
from nightporter.config import Config
from nightporter.delivery import Courier, Destinations
from nightporter.dispatch import Flight, Runners
from nightporter.errors import StoreError, StoreRefused
from nightporter.ledger.status import Stopped, stop_of
from nightporter.operations import take_up_again, upkeep
from nightporter.store import Store, Tx
from nightporter.store.sql_port import Row
from nightporter.sweep import Leases, Recovered, name_what_nobody_runs, portions, prune, take_from_dead, tidy
from nightporter.sweep.flags import flag
from nightporter.words import derived_id

log = logs.get(__name__)


class Seen(NamedTuple):
    """What a look found that is to be heeded."""

    stop: Stopped | None = None
    pauses_over: frozenset[str] = frozenset()
    """Automations that are still paused beyond the end of their pause."""


class Sweeper:
    """Knows who is dead, and mends one thing after the other."""

    def __init__(
        self, config: Config, store: Store, clock: Clock, runners: Runners, destinations: Destinations, leases: Leases
    ) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self._runners = runners
        self._destinations = destinations
        self._leases = leases
        self._learnt = portions(clock)
        self._seen = Seen()

    def somebody_died(self, me: str, workers: Sequence[Row]) -> bool:
        """Whether one of `Tx.workers()` beside `me` is dead. To be asked every second or so."""
        return any(worker != me for worker in self._leases.dead(workers))

    def look(self, tx: Tx) -> Seen:
        """What a person did or left to the desk that is to be heeded within a second. Only reads."""
        return Seen(stop_of(tx), frozenset(tx.pauses_due(self._clock.now())))

    def heed(self, *, leading: bool) -> None:
        """End pauses whose end has come, and say so where somebody stopped the whole desk or lifted that: whoever
        watches wonders why nothing happens. To be called every second or so; blocks."""
        before, self._seen = self._seen, self._store.read(self.look)
        seen = self._seen
        if seen.stop is not None and seen.stop != before.stop:
            log.warning("desk.work_stopped", by=seen.stop.by, reason=seen.stop.reason, next="nightporter stop --lift")
        elif seen.stop is None and before.stop is not None:
            log.warning("desk.work_goes_on", by=before.stop.by)
        # One that could not be ended is left to the sweep: it would be tried, and told of, each second.
        if leading and seen.pauses_over - before.pauses_over:
            self.upkeep()

    def recover(self, me: str) -> Recovered:
        """Take back what dead workers held. Those of this machine are known by their free locks: nobody waits for a
        lease."""
        return take_from_dead(
            self._store, self._leases, self._runners, self._destinations, me=me, now=self._clock.now
        )

    def upkeep(self) -> None:
        """What comes to an end by itself, and what was put aside and can be read again."""
        upkeep(self._store, now=self._clock.now)
        take_up_again(self._store, now=self._clock.now, apart=self._config.sweep)

    def prune(self) -> bool:
        """Delete some of what has passed its time. True when there is more."""
        return prune(self._store, keep_runs=self._config.keep_runs, keep_ledger=self._config.keep_ledger,
                     now=self._clock.now(), learnt=self._learnt)

    def sweep(self, me: str, flight: Flight, courier: Courier) -> None:
        """Mend everything once. What goes wrong in one part is logged, and the others have their turn. Raises
        StoreError where the store itself is ill."""
        steps: list[Callable[[], object]] = [
            lambda: self._take_back(flight, courier), lambda: self.recover(me), self.upkeep,
            lambda: tidy(self._store, self._config.state), lambda: name_what_nobody_runs(self._store, self._runners),
            lambda: flag(self._store, self._clock.now(), host=self._leases.host),
            self._store.tend,
        ]
        for step in steps:
            try:
                step()
            except Exception as error:
                if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                    raise
                log.exception("desk.sweep_failed")

    def _take_back(self, flight: Flight, courier: Courier) -> None:
        if count := self._store.write(flight.take_back) + self._store.write(courier.take_back):
            log.warning("sweep.taken_back", count=count)

    def restart_notice(self, tx: Tx, me: str, recovered: Recovered, not_run: int) -> None:
        """Say once what an unclean stop released, lost and missed."""
        now = self._clock.now()
        parts = [
            f"{recovered.requeued} run(s) were queued again", f"{recovered.review} wait for your review",
            f"{recovered.failed} failed", f"{recovered.deliveries} deliveries are tried again",
            f"{not_run} slot(s) passed unrun",
        ]
        tx.write_inbox(
            [(derived_id("inb", now, me, "restart"), "default", "", None, None, "restart",
              "The desk started again after it had stopped without warning", "; ".join(parts) + ".")],
            now=now,
        )
