"""Figures: what a storm came to, and how fast desks were back at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from fire.house import BOOT_LIMIT, Desk, House, Sample

SECOND = 1_000_000
FEW = 20
"""Samples fewer than these show no growth."""


@dataclass(frozen=True)
class Figures:
    """What one storm, or several, came to."""

    kills: int
    firings: int
    slots: int
    runs: int
    webhooks: int
    received: int
    """How often those webhooks arrived."""
    effects: int
    boots: tuple[float, ...]
    """Seconds from the start of a process to its being ready, without those in which it stood in line."""
    waited_for: tuple[float, ...]
    """The same with those."""
    back: tuple[float, ...]
    """Seconds after it was ready until what the dead desk held was taken back and the next slot was answered."""
    away: tuple[float, ...]
    """Seconds from a death until the next slot was answered by the next desk."""
    samples: tuple[Sample, ...]

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def published(self) -> dict[str, Any]:
        return {
            "kills": self.kills, "firings": self.firings, "slots": self.slots, "runs": self.runs,
            "webhooks": self.webhooks, "webhooks_received": self.received, "effects": self.effects,
            "boot_seconds": _spread(self.boots), "boot_seconds_by_the_wall": _spread(self.waited_for),
            "recovery_seconds": _spread(self.back),
            "away_seconds": _spread(self.away),
            **{name: _course(self.samples, of) for name, of in HELD.items()},
        }

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.firings} firings, {self.slots} slots, {self.runs} runs, "
            f"{self.webhooks} webhooks received {self.received} times, {self.effects} effects; "
            f"boot {_told(self.boots)}, recovery {_told(self.back)}"
        )


HELD: dict[str, Callable[[Sample], int]] = {
    "open_files": lambda sample: sample.files, "threads": lambda sample: sample.threads,
    "zombies": lambda sample: sample.zombies, "log_bytes": lambda sample: sample.log,
}
MAY_GROW = {"open_files": 64, "threads": 16, "zombies": 2, "log_bytes": 16_000_000}
"""By how much the median of the last quarter may be above that of the first: what a desk has in the air when it dies is
more on a day with much to do, and so are its pipes and connections."""


def figures(house: House) -> Figures:
    received = house.outside.deliveries()
    ledger = house.ledger
    desks = sorted(house.desks, key=lambda desk: desk.began)
    alone = [desk for desk in desks if desk.alone and desk.ready_at is not None]
    return Figures(
        kills=house.kills, firings=ledger.count("firing"), slots=ledger.count("firing WHERE source = 'clock'"),
        runs=ledger.count("run"), webhooks=len(received), received=sum(map(len, received.values())),
        effects=len(house.outside.effects()), boots=tuple(house.boots()),
        waited_for=tuple(desk.waited_for for desk in desks if desk.waited_for and not desk.hampered),
        back=tuple(_back(house, alone)), away=tuple(_away(house, desks)), samples=tuple(house.samples),
    )


def growth(counted: Figures) -> list[str]:
    """What was held more and more, and boots that took too long."""
    found = []
    if len(counted.samples) >= FEW:
        for name, of in HELD.items():
            first, last = (_course(counted.samples, of)[part] for part in ("first_quarter", "last_quarter"))
            if last > first + MAY_GROW[name]:
                found.append(f"growth: {name} went from {first:g} to {last:g} over {counted.kills} kills")
    if counted.boots and max(counted.boots) > BOOT_LIMIT:
        found.append(f"boot: one took {max(counted.boots):.2f} s")
    return found


def _back(house: House, desks: Iterable[Desk]) -> Iterable[float]:
    taken = house.ledger.rows("SELECT at FROM transition WHERE from_state = 'lost'")
    answered = house.ledger.rows(
        "SELECT scheduled_for, arrived_at FROM firing WHERE source = 'clock' AND scheduled_for IS NOT NULL")
    for desk in desks:
        ready = desk.ready_at or 0
        late = [at - slot for slot, at in answered if ready < slot and at <= desk.ended]
        if late:
            first = min((slot, at) for slot, at in answered if ready < slot and at <= desk.ended)
            held = max((at for (at,) in taken if desk.began <= at <= desk.ended), default=ready)
            yield max(0, held - ready, first[1] - first[0]) / SECOND


def _away(house: House, desks: Sequence[Desk]) -> Iterable[float]:
    answers = sorted(at for (at,) in house.ledger.rows("SELECT arrived_at FROM firing WHERE source = 'clock'"))
    for before, after in pairwise(desks):
        if before.alone and after.alone and before.ready_at is not None:
            first = next((at for at in answers if after.began <= at <= after.ended), None)
            if first is not None:
                yield (first - before.ended) / SECOND


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    if not ordered:
        return {}
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[min(int(share * len(ordered)), len(ordered) - 1)], 4) for name, share in at.items()}


def _told(seconds: Sequence[float]) -> str:
    return " ".join(f"{name} {one:.3f} s" for name, one in _spread(seconds).items())


def _course(samples: Sequence[Sample], of: Callable[[Sample], int]) -> dict[str, float]:
    values = [of(sample) for sample in samples]
    if not values:
        return {}
    quarter = max(len(values) // 4, 1)
    return {"first_quarter": median(values[:quarter]), "last_quarter": median(values[-quarter:]), "max": max(values)}
