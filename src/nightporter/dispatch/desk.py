"""The desk as a runner sees it: each call is durable when it returns, and fenced by the run's claim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from nightporter import logs
from nightporter.air import RETRY_WRITE
from nightporter.clock import Clock
from nightporter.dispatch.claimed import started_key
from nightporter.errors import BadInput, MayHaveHappened, StoreError, StoreRefused
from nightporter.store import Store, Tx
from nightporter.store.durable import durable
from nightporter.words import Work

T = TypeVar("T")
log = logs.get(__name__)


class NotWrittenDown(Exception):
    """A child could not be written down for want of a store that is well: it is not let go, nothing is executed."""


class WorkerDesk:
    """Implements `words.Desk` over the store."""

    def __init__(self, store: Store, clock: Clock, *, worker: str, host: str) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._host = host
        self._ill = logs.Seldom(log)

    async def child_started(self, work: Work, group: int, started: int) -> None:
        await self._child(work, group, started, look=False)

    async def look_started(self, work: Work, group: int, started: int) -> None:
        """The same for the child of a look: of the work itself nothing has begun."""
        await self._child(work, group, started, look=True)

    async def _child(self, work: Work, group: int, started: int, *, look: bool) -> None:
        def write(tx: Tx) -> None:
            tx.fence(work.run_id, work.token)
            tx.write_child(work.run_id, work.token, worker=self._worker, host=self._host, group=group,
                           started=started, look=look)

        try:
            await durable(self._store, write)
        except StoreError as error:
            if isinstance(error, StoreRefused):
                raise
            raise NotWrittenDown(str(error)) from error

    async def effect_intended(self, work: Work, name: str, key: str) -> str | None:
        if (name, key) == ("started", started_key(work.token)):
            raise BadInput(f"an effect cannot be called {name!r} with the key {key!r}",
                           why="so the desk marks the start of the attempt itself", next="choose another key")

        def write(tx: Tx) -> str | None:
            attempt, began_at = tx.fence(work.run_id, work.token)
            found = tx.effect(work.run_id, key)
            if found is not None and found[0] == "done":
                return found[1]
            if found is not None and found[3] != work.token:  # not the attempt's number: a held run gets it back
                raise MayHaveHappened(
                    f"effect {name!r} of {work.run_id} may have happened already",
                    why=f"attempt {found[2]} wrote its intent and did not come back to say that it was done",
                    next=f"look whether it happened, then: nightporter review {work.run_id} retry or dismiss",
                )
            tx.intend([(work.run_id, key, name, attempt, work.token)], now=max(began_at, self._clock.now()))
            return None

        return await self.written(write)

    async def effect_done(self, work: Work, key: str, permalink: str = "") -> None:
        def write(tx: Tx) -> None:
            tx.fence(work.run_id, work.token)
            tx.effect_done(work.run_id, key, permalink, now=self._clock.now())

        await self.written(write)

    async def written(self, write: Callable[[Tx], T]) -> T:
        """Durable, however long the store is ill meanwhile: work that is under way waits, it does not fail. Each of
        these writes may be made twice, for the first may stand although its answer was lost."""
        while True:
            try:
                return await durable(self._store, write)
            except StoreRefused:
                raise
            except StoreError as error:
                self._ill.warning("dispatch.waits_for_the_store", error=str(error))
                await asyncio.sleep(RETRY_WRITE)
