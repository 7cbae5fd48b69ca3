"""Joining: a worker has its lock before anybody can look for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from engines import Engines

from nightporter.store.locks import FileLock, is_free
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
