"""Together: what is to be done about many triggers is written in one transaction, and one bad row is its own trigger's
matter and nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from nightporter import logs
from nightporter.clock import Instant
from nightporter.errors import LostLead, StoreError, StoreRefused
from nightporter.incidents import schedule_failed
from nightporter.store import Store, Tx
from nightporter.store.tx_clock import Armed

log = logs.get(__name__)


class OfOne(Protocol):
    """What is to be done about one trigger."""

    @property
    def armed(self) -> Armed:
        """As it was read."""


P = TypeVar("P", bound=OfOne)
R = TypeVar("R")


class Together:
    """Thinks and writes for many triggers while this process leads; puts those aside that cannot be read."""

    def __init__(self, store: Store, *, leads: Callable[[Tx], bool]) -> None:
        """`leads` is asked in each transaction that moves slots: who stood still may have been succeeded meanwhile."""
        self._store = store
        self._leads = leads

    def planned(self, thoughts: Sequence[tuple[Armed, Callable[[], P]]], now: Instant) -> list[P]:
        """What is to be done about each; a trigger of which that cannot be said is put aside."""
        plans = []
        for armed, think in thoughts:
            try:
                plans.append(think())
            except Exception as error:
                self._put_aside(armed, error, now)
        return plans

    def written(self, plans: Sequence[P], work: Callable[[Tx, Sequence[P]], R], now: Instant) -> list[R]:
        """Do it for all together, or for each alone where one of them spoils it for the others."""
        if not plans:
            return []
        try:
            return [self._store.writer.write(lambda tx: self._leading(tx, lambda tx: work(tx, plans)), patient=True)]
        except Exception as error:
            if isinstance(error, LostLead) or (isinstance(error, StoreError) and not isinstance(error, StoreRefused)):
                raise  # the store is ill or ours no more, and no trigger is to blame
            if len(plans) == 1:
                self._put_aside(plans[0].armed, error, now)
                return []
            return [result for one in plans for result in self.written([one], work, now)]

    def _leading(self, tx: Tx, work: Callable[[Tx], R]) -> R:
        if not self._leads(tx):
            raise LostLead("another process answers what is due", next="it is told when this one leads again")
        return work(tx)

    def _put_aside(self, armed: Armed, error: Exception, now: Instant) -> None:
        """Put a trigger aside, unless it is another by now than it was when it was read."""

        def put_aside(tx: Tx) -> bool:
            tx.lock_automations([armed.automation_id])  # before its trigger, as an edit does
            still = armed.trigger_id in tx.advance([(armed, None)], tzdata=armed.tzdata)
            if still:
                tx.quarantine_trigger(armed.trigger_id, str(error), now=now)
                schedule_failed(tx, armed.trigger_id, str(error), now=now)
            return still

        if self._store.write(lambda tx: self._leading(tx, put_aside)):
            log.error("clock.unreadable_trigger", trigger=armed.trigger_id, error=str(error))
