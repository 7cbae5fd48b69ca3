"""Trouble of the store at any statement of a stage is the store's: nothing is written, and no row is blamed for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from night import Night

from model.trouble import IllTransactions, Kind, Trouble
from nightporter import operations
from nightporter.clock import ManualClock
from nightporter.dispatch import Definitions
from nightporter.errors import StoreError
from nightporter.store import Store
from nightporter.words import Destination, Ended, Limits, Receipt, Sent
from words import an_automation, fire, rows

HOOK = Destination("hook", "webhook", {"url": "https://one.example.org/in"})
LATER = Sent(Receipt.TRANSIENT, error="503", status=503)
TABLES = ("run", "delivery", "transition", "automation", "run_output", "delivery_try", "inbox")


def queued(night: Night) -> None:
    """Two of one automation, and one of another."""
    for name in ("brief", "other"):
        an_automation(night.store, now=night.clock.now(), name=name, deliver=(HOOK,), limits=Limits(concurrent=None))
    for name, payload in (("brief", "{}"), ("brief", None), ("other", None)):
        fire(night.store, f"aut_default_{name}", now=night.clock.now(), payload=payload)


def running(night: Night) -> None:
    queued(night)
    night.claim()


def ended(night: Night) -> None:
    queued(night)
    night.run_all(Ended.ok("the report"))


def sent_again(night: Night) -> None:
    ended(night)
    night.record(*[(one, LATER) for one in night.take()])
    for (identity,) in rows(night.store, "SELECT id FROM delivery"):
        night.store.write(lambda tx, one=identity: operations.resend(tx, one, now=night.clock.now()))  # type: ignore[misc]


STAGES: dict[str, tuple[Callable[[Night], None], Callable[[Night], object]]] = {
    "claim": (queued, lambda night: night.claim()),
    "recover": (running, lambda night: night.recover()),
    "take a delivery": (ended, lambda night: night.take()),
    "take one that is sent again": (sent_again, lambda night: night.take()),
}


@pytest.mark.parametrize("kind", ["refused", "full"])
@pytest.mark.parametrize("stage", STAGES)
def test_trouble_at_any_statement_writes_nothing_and_blames_no_row(
    store: Store, clock: ManualClock, stage: str, kind: Kind
) -> None:
    before, work = STAGES[stage]
    night = Night(store, clock)
    before(night)
    was = everything(store)
    writer: Any = store.writer
    ill = writer._transactions = IllTransactions(writer._transactions)
    struck = 0
    while True:
        night.known = Definitions()  # nothing is at hand: all of it is read
        ill.trouble = Trouble(kind, struck + 1)
        try:
            work(night)
        except StoreError:
            assert ill.trouble.struck
            assert everything(store) == was
            struck += 1
            continue
        assert not ill.trouble.struck, f"statement {struck + 1} failed, and nobody was told"
        break
    assert struck > 3
    assert everything(store) != was


def everything(store: Store) -> list[list[tuple[Any, ...]]]:
    return [sorted(rows(store, f"SELECT * FROM {table}"), key=repr) for table in TABLES]
