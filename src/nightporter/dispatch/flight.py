"""Flight: the runs this worker has in the air, on the event loop of the program that hosts it.

The claim rides in the commit of whoever queued the run; the runner is called after that commit; the ending is
gathered with others into the next. Nothing here holds a fact that is not in the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import socket
import threading
from dataclasses import replace
from pathlib import Path

from nightporter import logs
from nightporter.clock import SECOND, Clock
from nightporter.dispatch.claim import Claimed, Definitions, Runners, claim
from nightporter.dispatch.desk import RETRY_WRITE, WorkerDesk
from nightporter.dispatch.end import Attempt, Result, end
from nightporter.errors import StoreError, StoreRefused
from nightporter.store import Store, Tx
from nightporter.store.doubts import Doubts
from nightporter.store.durable import durable
from nightporter.store.gather import Answered, Gather
from nightporter.words import Ended, Ending, ErrorClass, QuickRunner, Reason, RunId, Runner

log = logs.get(__name__)

GRACE = 5.0
"""Seconds a runner that kills its own children gets beyond the timeout before its task is cancelled."""


class Flight:
    """Claims, runs and ends. Construct it on the event loop; `close` before the store is closed."""

    def __init__(
        self, store: Store, clock: Clock, runners: Runners, *, worker: str, slots: int, scratch: Path,
        only: RunId | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._runners = runners
        self._worker = worker
        self._only = only
        self._scratch = scratch
        self._definitions = Definitions()
        self._loop = asyncio.get_running_loop()
        self._free = slots
        self._claiming_in: Tx | None = None
        self._claimed_in_it = 0
        self._lock = threading.Lock()
        self._saturated = False
        self._claiming = True
        self._tasks: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._cancelled: dict[tuple[str, int], tuple[Reason, str]] = {}
        self._unwritten = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._desk = WorkerDesk(store, clock, worker=worker, host=socket.gethostname())
        self._ends: Gather[Attempt, Attempt, Result] = Gather(store.writer, self._end, self._ended_on_writer)
        self._doubts: Doubts[Claimed] = Doubts(clock, lambda c: (c.work.run_id, c.work.token))
        store.writer.ride("queued", self._claim, self._claimed_on_writer, self._doubted)

    @property
    def in_the_air(self) -> int:
        """Runs claimed whose ending is not yet written."""
        return self._unwritten

    async def idle(self) -> None:
        """Wait until nothing is in the air."""
        await self._idle.wait()

    # -- claiming ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Claim what is due, if there is room; called by the worker's loop and by kicks."""
        if self._claiming and self._free > 0:
            self._store.writer.post(self._claim, self._looked, self._doubted)

    def cancel_asked(self) -> None:
        """End the runs that somebody asked to end. Reads the store: call it off the loop's thread."""
        if not self._tasks:
            return
        asked = self._store.read(lambda tx: tx.cancel_asked(self._worker))
        for run, token, reason, by in asked:
            self._loop.call_soon_threadsafe(self._cancel, (run, token), Reason(reason), by)

    def _claim(self, tx: Tx) -> list[Claimed]:
        standing: list[Claimed] = []
        if tx is not self._claiming_in:  # a look and a rider may share a commit, and only the commit takes the slots
            standing = self._standing(tx)
            self._claiming_in, self._claimed_in_it = tx, len(standing)
        room = self._free - self._claimed_in_it if self._claiming else 0
        claimed = claim(
            tx, worker=self._worker, room=room, now=self._clock.now(), runners=self._runners,
            definitions=self._definitions, only=self._only,
        )
        self._claimed_in_it += len(claimed)
        self._saturated = room <= 0 or len(claimed) >= room
        return standing + claimed

    def _doubted(self, claimed: list[Claimed]) -> None:
        if claimed:
            self._doubts.note(claimed)
            self._loop.call_soon_threadsafe(self._loop.call_later, RETRY_WRITE, self.look)

    def _standing(self, tx: Tx) -> list[Claimed]:
        """Claims whose commit was not answered, and that are ours."""
        if not self._claiming or not (claims := self._doubts.claims):
            return []
        ours = {claim for claim, (*_, worker) in tx.fences(claims).items() if worker == self._worker}
        return self._doubts.standing(ours)

    def _looked(self, claimed: list[Claimed] | None, error: BaseException | None) -> None:
        if error is not None:
            log.warning("dispatch.claim_failed", error=str(error))
        elif claimed:
            self._claimed_on_writer(claimed)

    def _claimed_on_writer(self, claimed: list[Claimed]) -> None:
        if claimed:
            self._doubts.settle(claimed)
            with self._lock:
                self._free -= len(claimed)
            self._loop.call_soon_threadsafe(self._launch, claimed)

    # -- running -------------------------------------------------------------------------------------------------

    def _launch(self, claimed: list[Claimed]) -> None:
        self._unwritten += len(claimed)
        self._idle.clear()
        if log.isEnabledFor(logging.INFO):
            _tell_started(claimed)
        for one in claimed:
            runner = self._runners.get(one.work.kind)
            if one.definition is None:
                self._land(one, Ended.failed(ErrorClass.CONFIGURATION, one.error))
            elif runner is None:
                self._land(one, Ended.failed(ErrorClass.CONFIGURATION, f"no runner is called {one.work.kind!r} here"))
            elif hasattr(runner, "run_now"):
                self._land(one, _quickly(runner, one))
            else:
                task = self._loop.create_task(self._fly(one, runner), name=one.work.run_id)
                self._tasks[one.work.run_id, one.work.token] = task
                task.add_done_callback(lambda task, one=one: self._landed(one))  # type: ignore[misc]  # bound per run

    async def _fly(self, claimed: Claimed, runner: Runner) -> None:
        work = claimed.work
        key = (work.run_id, work.token)
        limit = None if work.timeout is None else work.timeout.total_seconds()
        if limit is not None and getattr(runner, "launches", False):
            limit += GRACE
        deadline = asyncio.timeout(None)
        try:
            if getattr(runner, "launches", False):
                # One a claim: a desk that lost its claim and comes back clears its own away, not its successor's.
                scratch = self._scratch / f"{work.run_id}-{work.token}"
                work = replace(work, scratch=scratch)
                await asyncio.to_thread(self._scratch.mkdir, parents=True, exist_ok=True, mode=0o700)
                await asyncio.to_thread(scratch.mkdir, parents=True, exist_ok=True, mode=0o700)
            deadline = asyncio.timeout(limit)
            async with deadline:
                ended = await runner.run(work, self._desk)
        except asyncio.CancelledError:
            if _is_being_cancelled():
                ended = self._cut_short(key)
            else:
                ended = Ended.failed(ErrorClass.EXCEPTION, "CancelledError: the work cancelled itself")
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                ended = Ended.timed_out(f"it ran longer than its timeout of {work.timeout}")
            else:
                log.exception("dispatch.runner_raised", run=work.run_id)
                ended = Ended.failed(ErrorClass.EXCEPTION, f"{type(error).__name__}: {error}")
        self._tasks.pop(key, None)
        if ended.ending is Ending.CANCELLED and key in self._cancelled:
            ended = replace(self._cut_short(key), text=ended.text, log=ended.log)
        self._cancelled.pop(key, None)
        if work.scratch is not None:  # before the ending is written: a retry finds its folder empty
            await asyncio.to_thread(shutil.rmtree, work.scratch, ignore_errors=True)
        self._land(claimed, ended)

    def _landed(self, claimed: Claimed) -> None:
        """A task has ended; one that was cancelled before its first step has not landed by itself."""
        key = (claimed.work.run_id, claimed.work.token)
        if self._tasks.pop(key, None) is not None:
            self._land(claimed, self._cut_short(key))

    def _cut_short(self, key: tuple[str, int]) -> Ended:
        """How a run ended that we cancelled: because somebody asked, or because the desk is shut down."""
        reason, by = self._cancelled.pop(key, (Reason.SHUTDOWN, ""))
        return Ended(Ending.CANCELLED, reason=reason, error=f"cancelled by {by}" if by else "")

    def _cancel(self, key: tuple[str, int], reason: Reason, by: str) -> None:
        task = self._tasks.get(key)
        if task is not None and key not in self._cancelled:
            self._cancelled[key] = (reason, by)
            task.cancel()

    # -- ending --------------------------------------------------------------------------------------------------

    def _land(self, claimed: Claimed, ended: Ended) -> None:
        with self._lock:
            self._free += 1
        attempt = Attempt(claimed, ended)
        self._ends.put(attempt, attempt)

    def _end(self, tx: Tx, attempts: list[Attempt]) -> list[Result]:
        if self._saturated:
            tx.kick("queued")  # a slot is free again, and somebody may be waiting for it
        return end(tx, attempts, self._runners, now=self._clock.now())

    def _ended_on_writer(self, answered: Answered[Attempt, Result]) -> None:
        for attempt, result, error in answered:
            if error is None and result is None:
                log.warning("dispatch.lost_claim", run=attempt.claimed.work.run_id, token=attempt.claimed.work.token)
        if log.isEnabledFor(logging.INFO):
            _tell_ended([(attempt, result) for attempt, result, _ in answered if result is not None])
        failed = [(attempt, error) for attempt, _, error in answered if error is not None]
        self._loop.call_soon_threadsafe(self._ended, len(answered) - len(failed), failed)

    def _ended(self, written: int, failed: list[tuple[Attempt, BaseException]]) -> None:
        self._unwritten -= written
        for attempt, error in failed:
            log.error("dispatch.ending_not_written", run=attempt.claimed.work.run_id, error=str(error))
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                # The store is ill: the result is kept here and written when it is well again.
                self._loop.call_later(RETRY_WRITE, self._ends.put, attempt, attempt)
            elif not attempt.bare:
                # Something in the result itself cannot be written: the run must end all the same.
                bare = Attempt(attempt.claimed, _without_what_it_left(attempt.ended, error), bare=True)
                self._ends.put(bare, bare)
            else:
                self._unwritten -= 1
        if not self._unwritten:
            self._idle.set()

    # -- shutting down --------------------------------------------------------------------------------------------

    async def drain(self, seconds: float) -> None:
        """Claim no more; let what is in the air end; after `seconds`, end it and give it back or set it aside."""
        await self._claim_no_more()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            await self.abort()

    async def abort(self) -> None:
        """End everything in the air now."""
        await self._claim_no_more()
        for task in list(self._tasks.values()):
            if not task.cancelling():  # whoever is tidying up already is not disturbed in it
                task.cancel()
        await self._idle.wait()

    async def _claim_no_more(self) -> None:
        self._claiming = False
        self._store.writer.unride("queued")
        # A claim may be under way: once a write behind it is done, what it took is in the air.
        with contextlib.suppress(StoreError):  # a store that takes no write gave no claim
            await durable(self._store, lambda _: None)


