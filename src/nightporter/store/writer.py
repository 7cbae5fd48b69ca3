"""The writer: one thread that turns write functions into durable transactions, many at a time.

Callers queue functions; the thread takes all that are waiting, runs each so that it can be undone alone, commits once
and only then answers them. One fsync for all: durable *and* fast.

After each function it checks that the transaction still exists: a full disk makes SQLite roll back everything,
released savepoints too. If it is gone, nobody is answered and each function runs again, alone.

A *rider* is a function that rides in the group's commit when a function of the group kicked its topic: dispatch
claims the runs that admission just queued, without a second commit. Its result reaches `done` on this thread,
after the commit and before the next group. A rider may also be a *taker*: it is offered rows before they are written
(`Tx.offer`), and its ride answers for what it took.

Callers go before what nobody waits for: slots of the clock, ends of runs.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from nightporter import logs
from nightporter.errors import StoreEntangled, StoreError, StoreRefused
from nightporter.store.tx import Taker, Tx
from nightporter.store.upshot import Unwritten, Upshot, Written

T = TypeVar("T")
log = logs.get(__name__)

TRIES = 6
"""How often a function alone is tried, where it and a function of another process waited for one another: what shares
a commit takes its locks in the order in which it came, and so may another."""


class Transactions(Protocol):
    """What a dialect gives the writer: one connection and its transaction control. Errors are StoreError."""

    def begin(self) -> Tx: ...
    def savepoint(self) -> None:
        """A function begins. Where nothing is written yet there need be no savepoint."""

    def release(self) -> None:
        """It ended well."""

    def rollback_to(self) -> None:
        """Undo what it did, and nothing else."""

    def commit(self) -> None: ...
    def rollback(self) -> None:
        """End the transaction, if there still is one, without effect. Does not raise."""

    def alive(self) -> bool:
        """Whether what was done in the transaction stands in it, as far as it was not undone here."""

    def wrote(self) -> bool:
        """Of a transaction that was just committed: whether it had changed anything."""

    def translate(self, error: Exception) -> Exception:
        """The error as this program names it, or the error itself."""

    def close(self) -> None: ...


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[Tx], T]
    answer: Callable[[Upshot[T]], None]
    doubted: Callable[[T], None]
    patient: bool = False
    result: T | None = None
    error: BaseException | None = None


class _RiderFell(Exception):
    """A rider failed, and the transaction or what it had taken went with it."""


@dataclass(frozen=True, slots=True)
class _Rider:
    work: Callable[[Tx], Any]
    done: Callable[[Any], None]
    doubted: Callable[[Any], None]
    taker: Taker | None


class Writer:
    """Owns the write connection. `group` functions at most share a commit."""

    def __init__(
        self, transactions: Callable[[], Transactions], kicked: Callable[[frozenset[str]], None], *, group: int,
        pause: Callable[[], None] = lambda: None, name: str = "nightporter-writer",
    ) -> None:
        self._connect = transactions
        self._kicked = kicked
        self._group = group
        self._pause = pause
        self._jobs: deque[_Job[Any]] = deque()
        self._patient: deque[_Job[Any]] = deque()
        self._patient_next = False
        self.commit_seconds = 0.0
        """How long a commit takes, of late."""
        self._bell = threading.Condition()
        self._riders: dict[str, _Rider] = {}
        self._closing = False
        self._shut: Exception | None = None
        """Why no transaction could be begun when that was last tried."""
        self._ill = logs.Seldom(log)
        self.trouble = ""
        """Why the store took nothing when it was last asked to; empty while it is well. What it refuses is no trouble:
        that is the matter of what was to be written."""
        self._opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()
        self._opened.result()

    def post(
        self, work: Callable[[Tx], T], answer: Callable[[Upshot[T]], None],
        doubted: Callable[[T], None] = lambda _: None, *, patient: bool = False,
    ) -> None:
        """Queue a write function. `answer(upshot)` is called on the writer's thread once it is known.

        `doubted(result)` is called there, before that, when the commit failed: what it wrote may stand all the same.
        A `patient` one lets those go first that are not, see `_take`.
        """
        with self._bell:
            if not self._closing:
                (self._patient if patient else self._jobs).append(_Job(work, answer, doubted, patient))
                self._bell.notify()
                return
        answer(Unwritten(StoreError("the store is closed", next="start the desk again")))

    def write(self, work: Callable[[Tx], T], *, patient: bool = False) -> T:
        """Run a write function and return its result once it is durable. Raises what it raised, or StoreError."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("a write inside a write would wait for itself")
        future: Future[T] = Future()

        def answer(upshot: Upshot[T]) -> None:
            if isinstance(upshot, Written):
                future.set_result(upshot.result)
            else:
                future.set_exception(upshot.error)

        self.post(work, answer, patient=patient)
        return future.result()

    def ride(
        self, topic: str, work: Callable[[Tx], T], done: Callable[[T], None],
        doubted: Callable[[T], None] = lambda _: None, taker: Taker | None = None,
    ) -> None:
        """From now on, run `work` inside each group that kicks `topic`. `doubted` as for `post`.

        The group's functions offer their rows to the `taker`; `work` finds what it took in `Tx.taken`, and answers for
        it.
        """
        self._riders[topic] = _Rider(work, done, doubted, taker)

    def unride(self, topic: str) -> None:
        self._riders.pop(topic, None)

    def close(self) -> None:
        """Finish what is queued, then close the connection."""
        with self._bell:
            self._closing = True
            self._bell.notify()
        self._thread.join()

    # -- the thread -------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            self._transactions = self._connect()
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        while True:
            with self._bell:
                while not self._jobs and not self._patient and not self._closing:
                    self._bell.wait()
                jobs = self._take()
            if not jobs:
                break
            self._settle(jobs)
            self._pause()
        self._transactions.close()

    def _take(self) -> list[_Job[Any]]:
        """The next group. A caller waits for no more of the patient ones than the one that is under way; where both
        wait they take turns, so that neither waits for ever."""
        patient = bool(self._patient) and (self._patient_next or not self._jobs)
        self._patient_next = not patient
        queue = self._patient if patient else self._jobs
        return [queue.popleft() for _ in range(min(self._group, len(queue)))]

    def _give_way_to_callers(self, jobs: list[_Job[Any]], done: int) -> None:
        """Let what is left of a patient group wait for the next, where a caller waits."""
        if self._jobs and done < len(jobs) and jobs[0].patient:
            with self._bell:
                self._patient.extendleft(reversed(jobs[done:]))
            del jobs[done:]

    def _settle(self, jobs: list[_Job[Any]]) -> None:
        """Make `jobs` durable together, or each alone; answer every one exactly once."""
        if self._commit_together(jobs):
            return
        for done, job in enumerate(jobs):
            for left in reversed(range(TRIES)):
                if self._commit_together([job], riders=left == TRIES - 1, again=left > 0):
                    break
            if self._shut is not None:  # if each waited for it alone, the last would wait hours
                self._refuse(jobs[done + 1 :], self._shut)
                break

    def _commit_together(self, jobs: list[_Job[Any]], *, riders: bool = True, again: bool = True) -> bool:
        """True when the jobs are answered: committed, or a single one that failed. False: try each alone, and a
        single one without its riders. `again`: one that waited in a ring with another process is to be tried again."""
        transactions = self._transactions
        try:
            tx = transactions.begin()
        except Exception as error:  # the store is ill, or another process holds it
            transactions.rollback()
            self._shut = transactions.translate(error)
            self._refuse(jobs, self._shut)
            return True
        self._shut = None
        committing = False
        riding = dict(self._riders) if riders else {}  # who leaves meanwhile has taken, and is told of it
        tx.takers = {topic: rider.taker for topic, rider in riding.items() if rider.taker is not None}
        rode: list[tuple[_Rider, Any]] = []
        try:
            for done, job in enumerate(jobs, 1):
                self._run(job, tx)
                if isinstance(job.error, StoreEntangled) and again:
                    raise job.error
                if not transactions.alive():  # whatever the function says of it
                    raise StoreError("the transaction was rolled back by the database")
                self._give_way_to_callers(jobs, done)
            rode = self._ride(tx, riding)
            committing = True
            began = time.monotonic()
            transactions.commit()
            self.commit_seconds += (time.monotonic() - began - self.commit_seconds) / 8
        except Exception as error:
            transactions.rollback()
            if committing:
                self._doubt(jobs, rode)
            entangled = again and isinstance(transactions.translate(error), StoreEntangled)
            if len(jobs) == 1 and not isinstance(error, _RiderFell) and not entangled:
                jobs[0].error = jobs[0].error or transactions.translate(error)
                self._is_ill(jobs[0].error)
                self._answer(jobs, ())
                return True
            self._ill.warning("store.group_failed", jobs=len(jobs), error=str(error))
            for job in jobs:
                job.result = job.error = None
            return False
        if self.trouble and transactions.wrote():  # what wrote nothing proves nothing
            self._ill.warning("store.well_again", error=self.trouble)
            self.trouble = ""
        for rider, result in rode:
            try:
                rider.done(result)
            except Exception:
                log.exception("store.rider_not_told")
        self._answer(jobs, tx.kicks)
        return True

    def _refuse(self, jobs: list[_Job[Any]], error: Exception) -> None:
        for job in jobs:
            job.error = error
        self._is_ill(error)
        self._answer(jobs, ())

    def _is_ill(self, error: BaseException | None) -> None:
        if isinstance(error, StoreError) and not isinstance(error, StoreRefused | StoreEntangled):
            self.trouble = error.what

    @staticmethod
    def _doubt(jobs: Iterable[_Job[Any]], rode: Iterable[tuple[_Rider, Any]]) -> None:
        for job in jobs:
            if job.error is None:
                job.doubted(job.result)
        for rider, result in rode:
            rider.doubted(result)

    def _run(self, job: _Job[Any], tx: Tx) -> None:
        transactions = self._transactions
        transactions.savepoint()
        mark = tx.mark()
        try:
            job.result = job.work(tx)
        except BaseException as error:
            job.error = transactions.translate(error) if isinstance(error, Exception) else error
            tx.forget_since(mark)
            if transactions.alive():
                transactions.rollback_to()
        else:
            transactions.release()

    def _ride(self, tx: Tx, riding: Mapping[str, _Rider]) -> list[tuple[_Rider, Any]]:
        rode = []
        for topic in [t for t in tx.kicks if t in riding]:
            rider = riding[topic]
            self._transactions.savepoint()
            try:
                result = rider.work(tx)
            except Exception as error:
                # A rider that fails costs nobody else their commit: its work is found again by its own loop.
                self._ill.warning("store.rider_failed", topic=topic, error=str(error))
                if tx.taken.get(topic) or not self._transactions.alive():
                    raise _RiderFell(topic) from error
                self._transactions.rollback_to()
            else:
                self._transactions.release()
                if not self._transactions.alive():
                    raise _RiderFell(topic)
                rode.append((rider, result))
        return rode

    def _answer(self, jobs: Iterable[_Job[Any]], kicks: Iterable[str]) -> None:
        for job in jobs:
            try:
                job.answer(Written(job.result) if job.error is None else Unwritten(job.error))
            except Exception:
                log.exception("store.answer_failed")
        topics = frozenset(kicks)
        if topics:
            try:
                self._kicked(topics)
            except Exception:  # whoever was not rung looks by itself
                log.exception("store.kick_failed")
