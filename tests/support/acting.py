"""What happens to runs and deliveries, done by the stages themselves: the scenes that the record is read back from."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from nightporter import delivery
from nightporter.clock import Instant, micros
from nightporter.delivery import Tried
from nightporter.dispatch import Attempt, Claimed, Definitions, Runners, claim, end, recover
from nightporter.runners.echo import Echo
from nightporter.runners.noop import Noop
from nightporter.store import Store
from nightporter.words import Desk, Ended, RunId, Sent, Work
from words import rows

_workers = itertools.count(1)


class Opaque:
    """Stands for a runner whose acts nobody can see."""

    kind = "script"
    opaque = True

    async def run(self, work: Work, desk: Desk) -> Ended:
        raise AssertionError("these scenes end attempts by hand")


RUNNERS: Runners = {"echo": Echo(), "noop": Noop(), "script": Opaque()}


def after(now: int, **span: float) -> Instant:
    """An instant some time after another."""
    return Instant(now + micros(timedelta(**span)))


def a_worker(store: Store, now: Instant, role: str = "desk", *, name: str = "") -> str:
    """A worker that has joined; one of this name, which may have been there already."""
    name = name or f"wrk_{next(_workers)}"
    if not rows(store, "SELECT 1 FROM worker WHERE id = ?", name):
        store.write(lambda tx: tx.join(name, role=role, host="here", pid=4711, lock_path="", now=now))
    return name


def begin(store: Store, now: Instant, *, worker: str = "", run: str | None = None, room: int = 1) -> list[Claimed]:
    """Runs are claimed and started."""
    by = worker or a_worker(store, now)
    return store.write(lambda tx: claim(
        tx, worker=by, room=room, now=now, runners=RUNNERS, definitions=Definitions(),
        only=None if run is None else RunId(run),
    ))


def finish(store: Store, claimed: Claimed, ended: Ended, now: Instant) -> None:
    """An attempt ends so."""
    store.write(lambda tx: end(tx, [Attempt(claimed, ended)], RUNNERS, now=now))


def die(store: Store, worker: str, now: Instant) -> dict[str, int]:
    """A worker is found dead."""
    store.write(lambda tx: tx.end_worker(worker, "dead", now=now))
    return store.write(lambda tx: recover(tx, worker, RUNNERS, Definitions(), now=now))


def send(store: Store, sent: Sent, now: Instant, *, worker: str = "wrk_courier") -> None:
    """What is to be delivered is handed over once, and the try ends so."""
    a_worker(store, now, name=worker)
    taken = store.write(lambda tx: delivery.claim(tx, worker=worker, room=10, lanes={}, now=now))
    assert taken
    store.write(lambda tx: delivery.record(tx, [Tried(t, sent) for t in taken], {}, now=now))


def setting(store: Store, key: str, value: Any) -> None:
    """A setting is written."""
    store.write(lambda tx: tx.put_setting(key, str(value)))
