"""The courier: the deliveries that this worker has in the air, on the event loop of the program that hosts it.

What is taken rides in the commit of whoever ended the run; it is sent after that commit, and how that went is gathered
with others into the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from dataclasses import replace

from nightporter import logs
from nightporter.clock import Clock
from nightporter.delivery.tries import Destinations, Taken, Tried, record, take
from nightporter.errors import StoreError, StoreRefused
from nightporter.store import Store, Tx
from nightporter.store.doubts import Doubts
from nightporter.store.durable import durable
from nightporter.store.gather import Answered, Gather
from nightporter.words import Reason, Receipt, Sent

log = logs.get(__name__)

TRY_SECONDS = 15.0
SLOTS = 32
RETRY_WRITE = 1.0
OURS = 1000
"""More than any desk has in the air at once."""

_CUT_SHORT = Sent(Receipt.TRANSIENT, error="the desk was shut down while sending", reason=Reason.SHUTDOWN)
_NOT_BEGUN = Sent(Receipt.TRANSIENT, error="the desk was shut down before it was sent")


def _without_what_it_says(sent: Sent) -> Sent:
    return replace(sent, evidence=ascii(sent.evidence)[1:-1], error=ascii(sent.error)[1:-1])


class Courier:
    """Takes, sends and records. Construct it on the event loop."""

    def __init__(
        self, store: Store, clock: Clock, destinations: Destinations, *, worker: str, slots: int = SLOTS
    ) -> None:
        self._store = store
        self._clock = clock
        self._destinations = destinations
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._free = slots
        self._lanes: Counter[str] = Counter()
        self._taking_in: Tx | None = None
        self._taken_in_it: Counter[str] = Counter()
        self._taking = True
        self._air = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: dict[asyncio.Task[None], Taken] = {}
        """Tries that have not landed yet."""
        self._records: Gather[Tried, Tried, bool] = Gather(store.writer, self._record, self._recorded_on_writer)
        self._doubts: Doubts[Taken] = Doubts(clock, lambda t: (t.parcel.delivery_id, t.token))
        store.writer.ride("delivery", self._take, self._taken_on_writer, self._doubted)

    @property
    def in_the_air(self) -> int:
        """Deliveries taken whose try is not yet written."""
        return self._air

    async def idle(self) -> None:
        """Wait until nothing is in the air."""
        await self._idle.wait()

    def look(self) -> None:
        """Take what is due; called by the worker's loop and by kicks."""
        if self._taking and self._free > 0:
            self._store.writer.post(self._take, self._looked, self._doubted)

    async def drain(self, seconds: float) -> None:
        """Take no more; let what is in the air end, cutting it short after `seconds`."""
        self._taking = False
        self._store.writer.unride("delivery")
        with contextlib.suppress(StoreError):  # what was being taken is in the air once a write behind it is done
            await durable(self._store, lambda _: None)
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            for task in list(self._tasks):
                if not task.cancelling():
                    task.cancel()
            await self._idle.wait()

    def _doubted(self, taken: list[Taken]) -> None:
        if taken:
            self._doubts.note(taken)
            self._loop.call_soon_threadsafe(self._loop.call_later, RETRY_WRITE, self.look)

    def _standing(self, tx: Tx) -> list[Taken]:
        """Those whose taking was not answered, and that are ours."""
        if not self._taking or not self._doubts.claims:
            return []
        return self._doubts.standing({(row[0], row[1]) for row in tx.sending_of(self._worker, OURS)})

    def _take(self, tx: Tx) -> list[Taken]:
        standing: list[Taken] = []
        if tx is not self._taking_in:  # a look and a rider may share a commit, and only the commit takes the slots
            standing = self._standing(tx)
            self._taking_in, self._taken_in_it = tx, Counter(t.lane for t in standing)
        with self._lock:
            lanes, room = self._lanes + self._taken_in_it, self._free - self._taken_in_it.total()
        room = room if self._taking else 0
        taken = take(tx, worker=self._worker, room=room, lanes=lanes, now=self._clock.now())
        self._taken_in_it.update(t.lane for t in taken)
        return standing + taken

    def _looked(self, taken: list[Taken] | None, error: BaseException | None) -> None:
        if error is not None:
            log.warning("delivery.take_failed", error=str(error))
        elif taken:
            self._taken_on_writer(taken)

    def _taken_on_writer(self, taken: list[Taken]) -> None:
        if taken:
            self._doubts.settle(taken)
            with self._lock:
                self._free -= len(taken)
                self._lanes.update(t.lane for t in taken)
            self._loop.call_soon_threadsafe(self._launch, taken)

    def _launch(self, taken: list[Taken]) -> None:
        self._air += len(taken)
        self._idle.clear()
        for one in taken:
            task = self._loop.create_task(self._carry(one), name=one.parcel.delivery_id)
            self._tasks[task] = one
            task.add_done_callback(self._landed)

    async def _carry(self, taken: Taken) -> None:
        destination = self._destinations.get(taken.kind)
        if taken.error or destination is None:
            error = taken.error or f"no destination is called {taken.kind!r} here"
            sent = Sent(Receipt.PERMANENT, error=error, reason=Reason.CONFIGURATION)
        else:
            deadline = asyncio.timeout(TRY_SECONDS)
            try:
                async with deadline:
                    sent = await destination.send(taken.parcel)
            except asyncio.CancelledError:
                sent = _CUT_SHORT
            except Exception as error:
                if isinstance(error, TimeoutError) and deadline.expired():
                    sent = Sent(Receipt.TRANSIENT, error=f"no answer within {TRY_SECONDS:g} s")
                else:  # a throw nobody expected says nothing about the receiver: try again
                    log.exception("delivery.destination_raised", delivery=taken.parcel.delivery_id)
                    sent = Sent(Receipt.TRANSIENT, error=f"{type(error).__name__}: {error}")
        task = asyncio.current_task()
        assert task is not None
        del self._tasks[task]
        self._land(taken, sent)

    def _landed(self, task: asyncio.Task[None]) -> None:
        """A task has ended; one that was cancelled before its first step has not landed by itself."""
        taken = self._tasks.pop(task, None)
        if taken is not None:
            self._land(taken, _NOT_BEGUN)

    def _land(self, taken: Taken, sent: Sent) -> None:
        with self._lock:
            self._free += 1
            self._lanes[taken.lane] -= 1
            if not self._lanes[taken.lane]:
                del self._lanes[taken.lane]
        tried = Tried(taken, sent)
        self._records.put(tried, tried)

    def _record(self, tx: Tx, tried: list[Tried]) -> list[bool]:
        tx.kick("delivery")  # a lane has room again
        return record(tx, tried, self._destinations, now=self._clock.now())

    def _recorded_on_writer(self, answered: Answered[Tried, bool]) -> None:
        for tried, current, error in answered:
            if error is None and not current:
                log.warning("delivery.lost_claim", delivery=tried.taken.parcel.delivery_id, token=tried.taken.token)
            elif error is None:
                log.info("delivery.tried", automation=tried.taken.parcel.automation, run=tried.taken.parcel.run_id,
                         to=tried.taken.lane, result=str(tried.sent.receipt), evidence=tried.sent.evidence,
                         error=tried.sent.error)
        failed = [(tried, error) for tried, _, error in answered if error is not None]
        self._loop.call_soon_threadsafe(self._recorded, len(answered) - len(failed), failed)

    def _recorded(self, written: int, failed: list[tuple[Tried, BaseException]]) -> None:
        self._air -= written
        for tried, error in failed:
            log.error("delivery.try_not_written", delivery=tried.taken.parcel.delivery_id, error=str(error))
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                self._loop.call_later(RETRY_WRITE, self._records.put, tried, tried)
            elif not tried.bare:
                # Something in the answer itself cannot be written: how the try ended is written all the same.
                bare = Tried(tried.taken, _without_what_it_says(tried.sent), bare=True)
                self._records.put(bare, bare)
            else:
                self._air -= 1
        if not self._air:
            self._idle.set()
