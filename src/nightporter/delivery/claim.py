"""Claiming: a pending delivery becomes one that is being sent, under a worker and a token, with what it carries."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightporter.air import Key
from nightporter.clock import Instant, rfc3339
from nightporter.rules.quiet import held_until
from nightporter.rules.retry import ALERT_TRIES, DELIVERY_TRIES
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.store.tx_delivery import SentOut
from nightporter.store.tx_incidents import AlertRow
from nightporter.words import Definition, DeliveryId, Destination, Outcome, Parcel, Reason, RunId
from nightporter.words.kept import read_back

LANE_SLOTS = 4
"""Deliveries to one receiver in the air at once: a slow one fills its own lane and no other."""


@dataclass(frozen=True, slots=True)
class Sending:
    """A delivery that is being sent, under this worker's claim."""

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
    held_until: Instant | None = None
    """It is a quiet hour at its destination, until then."""
    tries_most: int = DELIVERY_TRIES
    alert: bool = False
    """It carries no result but what is told of an incident."""

    @property
    def key(self) -> Key:
        return self.parcel.delivery_id, self.token

    @property
    def body_hash(self) -> str:
        """Of the body that every try sends."""
        return hashlib.sha256(json.dumps(self.parcel.body, sort_keys=True).encode()).hexdigest()


def claim(tx: Tx, *, worker: str, room: int, lanes: Mapping[str, int], now: Instant) -> list[Sending]:
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
    sending = _with_what_they_carry(tx, tx.send(list(chosen), worker=worker), at=now)
    tx.release_deliveries([(*s.key, s.held_until, Reason.HELD_QUIET) for s in sending if s.held_until is not None])
    return [s for s in sending if s.held_until is None]


def body_of(row: Row, automation: str) -> dict[str, Any]:
    """The body of a delivery, from facts that do not change once the run has ended; `row` as `Tx.results` gives it."""
    (run, automation_id, _, state, outcome, reason, error, exit_code, attempt, scheduled_for, queued_at, started_at,
     ended_at, ran_late, source, text, data) = row
    good = state in ("succeeded", "skipped")
    return {
        "type": f"{automation}.execution.{'succeeded' if good else 'failed'}",
        "timestamp": rfc3339(ended_at),
        "data": {
            "run": run, "automation": automation, "automation_id": automation_id, "trigger": source, "state": state,
            "outcome": outcome, "reason": reason, "text": text or "",
            "data": None if data is None else read_back(data), "error": error, "exit_code": exit_code,
            "attempt": attempt, "scheduled_for": rfc3339(scheduled_for), "queued_at": rfc3339(queued_at),
            "started_at": rfc3339(started_at), "ended_at": rfc3339(ended_at),
            "ran_late": bool(ran_late),
        },
    }


def _with_what_they_carry(tx: Tx, rows: list[SentOut], *, at: Instant) -> list[Sending]:
    """What they carry. The store is read for all of them first: its own trouble is none of a row's."""
    alerts = tx.alerts([row.delivery_id for row in rows if row.alert is not None])
    results = tx.results({row.run_id for row in rows if row.delivery_id not in alerts})
    versions = {(row.automation_id, results[row.run_id][2]) for row in rows if row.run_id in results}
    then = {(automation_id, version): text for automation_id, version, _, text in tx.definitions(sorted(versions))}
    again = {row.automation_id for row in rows if row.tries_before and row.delivery_id not in alerts}
    now = {automation_id: tx.definition_in_force(automation_id) for automation_id in sorted(again)}
    sending = []
    for row in rows:
        if (alert := alerts.get(row.delivery_id)) is not None:
            sending.append(_alert(row, alert))
            continue
        result = results.get(row.run_id)
        text = None if result is None else then.get((row.automation_id, result[2]))
        sending.append(_packed(row, result, text, now.get(row.automation_id) if row.tries_before else None, at))
    return sending


def _packed(row: SentOut, result: Row | None, then: str | None, now: str | None, at: Instant) -> Sending:
    """`then` is the definition that the run was admitted with, `now` the one in force where a person sends it again."""
    name, zone, config, body, error, ended_at = "", "UTC", {}, {}, "", Instant(0)
    quiet: Instant | None = None
    try:
        if result is None:
            raise ValueError(f"run {row.run_id} is not in the store")
        if then is None:
            raise ValueError(f"version {result[2]} of automation {row.automation_id} is not in the store")
        definition = Definition.from_json(then)
        name, zone = definition.name, definition.timezone  # as it was then: a rename must not change the body of a try
        config = _config(row, definition, now)
        body, ended_at = body_of(result, name), result[12]
        if not row.tries_before:  # what a person sends again goes at any hour
            hours = next((d.quiet_hours for d in definition.deliver if d.name == row.destination), None)
            quiet = held_until(hours, failed=result[4] == Outcome.FAILED, now=at)
    except Exception as unreadable:  # one bad row is this delivery's failure and nobody else's
        error = f"what it should carry cannot be read: {unreadable}"
    parcel = Parcel(
        DeliveryId(row.delivery_id), row.event_id, RunId(row.run_id), name, row.workspace, config, body,
        Instant(ended_at), row.tries, zone,
    )
    return Sending(parcel, row.kind, row.lane, row.token, row.tries - row.tries_before, bool(row.best_effort),
                 row.automation_id, error, quiet)


def _alert(row: SentOut, alert: AlertRow) -> Sending:
    """What an alert carries was written with it. One that has another way to go does not try for long."""
    config, body, error = {}, {}, ""
    try:
        config, body = read_back(alert.config), read_back(alert.body)
    except ValueError as unreadable:
        error = f"what it should carry cannot be read: {unreadable}"
    parcel = Parcel(
        DeliveryId(row.delivery_id), row.event_id, RunId(row.run_id), alert.automation, row.workspace, config, body,
        alert.created_at, row.tries, alert.timezone,
    )
    return Sending(
        parcel, row.kind, row.lane, row.token, row.tries - row.tries_before, bool(row.best_effort), row.automation_id,
        error, tries_most=DELIVERY_TRIES if alert.next_routes == "[]" else ALERT_TRIES, alert=True,
    )


def _config(row: SentOut, then: Definition, now: str | None) -> dict[str, Any]:
    """What the destination says: as it was when the run was admitted, and once a person sends it again, as it is by
    now; what kept it from arriving may have been mended there."""
    mended = None if now is None else still_there(now, row.destination, row.kind)
    return dict((mended or next(d for d in then.deliver if d.name == row.destination)).config)


def still_there(definition: str, name: str, kind: str) -> Destination | None:
    """The destination as the definition in force has it; None where it is gone or another kind, or cannot be read: what
    is sent again goes where it went."""
    with contextlib.suppress(ValueError):
        return next((d for d in Definition.from_json(definition).deliver if (d.name, d.kind) == (name, kind)), None)
    return None
