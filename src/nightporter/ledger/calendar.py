"""The calendar: what comes, of all automations together, with what is on its way and who meets whom.

Slots come one by one and in order, so that a few of very many cost little: of a trigger that is armed the first is
known, and nothing is computed before somebody asks for the second.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, takewhile
from typing import Any, Literal

from nightporter.clock import DAY, MINUTE, SECOND, Instant
from nightporter.errors import NightporterError
from nightporter.ledger.ahead import GateAhead, Standing, gates_ahead
from nightporter.ledger.moments import local
from nightporter.ledger.pages import plain
from nightporter.rules.clusters import Cluster, clusters
from nightporter.rules.exclusions import excluded
from nightporter.rules.schedule import next_due
from nightporter.rules.zones import DAY_SECONDS, EARLIEST, LATEST, first_pass, stretch_at
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.store.tx_clock import schedule_from
from nightporter.words import Policy, Schedule

Mark = Literal["", "gap", "fold", "change"]
SPAN = 7 * DAY
BUDGET = 20_000
"""Slots that clusters are looked for among."""
_BESIDE = 1000


@dataclass(frozen=True, slots=True)
class ComingFire:
    """A slot that comes."""

    automation: str
    automation_id: str
    trigger: str
    at: Instant
    local: str | None
    timezone: str
    mark: Mark = ""
    """`gap`: the zone's clock jumps to it; `fold`: it shows that time twice; `change`: it changes on that day."""
    excluded: str | None = None
    """Why nothing runs then, though the schedule has the slot."""
    gates: tuple[GateAhead, ...] = ()
    meets: tuple[str, ...] = ()
    """Other automations that are due in the same minute."""

    @property
    def trigger_id(self) -> str:
        return f"{self.automation_id}/{self.trigger}"

    @property
    def runs(self) -> bool:
        """Nothing that is known now keeps it from running."""
        return self.excluded is None and not any(gate.holds for gate in self.gates)

    def as_json(self) -> dict[str, Any]:
        return {**plain(self), "runs": self.runs}


def calendar(
    tx: Tx, now: Instant, *, automation_id: str = "", after: Instant | None = None, until: Instant | None = None,
    count: int = 20,
) -> tuple[ComingFire, ...]:
    """The fires of all automations, or of one, in their order: those after `after`, or what is armed, and until
    `until`; `count` at most. Looking moves no slot."""
    rows = tx.read_calendar(automation_id)
    stopped = tx.stopped()
    coming = _merged(rows, now, after)
    shown: list[tuple[Instant, Row]] = []
    minutes: dict[int, list[str]] = defaultdict(list)
    for at, _, row in coming:
        if until is not None and at > until:
            break
        if len(shown) >= count and (at // MINUTE != shown[-1][0] // MINUTE or len(minutes[at // MINUTE]) > _BESIDE):
            break  # who shares the minute of the last one is still counted
        minutes[at // MINUTE].append(row[2])
        if len(shown) < count:
            shown.append((at, row))
    return tuple(_fire(at, row, stopped, minutes[at // MINUTE]) for at, row in shown)


def meetings(tx: Tx, now: Instant, *, span: int = SPAN, budget: int = BUDGET) -> list[Cluster]:
    """Automations that are due in the same minute again and again within `span`; fewer days where slots are many."""
    rows = [row for row in tx.read_calendar() if row[7] == "active"]
    fires = [
        (at, row[2])
        for at, _, row in takewhile(lambda fire: fire[0] <= now + span, islice(_merged(rows, now, now), budget))
    ]
    if len(fires) == budget:
        span = max(fires[-1][0] - now, 1)
    return clusters(fires, span)


def _merged(rows: Sequence[Row], now: Instant, after: Instant | None) -> Iterator[tuple[Instant, str, Row]]:
    """`(slot, trigger, row)` in order."""
    heap: list[tuple[Instant, str, int]] = []
    for n, row in enumerate(rows):
        first = row[6] if after is None or (row[6] is not None and row[6] > after) else None
        if first is None:
            first = _next(row, now if after is None else after)
        if first is not None:
            heap.append((first, row[0], n))
    heapq.heapify(heap)
    while heap:
        at, trigger, n = heap[0]
        yield at, trigger, rows[n]
        following = _next(rows[n], max(at, now))
        if following is None:
            heapq.heappop(heap)
        else:
            heapq.heapreplace(heap, (following, trigger, n))


def _next(row: Row, after: Instant) -> Instant | None:
    try:
        return next_due(_schedule(row[5]), after)
    except (NightporterError, ValueError, ArithmeticError):
        return None  # doctor names what cannot be read


@lru_cache(maxsize=4096)
def _schedule(text: str) -> Schedule:
    return schedule_from(text)


def _fire(at: Instant, row: Row, stopped: bool, minute: Sequence[str]) -> ComingFire:
    _, automation_id, name, trigger, policy, text, _, state, by, until, why, runs = row
    others = tuple(sorted(set(minute) - {name}))
    bare = ComingFire(name, automation_id, trigger, at, None, "UTC", meets=others)
    if not EARLIEST <= at // SECOND <= LATEST:  # somebody wrote it there; doctor names it
        return replace(bare, local=local(at, "UTC"))
    try:
        schedule = _schedule(text)
        zone = schedule.timezone
        gates = gates_ahead(Policy.from_json(policy), Standing(state, by, until, why, stopped, runs), at, zone)
        return replace(bare, local=local(at, zone), timezone=zone, mark=mark(zone, at), excluded=excluded(schedule, at),
                       gates=gates)
    except (NightporterError, ValueError, ArithmeticError):
        return replace(bare, local=local(at, "UTC"))


def mark(zone: str, at: Instant) -> Mark:
    """What a change of the zone's clock has to do with an instant."""
    if zone == "UTC":
        return ""
    second = at // SECOND
    offset = stretch_at(zone, second).offset
    wall = second + offset
    before, after = _offsets(zone, wall - wall % DAY_SECONDS)
    if before == after:
        return ""
    if after > before:
        return "gap" if stretch_at(zone, second - 1).offset != offset else "change"
    return "fold" if _shown_twice(zone, second, before - after) else "change"


def _shown_twice(zone: str, second: int, back: int) -> bool:
    """Whether the clock shows the same an hour, or whatever it goes back by, before or after."""
    wall = second + stretch_at(zone, second).offset
    return any(other + stretch_at(zone, other).offset == wall for other in (second - back, second + back))


@lru_cache(maxsize=4096)
def _offsets(zone: str, midnight: int) -> tuple[int, int]:
    """How far the zone is from UTC when a day of its clock begins, and when it ends."""
    begins, ends = first_pass(zone, midnight), first_pass(zone, midnight + DAY_SECONDS)
    return stretch_at(zone, begins).offset, stretch_at(zone, ends - 1).offset
