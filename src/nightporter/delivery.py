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
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, assert_never

from nightporter import logs
from nightporter.clock import Clock, Instant, micros, rfc3339
from nightporter.errors import StoreError, StoreRefused
from nightporter.rules.retry import DELIVERY_LONGEST, DELIVERY_TRIES, delivery_delay, draw, jittered
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
    bare: bool = False
    """What the receiver said could not be written; only how it ended is left to write."""


def take(
    tx: Tx, *, worker: str, room: int, lanes: Mapping[str, int], now: Instant
) -> list[Taken]:
    """pending -> sending for what is due, `room` at most and four to a lane. A stopped desk delivers nothing."""
    if room <= 0 or not tx.claim_facts(worker, now)[0]:
        return []
    used = Counter(lanes)
    chosen: dict[str, str] = {}
    full: set[str] = set()
    while len(chosen) < room:
        before, full = full, {lane for lane, n in used.items() if n >= LANE_SLOTS}
        if chosen and full == before:
            break  # nothing stands behind a lane that has filled up since the last look
        found = tx.delivery_candidates(now, room, full)
        for delivery, lane in found:
            if delivery not in chosen and used[lane] < LANE_SLOTS and len(chosen) < room:
                used[lane] += 1
                chosen[delivery] = lane
        if len(found) < room:
            break
    rows = tx.send(list(chosen), worker=worker)
    results = tx.results({row[1] for row in rows})
    return [_taken(tx, row, results.get(row[1])) for row in rows]


def record(tx: Tx, tried: Sequence[Tried], destinations: Destinations, *, now: Instant) -> list[bool]:
    """Write how tries ended; for each, whether the claim was still current."""
    ends: list[tuple[object, ...]] = []
    later: list[tuple[object, ...]] = []
    gave_up: list[Tried] = []
    for t in tried:
        parcel, sent = t.taken.parcel, t.sent
        destination = destinations.get(t.taken.kind)
        match sent.receipt:
            case Receipt.DELIVERED:
                ends.append(_end(t, DeliveryState.DELIVERED, None))
            case Receipt.UNVERIFIED:
                ends.append(_end(t, DeliveryState.UNVERIFIED, Reason.UNVERIFIED))
            case Receipt.PERMANENT:
                ends.append(_end(t, DeliveryState.GIVEN_UP, sent.reason or Reason.REJECTED_BY_RECEIVER))
                gave_up.append(t)
            case Receipt.TRANSIENT if sent.reason is Reason.SHUTDOWN and (
                destination is None or not destination.repeatable
            ):
                ends.append(_end(t, DeliveryState.UNKNOWN, Reason.SHUTDOWN))
                gave_up.append(t)
            case Receipt.TRANSIENT if t.taken.tries >= DELIVERY_TRIES:
                ends.append(_end(t, DeliveryState.GIVEN_UP, Reason.GAVE_UP))
                gave_up.append(t)
            case Receipt.TRANSIENT:
                delay = jittered(delivery_delay(t.taken.tries), draw(parcel.delivery_id, t.taken.tries))
                wait = min(max(delay, sent.retry_after or timedelta(0)), DELIVERY_LONGEST)
                later.append((parcel.delivery_id, t.taken.token, now + max(micros(wait), 1),
                              sent.reason or Reason.UNREACHABLE, sent.error))
            case _:
                assert_never(sent.receipt)
    current = tx.end_deliveries(ends, now=now) | tx.defer(later)
    tx.write_tries(
        [(t.taken.parcel.delivery_id, t.taken.parcel.attempt, t.sent.receipt, t.sent.status, t.taken.parcel.event_id,
          t.taken.body_hash, t.sent.error) for t in tried if t.taken.parcel.delivery_id in current],
        now=now,
    )
    _tell_of(tx, [
        (p.delivery_id, t.taken.token, p.workspace, t.taken.automation_id, p.run_id,
         f"{p.automation}: a result was not delivered", f"Its destination is {t.taken.lane}. {t.sent.error}")
        for t in gave_up if (p := t.taken.parcel).delivery_id in current and not t.taken.best_effort
    ], now=now)
    return [t.taken.parcel.delivery_id in current for t in tried]


def recover(tx: Tx, worker: str, destinations: Destinations, *, now: Instant, room: int = 250) -> int:
    """What a dead worker was handing over: sent again where a repeat does no harm, else `unknown`, and a person is
    told; how many."""
    held = tx.sending_of(worker, room)
    again, doubt, notices = [], [], []
    for delivery, token, kind, _, best_effort, run, automation_id, workspace, name in held:
        destination = destinations.get(kind)
        if destination is not None and destination.repeatable:
            again.append((delivery, token, now, None, "its worker died while sending; the same event goes out again"))
            continue
        doubt.append((delivery, token, DeliveryState.UNKNOWN, None, "", "its worker died while sending"))
        if not best_effort:
            notices.append((delivery, token, workspace, automation_id, run, "a result may not have been delivered",
                            f"The worker died while handing it to {name}, which may have it or not."))
    tx.defer(again)
    tx.end_deliveries(doubt, now=now)
    _tell_of(tx, notices, now=now)
    if held:
        tx.kick("delivery")
    return len(held)


