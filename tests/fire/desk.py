"""The desk under fire: `python desk.py ORDER`, where ORDER is JSON; see `house.Order`.

Speaks in lines of JSON on standard output (`ready`, `quiet`, ...), listens to words on standard input (`quiet`, `full`,
`room`, `set` and seconds, or `call` and names of automations), and logs to standard error. SIGTERM drains
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from fire import elsewhere
from fire.worlds import WORLDS, Hit
from nightporter import logs
from nightporter.admission import admit
from nightporter.errors import NightporterError
from nightporter.store import Tx
from nightporter.surfaces.api import Porter
from nightporter.words import Answer, Firing

SETTINGS = ("beat", "lease", "sweep", "drain", "patience", "boot_push")
BURST = 6
"""Arrivals that a program admits at once, each in a transaction of its own, so that they share a commit."""
BETWEEN_BURSTS = 6
"""Of so many arrivals one is a burst, unless the order says another number."""
ROOM = 1_000_000_000
"""Pages of a disk that is not full."""


def say(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


class FireDesk(Hit):
    """A Porter that says when it is ready and does what it is told."""

    def __init__(self, order: dict[str, Any]) -> None:
        settings: dict[str, Any] = {
            name: timedelta(seconds=value) if name in SETTINGS else value for name, value in order["settings"].items()
        }
        super().__init__(home=order["home"], store=order["store"], **settings)
        self.order = order
        self.passed: Callable[[str], None] = lambda _: None
        self._arrivals: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def running(self, *, watch_files: bool = False) -> AsyncIterator[Porter]:
        async with super().running(watch_files=watch_files):
            engine = self.engine
            say("ready", worker=engine.worker, leading=engine.leading, guard=engine._guard.pid, at=self.clock.now())
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
            self._arrivals = loop.create_task(self._arrive()) if self.order["arrivals"] else None
            try:
                yield self
            finally:
                await self._no_more_arrivals()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            word, *names = line.split()
            match word:
                case "quiet":
                    done = self._quieten()
                case "full":
                    done = self._bound(0)
                case "set":
                    done = self._set_clock(float(names[0]))
                case "room":
                    done = self._bound(ROOM)
                case _:
                    done = self._call(names)
            asyncio.run_coroutine_threadsafe(done, loop).result()
            say(word)

    async def _quieten(self) -> None:
        """No clock trigger and no arrival any more: what was started ends, and nothing new begins."""
        await self._no_more_arrivals()
        self._definitions = [without_clock(definition) for definition in self._definitions]
        await self.engine.write(self._put_definitions)

    async def _no_more_arrivals(self) -> None:
        if self._arrivals is not None:
            self._arrivals.cancel()
            # A firing that was put is admitted all the same: a write behind it is done once it is.
            with contextlib.suppress(asyncio.CancelledError):
                await self._arrivals
            self._arrivals = None

    async def _call(self, names: list[str]) -> None:
        for name in names:
            await self.fire(name)

    async def _set_clock(self, seconds: float) -> None:
        """Somebody sets the wall clock of this machine: it is off by so much from now on."""
        elsewhere.off_by(seconds)

    async def _bound(self, pages: int) -> None:
        """From now on the store's file takes so many pages at most; 0: as many as it has."""

        def bound(tx: Tx) -> None:
            connection = tx.sql._connection  # type: ignore[attr-defined]  # of the SQLite port
            [(now,)] = connection.execute("PRAGMA page_count")
            connection.execute(f"PRAGMA max_page_count={pages or now}")

        await self.engine.write(bound)

    async def _arrive(self) -> None:
        """Tell the desk of one arrival after another; write down each that it took, once it says so."""
        book = os.open(self.order["told"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        turn = 0
        while True:
            await asyncio.sleep(self.order["arrivals"])
            number = len(open(self.order["told"]).readlines())  # noqa: PTH123, SIM115
            turn += 1
            try:
                if turn % self.order.get("between", BETWEEN_BURSTS):
                    # One that was not answered may have been taken all the same: the same one is told again.
                    name = f"arrival-{number}"
                    taken = {name: await self.fire("arrive", payload={"n": number}, external_id=name)}
                else:
                    taken = await self._burst([f"{self.engine.worker}-{turn}-{n}" for n in range(BURST)])
            except NightporterError:  # an ill store, or one that does not have what it said it has
                continue
            for external_id, answer in taken.items():
                os.write(book, json.dumps({"id": external_id, "run": answer.run_id}).encode() + b"\n")
            os.fsync(book)

    async def _burst(self, external_ids: list[str]) -> dict[str, Answer]:
        trigger = await self._trigger_id("arrive", "call")

        def admitted(n: int, external_id: str) -> Callable[[Tx], Answer]:
            def write(tx: Tx) -> Answer:
                answer = admit(tx, [Firing(trigger, external_id, sender="code")], now=self.clock.now())[0]
                if n >= BURST // 2:
                    # What needs room in the file, which may be full. A single row: then SQLite undoes all there was.
                    tx.put_setting(f"load-{external_id}", "x" * 5000)
                return answer

            return write

        answers = await asyncio.gather(
            *(self.engine.write(admitted(n, each)) for n, each in enumerate(external_ids)), return_exceptions=True
        )
        return {each: answer for each, answer in zip(external_ids, answers, strict=True)
                if not isinstance(answer, BaseException)}


def everyone_leads() -> None:
    """Leadership spares work; what it must not be needed for is that each slot has one answer."""
    from nightporter.engine.sources import Sources
    from nightporter.sources.clock import Restart
    from nightporter.sources.together import Together

    def take_over(self: Sources, load: Callable[[], None], *, push: int = 0) -> None:
        self.answer(Restart(push))
        load()
        self.leading = True

    setattr(Sources, "take_over", take_over)  # noqa: B010  mypy forbids the assignment
    setattr(Sources, "step_down", lambda *_: None)  # noqa: B010
    setattr(Together, "_leading", lambda _, tx, work: work(tx))  # noqa: B010


def slowly(seconds: float) -> None:
    """As on a disk that takes its time for each commit."""
    from nightporter.store.postgres import PostgresTransactions
    from nightporter.store.sqlite import SqliteTransactions

    def slow(commit: Callable[[Any], None]) -> Callable[[Any], None]:
        def committed(self: Any) -> None:
            time.sleep(seconds)
            commit(self)

        return committed

    for transactions in (SqliteTransactions, PostgresTransactions):
        setattr(transactions, "commit", slow(transactions.commit))  # noqa: B010


def in_a_hurry() -> None:
    """Receivers get one second, not fifteen: some of them answer later than that."""
    from nightporter.destinations.webhook import Webhook

    Webhook.__init__.__defaults__ = (timedelta(seconds=1),)


def without_clock(definition: Any) -> Any:
    return replace(definition, triggers=tuple(t for t in definition.triggers if t.kind != "clock"))


def main() -> None:
    order = json.loads(sys.argv[1])
    logs.configure("json", sys.stderr)
    in_a_hurry()
    elsewhere.be(**order.get("elsewhere", {}))
    desk = FireDesk(order)
    if order["bug"]:
        from fire.seeded import plant

        plant(order["bug"])
    if order["fault"]:
        from fire.points import arm

        desk.passed = arm(order["fault"])
    if order["slow"]:
        slowly(order["slow"])
    if order["all_lead"]:
        everyone_leads()
    WORLDS[order["world"]](desk)
    if order["quiet"]:
        desk._definitions = [without_clock(definition) for definition in desk._definitions]
    desk.serve()


if __name__ == "__main__":
    main()
