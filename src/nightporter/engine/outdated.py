"""A newer program has brought the store forward under this one, which was taken for dead: it can write nothing more."""

from __future__ import annotations

import asyncio
from typing import Any

from nightporter.clock import Instant
from nightporter.errors import StoreNewer
from nightporter.store import Tx
from nightporter.store.migrate import newest, refuse_newer


class Outdated:
    """Whether it is so. Construct it on the event loop that waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._why: asyncio.Future[StoreNewer] = self._loop.create_future()

    def say(self, why: StoreNewer) -> None:
        """It is, and what was under way has been let go."""
        if not self._why.done():
            self._why.set_result(why)

    async def or_told(self, told: asyncio.Event) -> None:
        """Wait until `told`. Raises StoreNewer when it is so before that: then this program is to be stopped."""
        asked = self._loop.create_task(told.wait())
        ended: tuple[asyncio.Future[Any], ...] = (asked, self._why)
        await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if self._why.done():
            raise self._why.result()


def look_around(tx: Tx) -> tuple[Instant | None, Instant | None, str | None, list[Any]]:
    """What may be due: a run, a delivery; who leads, and the workers. Raises StoreNewer, before anything else that an
    older program would make of it."""
    refuse_newer(tx.schema(), newest())
    return tx.next_timed(), tx.next_try(), tx.leader(), tx.workers()
