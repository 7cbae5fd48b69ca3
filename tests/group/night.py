"""A group on one PostgreSQL database, and what befalls its members: three desks and four workers on three machines,
each with a way of its own to the store."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import apsw
from hole import Road, a_road

from fire.house import Desk, House, until
from group.cables import Cable, a_cable

SESSION = {"idle_in_transaction_session_timeout": 2000}
"""Milliseconds; by default it is half a minute, and so less than a lease as well."""
WITHIN = 0.05
"""Seconds between two looks at what became of it."""


@dataclass(frozen=True)
class Seat:
    """A place in the group."""

    name: str
    role: str
    machine: str
    off: float = 0.0
    """Seconds that the wall clock there is wrong by."""


SEATS = (
    Seat("first desk", "desk", "ada"), Seat("second desk", "desk", "ada"), Seat("third desk", "desk", "bob", off=170.0),
    Seat("first worker", "worker", "ada"), Seat("second worker", "worker", "bob", off=170.0),
    Seat("third worker", "worker", "cyd", off=-170.0), Seat("fourth worker", "worker", "cyd", off=-170.0),
)


@dataclass
class Member:
    """Who has a seat, and its way to the store."""

    seat: Seat
    road: Road | None
    """None: it is on the machine that has the store."""
    desk: Desk
    away: str = ""
    """What befell it, until it is back."""


@dataclass(frozen=True)
class Takeover:
    """What one member's loss came to, in seconds until the others had it."""

    what: str
    seat: str
    by_lock: bool
    """Another process on its machine could tell by the free lock."""
    lead: float | None
    """None: it did not lead."""
    runs: float | None
    """None: it held none."""


