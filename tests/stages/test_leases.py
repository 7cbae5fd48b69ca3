"""Who is dead: by a lock that is free at once, by a lease that stands still after a while, and never by a pause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from nightporter.clock import ManualClock
from nightporter.store.locks import FileLock
from nightporter.sweep import Leases

MINUTE = timedelta(minutes=1)


class Worker:
    """A worker as the ledger has it."""

    def __init__(self, name: str = "wrk_a", *, host: str = "here", lock: Path | None = None) -> None:
        self.name = name
        self.beat = 0
        self._rest = (host, lock)

    @property
    def row(self) -> tuple[object, ...]:
        host, lock = self._rest
        return (self.name, "desk", host, 1, self.beat, str(lock or ""), 0)


@pytest.fixture
def leases(clock: ManualClock) -> Leases:
    return Leases(clock, host="here", lease=MINUTE)


def pass_time(clock: ManualClock, leases: Leases, **by: float) -> None:
    """Time passes, and the observer renews its own lease all along."""
    left = timedelta(**by)
    while left > timedelta(0):
        clock.advance(timedelta(seconds=1))
        leases.renewed()
        left -= timedelta(seconds=1)


@contextmanager
def held(path: Path) -> Iterator[Path]:
    lock = FileLock(path)
    assert lock.take()
    yield path
    lock.let_go()


def test_a_lease_that_stands_still_for_its_time_is_a_death(clock: ManualClock, leases: Leases) -> None:
    worker = Worker()
    assert leases.dead([worker.row]) == []
    pass_time(clock, leases, seconds=59)
    assert leases.dead([worker.row]) == []
    pass_time(clock, leases, seconds=1)
    assert leases.dead([worker.row]) == ["wrk_a"]


def test_a_lease_that_is_renewed_begins_anew(clock: ManualClock, leases: Leases) -> None:
    worker = Worker()
    for _ in range(5):
        assert leases.dead([worker.row]) == []
        pass_time(clock, leases, seconds=59)
        worker.beat += 1
    assert leases.dead([worker.row]) == []


def test_a_step_of_the_wall_clock_kills_nobody(clock: ManualClock, leases: Leases) -> None:
    worker = Worker()
    leases.dead([worker.row])
    clock.step(timedelta(days=1))
    assert leases.dead([worker.row]) == []


def test_a_free_lock_on_this_machine_is_a_death_at_once(leases: Leases, tmp_path: Path) -> None:
    (tmp_path / "free.lock").touch()
    assert leases.dead([Worker(lock=tmp_path / "free.lock").row]) == ["wrk_a"]
    assert leases.dead([Worker(lock=tmp_path / "free.lock", host="elsewhere").row]) == []
    assert leases.dead([Worker(lock=tmp_path / "gone.lock").row]) == []
    with held(tmp_path / "held.lock") as lock:
        assert leases.dead([Worker(lock=lock).row]) == []


def test_a_worker_that_was_frozen_is_taken_over_although_it_holds_its_lock(
    clock: ManualClock, leases: Leases, tmp_path: Path
) -> None:
    with held(tmp_path / "held.lock") as lock:
        worker = Worker(lock=lock)
        leases.dead([worker.row])
        pass_time(clock, leases, minutes=1)
        assert leases.dead([worker.row]) == ["wrk_a"]


def test_after_a_pause_of_the_observer_itself_everybody_is_waited_for_again(
    clock: ManualClock, leases: Leases
) -> None:
    """A machine that slept, or was moved: the others on it stood still too."""
    worker = Worker()
    leases.dead([worker.row])
    pass_time(clock, leases, seconds=30)
    clock.advance(timedelta(hours=8))
    assert leases.dead([worker.row]) == [], "its own lease stands as well"
    leases.renewed()
    assert leases.dead([worker.row]) == []
    pass_time(clock, leases, seconds=59)
    assert leases.dead([worker.row]) == []
    pass_time(clock, leases, seconds=1)
    assert leases.dead([worker.row]) == ["wrk_a"], "it did not come back from the pause"


def test_nobody_dies_while_the_observer_cannot_renew_its_own_lease(clock: ManualClock, leases: Leases) -> None:
    """A store that takes no write keeps everybody's lease where it is, although it can be read."""
    worker = Worker()
    for _ in range(600):
        clock.advance(timedelta(seconds=1))
        assert leases.dead([worker.row]) == []
    leases.renewed()
    assert leases.dead([worker.row]) == [], "the others have had no time to renew theirs"
    worker.beat += 1
    pass_time(clock, leases, seconds=59)
    assert leases.dead([worker.row]) == []


def test_a_sweep_that_takes_long_is_no_pause(clock: ManualClock, leases: Leases) -> None:
    worker = Worker()
    for _ in range(2):
        leases.dead([worker.row])
        pass_time(clock, leases, minutes=10)  # the sweep is at work, the process lives
    assert leases.dead([worker.row]) == ["wrk_a"]


def test_short_leases_are_not_mistaken_for_pauses(clock: ManualClock) -> None:
    leases = Leases(clock, host="here", lease=timedelta(seconds=2))
    worker = Worker()
    leases.dead([worker.row])
    pass_time(clock, leases, seconds=2)
    assert leases.dead([worker.row]) == ["wrk_a"]
