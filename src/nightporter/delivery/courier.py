"""The courier: the deliveries this worker has in the air, on the event loop of the program that hosts it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from nightporter import logs
from nightporter.air import Air, Form, Key
from nightporter.clock import Clock
from nightporter.delivery.claim import Sending, claim
from nightporter.delivery.record import Destinations, Tried, record, record_alone
from nightporter.delivery.recover import take_back
from nightporter.rules.legible import legible, plain
from nightporter.store import Store, Tx
from nightporter.words import DestinationPort, Reason, Receipt, Sent

log = logs.get(__name__)

TRY_SECONDS = 15.0
SLOTS = 32

_CUT_SHORT = Sent(Receipt.TRANSIENT, error="the desk was shut down while sending", reason=Reason.SHUTDOWN)
_NOT_BEGUN = Sent(Receipt.TRANSIENT, error="the desk was shut down before it was sent")


class Courier(Air[Sending, Tried, bool]):
    """Claims, sends and records; few at once to one receiver."""

    stage = "delivery"
    topic = "delivery"

    def __init__(
        self, store: Store, clock: Clock, destinations: Destinations, *, worker: str, slots: int = SLOTS
    ) -> None:
        self._clock = clock
        self._destinations = destinations
        self._worker = worker
        super().__init__(store, slots=slots)

    def _claim(self, tx: Tx, room: int, claimed_before: Sequence[Sending]) -> list[Sending]:
        with self._lock:
            flying = list(self._flying.values())
        lanes = Counter(t.lane for t in [*flying, *claimed_before])
        return claim(tx, worker=self._worker, room=room, lanes=lanes, now=self._clock.now())

    def _give_back(self, tx: Tx, ours: Collection[Key]) -> int:
        return take_back(tx, self._worker, ours, now=self._clock.now())

    def _begin(self, one: Sending) -> Tried | Coroutine[Any, Any, Tried]:
        destination = self._destinations.get(one.kind)
        if one.error or destination is None:
            error = one.error or f"no destination is called {one.kind!r} here"
            return Tried(one, Sent(Receipt.PERMANENT, error=legible(error), reason=Reason.CONFIGURATION))
        return self._carry(one, destination)

    def _fell(self, one: Sending, error: BaseException | None) -> Tried:
        return Tried(one, _NOT_BEGUN, begun=False) if error is None else _raised(one, error)

    async def _carry(self, sending: Sending, destination: DestinationPort) -> Tried:
        deadline = asyncio.timeout(TRY_SECONDS)
        try:
            async with deadline:
                sent = await destination.send(sending.parcel)
        except asyncio.CancelledError:
            return Tried(sending, _CUT_SHORT, doubtful=True)
        except Exception as error:
            if isinstance(error, TimeoutError) and deadline.expired():
                sent = Sent(Receipt.TRANSIENT, error=f"no answer within {TRY_SECONDS:g} s")
                return Tried(sending, sent, doubtful=True)
            return _raised(sending, error)
        try:
            return Tried(sending, replace(sent, evidence=legible(sent.evidence), error=legible(sent.error)))
        except Exception as error:  # whatever a destination put there: that it cannot be kept is for the writing to say
            log.warning("delivery.strange_receipt", delivery=sending.parcel.delivery_id, error=repr(error))
            return Tried(sending, sent)

    def _write(self, tx: Tx, ends: list[Tried]) -> list[bool]:
        tx.kick("delivery")  # a lane has room again
        now = self._clock.now()
        alone = [t for t in ends if t.form is Form.ALONE]
        others = [t for t in ends if t.form is not Form.ALONE]
        results = dict(zip([t.key for t in others], record(tx, others, self._destinations, now=now), strict=True))
        results |= zip([t.key for t in alone], record_alone(tx, alone, now=now), strict=True)
        return [results[t.key] for t in ends]

    def _less(self, end: Tried, error: BaseException) -> Tried | None:
        if end.form is Form.WHOLE:
            sent = end.sent
            bare = Sent(sent.receipt, evidence=plain(sent.evidence), error=plain(sent.error), reason=sent.reason)
            return replace(end, sent=bare, form=Form.BARE)
        if end.form is Form.BARE:
            note = f"what came of it could not be written: {type(error).__name__}: {error}"
            return replace(end, sent=replace(end.sent, error=plain(note)), form=Form.ALONE)
        return None

    def _tell(self, written: Sequence[tuple[Tried, bool]]) -> None:
        for tried, current in written:
            sending = tried.sending
            if not current:
                log.warning("delivery.lost_claim", delivery=sending.parcel.delivery_id, token=sending.token)
                continue
            if not tried.begun:
                log.info("delivery.not_begun", delivery=sending.parcel.delivery_id, token=sending.token)
                continue
            log.info("delivery.tried", automation=sending.parcel.automation, run=sending.parcel.run_id, to=sending.lane,
                     result=str(tried.sent.receipt), evidence=tried.sent.evidence, error=tried.sent.error)


def _raised(sending: Sending, error: BaseException) -> Tried:
    # A throw nobody expected says nothing about the receiver, and nothing about what it has.
    log.error("delivery.destination_raised", delivery=sending.parcel.delivery_id, exc_info=error)
    sent = Sent(Receipt.TRANSIENT, error=legible(f"{type(error).__name__}: {error}"))
    return Tried(sending, sent, doubtful=True)
