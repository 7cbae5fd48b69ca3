"""File locks tell the living from the dead, whatever the disk they lie on has become."""

from __future__ import annotations

import errno
import fcntl
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


def test_a_lock_is_held_by_one_until_it_is_let_go(lock: FileLock) -> None:
    other = FileLock(lock.path)
    assert lock.take(), "it was ours already"
    assert not other.take()
    lock.let_go()
    assert other.take()
    other.let_go(remove=True)
    assert not lock.path.exists()


@pytest.mark.parametrize("another", [False, True])
def test_a_file_that_is_tidied_away_before_it_is_locked_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, another: bool
) -> None:
    path = tmp_path / "a.lock"
    flock = fcntl.flock

    def too_late(descriptor: int, how: int) -> None:
        path.unlink()
        if another:
            path.touch()
        flock(descriptor, how)

    lock = FileLock(path)
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", too_late)
        assert not lock.take()
    assert lock.take()
    assert not is_free(path)
    lock.let_go()
