"""The door for firings from inside the program: those that arrive together are admitted together."""

from __future__ import annotations

import asyncio

from nightporter.admission import admit
from nightporter.clock import Clock
from nightporter.store import Store
from nightporter.store.gather import Answered, Gather
from nightporter.store.upshot import Written
from nightporter.words import Answer, Firing

Waiting = asyncio.Future[Answer]


class Door:
    """Admits firings for callers on one event loop. Construct it on that loop."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._loop = asyncio.get_running_loop()
        self._gather: Gather[Waiting, Firing, Answer] = Gather(
            store.writer, lambda tx, firings: admit(tx, firings, now=clock.now()), self._answered
        )

    async def fire(self, firing: Firing) -> Answer:
        """What became of the firing; durable when it returns. Raises what admission raises, or StoreError."""
        waiting: Waiting = self._loop.create_future()
        self._gather.put(waiting, firing)
        return await waiting

    def _answered(self, answered: Answered[Waiting, Answer]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_settle, answered)


def _settle(answered: Answered[Waiting, Answer]) -> None:
    for waiting, upshot in answered:
        if waiting.done():  # its caller was cancelled; what was admitted stays admitted
            continue
        if isinstance(upshot, Written):
            waiting.set_result(upshot.result)
        else:
            waiting.set_exception(upshot.error)
