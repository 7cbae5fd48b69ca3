"""What a function in process is told of its run, and how it tells the desk what it does to the world."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from datetime import datetime
from typing import Any, TypeVar

from nightporter.clock import moment
from nightporter.words import Desk, Work

T = TypeVar("T")


class Effect:
    """One act on the world, written down before and after; `with` or `async with`.

    Where an earlier attempt did it, `done` is true and `permalink` is what it left: do not repeat it. Leaving the
    block normally writes it as done, with whatever `permalink` was set; leaving it by an exception does not, because
    then nobody knows.
    """

    def __init__(self, run: Run, name: str, key: str) -> None:
        self._run = run
        self.name = name
        self.key = key
        self.done = False
        self.permalink = ""

    def __enter__(self) -> Effect:
        self._run._from_thread(self.__aenter__())
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._run._from_thread(self.__aexit__(kind))

    async def __aenter__(self) -> Effect:
        earlier = await self._run._desk.effect_intended(self._run._work, self.name, self.key)
        self.done = earlier is not None
        self.permalink = earlier or ""
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self.done:
            await self._run._desk.effect_done(self._run._work, self.key, self.permalink)
            self._run.acted = True
            self.done = True


class Run:
    """The run a function is called for."""

    def __init__(self, work: Work, desk: Desk, loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._desk = desk
        self._loop = loop
        self._ended = threading.Event()
        self.acted = False
        """An effect was written as done in this attempt."""
        self.goes_on = False
        """Its thread did not end when it was told to."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self._work.run_id

    @property
    def automation(self) -> str:
        """The automation's name."""
        return self._work.automation

    @property
    def payload(self) -> Any:
        """The parsed JSON of the firing; None where there is none."""
        return self._work.payload

    @property
    def text(self) -> str:
        """The text of the firing; empty where there is none."""
        return self._work.text

    @property
    def look(self) -> str | None:
        """What its look found to do; None where it had none, or none was asked."""
        return self._work.look

    @property
    def scheduled_for(self) -> datetime | None:
        """The slot, in UTC; None for what merely arrived."""
        slot = self._work.scheduled_for
        return None if slot is None else moment(slot)

    @property
    def attempt(self) -> int:
        """1 for the first."""
        return self._work.attempt

    @property
    def cancelled(self) -> bool:
        """The desk wants it to end: cancelled, out of time, or shutting down. A function in a thread should look."""
        return self._ended.is_set()

    def effect(self, name: str, key: str) -> Effect:
        """An act on the world: `name` says what to a person, `key` tells it from every other act of this run."""
        return Effect(self, name, key)

    def end(self) -> None:
        """From now on `cancelled` is true."""
        self._ended.set()

    def _from_thread(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            work.close()
            raise RuntimeError("in an async function write `async with run.effect(...)`; `with` would stop the desk")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
