"""The desk as a runner sees it: each call is durable when it returns, and fenced by the run's claim."""

from __future__ import annotations

from nightporter.clock import Clock
from nightporter.errors import Conflict
from nightporter.store import Store, Tx
from nightporter.store.durable import durable
from nightporter.words import Work


class WorkerDesk:
    """Implements `words.Desk` over the store."""

    def __init__(self, store: Store, clock: Clock, *, worker: str, host: str) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._host = host

    async def child_started(self, work: Work, group: int, started: int) -> None:
        def write(tx: Tx) -> None:
            tx.fence(work.run_id, work.token)
            tx.write_child(work.run_id, work.token, worker=self._worker, host=self._host, group=group, started=started)

        await durable(self._store, write)

    async def effect_intended(self, work: Work, name: str, key: str) -> str | None:
        def write(tx: Tx) -> str | None:
            attempt = tx.fence(work.run_id, work.token)
            found = tx.effect(work.run_id, key)
            if found is not None and found[0] == "done":
                return found[1]
            if found is not None and found[3] != work.token:  # not the attempt's number: a held run gets it back
                raise Conflict(
                    f"effect {name!r} of {work.run_id} may have happened already",
                    why=f"attempt {found[2]} wrote its intent and did not come back to say that it was done",
                    next=f"look whether it happened, then: nightporter review {work.run_id} retry or dismiss",
                )
            tx.intend([(work.run_id, key, name, attempt, work.token)], now=self._clock.now())
            return None

        return await durable(self._store, write)

    async def effect_done(self, work: Work, key: str, permalink: str = "") -> None:
        def write(tx: Tx) -> None:
            tx.fence(work.run_id, work.token)
            tx.effect_done(work.run_id, key, permalink, now=self._clock.now())

        await durable(self._store, write)
