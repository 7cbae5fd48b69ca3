"""How the desk is: who is alive, what waits, what runs, what wants a person."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from nightporter.clock import DAY, SECOND, Instant
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
CLOCK_BACK = 5 * SECOND
"""By less a clock was corrected."""
CLOCK_BEHIND = "This machine's clock is {} behind what the desk has already seen: no slot fires before it is right."
"""Said where somebody asks how things stand."""
WEEK = 7 * DAY
GAPS = 3
COMING = 3
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
    draining_at: Instant | None = None
    """Since when it takes nothing more and lets its runs end."""

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


class DeskWord(StrEnum):
    """How the desk is, in a word. Only `running` is well."""

    RUNNING = "running"
    """One leads, or is about to, and looked at what is due recently."""
    FROZEN = "frozen"
    """It lives, and has not looked at what is due for too long."""
    DRAINING = "draining"
    """It takes nothing more, and lets its runs end."""
    CANNOT_WRITE = "cannot_write"
    """It lives, and its store takes nothing."""
    STOPPED = "stopped"
    """A person stopped everything."""
    GONE = "gone"
    """None is there."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A span in which nobody looked at the clock, or it was not to be trusted."""

    kind: str
    since: Instant
    until: Instant

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Coming:
    """A slot that comes."""

    automation: str
    trigger: str
    at: Instant

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of the desk at an instant. Ages are seconds."""

    at: Instant
    healthy: bool
    """`desk` is `running`."""
    desk: DeskWord
    stopped: Stopped | None
    workers: tuple[WorkerLine, ...]
    due_evaluated_at: Instant | None
    due_evaluated_ago: float | None
    due_behind: float
    """How long the earliest slot that has come has been without its answer; 0 where none has."""
    clock_behind: float
    """Seconds by which this clock is behind what the desk has seen, 0.0 for none: no slot fires before it caught up."""
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
    incidents: dict[str, int]
    """Those that are not over, by state."""
    missed_cards: int
    """Missed slots that a person is to decide about."""
    gaps: tuple[Gap, ...]
    """Of the last week, the newest first."""
    coming: tuple[Coming, ...]
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
    behind = clock_behind(tx, now)
    waiting = tuple(
        Waiting(on or "claim", runs, max(now - oldest, 0) / SECOND) for on, runs, oldest in tx.read_queue()
    )
    running, oldest_attempt = tx.read_running()
    aside = tx.read_set_aside()
    armed, next_fire_at = tx.read_armed()
    pending, next_try_at, sending, failed = tx.read_delivery_counts()
    desk = desk_word(tx, workers, now)
    desks = sum(w.role == "desk" and w.alive is not False and w.draining_at is None for w in workers)
    return Status(
        at=now, healthy=desk is DeskWord.RUNNING, desk=desk, stopped=stopped, workers=workers,
        due_evaluated_at=evaluated, due_evaluated_ago=None if evaluated is None else seconds(max(now - evaluated, 0)),
        clock_behind=behind / SECOND,
        due_behind=0.0 if next_fire_at is None or next_fire_at >= now else (now - next_fire_at) / SECOND,
        leader=tx.leader(), standby=max(desks - 1, 0), automations=tx.read_automation_states(), armed=armed,
        next_fire_at=next_fire_at, queued=sum(each.runs for each in waiting), waiting=waiting, running=running,
        longest_running=None if oldest_attempt is None else seconds(max(now - oldest_attempt, 0)),
        held=aside.get("held", 0),
        lost=aside.get("lost", 0), review=aside.get("review", 0), deliveries_pending=pending, next_try_at=next_try_at,
        deliveries_sending=sending, deliveries_failed=failed, dead_letters=tx.read_dead_count(),
        inbox_unread=tx.read_unread_count(), incidents=tx.read_incidents_open(),
        missed_cards=tx.read_cards_pending()[0],
        gaps=tuple(Gap(*row) for row in tx.read_gaps(Instant(now - WEEK), GAPS)),
        coming=tuple(Coming(*row[:3]) for row in tx.read_coming(COMING)), store=tx.dialect,
        schema_version=int(tx.setting("schema_version") or 0),
    )


def worker_lines(tx: Tx, host: str) -> tuple[WorkerLine, ...]:
    """The processes that have joined and not left, with what their locks say."""
    draining = tx.draining()
    return tuple(
        WorkerLine(id, role, where, pid, started_at, *(_seen(lock_path) if host and where == host else (None, "")),
                   draining_at=draining.get(id))
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


def desk_word(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> DeskWord:
    """How the desk is, in a word. That a process lives says nothing: what counts is that what is due was looked at."""
    desks = [w for w in workers if w.role == "desk" and w.alive is not False]
    if tx.stopped():
        return DeskWord.STOPPED
    if not desks:
        return DeskWord.GONE
    if troubles(workers):
        return DeskWord.CANNOT_WRITE
    if all(w.draining_at is not None for w in desks):
        return DeskWord.DRAINING
    return DeskWord.RUNNING if desk_looks(tx, workers, now) else DeskWord.FROZEN


def desk_looks(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> bool:
    """Whether a desk is there that answers what is due: it lives by its lock, or it looked recently."""
    desks = [w for w in workers if w.role == "desk" and w.alive is not False and w.draining_at is None]
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


def clock_behind(tx: Tx, now: Instant) -> int:
    """By how many microseconds this clock is behind what the desk has seen; 0 where it is right. No slot fires before
    it has caught up."""
    behind = (high_water(tx) or 0) - now
    return behind if behind > CLOCK_BACK else 0


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
