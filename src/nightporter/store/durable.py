"""Writing from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from nightporter.store.tx import Tx

if TYPE_CHECKING:
    from nightporter.store import Store

T = TypeVar("T")


async def durable(store: Store, write: Callable[[Tx], T]) -> T:
    """Run a write function from the event loop; returns once it is durable.

    A caller that is cancelled meanwhile leaves the write to finish by itself: what is committed is committed.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # no error: it is a T

    store.writer.post(write, lambda result, error: _tell(loop, settle, result, error))
    return await future


def _tell(
    loop: asyncio.AbstractEventLoop, settle: Callable[[T | None, BaseException | None], None], result: T | None,
    error: BaseException | None,
) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(settle, result, error)
