"""air: what a worker has in the air: claimed in the store, and not yet ended there.

The claim rides in the commit of whoever left the work; the work begins after that commit; how it ended is gathered
with other ends into the next. Nothing here holds a fact that is not in the store. Dispatch's flight and delivery's
courier are made of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Coroutine, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from nightporter import logs
from nightporter.errors import StoreError, StoreRefused
from nightporter.store import Store, Tx
from nightporter.store.durable import durable
from nightporter.store.gather import Answered, Gather
from nightporter.store.tx import Taker
from nightporter.store.upshot import Unwritten, Upshot, Written

log = logs.get(__name__)

RETRY_WRITE = 1.0
"""Seconds between tries to write an end while the store is ill; the worker's lease is the end of it."""

Key = tuple[str, int]
"""A row and the token it is claimed under."""


class Form(IntEnum):
    """How much of an end is written. What the store refuses is tried again with less, so that every end is written."""

    WHOLE = 0
    BARE = 1
    """Without what it left."""
    ALONE = 2
    """That it ended, and nothing that follows from it."""


class Claim(Protocol):
    """Something claimed."""

    @property
    def key(self) -> Key: ...


class End(Protocol):
    """How something claimed ended."""

    @property
    def key(self) -> Key: ...


C = TypeVar("C", bound=Claim)
E = TypeVar("E", bound=End)
R = TypeVar("R")