def _tell_started(claimed: list[Claimed]) -> None:
    for one in claimed:
        work = one.work
        late = None if work.scheduled_for is None or work.started_at is None else work.started_at - work.scheduled_for
        log.info("run.started", automation=work.automation, trigger=work.trigger_id.rpartition("/")[2],
                 run=work.run_id, attempt=work.attempt if work.attempt > 1 else None,
                 after_slot=None if late is None else f"{late / SECOND:.3f}s")


def _tell_ended(ended: list[tuple[Attempt, Result]]) -> None:
    for attempt, result in ended:
        assert result is not None
        log.info("run.ended", automation=attempt.claimed.work.automation, run=attempt.claimed.work.run_id,
                 state=str(result.state), reason=None if result.reason is None else str(result.reason),
                 outcome=None if result.outcome is None else str(result.outcome), error=result.error)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _without_what_it_left(ended: Ended, error: BaseException) -> Ended:
    note = f"its result could not be written: {type(error).__name__}: {error}"
    if ended.ending is Ending.OK:
        return Ended.failed(ErrorClass.EXCEPTION, ascii(note)[1:-1])
    return replace(ended, text="", data=None, log="", error=ascii(f"{ended.error}; {note}")[1:-1])


def _quickly(runner: Runner | QuickRunner, claimed: Claimed) -> Ended:
    try:
        return runner.run_now(claimed.work)  # type: ignore[union-attr]  # the caller looked
    except Exception as error:
        log.exception("dispatch.runner_raised", run=claimed.work.run_id)
        return Ended.failed(ErrorClass.EXCEPTION, f"{type(error).__name__}: {error}")
