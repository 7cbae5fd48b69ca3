"""Fault points: named lines between reading the due set and recording the delivery, at which a desk can be ended.

`arm("claimed:3")` makes the desk's process group die by SIGKILL when it passes `claimed` for the third time. The
points are set around the engine's own functions from here, in the process that is to die; a desk that is not under
fire has none of this in it. A name that no longer fits the engine fails loudly when it is armed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

POINTS = {
    "boot-joined": "a new worker is written down, nothing recovered yet",
    "boot-recovered": "what the dead held is taken back, no slot answered yet",
    "boot-settled": "slots up to now are answered, nothing launched yet",
    "name-looked-up": "a desk has seen whether an automation of that name is there, and has not made it yet",
    "due-read": "the due set is read",
    "slot-advanced": "slots are moved on, in a transaction that is open",
    "run-queued": "runs are queued, in the same open transaction",
    "line-written": "ledger lines are written, in the same open transaction",
    "before-commit": "the whole answer stands, not committed",
    "after-commit": "the answer is committed, nobody told",
    "run-claimed": "runs are claimed, in an open transaction",
    "claimed": "the claim is committed, nothing launched",
    "child-born": "a child waits at its gate, written down nowhere",
    "child-recorded": "the child is written down, its gate still closed",
    "run-started": "the child is let go",
    "look-asked": "the look of a run is about to be asked",
    "look-answered": "it has answered, and that is written nowhere",
    "look-written": "what it saw is written, in an open transaction, and the runner not called",
    "look-kept": "what it wants to keep is written, in the open transaction of the run's end",
    "effect-intended": "an effect's intent is durable, nothing done yet",
    "effect-called": "the effect happened, the desk does not know",
    "effect-recorded": "the effect is written as done",
    "result-computed": "the result is there, written nowhere",
    "end-written": "the run's end is written, in an open transaction",
    "delivery-inserted": "its deliveries are written, in the same open transaction",
    "before-end-commit": "the whole end stands, not committed",
    "after-end-commit": "the end is committed, nobody told",
    "before-retry-commit": "a failed attempt's next is written, not committed",
    "after-retry-commit": "it is committed",
    "delivery-taken": "a delivery is claimed, in an open transaction",
    "delivery-claimed": "that claim is committed, nothing sent",
    "delivery-sent": "the receiver has it, the desk does not know",
    "delivery-written": "its end is written, in an open transaction",
    "before-delivery-commit": "its whole end stands, not committed",
    "delivery-recorded": "its end is committed",
    "before-arrival-commit": "what a program fired is admitted, not committed",
    "arrival-committed": "what a program fired is committed, the program not answered",
    "sweep-begin": "a dead worker is found, nothing done about it",
    "sweep-declared": "it is declared dead",
    "sweep-children-ended": "its children are ended, its runs still its own",
    "sweep-runs-lost": "its runs are lost, in an open transaction",
    "sweep-middle": "its runs are taken back, its deliveries are not",
    "sweep-deliveries": "its deliveries too, in an open transaction",
    "sweep-end": "all is taken back, what follows not begun",
}
"""Each point, and what holds there."""

Passed = Callable[[str], None]

_marks = threading.local()
_COMMITS = {
    "slots": ("before-commit", "after-commit"),
    "claim": (None, "claimed"),
    "end": ("before-end-commit", "after-end-commit"),
    "retry": ("before-retry-commit", "after-retry-commit"),
    "take": (None, "delivery-claimed"),
    "record": ("before-delivery-commit", "delivery-recorded"),
    "arrival": ("before-arrival-commit", "arrival-committed"),
    "declared": (None, "sweep-declared"),
    "lost": (None, "sweep-middle"),
}
"""Points around a commit, by what the transaction did."""

_writing = threading.Lock()
"""Held while a write transaction is open: a desk must not be frozen with the store's only lock in its hand."""


class Unanswered(Exception):
    """What was committed is committed, and whoever asked for it hears an error."""