def _tell_of(tx: Tx, notices: Sequence[tuple[str, int, str, str, str, str, str]], *, now: Instant) -> None:
    """A notice in the inbox: `(delivery, token, workspace, automation, run, title, text)`."""
    tx.write_inbox(
        [
            (derived_id("inb", now, delivery, str(token)), workspace, "", automation_id, run, "given_up", title,
             f"{text}\nnightporter deliver {run} sends it again; the work is not repeated.")
            for delivery, token, workspace, automation_id, run, title, text in notices
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
    name, zone, config, body, error, ended_at = "", "UTC", {}, {}, "", Instant(0)
    try:
        if result is None:
            raise ValueError(f"run {run} is not in the store")
        definition = Definition.from_json(tx.definition(automation_id, result[2])[1])
        name, zone = definition.name, definition.timezone  # as it was then: a rename must not change the body of a try
        config = dict(next(d.config for d in definition.deliver if d.name == destination))
        body, ended_at = body_of(result, name), result[12]
    except Exception as unreadable:  # one bad row is this delivery's failure and nobody else's
        error = f"what it should carry cannot be read: {unreadable}"
    parcel = Parcel(
        DeliveryId(delivery), event, RunId(run), name, workspace, config, body, Instant(ended_at), tries, zone
    )
    return Taken(parcel, kind, lane, token, tries - tries_before, bool(best_effort), automation_id, error)


def _end(tried: Tried, state: DeliveryState, reason: Reason | None) -> tuple[object, ...]:
    taken, sent = tried.taken, tried.sent
    return (taken.parcel.delivery_id, taken.token, state, reason, sent.evidence, sent.error)


_CUT_SHORT = Sent(Receipt.TRANSIENT, error="the desk was shut down while sending", reason=Reason.SHUTDOWN)
_NOT_BEGUN = Sent(Receipt.TRANSIENT, error="the desk was shut down before it was sent")


def _without_what_it_says(sent: Sent) -> Sent:
    return replace(sent, evidence=ascii(sent.evidence)[1:-1], error=ascii(sent.error)[1:-1])


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
        self._taking_in: Tx | None = None
        self._taken_in_it: Counter[str] = Counter()
        self._taking = True
        self._air = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: dict[asyncio.Task[None], Taken] = {}
        """Tries that have not landed yet."""
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
                if not task.cancelling():
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
        if tx is not self._taking_in:  # a look and a rider may share a commit, and only the commit takes the slots
            self._taking_in, self._taken_in_it = tx, Counter()
        with self._lock:
            lanes, room = self._lanes + self._taken_in_it, self._free - self._taken_in_it.total()
        room = room if self._taking else 0
        taken = take(tx, worker=self._worker, room=room, lanes=lanes, now=self._clock.now())
        self._taken_in_it.update(t.lane for t in taken)
        return taken

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
            self._tasks[task] = one
            task.add_done_callback(self._landed)

    async def _carry(self, taken: Taken) -> None:
        destination = self._destinations.get(taken.kind)
        if taken.error or destination is None:
            error = taken.error or f"no destination is called {taken.kind!r} here"
            sent = Sent(Receipt.PERMANENT, error=error, reason=Reason.CONFIGURATION)
        else:
            deadline = asyncio.timeout(TRY_SECONDS)
            try:
                async with deadline:
                    sent = await destination.send(taken.parcel)
            except asyncio.CancelledError:
                sent = _CUT_SHORT
            except Exception as error:
                if isinstance(error, TimeoutError) and deadline.expired():
                    sent = Sent(Receipt.TRANSIENT, error=f"no answer within {TRY_SECONDS:g} s")
                else:  # a throw nobody expected says nothing about the receiver: try again
                    log.exception("delivery.destination_raised", delivery=taken.parcel.delivery_id)
                    sent = Sent(Receipt.TRANSIENT, error=f"{type(error).__name__}: {error}")
        task = asyncio.current_task()
        assert task is not None
        del self._tasks[task]
        self._land(taken, sent)

    def _landed(self, task: asyncio.Task[None]) -> None:
        """A task has ended; one that was cancelled before its first step has not landed by itself."""
        taken = self._tasks.pop(task, None)
        if taken is not None:
            self._land(taken, _NOT_BEGUN)

    def _land(self, taken: Taken, sent: Sent) -> None:
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
            if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
                self._loop.call_later(RETRY_WRITE, self._records.put, tried, tried)
            elif not tried.bare:
                # Something in the answer itself cannot be written: how the try ended is written all the same.
                bare = Tried(tried.taken, _without_what_it_says(tried.sent), bare=True)
                self._records.put(bare, bare)
            else:
                self._air -= 1
        if not self._air:
            self._idle.set()
