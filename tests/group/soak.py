"""Long nights of a group on one PostgreSQL database, a part of `make soak`; `pair` is another. With the settings that a
desk has by default, so that what is measured is what is promised."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fire.accounts import counts, findings
from fire.house import House, a_house
from fire.recorder import a_world
from group.cables import possible
from group.night import SEATS, Group, Seat, a_group
from soak.order import Order

MINUTES = 10
AS_BY_DEFAULT = {"beat": 20.0, "lease": 60.0, "sweep": 60.0, "drain": 30.0}
BY_LOCK, BY_LEASE = 3.0, 65.0
"""Seconds within which the others have the lead and the runs of one that was lost."""
LONGEST_PEACE = 2.0
SECOND = 1_000_000


def soak(order: Order) -> list[str]:
    """Three desks and four workers, killed, hung and cut off, their clocks wrong. A round is a minute."""
    with order.postgres() as databases:
        name = f"group_{order.seed}"
        found = a_night(order, databases.create(name, migrated=False), SEATS, "house")
        databases.drop(name)
    return found


def a_night(order: Order, store: str, seats: Sequence[Seat], world: str) -> list[str]:
    """Mishap after mishap, for as long as was asked; then all accounts. Figures are published."""
    minutes, chance = order.rounds or MINUTES, random.Random(order.seed)
    cables = "://" in store and possible()
    found: list[str] = []
    with (
        a_world(order.folder) as outside, a_house(order.folder, store, outside, patience=240.0) as house,
        a_group(house, world=world, seats=seats, cables=cables, **AS_BY_DEFAULT) as night,
    ):
        until = time.monotonic() + 60 * minutes
        try:
            while time.monotonic() < until:
                time.sleep(chance.uniform(0.5, LONGEST_PEACE))
                night.mishap(chance)
            night.quieten()
        except AssertionError as error:
            found.append(f"the night: {error}")
        found += findings(house, alive=True) + night.loud() + _too_slow(night)
        figures = {
            **_figures(house, night), **counts(found), "minutes": minutes, "seed": order.seed,
            "cut_off_by": "cable" if cables else "swallowing",
            "store": "postgres" if "://" in store else "sqlite",
        }
        if found:
            _keep_logs(order.folder, found)
    order.publish(figures)
    print(f"{order.part}, seed {order.seed}: {figures}", flush=True)
    return found


def _too_slow(night: Group) -> list[str]:
    return [
        f"takeover: {each}" for each in night.takeovers
        if max(each.lead or 0.0, each.runs or 0.0) > (BY_LOCK if each.by_lock else BY_LEASE)
    ]


def _figures(house: House, night: Group) -> dict[str, Any]:
    ledger = house.ledger
    lates = [late / SECOND for (late,) in ledger.rows(
        "SELECT arrived_at - scheduled_for FROM firing WHERE source = 'clock' AND scheduled_for IS NOT NULL")]
    return {
        "mishaps": night.mishaps, "befell": dict(Counter(t.what for t in night.takeovers)),
        "triggers": ledger.count("trigger WHERE kind = 'clock'"),
        "slots": ledger.count("firing WHERE source = 'clock'"), "runs": ledger.count("run"),
        "lost_claims_taken_back": ledger.count("transition WHERE from_state = 'lost'"),
        "would_have_hung_with_the_lock": night.held_up,
        "lead_by_lock_seconds": _spread(t.lead for t in night.takeovers if t.by_lock),
        "lead_by_lease_seconds": _spread(t.lead for t in night.takeovers if not t.by_lock),
        "runs_by_lock_seconds": _spread(t.runs for t in night.takeovers if t.by_lock),
        "runs_by_lease_seconds": _spread(t.runs for t in night.takeovers if not t.by_lock),
        "slot_late_seconds": _spread(lates),
    }


def _spread(seconds: Iterable[float | None]) -> dict[str, float]:
    ordered = sorted(each for each in seconds if each is not None)
    if not ordered:
        return {}
    return {"n": len(ordered), "p50": round(ordered[len(ordered) // 2], 3), "max": round(ordered[-1], 3)}


def _keep_logs(folder: Path, found: list[str]) -> None:
    (folder / "findings.txt").write_text("\n".join(found) + "\n")