class Air(ABC, Generic[C, E, R]):
    """Claims, lets work begin, and writes how it ended. Construct it on the event loop of the program that hosts it;
    `drain` it before the store is closed. A subclass sets what it needs before it calls this constructor: claims may
    come at once."""

    stage: ClassVar[str]
    topic: ClassVar[str]
    """Kicked by whoever leaves work for it."""

    def __init__(self, store: Store, *, slots: int) -> None:
        self._store = store
        self._slots = slots
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._flying: dict[Key, C] = {}
        """Claimed and not landed: what takes slots."""
        self._unwritten: set[Key] = set()
        """Claimed and not written down as ended; those that fly are among them."""
        self._unwritable: set[Key] = set()
        """Ended, and not even that could be written."""
        self._tasks: dict[Key, asyncio.Task[E]] = {}
        self._claiming_in: Tx | None = None
        self._claimed_in_it: list[C] = []
        self._claiming = True
        self.failed_to_look = False
        """The last look was refused or found the store ill: what waits, waits for the next."""
        self._full = False
        """The last claim may have left work for want of slots."""
        self._left = False
        self._ill = logs.Seldom(log)
        self._idle = asyncio.Event()
        self._idle.set()
        self._ends: Gather[E, E, R] = Gather(store.writer, self._write, self._written_on_writer, patient=True)
        store.writer.ride(self.topic, self._ride, self._claimed_on_writer, self._doubted, self._taker())

    # -- what a stage adds ----------------------------------------------------------------------------------------

    @abstractmethod
    def _claim(self, tx: Tx, room: int, claimed_before: Sequence[C]) -> list[C]:
        """Claim what is due, `room` at most; `claimed_before`: by this transaction, which is not committed."""

    @abstractmethod
    def _begin(self, one: C) -> E | Coroutine[Any, Any, E]:
        """Do the work: its end at once, or a coroutine that gives it, also when it is cancelled."""

    @abstractmethod
    def _fell(self, one: C, error: BaseException | None) -> E:
        """The end of work whose coroutine gave none: it was cancelled before its first step (None), or raised."""

    @abstractmethod
    def _write(self, tx: Tx, ends: list[E]) -> list[R]:
        """Write ends; a result each, false where the claim was no longer current."""

    @abstractmethod
    def _tell(self, written: Sequence[tuple[E, R]]) -> None:
        """Log what became of them. On the writer's thread."""

    @abstractmethod
    def _less(self, end: E, error: BaseException) -> E | None:
        """The next `Form` of an end that was refused; None: there is none."""

    @abstractmethod
    def _give_back(self, tx: Tx, ours: Collection[Key]) -> int:
        """Let go of rows under this worker's claim that are not `ours`; how many."""

    def _taker(self) -> Taker | None:
        """Who is offered rows of the topic before they are left; it adds what it takes to `Tx.taken`."""
        return None

    # -- claiming -----------------------------------------------------------------------------------------------

    @property
    def in_the_air(self) -> int:
        """How much is claimed whose end is not yet written."""
        return len(self._unwritten)

    async def idle(self) -> None:
        """Wait until nothing is in the air."""
        await self._idle.wait()

    def look(self) -> None:
        """Claim what is due, if there is room; called by the worker's loop and by kicks."""
        if self._claiming and len(self._flying) < self._slots:
            self._store.writer.post(self._claim_what_is_due, self._looked, self._doubted)

    def take_back(self, tx: Tx) -> int:
        """Let go of what stands under this worker's claim and never began: the answer to its claim was lost. How many.

        A write function: it runs on the writer's thread, as claims do.
        """
        with self._lock:
            ours = self._unwritten | self._unwritable
        if tx is self._claiming_in:
            ours.update(one.key for one in self._claimed_in_it)
        ours.update(one.key for one in self._taken_in(tx))
        return self._give_back(tx, ours)

    def _room(self, tx: Tx) -> int:
        """How much more may be claimed in this transaction."""
        if tx is not self._claiming_in:  # a look and a rider may share a commit, and only the commit takes the slots
            self._claiming_in, self._claimed_in_it = tx, []
        in_it = len(self._claimed_in_it) + len(self._taken_in(tx))
        return self._slots - len(self._flying) - in_it if self._claiming else 0

    def _taken_in(self, tx: Tx) -> list[C]:
        """By our own taker."""
        return cast("list[C]", tx.taken.get(self.topic, []))

    def _ride(self, tx: Tx) -> list[C]:
        return [*self._taken_in(tx), *self._claim_what_is_due(tx)]

    def _claim_what_is_due(self, tx: Tx) -> list[C]:
        room = self._room(tx)
        claimed = self._claim(tx, room, self._claimed_in_it) if room > 0 else []
        self._claimed_in_it += claimed
        self._full = len(claimed) >= room
        return claimed

    def _looked(self, upshot: Upshot[list[C]]) -> None:
        self.failed_to_look = isinstance(upshot, Unwritten)
        if isinstance(upshot, Unwritten):
            self._ill.warning(f"{self.stage}.claim_failed", error=str(upshot.error))
        else:
            self._claimed_on_writer(upshot.result)

    def _doubted(self, claimed: list[C]) -> None:
        """A commit was not answered: the claim may stand, and nobody here was told of it."""
        if claimed:
            self._loop.call_soon_threadsafe(self._loop.call_later, RETRY_WRITE, self._ask_back)

    def _ask_back(self) -> None:
        self._store.writer.post(self.take_back, self._asked_back)

    def _asked_back(self, upshot: Upshot[int]) -> None:
        if isinstance(upshot, Unwritten):  # the sweep asks again
            self._ill.warning(f"{self.stage}.not_asked_back", error=str(upshot.error))
        elif upshot.result:
            log.warning(f"{self.stage}.taken_back", count=upshot.result)

    def _claimed_on_writer(self, claimed: list[C]) -> None:
        if claimed:
            with self._lock:
                for one in claimed:
                    self._flying[one.key] = one
                self._unwritten.update(one.key for one in claimed)
            self._loop.call_soon_threadsafe(self._launch, claimed)

    # -- the work -------------------------------------------------------------------------------------------------

    def _launch(self, claimed: list[C]) -> None:
        self._idle.clear()
        if self._left:  # whoever finds this worker dead takes it back; nothing of it began
            return
        for one in claimed:
            begun = self._begin(one)
            if isinstance(begun, Coroutine):
                task: asyncio.Task[E] = self._loop.create_task(begun, name=one.key[0])
                self._tasks[one.key] = task
                task.add_done_callback(partial(self._landed, one))
            else:
                self._land(one, begun)

    def _landed(self, one: C, task: asyncio.Task[E]) -> None:
        self._tasks.pop(one.key, None)
        error = None if task.cancelled() else task.exception()
        self._land(one, self._fell(one, error) if task.cancelled() or error else task.result())

    def _land(self, one: C, end: E) -> None:
        with self._lock:
            self._flying.pop(one.key, None)
        self._ends.put(end, end)

    # -- ends -----------------------------------------------------------------------------------------------------

    def _written_on_writer(self, answered: Answered[E, R]) -> None:
        written = [(end, upshot.result) for end, upshot in answered if isinstance(upshot, Written)]
        failed = [(end, upshot.error) for end, upshot in answered if isinstance(upshot, Unwritten)]
        self._tell(written)
        with self._lock:
            self._unwritten.difference_update(end.key for end, _ in written)
        self._loop.call_soon_threadsafe(self._written, failed)

    def _written(self, failed: list[tuple[E, BaseException]]) -> None:
        for end, error in failed:
            ill = isinstance(error, StoreError) and not isinstance(error, StoreRefused)
            say = self._ill if ill else log
            say.error(f"{self.stage}.end_not_written", of=end.key[0], token=end.key[1], error=str(error))
            if self._left:
                continue
            less = None if ill else self._less(end, error)
            if ill:
                # What is known is kept here, and written when the store is well again.
                self._loop.call_later(RETRY_WRITE, self._ends.put, end, end)
            elif less is not None:
                self._ends.put(less, less)
            else:
                with self._lock:
                    self._unwritten.discard(end.key)
                    self._unwritable.add(end.key)
        if not self._unwritten:
            self._idle.set()

    # -- shutting down --------------------------------------------------------------------------------------------

    async def drain(self, seconds: float, *, grace: float | None = None) -> int:
        """Claim no more; let what is in the air end, and cut it short after `seconds`. How much was left.

        What could not be ended or written within `grace` seconds more is left to whoever finds this worker dead, and
        begins or is written no more. None waits for as long as it takes, and leaves nothing.
        """
        if self._left:
            return len(self._unwritten)
        self._claiming = False
        self._store.writer.unride(self.topic)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._no_claim_under_way()
                await self._idle.wait()
                return 0
        self._cut_short()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._no_claim_under_way()
                self._cut_short()
                await self._idle.wait()
                return 0
        self._left = True
        if left := len(self._unwritten):
            log.error(f"{self.stage}.left_behind", count=left, rows=sorted(row for row, _ in self._unwritten)[:10])
        return left

    def _cut_short(self) -> None:
        for task in list(self._tasks.values()):
            if not task.cancelling():  # whoever is tidying up already is not disturbed in it
                task.cancel()

    async def _no_claim_under_way(self) -> None:
        # Once a write behind it is done, what a claim took is in the air.
        with contextlib.suppress(StoreError):  # a store that takes no write gave no claim
            await durable(self._store, lambda _: None)
