"""Flight: the runs this worker has in the air, on the event loop of the program that hosts it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nightporter import logs
from nightporter.air import Air, Form, Key
from nightporter.clock import SECOND, Clock, Instant
from nightporter.dispatch.at_hand import Definitions, Runners
from nightporter.dispatch.claim import claim, take
from nightporter.dispatch.claimed import Claimed
from nightporter.dispatch.desk import NotWrittenDown, WorkerDesk
from nightporter.dispatch.end import Attempt, Result, end, end_alone
from nightporter.dispatch.looking import Glance, Lookers, Looking
from nightporter.dispatch.recover import take_back
from nightporter.errors import LostClaim, MayHaveHappened
from nightporter.rules.legible import legible, legible_value, plain
from nightporter.rules.looks import ended_by
from nightporter.store import Store, Tx
from nightporter.store.tx import Taker
from nightporter.store.tx_admission import Arrival
from nightporter.words import Ended, Ending, ErrorClass, QuickRunner, Reason, RunId, Runner, Sight, Work

log = logs.get(__name__)

GRACE = 5.0
"""Seconds a runner that kills its own children gets beyond the timeout before its task is cancelled."""


class Flight(Air[Claimed, Attempt, Result]):
    """Claims, runs and ends. A run ends by itself, for its timeout, because somebody asked, or with the desk."""

    stage = "dispatch"
    topic = "queued"

    def __init__(
        self, store: Store, clock: Clock, runners: Runners, *, worker: str, slots: int, scratch: Path,
        only: RunId | None = None, lookers: Lookers | None = None,
    ) -> None:
        self._clock = clock
        self._runners = runners
        self._worker = worker
        self._only = only
        self._scratch = scratch
        self._definitions = Definitions()
        self._cancelled: dict[Key, tuple[Reason, str]] = {}
        self._desk = WorkerDesk(store, clock, worker=worker, host=socket.gethostname())
        self._lookers = lookers or {}
        self._looking = Looking(store, clock, self._lookers, runners, self._desk, scratch=scratch)
        super().__init__(store, slots=slots)

    # -- claiming ----------------------------------------------------------------------------------------------

    def work_waiting(self, tx: Tx) -> bool:
        """Whether anything could be run here, or delivered, just now."""
        return tx.work_waiting(self._clock.now(), self._definitions.able(self._runners, tx, asks=False))

    def cancel_asked(self) -> None:
        """End the runs that somebody asked to end. Reads the store: call it off the loop's thread."""
        if not self._tasks:
            return
        asked = self._store.read(lambda tx: tx.cancel_asked(self._worker))
        for run, token, reason, by in asked:
            self._loop.call_soon_threadsafe(self._cancel, (run, token), Reason(reason), by)

    def _claim(self, tx: Tx, room: int, claimed_before: Sequence[Claimed]) -> list[Claimed]:
        return claim(
            tx, worker=self._worker, room=room, now=self._clock.now(), runners=self._runners,
            definitions=self._definitions, only=self._only,
        )

    def _taker(self) -> Taker | None:
        return None if self._only else self._take

    def _take(self, tx: Tx, arrivals: Sequence[Arrival], now: Instant) -> Collection[str]:
        room = self._room(tx)
        taken = [] if room <= 0 else take(
            tx, arrivals, worker=self._worker, room=room, now=now, runners=self._runners,
            definitions=self._definitions,
        )
        tx.taken.setdefault(self.topic, []).extend(taken)
        return {one.work.run_id for one in taken}

    def _claimed_on_writer(self, claimed: list[Claimed]) -> None:
        if self._claiming_in is not None:
            self._definitions.keep(self._claiming_in)
        super()._claimed_on_writer(claimed)

    def _give_back(self, tx: Tx, ours: Collection[Key]) -> int:
        return take_back(tx, self._worker, ours, self._runners, self._definitions, now=self._clock.now())

    # -- running -------------------------------------------------------------------------------------------------

    def _launch(self, claimed: list[Claimed]) -> None:
        if log.isEnabledFor(logging.INFO):
            _tell_started(claimed)
        super()._launch(claimed)

    def _begin(self, one: Claimed) -> Attempt | Coroutine[Any, Any, Attempt]:
        runner = self._runners.get(one.work.kind)
        if one.definition is None:
            return Attempt(one, Ended.failed(ErrorClass.CONFIGURATION, legible(one.error)))
        if runner is None:
            return Attempt(one, Ended.failed(
                ErrorClass.CONFIGURATION, f"no runner is called {one.work.kind!r} here"))
        if hasattr(runner, "run_now") and one.look is None:
            return _attempt(one, _quickly(runner.run_now, one.work))
        return self._fly(one, runner)

    def _fell(self, one: Claimed, error: BaseException | None) -> Attempt:
        self._looking.took(one.key)
        return _attempt(one, self._ended_by_us(one.key) if error is None else _raised(one.work, error))

    async def _fly(self, claimed: Claimed, runner: Runner | QuickRunner) -> Attempt:
        key = claimed.key
        launches = getattr(runner, "launches", False)
        # One a claim: a desk that lost its claim and comes back clears its own away, not its successor's.
        scratch = self._scratch / f"{key[0]}-{key[1]}" if launches else None
        ended = await self._run(claimed, runner, scratch)
        self._tasks.pop(key, None)  # from here on nobody disturbs it any more
        if ended.ending is Ending.CANCELLED and (
            key in self._cancelled or (ended.reason is None and _is_being_cancelled())
        ):
            ended = replace(self._ended_by_us(key), text=ended.text, log=ended.log)
        self._cancelled.pop(key, None)
        if scratch is not None:  # before the ending is written: a retry finds its folder empty
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
        return _attempt(claimed, ended, self._looking.took(key))

    async def _run(self, claimed: Claimed, runner: Runner | QuickRunner, scratch: Path | None) -> Ended:
        work = claimed.work
        limit = None if work.timeout is None else work.timeout.total_seconds()
        if scratch is not None:
            limit = None if limit is None else limit + GRACE
            work = replace(work, scratch=scratch)
        deadline = asyncio.timeout(None)
        try:
            if scratch is not None and (error := await asyncio.to_thread(_made, scratch)):
                return Ended(Ending.ERROR, error=error, error_class=ErrorClass.RESOURCE, reason=Reason.NOT_STARTED)
            if claimed.look is not None:
                seen = await self._looking.ask(claimed, claimed.look)
                if (ended := ended_by(seen)) is not None:
                    return ended
                work = replace(work, look=seen.text if seen.sight is Sight.SOMETHING else None)
            if hasattr(runner, "run_now"):
                return _quickly(runner.run_now, work)
            deadline = asyncio.timeout(limit)
            async with deadline:
                ended = await runner.run(work, self._desk)
            if ended.ending is Ending.CANCELLED and deadline.expired():
                return Ended.timed_out(f"it ran longer than its timeout of {work.timeout}",
                                       text=ended.text, log=ended.log)
            return ended
        except asyncio.CancelledError:
            if _is_being_cancelled():
                return self._ended_by_us(claimed.key)
            return Ended.failed(ErrorClass.EXCEPTION, "CancelledError: the work cancelled itself")
        except NotWrittenDown as error:
            return Ended(Ending.CANCELLED, reason=Reason.NOT_STARTED, error=str(error))
        except MayHaveHappened as error:
            return Ended(Ending.ERROR, reason=Reason.MAY_HAVE_ACTED, error=f"{error.what}: {error.why}")
        except LostClaim as error:  # its successor writes how it ended
            return Ended.failed(ErrorClass.EXCEPTION, f"LostClaim: {error.what}")
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                return Ended.timed_out(f"it ran longer than its timeout of {work.timeout}")
            return _raised(claimed.work, error)

    def _ended_by_us(self, key: Key) -> Ended:
        """How a run ended that we cancelled: because somebody asked, or because the desk is shut down."""
        reason, by = self._cancelled.pop(key, (Reason.SHUTDOWN, ""))
        return Ended(Ending.CANCELLED, reason=reason, error=f"cancelled by {by}" if by else "")

    def _cancel(self, key: Key, reason: Reason, by: str) -> None:
        task = self._tasks.get(key)
        if task is not None and key not in self._cancelled:
            self._cancelled[key] = (reason, by)
            task.cancel()

    # -- ending --------------------------------------------------------------------------------------------------

    def _write(self, tx: Tx, ends: list[Attempt]) -> list[Result]:
        if self._full:
            tx.kick("queued")  # a slot is free again, and somebody may be waiting for it
        counted = ends
        if any(map(self._has_a_child, ends)) and tx.has_ended(self._worker):
            # Whoever declared us dead ends our children: that is no end of the run. Of the rest the fences decide.
            counted = [e for e in ends if not self._has_a_child(e)]
        now = self._clock.now()
        alone = [e for e in counted if e.form is Form.ALONE]
        if not alone and counted is ends:
            return end(tx, ends, self._runners, now=now)
        others = [e for e in counted if e.form is not Form.ALONE]
        results = dict(zip([e.key for e in alone], end_alone(tx, alone, now=now), strict=True))
        results |= zip([e.key for e in others], end(tx, others, self._runners, now=now), strict=True)
        return [results.get(e.key) for e in ends]

    def _has_a_child(self, end: Attempt) -> bool:
        look, runner = end.claimed.look, self._runners.get(end.claimed.work.kind)
        if look is not None and getattr(self._lookers.get(look.kind), "launches", False):
            return True
        return getattr(runner, "launches", False)

    def _less(self, end: Attempt, error: BaseException) -> Attempt | None:
        if end.form is Form.WHOLE:
            return Attempt(end.claimed, _without_what_it_left(end.ended, error), Form.BARE)
        if end.form is Form.BARE:
            note = f"how it ended could not be written: {type(error).__name__}: {error}"
            return Attempt(end.claimed, Ended.failed(ErrorClass.CONFIGURATION, plain(note)), Form.ALONE)
        return None

    def _tell(self, written: Sequence[tuple[Attempt, Result]]) -> None:
        tells = log.isEnabledFor(logging.INFO)
        for attempt, result in written:
            work = attempt.claimed.work
            if result is None:
                log.warning("dispatch.lost_claim", run=work.run_id, token=work.token)
            elif tells:
                log.info("run.ended", automation=work.automation, run=work.run_id, state=str(result.state),
                         reason=None if result.reason is None else str(result.reason),
                         outcome=None if result.outcome is None else str(result.outcome), error=result.error)


