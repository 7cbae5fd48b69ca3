"""Membership: this process's place among the workers. A name; a locked file, by which its machine knows that it lives;
a lease that it renews, by which everybody else does."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from uuid import uuid4

from nightporter import logs
from nightporter.clock import Clock
from nightporter.config import Config
from nightporter.engine.loops import aside, within
from nightporter.errors import StoreError
from nightporter.store import Store, Tx
from nightporter.store.durable import durable
from nightporter.store.locks import FileLock
from nightporter.sweep import Leases

log = logs.get(__name__)


class Membership:
    """Joins, beats and leaves; joins anew once it was declared dead."""

    def __init__(
        self, config: Config, store: Store, clock: Clock, leases: Leases, *, role: str, host: str,
        note: Callable[[Tx], None],
    ) -> None:
        """`leases`: of the others, which count only while our own is renewed. `note` is written with each beat."""
        self._config = config
        self._store = store
        self._clock = clock
        self._leases = leases
        self._role = role
        self._host = host
        self._note = note
        self._lock: FileLock | None = None
        self._word = ""
        self.worker = ""
        """The name it has joined under; empty before."""

    async def join(self) -> None:
        """Become a worker, under a name that nobody had. One that was before has let go of all it held. It has its name
        once that is durable: as long as nobody knows, its beats are those of one that was declared dead."""
        if self._lock is not None:
            self._lock.let_go(remove=True)
            self._lock = None
        taken = False
        while not taken:  # a worker without its lock would be found dead at once
            worker = f"wrk_{uuid4().hex[:16]}"
            lock = FileLock(self._config.state / "locks" / f"{worker}.lock")
            taken = lock.take()
        try:
            await durable(self._store, lambda tx: tx.join(
                worker, role=self._role, host=self._host, pid=os.getpid(), lock_path=str(lock.path),
                now=self._clock.now(),
            ))
        except BaseException:
            lock.let_go()  # its file stays: were it written all the same, a free lock says that nobody is behind it
            raise
        self.worker, self._lock, self._word = worker, lock, ""
        self._leases.renewed()

    def beat(self) -> bool:
        """Renew the lease. False: somebody declared this worker dead, and nothing it holds is its own. One who cannot
        renew it has no business declaring others dead. Blocks; raises StoreError."""
        alive = self._store.write(self._beat)
        if alive:
            self._leases.renewed()
        return alive

    def _beat(self, tx: Tx) -> bool:
        alive = tx.beat(self.worker)
        if alive:
            self._note(tx)
        return alive

    async def beat_on(self) -> None:
        """Renew the lease for as long as a drain takes, so that nobody takes the runs it waits for. Cancelled at its
        end."""
        alive = True
        while alive:
            with contextlib.suppress(StoreError):  # the next beat may find it well again
                alive = await aside(self.beat)
            await asyncio.sleep(self._config.beat.total_seconds())

    def say_how_the_store_is(self) -> None:
        """Leave word in the locked file: that needs no store that takes it, and no room on a disk."""
        trouble = self._store.writer.trouble
        if trouble != self._word and self._lock is not None:
            self._word = trouble
            self._lock.say(trouble)

    async def leave(self, seconds: float) -> None:
        """Be a worker no more, within `seconds`. An ill store learns of it from the free lock: then its file stays."""
        if self._lock is not None:
            written = await within(seconds, durable(
                self._store, lambda tx: tx.end_worker(self.worker, "stopped", now=self._clock.now())
            ), "leave")
            self._lock.let_go(remove=written)
