"""A server that falls silent without hanging up, and machines whose clocks do not agree."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from hole import Road, a_road

from conftest import START
from nightporter.clock import Instant, Kick, ManualClock, SystemClock
from nightporter.engine.gaps import ClockWatch, Gap
from nightporter.errors import StoreError
from nightporter.store import Store, Tx, open_store
from nightporter.store.postgres_link import parameters
from nightporter.store.server_clock import ServerClock
from words import an_automation

SOON = 15.0
"""Seconds; with these tests' silence of one it takes about three."""


@pytest.fixture
def road(migrated_postgres_url: str) -> Iterator[Road]:
    with a_road(migrated_postgres_url) as found:
        yield found


@pytest.fixture
def far(road: Road) -> Iterator[Store]:
    """The store by the road."""
    store = open_store(road.url(idle_in_transaction_session_timeout=1500), now=START, patience=2.0, silence=1.0)
    try:
        yield store
    finally:
        road.heal()
        store.close()


def written(store: Store) -> str | None:
    store.write(lambda tx: tx.put_setting("a", "1"))
    return store.read(lambda tx: tx.setting("a"))


@pytest.mark.parametrize("ask", [
    lambda store: store.read(lambda tx: tx.setting("a")),
    lambda store: store.write(lambda tx: tx.put_setting("a", "1")),
], ids=["a look", "a write"])
def test_a_server_that_fell_silent_is_noticed_and_found_again(
    road: Road, far: Store, ask: Callable[[Store], object]
) -> None:
    assert written(far) == "1"
    road.swallow()
    began = time.monotonic()
    with pytest.raises(StoreError):
        ask(far)
    assert time.monotonic() - began < SOON
    road.heal()
    assert written(far) == "1"


def test_connections_that_were_swallowed_are_left_when_others_get_through(road: Road, far: Store) -> None:
    assert written(far) == "1"
    road.swallow()
    road.heal()
    began = time.monotonic()
    assert written(far) == "1"
    assert time.monotonic() - began < SOON


def test_a_statement_that_takes_long_is_waited_for(far: Store) -> None:
    def slow(tx: Tx) -> None:
        tx.sql._connection.execute("SELECT pg_sleep(3.5)")  # type: ignore[attr-defined]  # of the PostgreSQL port

    far.read(slow)
    far.write(slow)


def test_what_somebody_held_who_fell_silent_in_a_transaction_is_free_again(
    road: Road, far: Store, migrated_postgres_url: str
) -> None:
    near = open_store(migrated_postgres_url, now=START, patience=10.0)
    brief = an_automation(near, now=START)
    held, failed = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        tx.lock_automations([brief])
        road.swallow()
        held.set()
        tx.setting("a")

    def holding() -> None:
        with pytest.raises(StoreError):
            far.write(hold)
        failed.set()

    threading.Thread(target=holding, daemon=True).start()
    assert held.wait(SOON)
    near.write(lambda tx: tx.lock_automations([brief]))
    road.heal()
    assert failed.wait(SOON)
    near.close()


def test_what_the_address_of_a_store_says_stands_over_our_own_limits() -> None:
    said = parameters("postgresql://ana@db.example/desk?connect_timeout=3&options=-c%20work_mem%3D8MB")
    assert (said["connect_timeout"], said["keepalives"], said["dbname"]) == ("3", 1, "desk")
    assert said["options"].endswith("-c work_mem=8MB")
    assert "idle_in_transaction_session_timeout" in said["options"]


@pytest.mark.parametrize("off", [timedelta(minutes=-7), timedelta(0), timedelta(minutes=7)])
def test_machines_that_share_a_server_go_by_its_clock(far: Store, off: timedelta) -> None:
    own = SystemClock()
    wrong = ManualClock(own.now())
    wrong.step(off)
    agreed = far.clock(wrong)
    assert abs(agreed.now() - own.now()) < 2_000_000
    wrong.step(timedelta(hours=-1))
    assert abs(agreed.now() - own.now()) < 2_000_000, "and its own may be set as often as it likes"
    far.set_clock()
    assert abs(agreed.now() - own.now()) < 2_000_000


def test_a_files_clock_is_the_machines(store: Store, clock: ManualClock) -> None:
    if store.dialect == "sqlite":
        assert store.clock(clock) is clock
    else:
        assert store.clock(clock) is not clock


def test_the_servers_clock_is_carried_on_and_followed_when_it_is_set() -> None:
    own = ManualClock(Instant(1_000_000_000))
    ours = ServerClock(own)
    assert ours.set(Instant(5_000_000_000), 0, 0) == 4_000_000_000
    assert ours.now() == 5_000_000_000
    own.advance(timedelta(seconds=1))
    assert ours.now() == 5_001_000_000
    assert ours.set(Instant(5_001_030_000), 1_000_000, 1_100_000) == 0, "within the time that the answer took"
    assert ours.now() == 5_001_000_000
    assert ours.set(Instant(5_002_000_000), 1_000_000, 1_000_010) == 999_995
    assert ours.set(Instant(4_000_000_000), 1_000_000, 1_000_000) < 0, "a server that is set back is followed"
    assert ours.now() == 4_000_000_000


def test_a_machine_that_slept_knows_the_servers_time_as_it_wakes() -> None:
    own = ManualClock(Instant(1_000_000_000))
    ours = ServerClock(own)
    ours.set(Instant(5_000_000_000), 0, 0)
    watch = ClockWatch(ours)
    own.sleep(timedelta(hours=8))
    slept = timedelta(hours=8) // timedelta(microseconds=1)
    assert ours.now() == 5_000_000_000 + slept
    assert watch.look() == [Gap("sleep", Instant(5_000_000_000), Instant(5_000_000_000 + slept))]
    assert ours.set(Instant(5_000_000_000 + slept), own.elapsed(), own.elapsed()) == 0
    assert watch.look() == []


def test_whoever_waits_by_the_servers_clock_wakes_by_it() -> None:
    own = ManualClock(Instant(0))
    ours = ServerClock(own)
    ours.set(Instant(100_000_000), 0, 0)
    kick = Kick()
    kick.ring()
    ours.wait(Instant(200_000_000), kick)
    assert ours.now() == 100_000_000, "a ring ends it"
    ours.wait(Instant(100_000_000), kick)
