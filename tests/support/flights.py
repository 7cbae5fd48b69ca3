"""Flights, runners and destinations that do what a test tells them, and waiting for what a worker has in the air."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from nightporter.admission import admit
from nightporter.clock import ManualClock
from nightporter.delivery import Courier
from nightporter.dispatch import Flight
from nightporter.store import Store
from nightporter.store.durable import durable
from nightporter.words import Desk, Ended, Limits, Parcel, Sent, Work
from words import a_definition, a_firing, an_automation

Behaviour = Callable[[Work, Desk], Awaitable[Ended]]


@dataclass
class ToldRunner:
    """Runs `behave`; remembers what it was handed and how many ran at once."""

    behave: Behaviour
    kind: str = "told"
    opaque: bool = False
    launches: bool = False
    works: list[Work] = field(default_factory=list)
    now: int = 0
    most: int = 0
    """Runs at once, at most."""

    async def run(self, work: Work, desk: Desk) -> Ended:
        self.works.append(work)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self.behave(work, desk)
        finally:
            self.now -= 1


class Gate:
    """Runs that wait at a gate until it is opened; a cancel is noted and passed on."""

    def __init__(self, ended: Ended | None = None) -> None:
        self.open = asyncio.Event()
        self.reached = asyncio.Event()
        self.cancelled = 0
        self._ended = ended or Ended.ok("done")

    async def __call__(self, work: Work, desk: Desk) -> Ended:
        self.reached.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self._ended


@dataclass
class ToldDestination:
    """Answers with what `answer` returns; remembers the parcels and how many were under way at once."""

    answer: Callable[[Parcel], Awaitable[Sent]]
    kind: str = "told"
    repeatable: bool = True
    parcels: list[Parcel] = field(default_factory=list)
    now: int = 0
    most: int = 0

    async def send(self, parcel: Parcel) -> Sent:
        self.parcels.append(parcel)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await self.answer(parcel)
        finally:
            self.now -= 1


async def launched(store: Store) -> None:
    """What was claimed or taken by now is in the air: the writer and the loop both take their turns in order."""
    await durable(store, lambda tx: None)


async def landed(store: Store, worker: Flight | Courier) -> None:
    """Nothing that was claimed or taken by now is in the air any more."""
    await launched(store)
    await worker.idle()


# -- flights ---------------------------------------------------------------------------------------------------------

FREE = Limits(per_hour=None, queued=None, concurrent=None, timeout=None)

Fly = Callable[..., Flight]


async def done(work: Work, desk: Desk) -> Ended:
    return Ended.ok("done")


def told(store: Store, clock: ManualClock, **of: Any) -> str:
    """An automation whose runs are told what to do."""
    return an_automation(
        store, a_definition(runner="told", **{"limits": FREE, **of}), now=clock.now()
    )


def ask_to_cancel(store: Store, clock: ManualClock, run: str | None) -> None:
    """As a person does."""
    store.write(lambda tx: tx.ask_to_cancel([(str(run), "cancelled_by", "ada")], now=clock.now()))


def fire_in(tx: Any, automation: str, external: str, text: str, clock: ManualClock) -> None:
    """One arrival, inside a transaction."""
    admit(tx, [a_firing(automation, external, text=text)], now=clock.now())
