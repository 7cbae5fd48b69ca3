"""Recovering: what becomes of deliveries whose claim nobody is behind any more."""

from __future__ import annotations

from collections.abc import Collection

from nightporter.air import Key
from nightporter.clock import Instant
from nightporter.delivery.record import Destinations, Notice, tell_of
from nightporter.incidents import next_route
from nightporter.states import DeliveryState
from nightporter.store import Tx

ROOM = 250


def recover(tx: Tx, worker: str, destinations: Destinations, *, now: Instant, room: int = ROOM) -> int:
    """What a dead worker was handing over: sent again where a repeat does no harm, else `unknown`, and a person is
    told; how many."""
    held = tx.sending_of(worker, room)
    again, doubt, alerts = [], [], []
    notices: list[Notice] = []
    for delivery, token, kind, _, best_effort, run, automation_id, workspace, name, alert in held:
        destination = destinations.get(kind)
        if destination is not None and destination.repeatable:
            again.append((delivery, token, now, None, "its worker died while sending; the same event goes out again"))
            continue
        doubt.append((delivery, token, DeliveryState.UNKNOWN, None, "", "its worker died while sending"))
        if alert is not None:
            alerts.append(delivery)
        elif not best_effort:
            notices.append((delivery, token, workspace, automation_id, run, "a result may not have been delivered",
                            f"The worker died while handing it to {name}, which may have it or not."))
    tx.defer(again)
    tx.end_deliveries(doubt, now=now)
    tell_of(tx, notices, now=now)
    next_route(tx, alerts, now=now)  # whoever was to hear of it hears it twice rather than not at all
    if held:
        tx.kick("delivery")
    return len(held)


def take_back(tx: Tx, worker: str, in_the_air: Collection[Key], *, now: Instant) -> int:
    """Let go of what a living worker took and never began to send, because it was not told that its claim was
    committed; how many. The try is not counted."""
    unknown = [
        (delivery, token)
        for delivery, token, *_ in tx.sending_of(worker, len(in_the_air) + ROOM) if (delivery, token) not in in_the_air
    ]
    if unknown:
        tx.release_deliveries([(*key, now, None) for key in unknown])
        tx.kick("delivery")
    return len(unknown)