def _tell_started(claimed: list[Claimed]) -> None:
    for one in claimed:
        work = one.work
        late = None if work.scheduled_for is None or work.started_at is None else work.started_at - work.scheduled_for
        log.info("run.started", automation=work.automation, trigger=work.trigger_id.rpartition("/")[2],
                 run=work.run_id, attempt=work.attempt if work.attempt > 1 else None,
                 after_slot=None if late is None else f"{late / SECOND:.3f}s")


def _made(folder: Path) -> str:
    """Why a scratch folder could not be made; empty: it is there."""
    try:
        for each in (folder.parent, folder):  # one by one: the mode is for the last of what is made
            each.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        return f"its folder could not be made: {error}"
    return ""


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _quickly(run_now: Callable[[Work], Ended], work: Work) -> Ended:
    try:
        return run_now(work)
    except Exception as error:
        return _raised(work, error)


def _raised(work: Work, error: BaseException) -> Ended:
    log.error("dispatch.runner_raised", run=work.run_id, exc_info=error)
    return Ended.failed(ErrorClass.EXCEPTION, f"{type(error).__name__}: {error}")


def _attempt(claimed: Claimed, ended: Ended, glance: Glance | None = None) -> Attempt:
    """An attempt that has ended, its texts as any store takes them."""
    try:
        texts = (legible(ended.text), legible(ended.error), legible(ended.log))
        data = legible_value(ended.data)
    except Exception as error:  # whatever a runner put there: that it cannot be kept is for the writing to say
        log.warning("dispatch.strange_result", run=claimed.work.run_id, error=repr(error))
        return Attempt(claimed, ended, glance=glance)
    if texts == (ended.text, ended.error, ended.log) and data == ended.data:
        return Attempt(claimed, ended, glance=glance)
    return Attempt(
        claimed, replace(ended, text=texts[0], error=texts[1], log=texts[2], data=data), glance=glance
    )


def _without_what_it_left(ended: Ended, error: BaseException) -> Ended:
    note = f"its result could not be written: {type(error).__name__}: {error}"
    if ended.ending is Ending.OK:
        return Ended.failed(ErrorClass.EXCEPTION, plain(note))
    return replace(ended, text="", data=None, log="", exit_code=None, error=plain(f"{ended.error}; {note}"))
