"""delivery: an ended run's result is carried to each of its destinations.

    Promise       One delivery per run and destination, created with the run's end; tried by itself until it is
                  delivered with evidence or given up, and never a reason to run the work again. Every try sends the
                  same event id and the same body. One receiver never holds up another.
    Takes         Deliveries in state `pending` whose time has come.
    Leaves        delivered, unverified, given_up or unknown; a line for each try.
    Picked up by  nobody; a person, for what was given up
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from nightporter import logs
from nightporter.clock import Clock, Instant, micros, rfc3339
from nightporter.errors import StoreError
from nightporter.rules.retry import DELIVERY_TRIES, delivery_delay, draw, jittered
from nightporter.states import DeliveryState
from nightporter.store import Store, Tx
from nightporter.store.gather import Answered, Gather
from nightporter.words import (
    Definition,
    DeliveryId,
    DestinationPort,
    Parcel,
    Reason,
    Receipt,
    RunId,
    Sent,
    derived_id,
)

log = logs.get(__name__)

Destinations = Mapping[str, DestinationPort]

TRY_SECONDS = 15.0
SLOTS = 32
LANE_SLOTS = 4
"""Deliveries to one receiver in the air at once: a slow one fills its own lane and no other."""
RETRY_WRITE = 1.0


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery under this worker's claim."""

    parcel: Parcel
    kind: str
    lane: str
    token: int
    tries: int
    """Counting this one, and not those before a person sent it again."""
    best_effort: bool
    automation_id: str
    error: str = ""
    """Why it cannot even be tried; empty otherwise."""

    @property
    def body_hash(self) -> str:
        """Of the body that every try sends."""
        return hashlib.sha256(json.dumps(self.parcel.body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Tried:
    """A delivery after one try, on its way into the ledger."""

    taken: Taken
    sent: Sent


def take(
    tx: Tx, *, worker: str, room: int, lanes: Mapping[str, int], now: Instant
) -> list[Taken]:
    """pending -> sending for what is due, `room` at most and four to a lane. A stopped desk delivers nothing."""
    if room <= 0 or tx.stopped():
        return []
    full = {lane for lane, n in lanes.items() if n >= LANE_SLOTS}
    used = Counter(lanes)
    chosen: list[str] = []
    for delivery, lane in tx.delivery_candidates(now, room, full):
        if used[lane] < LANE_SLOTS:
            used[lane] += 1
            chosen.append(delivery)
    rows = tx.send(chosen, worker=worker)
    results = tx.results({row[1] for row in rows})
    return [_taken(tx, row, results.get(row[1])) for row in rows]


def record(tx: Tx, tried: Sequence[Tried], destinations: Destinations, *, now: Instant) -> list[bool]:
    """Write how tries ended; for each, whether the claim was still current."""
    ends: list[tuple[object, ...]] = []
    later: list[tuple[object, ...]] = []
    gave_up: list[Tried] = []
    for t in tried:
        parcel, sent = t.taken.parcel, t.sent
        match sent.receipt:
            case Receipt.DELIVERED:
                ends.append(_end(t, DeliveryState.DELIVERED, None))
            case Receipt.UNVERIFIED:
                ends.append(_end(t, DeliveryState.UNVERIFIED, Reason.UNVERIFIED))
            case Receipt.PERMANENT:
                ends.append(_end(t, DeliveryState.GIVEN_UP, sent.reason or Reason.REJECTED_BY_RECEIVER))
                gave_up.append(t)
            case Receipt.TRANSIENT if t.taken.tries >= DELIVERY_TRIES:
                ends.append(_end(t, DeliveryState.GIVEN_UP, Reason.GAVE_UP))
                gave_up.append(t)
            case Receipt.TRANSIENT:
                delay = jittered(delivery_delay(t.taken.tries), draw(parcel.delivery_id, t.taken.tries))
                wait = max(micros(delay), micros(sent.retry_after or timedelta(0)), 1)
                later.append((parcel.delivery_id, t.taken.token, now + wait, sent.reason or Reason.UNREACHABLE,
                              sent.error))
            case _:
                assert_never(sent.receipt)
    current = tx.end_deliveries(ends, now=now) | tx.defer(later)
    tx.write_tries(
        [(t.taken.parcel.delivery_id, t.taken.parcel.attempt, t.sent.receipt, t.sent.status, t.taken.parcel.event_id,
          t.taken.body_hash, t.sent.error) for t in tried if t.taken.parcel.delivery_id in current],
        now=now,
    )
    announce_given_up(tx, [t for t in gave_up if t.taken.parcel.delivery_id in current], now=now)
    return [t.taken.parcel.delivery_id in current for t in tried]


def recover(tx: Tx, worker: str, destinations: Destinations, *, now: Instant, room: int = 250) -> int:
    """What a dead worker was handing over: sent again where a repeat does no harm, else `unknown`; how many."""
    held = tx.sending_of(worker, room)
    again, doubt = [], []
    for delivery, token, kind, *_ in held:
        destination = destinations.get(kind)
        if destination is not None and destination.repeatable:
            again.append((delivery, token, now, None, "its worker died while sending; the same event goes out again"))
        else:
            doubt.append((delivery, token, DeliveryState.UNKNOWN, None, "", "its worker died while sending"))
    tx.defer(again)
    tx.end_deliveries(doubt, now=now)
    if held:
        tx.kick("delivery")
    return len(held)


def announce_given_up(tx: Tx, tried: Sequence[Tried], *, now: Instant) -> None:
    """A notice in the inbox for each delivery that was given up, unless it was best effort."""
    tx.write_inbox(
        [
            (derived_id("inb", now, t.taken.parcel.delivery_id, str(t.taken.token)), t.taken.parcel.workspace, "",
             t.taken.automation_id, t.taken.parcel.run_id, "given_up",
             f"{t.taken.parcel.automation}: a result was not delivered",
             f"Its destination is {t.taken.lane}. {t.sent.error}\n"
             f"nightporter deliver {t.taken.parcel.run_id} sends it again; the work is not repeated.")
            for t in tried if not t.taken.best_effort
        ],
        now=now,
    )


def body_of(row: tuple[Any, ...], automation: str) -> dict[str, Any]:
    """The body of a delivery, from facts that do not change once the run has ended."""
    (run, automation_id, _, state, outcome, reason, error, exit_code, attempt, scheduled_for, queued_at, started_at,
     ended_at, ran_late, source, text, data) = row
    good = state in ("succeeded", "skipped")
    return {
        "type": f"{automation}.execution.{'succeeded' if good else 'failed'}",
        "timestamp": rfc3339(ended_at),
        "data": {
            "run": run, "automation": automation, "automation_id": automation_id, "trigger": source, "state": state,
            "outcome": outcome, "reason": reason, "text": text or "",
            "data": None if data is None else json.loads(data), "error": error, "exit_code": exit_code,
            "attempt": attempt, "scheduled_for": rfc3339(scheduled_for), "queued_at": rfc3339(queued_at),
            "started_at": rfc3339(started_at), "ended_at": rfc3339(ended_at),
            "ran_late": bool(ran_late),
        },
    }


def _taken(tx: Tx, row: tuple[Any, ...], result: tuple[Any, ...] | None) -> Taken:
    (delivery, run, kind, lane, destination, event, tries, token, best_effort, workspace, automation_id,
     tries_before) = row
    name, config, body, error, ended_at = "", {}, {}, "", Instant(0)
    try:
        if result is None:
            raise ValueError(f"run {run} is not in the store")
        name, text = tx.definition(automation_id, result[2])
        config = dict(next(d.config for d in Definition.from_json(text).deliver if d.name == destination))
        body, ended_at = body_of(result, name), result[12]
    except Exception as unreadable:  # one bad row is this delivery's failure and nobody else's
        error = f"what it should carry cannot be read: {unreadable}"
    parcel = Parcel(
        DeliveryId(delivery), event, RunId(run), name, workspace, config, body, Instant(ended_at), tries
    )
    return Taken(parcel, kind, lane, token, tries - tries_before, bool(best_effort), automation_id, error)


def _end(tried: Tried, state: DeliveryState, reason: Reason | None) -> tuple[object, ...]:
    taken, sent = tried.taken, tried.sent
    return (taken.parcel.delivery_id, taken.token, state, reason, sent.evidence, sent.error)


class Courier:
    """The deliveries this worker has in the air, on the event loop of the program that hosts it."""

    def __init__(
        self, store: Store, clock: Clock, destinations: Destinations, *, worker: str, slots: int = SLOTS
    ) -> None:
        self._store = store
        self._clock = clock
        self._destinations = destinations
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._free = slots
        self._lanes: Counter[str] = Counter()
        self._taking = True
        self._air = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._records: Gather[Tried, Tried, bool] = Gather(store.writer, self._record, self._recorded_on_writer)
        store.writer.ride("delivery", self._take, self._taken_on_writer)

    @property
    def in_the_air(self) -> int:
        """Deliveries taken whose try is not yet written."""
        return self._air

    async def idle(self) -> None:
        """Wait until nothing is in the air."""
        await self._idle.wait()

    def look(self) -> None:
        """Take what is due; called by the worker's loop and by kicks."""
        if self._taking and self._free > 0:
            self._store.writer.post(self._take, self._looked)

    async def drain(self, seconds: float) -> None:
        """Take no more; let what is in the air end, cutting it short after `seconds`."""
        self._taking = False
        self._store.writer.unride("delivery")
        await self._told()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            for task in list(self._tasks):
                task.cancel()
            await self._idle.wait()

    async def _told(self) -> None:
        """Wait until what was being taken when the taking ended is in the air."""
        told = asyncio.Event()

        def answer(*_: object) -> None:
            self._loop.call_soon_threadsafe(told.set)

        self._store.writer.post(lambda _: None, answer)
        await told.wait()

    def _take(self, tx: Tx) -> list[Taken]:
        with self._lock:
            lanes, room = dict(self._lanes), self._free if self._taking and not tx.declared_dead(self._worker) else 0
        return take(tx, worker=self._worker, room=room, lanes=lanes, now=self._clock.now())

    def _looked(self, taken: list[Taken] | None, error: BaseException | None) -> None:
        if error is not None:
            log.warning("delivery.take_failed", error=str(error))
        elif taken:
            self._taken_on_writer(taken)

    def _taken_on_writer(self, taken: list[Taken]) -> None:
        if taken:
            with self._lock:
                self._free -= len(taken)
                self._lanes.update(t.lane for t in taken)
            self._loop.call_soon_threadsafe(self._launch, taken)

    def _launch(self, taken: list[Taken]) -> None:
        self._air += len(taken)
        self._idle.clear()
        for one in taken:
            task = self._loop.create_task(self._carry(one), name=one.parcel.delivery_id)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _carry(self, taken: Taken) -> None:
        destination = self._destinations.get(taken.kind)
        if taken.error or destination is None:
            error = taken.error or f"no destination is called {taken.kind!r} here"
            sent = Sent(Receipt.PERMANENT, error=error, reason=Reason.CONFIGURATION)
        else:
            try:
                async with asyncio.timeout(TRY_SECONDS):
                    sent = await destination.send(taken.parcel)
            except TimeoutError:
                sent = Sent(Receipt.TRANSIENT, error=f"no answer within {TRY_SECONDS:g} s", reason=Reason.UNREACHABLE)
            except asyncio.CancelledError:
                sent = Sent(Receipt.TRANSIENT, error="the desk was shut down while sending", reason=Reason.SHUTDOWN)
            except Exception as error:  # a throw nobody expected says nothing about the receiver: try again
                log.exception("delivery.destination_raised", delivery=taken.parcel.delivery_id)
                sent = Sent(Receipt.TRANSIENT, error=f"{type(error).__name__}: {error}")
        with self._lock:
            self._free += 1
            self._lanes[taken.lane] -= 1
            if not self._lanes[taken.lane]:
                del self._lanes[taken.lane]
        tried = Tried(taken, sent)
        self._records.put(tried, tried)

    def _record(self, tx: Tx, tried: list[Tried]) -> list[bool]:
        tx.kick("delivery")  # a lane has room again
        return record(tx, tried, self._destinations, now=self._clock.now())

    def _recorded_on_writer(self, answered: Answered[Tried, bool]) -> None:
        for tried, current, error in answered:
            if error is None and current:
                log.info("delivery.tried", automation=tried.taken.parcel.automation, run=tried.taken.parcel.run_id,
                         to=tried.taken.lane, result=str(tried.sent.receipt), evidence=tried.sent.evidence,
                         error=tried.sent.error)
        for tried, current, error in answered:
            if error is None and not current:
                log.warning("delivery.lost_claim", delivery=tried.taken.parcel.delivery_id, token=tried.taken.token)
        failed = [(tried, error) for tried, _, error in answered if error is not None]
        self._loop.call_soon_threadsafe(self._recorded, len(answered) - len(failed), failed)

    def _recorded(self, written: int, failed: list[tuple[Tried, BaseException]]) -> None:
        self._air -= written
        for tried, error in failed:
            log.error("delivery.try_not_written", delivery=tried.taken.parcel.delivery_id, error=str(error))
            if isinstance(error, StoreError):
                self._loop.call_later(RETRY_WRITE, self._records.put, tried, tried)
            else:
                self._air -= 1
        if not self._air:
            self._idle.set()
