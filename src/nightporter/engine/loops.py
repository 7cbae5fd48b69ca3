"""Loops that do not die, and work that keeps nobody waiting: on a thread of its own, or for so long and no longer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from nightporter import logs
from nightporter.errors import StoreError

T = TypeVar("T")
log = logs.get(__name__)


async def every(seconds: float, work: Callable[[], Awaitable[object]], what: str) -> None:
    """Do `work` for ever, `seconds` after it was done the last time. What it raises is logged, and costs that turn."""
    ill = logs.Seldom(log)
    while True:
        await asyncio.sleep(seconds)
        await told(work, what, ill)


async def told(work: Callable[[], Awaitable[object]], what: str, ill: logs.Seldom | None = None) -> None:
    """Do `work`; whatever it raises is logged, `ill` where the same may come again at once."""
    try:
        await work()
    except StoreError as error:
        (ill or log).error("desk.store_failed", of=what, error=str(error))
    except Exception:
        log.exception("desk.failed", of=what)


async def aside(work: Callable[[], T]) -> T:
    """Do blocking work on a thread of its own, and return what it returns.

    Not on the loop's pool: a program waits for those threads before it ends, however long a store is locked.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(end: Callable[[], None]) -> None:
        if not done.done():  # else whoever waited was cancelled
            end()

    def body() -> None:
        try:
            end = partial(done.set_result, work())
        except BaseException as error:
            end = partial(done.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, end)

    threading.Thread(target=body, name="nightporter-aside", daemon=True).start()
    return await done


async def within(seconds: float, work: Awaitable[object], what: str) -> bool:
    """Whether it was done in time; if not, it goes on without us."""
    try:
        async with asyncio.timeout(seconds):
            await work
    except (TimeoutError, StoreError) as error:
        log.error("desk.left_undone", what=what, error=str(error))
        return False
    return True
