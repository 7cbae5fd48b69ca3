"""A bare queue with callers: what a desk's callers would wait for if there were no desk, only durable rows.

Each caller puts a job and waits until it is durable; one thread writes all that wait in one turn and claims it; the
loop ends what was claimed, and that is written by the next turn. No ledger, no transitions, no deliveries, no gates.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Iterator

from benchmarks.bare import Bare, Claim, names
from benchmarks.figures import Pace


def jobs_of_callers(bare: Bare, total: int, callers: int) -> Pace:
    """Jobs, each put by one of `callers`, durable when it goes on, claimed and done."""
    return asyncio.run(_Queue(bare, callers).measure(total))


class _Queue:
    def __init__(self, bare: Bare, callers: int) -> None:
        self._bare = bare
        self._callers = callers
        self._new: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._done: deque[Claim] = deque()
        self._bell = threading.Condition()
        self._closing = False
        self._ended = 0

    async def measure(self, total: int) -> Pace:
        self._loop = asyncio.get_running_loop()
        self._whole = self._loop.create_future()
        self._total = total
        writer = threading.Thread(target=self._write)
        left = iter(names(total))
        start, used = time.perf_counter(), time.process_time()
        writer.start()
        try:
            await asyncio.gather(*(self._caller(left) for _ in range(self._callers)), self._whole)
            spent = time.perf_counter() - start
            return Pace(total / spent, (time.process_time() - used) / total * 1e6)
        finally:
            with self._bell:
                self._closing = True
                self._bell.notify()
            writer.join()

    async def _caller(self, left: Iterator[str]) -> None:
        for job in left:  # one iterator that all callers share
            durable: asyncio.Future[None] = self._loop.create_future()
            with self._bell:
                self._new.append((job, durable))
                self._bell.notify()
            await durable

    def _write(self) -> None:
        while True:
            with self._bell:
                while not self._new and not self._done and not self._closing:
                    self._bell.wait()
                if self._closing:
                    return
                new = [self._new.popleft() for _ in range(len(self._new))]
                done = [self._done.popleft() for _ in range(len(self._done))]
            claimed = self._bare.turn([job for job, _ in new], done, self._callers)
            self._loop.call_soon_threadsafe(self._settle, [durable for _, durable in new], claimed, len(done))

    def _settle(self, durable: list[asyncio.Future[None]], claimed: list[Claim], done: int) -> None:
        for future in durable:
            future.set_result(None)
        if claimed:
            with self._bell:
                self._done.extend(claimed)
                self._bell.notify()
        self._ended += done
        if self._ended == self._total:
            self._whole.set_result(None)
