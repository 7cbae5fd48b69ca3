"""Aside: blocking looks on a thread of their own, for so long and no longer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

T = TypeVar("T")


class OutOfTime(Exception):
    """It did not end in time; its thread is told so, and is waited for no longer."""


async def within(limit: timedelta, look: Callable[[threading.Event], T]) -> T:
    """What `look` returns. The event it is handed is set once nobody waits for it any more. Raises OutOfTime."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[T] = loop.create_future()
    over = threading.Event()

    def settle(end: Callable[[], None]) -> None:
        if not answered.done():
            end()

    def body() -> None:
        try:
            end = partial(answered.set_result, look(over))
        except BaseException as error:
            end = partial(answered.set_exception, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, end)

    # Not the loop's pool: a disk or a server that does not answer must hold up nobody else, nor the end of a program.
    threading.Thread(target=body, name="nightporter-look", daemon=True).start()
    try:
        await asyncio.wait({answered}, timeout=limit.total_seconds())
        if not answered.done():
            raise OutOfTime
        return answered.result()
    finally:
        over.set()
        answered.cancel()
