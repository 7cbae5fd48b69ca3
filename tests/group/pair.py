"""Long nights of two desks on one SQLite file with two hundred triggers, a part of `make soak`."""

from __future__ import annotations

from group.night import Seat
from group.soak import a_night
from soak.order import Order

PAIR = (Seat("first desk", "desk", ""), Seat("second desk", "desk", ""))


def soak(order: Order) -> list[str]:
    """Two desks, killed and hung. A round is a minute."""
    return a_night(order, str(order.folder / "ledger.db"), PAIR, "many")
