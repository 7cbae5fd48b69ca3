"""The desk in the ward: `python ward.py ORDER`, a desk under fire whose disk can be ill.

Beside the words of a desk under fire it takes `ill lossy`, `ill full wal db`, `ill limit`, `ill read_only`, `ill` alone
(it is well again) and `add NAME`. It writes down, in a book on another disk, what it was told is done: effects that are
recorded, runs that have ended, deliveries that are recorded, automations that are added.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from fire.desk import FireDesk, say, without_clock
from fire.worlds import FREE, WORLDS, Hit, act, signed
from ill.lossy import IllDisk, Illness
from nightporter import logs, operations
from nightporter.definitions import read
from nightporter.delivery.courier import Courier
from nightporter.dispatch.desk import WorkerDesk
from nightporter.dispatch.flight import Flight
from nightporter.surfaces.api import Run, cron

ILLNESS = Illness()
STORE = Path()


class Book:
    """What was answered, on the disk before anybody goes on."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, kind: str, *what: str) -> None:
        os.write(self._file, json.dumps([kind, *what]).encode() + b"\n")


class WardDesk(FireDesk):
    """Takes a few words more."""

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            word, *names = line.split()
            if word == "ill":
                fall_ill(*names)
            else:
                done = (self._quieten() if word == "quiet" else self._add(names[0]) if word == "add"
                        else self._call(names))
                asyncio.run_coroutine_threadsafe(done, loop).result()
            say(word)

    async def _add(self, name: str) -> None:
        definition = read(json.dumps({"name": name, "target": {"noop": {}}}), format="yaml",
                          default_timezone="UTC", now=self.clock.now())
        await self.engine.write(lambda tx: operations.define(
            tx, definition, truth="store", by="ann", now=self.clock.now()))
        BOOK.write("added", name)


def fall_ill(what: str = "", *which: str) -> None:
    ILLNESS.lossy = ILLNESS.lossy or what == "lossy"
    ILLNESS.full = frozenset(which) if what == "full" else frozenset()
    ILLNESS.read_only = what == "read_only"
    # The kernel's own refusal, for a file that grows beyond the largest there is.
    largest = max(STORE.stat().st_size, Path(f"{STORE}-wal").stat().st_size) if what == "limit" else -1
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def keep_books() -> None:
    """Write down each answer at the place where whoever waits for it hears it."""
    done, ended, told = WorkerDesk.effect_done, Flight._tell, Courier._tell

    async def effect_done(self: WorkerDesk, work: Any, key: str, permalink: str = "") -> None:
        await done(self, work, key, permalink)
        BOOK.write("effect", work.run_id, key)

    def run_ended(self: Flight, written: Any) -> None:
        ended(self, written)
        for attempt, result in written:
            if result is not None and str(result.state) in ("succeeded", "failed", "skipped"):
                BOOK.write("ended", attempt.claimed.work.run_id, str(result.state))

    def recorded(self: Courier, written: Any) -> None:
        told(self, written)
        for tried, result in written:
            if result and tried.sent.receipt.value == "delivered":
                BOOK.write("delivered", tried.sending.parcel.event_id)

    WorkerDesk.effect_done = effect_done  # type: ignore[method-assign]
    Flight._tell = run_ended  # type: ignore[method-assign]
    Courier._tell = recorded  # type: ignore[method-assign]


def ward(desk: Hit) -> None:
    """The house without what takes long: everything in it ends within milliseconds, so that much is answered."""
    order = desk.order
    second = cron("* * * * * *")
    desk.define("tick", {"echo": {"text": "tock"}}, second, overlap="parallel",
                deliver=[{"file": "{{name}}/{{run}}.txt"}, signed(order)], limits=FREE)
    desk.define("arrive", {"echo": {"text": "welcome"}}, deliver=[signed(order)], limits=FREE)

    @desk.automation(second, name="acts", overlap="parallel", idempotent=True, limits={**FREE, "concurrent": 3},
                     retry={"attempts": 100}, deliver=[signed(order)])
    def acts(run: Run) -> str:
        return act(desk, run, "first", "second")


WORLDS["ward"] = ward


def main() -> None:
    order = json.loads(sys.argv[1])
    logs.configure("json", sys.stderr)
    disk = IllDisk(ILLNESS)  # registered for as long as somebody holds it
    fall_ill(*order.get("ill", "").split())
    ILLNESS.dies = tuple(order.get("dies") or ILLNESS.dies)
    if order.get("careless"):
        be_careless()
    keep_books()
    desk = WardDesk(order)
    WORLDS[order["world"]](desk)
    if order["quiet"]:
        desk._definitions = [without_clock(definition) for definition in desk._definitions]
    desk.serve()
    del disk


def be_careless() -> None:
    """Commits that are answered before they are on the disk: what the tests of this folder have to find."""
    from nightporter.store import sqlite, sqlite_file

    connect = sqlite_file.connect

    def careless(path: str, **how: Any) -> Any:
        connection = connect(path, **how)
        connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    setattr(sqlite, "connect", careless)  # noqa: B010  mypy forbids the assignment


if __name__ == "__main__":
    STORE = Path(json.loads(sys.argv[1])["store"])
    BOOK = Book(str(Path(json.loads(sys.argv[1])["told"]).with_name("answered")))
    main()
