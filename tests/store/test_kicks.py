"""Kicks: whoever waits is rung after a commit, in this process and in the others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nightporter.clock import Instant
from nightporter.store import Store, kicks, open_store
from nightporter.store.kicks import DatagramKicks, Kicks

START = Instant(1_774_598_400_000_000)


class Heard:
    """The topics that were rung, and a way to wait for one."""

    def __init__(self) -> None:
        self.topics: set[str] = set()
        self._bell = threading.Condition()

    def __call__(self, topics: frozenset[str]) -> None:
        with self._bell:
            self.topics |= topics
            self._bell.notify_all()

    def wait(self, topic: str) -> None:
        with self._bell:
            assert self._bell.wait_for(lambda: topic in self.topics, 20)


@pytest.fixture
def two(store_url: str, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two processes' stores on one ledger."""
    stores = [open_store(store_url, now=START, kick_folder=tmp_path / "kicks") for _ in range(2)]
    yield stores[0], stores[1]
    for store in stores:
        store.close()


def kick(*topics: str) -> Callable[[object], None]:
    def work(tx: object) -> None:
        for topic in topics:
            tx.kick(topic)  # type: ignore[attr-defined]  # a Tx

    return work


def test_a_commit_rings_its_own_process(store: Store) -> None:
    heard = Heard()
    store.kicks.listen(heard)
    store.write(kick("queued", "delivery"))
    heard.wait("queued")
    heard.wait("delivery")


def test_a_commit_rings_the_other_process_and_tells_it_what_for(two: tuple[Store, Store]) -> None:
    here, there = two
    ready, heard, own = Heard(), Heard(), Heard()
    there.kicks.listen(ready)
    there.kicks.listen(heard, foreign=True)
    here.kicks.listen(own, foreign=True)
    if here.dialect == "postgres":
        ready.wait("due")  # what a gap may have hidden: from then on it listens
        own.wait("due")
        heard.topics.clear()
        own.topics.clear()
    here.write(kick("mine"))
    heard.wait("mine")
    there.write(kick("theirs"))
    own.wait("theirs")
    assert heard.topics == {"mine"}
    assert own.topics == {"theirs"}, "what this process kicked itself is no news from elsewhere"


def test_whoever_stopped_listening_hears_nothing(store: Store) -> None:
    heard, still = Heard(), Heard()
    stop = store.kicks.listen(heard)
    store.kicks.listen(still)
    stop()
    store.write(kick("queued"))
    still.wait("queued")
    assert heard.topics == set()


def test_a_process_that_left_is_no_peer_any_more(tmp_path: Path) -> None:
    one, other = DatagramKicks(tmp_path), DatagramKicks(tmp_path)
    assert not one.others()
    other.listen(lambda topics: None)
    assert one.others()
    other.close()
    assert not one.others()
    one.close()


def test_a_process_that_died_without_tidying_up_is_forgotten(tmp_path: Path) -> None:
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    dead.bind(str(tmp_path / "1-dead.kick"))
    dead.close()
    one = DatagramKicks(tmp_path)
    assert one.others()
    one.ring(frozenset({"due"}))
    assert not one.others()
    assert list(tmp_path.iterdir()) == []
    one.close()


def test_a_peer_that_does_not_listen_fast_enough_holds_nobody_up(tmp_path: Path) -> None:
    full = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    full.bind(str(tmp_path / "1-busy.kick"))
    one = DatagramKicks(tmp_path)
    for _ in range(2000):  # more than any socket's queue takes
        one.ring(frozenset({"due"}))
    one.close()
    full.close()


def test_a_folder_that_somebody_removed_costs_the_kick_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kicks, "LONGEST_ADDRESS", 10_000)  # by its own name, and not by a handle that outlives it
    folder = tmp_path / "kicks"
    store = open_store(str(tmp_path / "ledger.db"), now=START, kick_folder=folder)
    heard = Heard()
    Kicks.listen(store.kicks, heard)
    folder.rmdir()
    store.write(kick("queued"))
    heard.wait("queued")
    store.write(lambda tx: tx.put_setting("still", "there"))
    store.close()


def test_a_folder_with_a_very_long_name_still_rings(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 30) / "kicks"
    before = len(list(Path("/proc/self/fd").iterdir()))
    one, other = DatagramKicks(folder), DatagramKicks(folder)
    heard = Heard()
    other.listen(heard)
    one.ring(frozenset({"due"}))
    heard.wait("due")
    one.close()
    other.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "closing gives every handle back"
