"""Recording: how a try ended, and whether another follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import assert_never

from nightporter.air import Form, Key
from nightporter.clock import Instant, micros
from nightporter.delivery.claim import Sending
from nightporter.incidents import Fault, happened, lanes_work, message_of, next_route
from nightporter.rules.retry import (
    DELIVERY_LONGEST,
    DELIVERY_TRIES,
    RECOVERED_APART,
    STUCK_TRIES,
    delivery_wait,
    draw,
    spread,
)
from nightporter.states import DeliveryState
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.store.tx_incidents import Standing
from nightporter.words import DestinationPort, IncidentKind, Reason, Receipt, Sent, derived_id

Destinations = Mapping[str, DestinationPort]

Notice = tuple[str, int, str, str, str, str, str]
"""`(delivery, token, workspace, automation id, run, title, text)`."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A delivery after one try, on its way into the ledger."""

    sending: Sending
    sent: Sent
    form: Form = Form.WHOLE
    doubtful: bool = False
    """The try was cut off in the middle: the receiver may have it or not."""
    begun: bool = True
    """False: it was cut off before anything was sent. That is no try."""

    @property
    def key(self) -> Key:
        return self.sending.key


def record(tx: Tx, tried: Sequence[Tried], destinations: Destinations, *, now: Instant) -> list[bool]:
    """Write how tries ended; for each, whether the claim was still current. What was not begun is given back."""
    ends: list[tuple[object, ...]] = []
    later: list[tuple[object, ...]] = []
    gave_up: list[Tried] = []
    stuck: list[Tried] = []
    begun = [t for t in tried if t.begun]
    for t in begun:
        parcel, sent = t.sending.parcel, t.sent
        destination = destinations.get(t.sending.kind)
        match sent.receipt:
            case Receipt.DELIVERED:
                ends.append(_end(t, DeliveryState.DELIVERED, None))
            case Receipt.UNVERIFIED:
                ends.append(_end(t, DeliveryState.UNVERIFIED, Reason.UNVERIFIED))
            case Receipt.PERMANENT:
                ends.append(_end(t, DeliveryState.GIVEN_UP, sent.reason or Reason.REJECTED_BY_RECEIVER))
                gave_up.append(t)
            case Receipt.TRANSIENT if t.doubtful and (destination is None or not destination.repeatable):
                ends.append(_end(t, DeliveryState.UNKNOWN, sent.reason or Reason.UNREACHABLE))
                gave_up.append(t)
            case Receipt.TRANSIENT if t.sending.tries >= t.sending.tries_most:
                all_used = t.sending.tries >= DELIVERY_TRIES
                ends.append(_end(t, DeliveryState.GIVEN_UP, Reason.GAVE_UP if all_used else Reason.UNREACHABLE))
                gave_up.append(t)
            case Receipt.TRANSIENT:
                if t.sending.tries == STUCK_TRIES:
                    stuck.append(t)
                chance = draw(parcel.delivery_id, t.sending.tries)
                delay = delivery_wait(t.sending.tries, chance)
                asked = spread(min(sent.retry_after or timedelta(0), DELIVERY_LONGEST), chance)
                wait = min(max(delay, asked), DELIVERY_LONGEST)
                later.append((*t.key, now + max(micros(wait), 1), sent.reason or Reason.UNREACHABLE, sent.error))
            case _:
                assert_never(sent.receipt)
    current = tx.end_deliveries(ends, now=now) | tx.defer(later)
    tx.write_tries(
        [(t.sending.parcel.delivery_id, t.sending.parcel.attempt, t.sent.receipt, t.sent.status,
          t.sending.parcel.event_id, t.sending.body_hash, t.sent.error)
         for t in begun if t.sending.parcel.delivery_id in current],
        now=now,
    )
    standing = _account_for(tx, begun, gave_up, stuck, current, now)
    tx.gather_inbox([
        _together(t, standing[t.sending.parcel.delivery_id])
        for t in gave_up if t.sending.parcel.delivery_id in standing and not t.sending.alert
    ], now=now)
    current |= tx.release_deliveries([(*t.key, now, None) for t in tried if not t.begun])
    return [t.sending.parcel.delivery_id in current for t in tried]


