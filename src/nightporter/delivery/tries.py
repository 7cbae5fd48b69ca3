"""Tries: a delivery is taken under a claim, and how its try ended is written down."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from nightporter import logs
from nightporter.clock import Instant, micros, rfc3339
from nightporter.rules.retry import DELIVERY_LONGEST, DELIVERY_TRIES, delivery_delay, draw, jittered
from nightporter.states import DeliveryState
from nightporter.store import Tx
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

LANE_SLOTS = 4
"""Deliveries to one receiver in the air at once: a slow one fills its own lane and no other."""


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
