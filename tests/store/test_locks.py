"""File locks tell the living from the dead, whatever the disk they lie on has become."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nightporter.store.locks import FileLock, is_free


@pytest.fixture
def lock(tmp_path: Path) -> FileLock:
    made = FileLock(tmp_path / "wrk_1.lock")
    assert made.take()
    return made


def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the disk takes no writes."""
    opened = os.open

    def refuse(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return opened(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)


def test_a_lock_is_free_once_its_holder_is_gone(lock: FileLock) -> None:
    assert not is_free(lock.path)
    lock.let_go()
    assert is_free(lock.path)


def test_a_disk_that_turned_read_only_keeps_nobody_alive(lock: FileLock, monkeypatch: pytest.MonkeyPatch) -> None:
    read_only(monkeypatch)
    assert not is_free(lock.path)
    lock.let_go()
    assert is_free(lock.path)


def test_of_a_lock_that_is_not_there_nothing_can_be_told(tmp_path: Path) -> None:
    assert not is_free(tmp_path / "wrk_2.lock")