class Trap:
    """Counts how often each point is passed, and springs at the one that was armed."""

    def __init__(self, text: str) -> None:
        self.name, _, rest = text.partition(":")
        nth, _, self.act = rest.partition(":")
        self.nth = int(nth or 1)
        if self.name not in POINTS:
            raise ValueError(f"no fault point is called {self.name}")
        self._count = 0
        self._lock = threading.Lock()

    def passed(self, name: str) -> None:
        if name != self.name:
            return
        with self._lock:
            self._count += 1
            now = self._count == self.nth
        if now or self.act == "slow":
            self._spring()

    def _spring(self) -> None:
        if self.act == "freeze":
            with _writing:
                os.kill(os.getpid(), signal.SIGSTOP)
                # The kernel stops one thread after another; until the last of them stands, nobody may begin to write.
                time.sleep(0.2)
        elif self.act == "hold":
            print('{"event": "held"}', flush=True)
            time.sleep(0.5)
        elif self.act == "slow":
            time.sleep(0.1)
        elif self.act == "cut":
            raise Unanswered
        else:
            if self.act == "late":
                time.sleep(0.3)
            os.killpg(0, signal.SIGKILL)


def arm(text: str) -> Passed:
    """Set the points in this process: `name`, `name:nth`, and instead of dying `name:nth:freeze` (stop, outside a
    write transaction), `name:nth:hold` (say so and block for half a second) or `name:1:slow` (block for a tenth of a
    second, each time). `name:nth:late` dies there a moment later, so that whatever was told too early gets out.
    `name:nth:cut`, at a commit, goes on living: the commit is made, and its answer lost.
    Returns what marks a point by hand.
    """
    passed = Trap(text).passed
    _around_the_store(passed)
    _around_the_transaction(passed)
    _around_the_boot(passed)
    _around_the_run(passed)
    _around_the_look(passed)
    _around_the_delivery(passed)
    _around_the_sweep(passed)
    return passed


def _after(owner: Any, name: str, point: Callable[[Any, tuple[Any, ...]], None]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*args: Any, **named: Any) -> Any:
        result = original(*args, **named)
        point(result, args)
        return result

    setattr(owner, name, wrapped)


def _before(owner: Any, name: str, point: Callable[[tuple[Any, ...]], None]) -> None:
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*args: Any, **named: Any) -> Any:
        point(args)
        return original(*args, **named)

    setattr(owner, name, wrapped)


def _around_await(owner: Any, name: str, before: Callable[[], None] | None, after: Callable[[], None] | None) -> None:
    original = getattr(owner, name)

    @wraps(original)
    async def wrapped(*args: Any, **named: Any) -> Any:
        if before is not None:
            before()
        result = await original(*args, **named)
        if after is not None:
            after()
        return result

    setattr(owner, name, wrapped)


def _around_the_store(passed: Passed) -> None:
    """Commits, known by what their transaction did."""
    import apsw
    import psycopg

    from nightporter.store.postgres import PostgresTransactions
    from nightporter.store.sqlite import SqliteTransactions

    def begun(*_: object) -> None:
        _writing.acquire()
        _marks.done = set()

    def ended(*_: object) -> None:
        if _writing.locked():
            _writing.release()

    def before(_: object) -> None:
        for mark in _marks.done:
            if (point := _COMMITS[mark][0]) is not None:
                passed(point)

    def after(_: object, args: tuple[Any, ...]) -> None:
        ended()
        for mark in _marks.done:
            try:
                passed(_COMMITS[mark][1])
            except Unanswered:
                if args[0].__class__ is SqliteTransactions:
                    raise apsw.IOError("the answer to a commit was lost") from None
                args[0]._connection.close()
                raise psycopg.OperationalError("the answer to a commit was lost") from None

    for dialect in (SqliteTransactions, PostgresTransactions):
        _before(dialect, "begin", begun)
        _before(dialect, "commit", before)
        _after(dialect, "commit", after)
        _after(dialect, "rollback", ended)


