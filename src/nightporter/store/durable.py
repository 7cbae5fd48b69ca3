"""Writing from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from nightporter.store.tx import Tx
from nightporter.store.upshot import Upshot, Written

if TYPE_CHECKING:
    from nightporter.store import Store

T = TypeVar("T")


async def durable(store: Store, write: Callable[[Tx], T]) -> T:
    """Run a write function from the event loop; returns once it is durable.

    A caller that is cancelled meanwhile leaves the write to finish by itself: what is committed is committed.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(upshot: Upshot[T]) -> None:
        if future.done():
            return
        if isinstance(upshot, Written):
            future.set_result(upshot.result)
        else:
            future.set_exception(upshot.error)

    def tell(upshot: Upshot[T]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, upshot)

    store.writer.post(write, tell)
    return await future