def record_alone(tx: Tx, tried: Sequence[Tried], *, now: Instant) -> list[bool]:
    """Write that tries ended and no more, because more cannot be written. What was not handed over is given up, and an
    alert takes its next route."""
    rows = []
    for t in tried:
        handed_over = {Receipt.DELIVERED: DeliveryState.DELIVERED, Receipt.UNVERIFIED: DeliveryState.UNVERIFIED}
        state = handed_over.get(t.sent.receipt, DeliveryState.GIVEN_UP)
        rows.append((*t.key, state, Reason.UNREADABLE if state is DeliveryState.GIVEN_UP else None, "", t.sent.error))
    current = tx.end_deliveries(rows, now=now)
    gave_up = [
        t for t in tried
        if t.sent.receipt in (Receipt.TRANSIENT, Receipt.PERMANENT) and t.sending.parcel.delivery_id in current
    ]
    tell_of(tx, [_notice(t) for t in gave_up], now=now)
    next_route(tx, [t.sending.parcel.delivery_id for t in gave_up if t.sending.alert], now=now)
    return [t.sending.parcel.delivery_id in current for t in tried]


def _account_for(
    tx: Tx, tried: Sequence[Tried], gave_up: Sequence[Tried], stuck: Sequence[Tried], current: set[str], now: Instant
) -> dict[str, Standing]:
    """Which receivers are at fault, and which are not any more; an alert that failed takes its next route. By delivery,
    the incident it is one of."""
    recovered = lanes_work(tx, [
        t.sending.lane for t in tried
        if t.sent.receipt in (Receipt.DELIVERED, Receipt.UNVERIFIED) and t.sending.parcel.delivery_id in current
    ], now=now)
    tx.hasten(recovered, apart=micros(RECOVERED_APART), now=now)
    ours = [t for t in (*gave_up, *stuck) if t.sending.parcel.delivery_id in current and not t.sending.best_effort]
    if not ours:
        return {}
    standing = happened(tx, [
        Fault(IncidentKind.DELIVERY, t.sending.lane, t.sent.error, t.sending.parcel.delivery_id,
              t.sending.automation_id, in_the_inbox=t in gave_up and not t.sending.alert, quiet=t.sending.alert)
        for t in ours
    ], now=now)
    next_route(tx, [
        t.sending.parcel.delivery_id for t in gave_up
        if t.sending.alert and t.sending.parcel.delivery_id in current
    ], now=now)
    return standing


def tell_of(tx: Tx, notices: Sequence[Notice | None], *, now: Instant) -> None:
    """Put before a person what was not delivered."""
    tx.write_inbox(
        [
            (derived_id("inb", now, delivery, str(token)), workspace, "", automation_id, run, "given_up", title,
             f"{text}\nnightporter deliver {run} sends it again; the work is not repeated.")
            for delivery, token, workspace, automation_id, run, title, text in filter(None, notices)
        ],
        now=now,
    )


def _notice(tried: Tried) -> Notice | None:
    sending, parcel = tried.sending, tried.sending.parcel
    if sending.best_effort or sending.alert:  # the inbox has what an alert says
        return None
    return (*tried.key, parcel.workspace, sending.automation_id, parcel.run_id,
            f"{parcel.automation}: a result was not delivered",
            f"Its destination is {sending.lane}. {tried.sent.error}")


def _together(tried: Tried, standing: Standing) -> Row:
    """What is said of a result that was given up: all of one incident are one message."""
    sending, parcel = tried.sending, tried.sending.parcel
    text = (f"{parcel.run_id} of {parcel.automation} was not delivered to {sending.lane}. {tried.sent.error}\n"
            f"nightporter deliver {parcel.run_id} sends it again; the work is not repeated.\n")
    return (message_of(standing.id), parcel.workspace, "", sending.automation_id, parcel.run_id, "given_up",
            f"results were not delivered to {sending.lane}" if standing.times > 1
            else f"{parcel.automation}: a result was not delivered", text)


def _end(tried: Tried, state: DeliveryState, reason: Reason | None) -> tuple[object, ...]:
    return (*tried.key, state, reason, tried.sent.evidence, tried.sent.error)