def _around_the_transaction(passed: Passed) -> None:
    """What is written between a begin and its commit."""
    from nightporter.store import Tx

    def inside(name: str, point: str, mark: str = "") -> None:
        def did(result: Any, args: tuple[Any, ...]) -> None:
            # What it returned, or for those that return nothing, the rows they were given.
            if result or (result is None and args[1]):
                if mark:
                    _marks.done.add(mark)
                if point:
                    passed(point)

        _after(Tx, name, did)

    _after(Tx, "automation_named", lambda *_: passed("name-looked-up"))
    _after(Tx, "due", lambda found, _: passed("due-read") if found else None)
    _after(Tx, "due_next", lambda found, _: passed("due-read") if found else None)
    inside("advance", "slot-advanced", "slots")
    inside("queue_runs", "run-queued")
    inside("write_firings", "line-written")
    inside("claim", "run-claimed", "claim")
    inside("begin_runs", "run-queued")  # a run that begins as it is admitted passes both
    inside("begin_runs", "run-claimed", "claim")
    inside("end", "end-written", "end")
    inside("create_deliveries", "delivery-inserted")
    inside("send", "delivery-taken", "take")
    inside("end_deliveries", "delivery-written", "record")
    inside("retry", "", "retry")
    _after(Tx, "write_firings",
           lambda _, args: _marks.done.add("arrival") if any(row[4] == "call" for row in args[1]) else None)


def _around_the_boot(passed: Passed) -> None:
    from nightporter.engine import Engine
    from nightporter.engine.membership import Membership

    _around_await(Membership, "join", None, lambda: passed("boot-joined"))
    _after(Engine, "_recover", lambda *_: passed("boot-recovered"))
    _after(Engine, "_lead", lambda *_: passed("boot-settled"))


def _around_the_run(passed: Passed) -> None:
    from nightporter.dispatch.desk import WorkerDesk
    from nightporter.dispatch.flight import Flight
    from nightporter.outside.processes import _Child

    _before(Flight, "_land", lambda _: passed("result-computed"))
    _around_await(WorkerDesk, "child_started", lambda: passed("child-born"), lambda: passed("child-recorded"))
    _after(_Child, "let_go", lambda *_: passed("run-started"))
    _around_await(WorkerDesk, "effect_intended", None, lambda: passed("effect-intended"))
    _around_await(WorkerDesk, "effect_done", None, lambda: passed("effect-recorded"))


def _around_the_look(passed: Passed) -> None:
    from nightporter.dispatch.looking import Looking
    from nightporter.store import Tx

    _around_await(Looking, "_answer", lambda: passed("look-asked"), lambda: passed("look-answered"))
    _after(Looking, "_go_on", lambda *_: passed("look-written"))
    _after(Tx, "keep_looks", lambda _, args: passed("look-kept") if args[1] else None)


def _around_the_delivery(passed: Passed) -> None:
    from nightporter.destinations.file import FileDestination
    from nightporter.destinations.webhook import Webhook

    for destination in (FileDestination, Webhook):
        _around_await(destination, "send", None, lambda: passed("delivery-sent"))


def _around_the_sweep(passed: Passed) -> None:
    from nightporter import sweep
    from nightporter.store import Tx

    def declared(_: object, args: tuple[Any, ...]) -> None:
        if "dead" in args:
            _marks.done.add("declared")

    def lost(rows: object, _: object) -> None:
        if rows:
            _marks.done.add("lost")
            passed("sweep-runs-lost")

    _before(sweep, "bury", lambda _: passed("sweep-begin"))
    _after(sweep, "bury", lambda *_: passed("sweep-end"))
    _after(Tx, "end_worker", declared)
    _after(sweep, "end_children", lambda *_: passed("sweep-children-ended"))
    _after(Tx, "lose", lost)
    _after(sweep, "recover_deliveries", lambda *_: passed("sweep-deliveries"))
