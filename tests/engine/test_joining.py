"""Joining: a worker has its lock before anybody can look for it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from engines import Engines

from nightporter.clock import ManualClock
from nightporter.config import Config
from nightporter.engine.membership import Membership
from nightporter.store import Store
from nightporter.store.locks import FileLock, is_free
from nightporter.sweep import Leases
from words import rows


async def test_a_worker_that_does_not_get_its_lock_joins_under_another_name(
    engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, answers = FileLock.take, iter([False])
    monkeypatch.setattr(FileLock, "take", lambda lock: next(answers, True) and take(lock))
    engine = engines()
    await engine.start()
    [(worker, lock)] = rows(engine.store, "SELECT id, lock_path FROM worker")
    assert worker == engine.worker
    assert Path(lock).exists()
    assert not is_free(Path(lock))


async def test_whoever_was_declared_dead_counts_the_leases_of_others_from_when_it_is_back(
    store: Store, clock: ManualClock, tmp_path: Path
) -> None:
    leases = Leases(clock, host="here", lease=timedelta(minutes=1))
    config = Config(state=tmp_path, outputs=tmp_path / "outputs", home=tmp_path, store="", beat=timedelta(seconds=20))
    membership = Membership(config, store, clock, leases, role="desk", host="here", note=lambda tx: None)
    await membership.join()
    other = ("wrk_other", "desk", "elsewhere", 1, 7, "", 0)  # it hangs from now on
    leases.dead([other])
    clock.advance(timedelta(minutes=2))  # we stand still, and are declared dead
    await membership.join()
    found = []
    for second in range(1, 62):
        if second % 20 == 0:
            membership.beat()
        found += [second for _ in leases.dead([other])]
        clock.advance(timedelta(seconds=1))
    assert found == [61]
    await membership.leave(5)
