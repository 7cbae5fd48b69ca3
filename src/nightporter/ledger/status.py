"""How the desk is: who is alive, what waits, what runs, what wants a person."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightporter.clock import SECOND, Instant
from nightporter.ledger.moments import seconds
from nightporter.ledger.pages import plain
from nightporter.store import Tx
from nightporter.store.locks import is_free, word_in
from nightporter.store.tx_sweep import STOPPED
from nightporter.words.kept import read_back

DUE_EVALUATED_AT = "due_evaluated_at"
"""The setting in which the leading desk says when it last looked at what is due; microseconds."""
CLOCK_HIGH_WATER = "clock_high_water"
"""The setting that keeps the latest wall clock the desk has seen; microseconds."""
RECENTLY = 150 * SECOND
"""The clock looks once a minute at the least and says so with the next lease."""


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A process that has joined and not left."""

    id: str
    role: str
    host: str
    pid: int
    started_at: Instant
    alive: bool | None
    """By its file lock; None where that cannot be told, as when the file is on another machine."""
    trouble: str = ""
    """Why it cannot write, as it says there."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Queued runs that wait for the same thing."""

    on: str
    """claim | time | overlap | concurrency | paused"""
    runs: int
    oldest: float
    """Seconds since the oldest was admitted."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Stopped:
    """The whole desk was stopped by a person."""

    by: str
    reason: str
    at: Instant | None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the desk at an instant. Ages are seconds."""

    at: Instant
    healthy: bool
    """A desk looked recently at what is due and can write, and nobody stopped it."""
    stopped: Stopped | None
    workers: tuple[WorkerLine, ...]
    due_evaluated_at: Instant | None
    due_evaluated_ago: float | None
    leader: str | None
    """The worker that answers what is due; None: nobody does just now."""
    standby: int
    """Desks beside the one that leads."""
    automations: dict[str, int]
    """By state."""
    armed: int
    next_fire_at: Instant | None
    queued: int
    waiting: tuple[Waiting, ...]
    running: int
    longest_running: float | None
    held: int
    lost: int
    review: int
    deliveries_pending: int
    next_try_at: Instant | None
    deliveries_sending: int
    deliveries_failed: int
    dead_letters: int
    inbox_unread: int
    store: str
    """sqlite or postgres."""
    schema_version: int

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def status(tx: Tx, now: Instant, *, host: str = "") -> Status:
    """How things stand. `host` is this machine's name, for telling by their locks which workers live on it."""
    workers = worker_lines(tx, host)
    evaluated = evaluated_at(tx)
    stopped = stop_of(tx)
    waiting = tuple(
        Waiting(on or "claim", runs, (now - oldest) / SECOND) for on, runs, oldest in tx.read_queue()
    )
    running, oldest_attempt = tx.read_running()
    aside = tx.read_set_aside()
    armed, next_fire_at = tx.read_armed()
    pending, next_try_at, sending, failed = tx.read_delivery_counts()
    well = desk_looks(tx, workers, now) and stopped is None and not troubles(workers)
    desks = sum(w.role == "desk" and w.alive is not False for w in workers)
    return Status(
        at=now, healthy=well, stopped=stopped, workers=workers,
        due_evaluated_at=evaluated, due_evaluated_ago=None if evaluated is None else seconds(now - evaluated),
        leader=tx.leader(), standby=max(desks - 1, 0), automations=tx.read_automation_states(), armed=armed,
        next_fire_at=next_fire_at, queued=sum(each.runs for each in waiting), waiting=waiting, running=running,
        longest_running=None if oldest_attempt is None else seconds(now - oldest_attempt), held=aside.get("held", 0),
        lost=aside.get("lost", 0), review=aside.get("review", 0), deliveries_pending=pending, next_try_at=next_try_at,
        deliveries_sending=sending, deliveries_failed=failed, dead_letters=tx.read_dead_count(),
        inbox_unread=tx.read_unread_count(), store=tx.dialect, schema_version=int(tx.setting("schema_version") or 0),
    )


def worker_lines(tx: Tx, host: str) -> tuple[WorkerLine, ...]:
    """The processes that have joined and not left, with what their locks say."""
    return tuple(
        WorkerLine(id, role, where, pid, started_at, *(_seen(lock_path) if host and where == host else (None, "")))
        for id, role, where, pid, _, lock_path, started_at in tx.workers()
    )


def _seen(lock_path: str) -> tuple[bool | None, str]:
    """Whether the holder of a lock lives, and the word it left."""
    path = Path(lock_path)
    if not lock_path or "\0" in lock_path or not path.exists():
        return None, ""
    alive = not is_free(path)
    return alive, word_in(path) if alive else ""


def troubles(workers: tuple[WorkerLine, ...]) -> tuple[WorkerLine, ...]:
    """The living ones that cannot write."""
    return tuple(w for w in workers if w.alive and w.trouble)


def desk_looks(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> bool:
    """Whether a desk is there that answers what is due: it lives by its lock, or it looked recently."""
    desks = [w for w in workers if w.role == "desk" and w.alive is not False]
    if not desks:
        return False
    if any(w.alive and now - w.started_at < RECENTLY for w in desks):
        return True  # young: it has had no occasion yet to say that it looked
    evaluated = evaluated_at(tx)
    return evaluated is not None and now - evaluated <= RECENTLY


def evaluated_at(tx: Tx) -> Instant | None:
    """When what is due was last looked at."""
    return _instant(tx.setting(DUE_EVALUATED_AT))


def high_water(tx: Tx) -> Instant | None:
    """The latest wall clock the desk has seen."""
    return _instant(tx.setting(CLOCK_HIGH_WATER))


def stop_of(tx: Tx) -> Stopped | None:
    """Who stopped the desk, when and why; None when it is not stopped."""
    text = tx.setting(STOPPED)
    if text is None:
        return None
    try:
        said = read_back(text)
        return Stopped(str(said.get("by", "")), str(said.get("reason", "")), _instant(str(said.get("at", ""))))
    except (ValueError, AttributeError):  # whatever stands there, the desk takes it for a stop
        return Stopped("", text, None)


def _instant(text: str | None) -> Instant | None:
    return Instant(int(text)) if text and text.isdecimal() and len(text) < 19 else None
