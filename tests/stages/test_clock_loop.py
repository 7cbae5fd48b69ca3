"""The clock's loop: it sleeps until the next slot or a kick, and goes on whatever goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from armed import at, cron, every, lines

from nightporter.clock import MINUTE, SECOND, Instant, Kick, ManualClock
from nightporter.errors import StoreUnwritable
from nightporter.sources.clock import ClockSource
from nightporter.store import Store, Tx
from nightporter.words import Overlap
from words import rows


class Running:
    """The loop on a thread of its own, and a way to wait for what it did."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.kick = Kick()
        self.source = ClockSource(store, clock, self.kick)
        self._wrote = threading.Condition()
        self._written = 0
        store.writer.ride("queued", lambda tx: None, self._heard)
        self.thread = threading.Thread(target=self.source.run, daemon=True)
        self.thread.start()

    def _heard(self, _: None) -> None:
        with self._wrote:
            self._written += 1
            self._wrote.notify_all()

    def wait_for_runs(self, count: int) -> None:
        with self._wrote:
            assert self._wrote.wait_for(lambda: self._written >= count, 20)

    def close(self) -> None:
        self.source.close()
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def running(store: Store, clock: ManualClock) -> Iterator[Callable[[], Running]]:
    loops: list[Running] = []

    def start() -> Running:
        loops.append(Running(store, clock))
        return loops[-1]

    yield start
    for loop in loops:
        loop.close()


def test_the_loop_fires_each_slot_when_it_comes(
    store: Store, clock: ManualClock, running: Callable[[], Running]
) -> None:
    every(store, clock, "15m", overlap=Overlap.PARALLEL)
    loop = running()
    for n in (1, 2, 3):
        clock.advance(timedelta(minutes=15))
        loop.wait_for_runs(n)
    assert [slot for _, _, slot, _ in lines(store)] == [at(2026, 3, 27, 8, 15 * n) for n in (1, 2)] + [
        at(2026, 3, 27, 8, 45)
    ]


def test_an_edit_wakes_the_loop(store: Store, clock: ManualClock, running: Callable[[], Running]) -> None:
    loop = running()
    brief = every(store, clock, "1s")
    loop.kick.ring()
    clock.advance(timedelta(seconds=1))
    loop.wait_for_runs(1)
    assert rows(store, "SELECT DISTINCT automation_id FROM run") == [(brief,)]


def test_a_slot_that_comes_between_the_look_and_the_sleep_is_not_slept_through(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told(ManualClock):
        def wait(self, until: Instant, kick: Kick) -> None:
            sleeps.append(until)
            loop.close()

    sleeps: list[Instant] = []
    clock = Told(at(2026, 3, 27, 8))
    cron(store, clock, "1 8 * * *")
    read = store.read

    def slowly(look: Callable[[Tx], Any]) -> Any:
        found = read(look)
        monkeypatch.undo()
        clock.advance(timedelta(minutes=1))
        return found

    monkeypatch.setattr(store, "read", slowly)
    loop = ClockSource(store, clock, Kick())
    loop.run()
    assert sleeps == [clock.now()], "which is no sleep at all"
    assert [verdict for verdict, *_ in lines(store)] == ["admitted"]


def test_without_anything_armed_the_loop_looks_again_within_a_minute(store: Store) -> None:
    class Told(ManualClock):
        def wait(self, until: Instant, kick: Kick) -> None:
            sleeps.append(until - self.now())
            loop.close()

    sleeps: list[int] = []
    loop = ClockSource(store, Told(at(2026, 3, 27, 8)), Kick())
    loop.run()
    assert sleeps == [MINUTE]


@pytest.mark.parametrize(("wrong", "told"), [
    ([StoreUnwritable("the disk is full")] * 2, []),
    ([OSError("a handle is gone"), ZeroDivisionError("a bug")], ["a handle is gone", "a bug"]),
], ids=["an ill store", "anything else"])
def test_whatever_goes_wrong_the_loop_waits_a_second_and_goes_on(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    wrong: list[Exception], told: list[str],
) -> None:
    class Told(ManualClock):
        def wait(self, until: Instant, kick: Kick) -> None:
            sleeps.append(until - self.now())
            if len(sleeps) == 3:
                loop.close()

    sleeps: list[int] = []
    left = list(wrong)
    read = store.read

    def sometimes(look: Callable[[Tx], Any]) -> Any:
        if left:
            raise left.pop()
        return read(look)

    monkeypatch.setattr(store, "read", sometimes)
    loop = ClockSource(store, Told(clock.now()), Kick())
    loop.run()
    assert sleeps == [SECOND, SECOND, MINUTE]
    assert [text for text in told if text not in caplog.text] == []