@dataclass
class Group:
    """The members, and what became of those that were lost."""

    house: House
    lease: float
    world: str
    settings: dict[str, Any]
    members: list[Member] = field(default_factory=list)
    takeovers: list[Takeover] = field(default_factory=list)
    mishaps: int = 0
    held_up: int = 0
    """How often one was to hang with the only lock of the store in its hand, so that nobody could do anything."""

    def take_seats(self, seats: Sequence[Seat], roads: Sequence[Road | None]) -> None:
        for seat, road in zip(seats, roads, strict=True):
            self.members.append(Member(seat, road, self._opened(seat, road)))
            if seat.role == "desk":
                self.members[-1].desk.ready()  # so that the first one leads
        for member in self.members:
            if member.seat.role != "desk":
                member.desk.ready()

    def _opened(self, seat: Seat, road: Road | None) -> Desk:
        way = {} if road is None else {"store": road.url(**SESSION)}
        network = road.namespace if isinstance(road, Cable) else ""
        where = {"elsewhere": {
            "machine": seat.machine, "off": seat.off, "role": seat.role, "namespace": network,
        }}
        return self.house.open(self.world, also={**way, **where}, **self.settings)

    def leader(self) -> str | None:
        found = self.house.ledger.rows(
            "SELECT w.id FROM setting s JOIN worker w ON w.id = s.value AND w.ended_at IS NULL WHERE s.key = 'leader'")
        return found[0][0] if found else None

    def leading(self) -> Member:
        """Who leads, once somebody does."""
        led = until(self.leader, "somebody leads")
        return next(member for member in self.members if self._worker(member) == led)

    def _worker(self, member: Member) -> str:
        """The name under which it has joined last."""
        rows = self.house.ledger.rows(
            f"SELECT id FROM worker WHERE pid = {member.desk.process.pid} ORDER BY started_at DESC, id DESC")
        return rows[0][0] if rows else ""

    def _worker_alive(self, member: Member) -> str:
        rows = self.house.ledger.rows(
            f"SELECT id FROM worker WHERE pid = {member.desk.process.pid} AND ended_at IS NULL")
        return rows[0][0] if rows else ""

    # -- what befalls them ------------------------------------------------------------------------------------

    def lose(self, what: str, *lost: Member) -> None:
        """These are killed, hang, or are cut off at once; returns when the others have what they had. Those that were
        not killed come back afterwards."""
        names = {member.seat.name: self._worker(member) for member in lost}
        led, began = self.leader(), time.monotonic()
        self.mishaps += 1
        for member in lost:
            member.away = what
            match what:
                case "killed":
                    self.house.kill(member.desk)
                case "hangs":
                    self._hang(member.desk)
                    began = time.monotonic()  # it went on between its first tries to stand still
                case _:
                    assert member.road is not None
                    member.road.swallow()
        waiting = {worker: self._held(worker) for worker in names.values()}
        had = {worker: bool(held) for worker, held in waiting.items()}
        lead, runs = None, dict.fromkeys(names.values(), 0.0)
        until(lambda: not any(self._still_has(worker) for worker in names.values()) and self._noted(
            names, led, began, runs), f"the others take over from one that is {what}", within=self.lease + 90)
        lead = runs.pop("lead", None)
        for member in lost:
            worker = names[member.seat.name]
            self.takeovers.append(Takeover(
                what, member.seat.name, what == "killed" and self._has_neighbour(member),
                lead if worker == led else None, runs[worker] if had[worker] else None,
            ))

    def _hang(self, desk: Desk) -> None:
        """Not in the middle of a write to a file: whoever stands still there holds up everybody, and is waited for."""
        desk.freeze()
        while "://" not in self.house.store and self._is_locked():
            self.held_up += 1
            desk.thaw()
            time.sleep(WITHIN)
            desk.freeze()

    def _is_locked(self) -> bool:
        with contextlib.closing(apsw.Connection(self.house.store)) as other:
            other.set_busy_timeout(2000)
            try:
                other.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                return True
            other.execute("ROLLBACK")
        return False

    def _held(self, worker: str) -> int:
        return self.house.ledger.count(f"run WHERE worker = '{worker}' AND state = 'running'")

    def _still_has(self, worker: str) -> bool:
        return self.house.ledger.count(f"worker WHERE id = '{worker}' AND ended_at IS NULL") > 0

    def _noted(self, names: dict[str, str], led: str | None, began: float, runs: dict[str, float]) -> bool:
        """Note what is taken over by now; whether it is all."""
        since = time.monotonic() - began
        for worker in names.values():
            if not runs[worker] and not self._held(worker):
                runs[worker] = since
        if led in names.values() and "lead" not in runs and self.leader() not in (None, led):
            runs["lead"] = since
        return all(runs[worker] for worker in names.values()) and (led not in names.values() or "lead" in runs)

    def _has_neighbour(self, member: Member) -> bool:
        return any(other is not member and not other.away and other.seat.machine == member.seat.machine
                   for other in self.members)

    def bring_back(self) -> None:
        """Whoever is away comes back, and lives under a name that nobody declared dead."""
        for member in self.members:
            match member.away:
                case "":
                    continue
                case "killed":
                    member.desk = self._opened(member.seat, member.road)
                    member.desk.ready()
                case "hangs":
                    member.desk.thaw()
                case _:
                    assert member.road is not None
                    member.road.heal()
            until(lambda member=member: self._worker_alive(member),  # type: ignore[misc]  # bound per turn
                  f"the {member.seat.name} is back after it was {member.away}", within=self.lease + 90)
            member.away = ""

    def mishap(self, chance: random.Random) -> None:
        """A desk, the leader more often than not, and a worker are lost in the same way, and come back."""
        desks = [member for member in self.members if member.seat.role == "desk"]
        workers = [member for member in self.members if member.seat.role == "worker"]
        desk = self.leading() if chance.random() < 0.7 else chance.choice(desks)
        lost = [desk, *([chance.choice(workers)] if workers else [])]
        ways = {"killed": 1, "hangs": 1, "cut off": 1} if desk.road is not None else {"killed": 6, "hangs": 1}
        [what] = chance.choices([*ways], [*ways.values()])
        self.lose(what, *lost)
        self.bring_back()

    def quieten(self) -> None:
        """Nothing new begins, and what was begun ends."""
        for member in self.members:
            member.desk.tell("quiet", within=self.house.patience)
        self.house.idle()

    def loud(self) -> list[str]:
        """Those who said more than once what is to be said once."""
        found = []
        for desk in self.house.desks:
            log = desk.whole_log()
            dead = log.count('"desk.was_declared_dead"')
            if log.count('"desk.lost_the_lead"') > dead:
                found.append(f"the log of {desk.worker} says {log.count('desk.lost_the_lead')} times that it lost the "
                             f"lead, and {dead} times that it was declared dead")
        return found


@contextmanager
def a_way(house: House, number: int, *, cables: bool) -> Iterator[Road]:
    """A way to the store that can be cut: by a cable, or by swallowing what is sent on it."""
    with a_cable(house.store, house.outside.port, number) if cables else a_road(house.store) as road:
        yield road


@contextmanager
def a_group(
    house: House, *, world: str, lease: float, seats: Sequence[Seat] = SEATS, cables: bool = False, **settings: Any
) -> Iterator[Group]:
    """A group whose members are all there. `cables`: each is in a network of its own, and is cut off by its cable."""
    with ExitStack() as roads:
        group = Group(house, lease, world, {"lease": lease, **settings})
        group.take_seats(seats, [
            roads.enter_context(a_way(house, number, cables=cables)) if "://" in house.store else None
            for number in range(len(seats))
        ])
        try:
            yield group
        finally:
            for member in group.members:
                with contextlib.suppress(ProcessLookupError, AssertionError):
                    if member.road is not None:
                        member.road.heal()
                    member.desk.thaw()
                    member.desk.kill()
