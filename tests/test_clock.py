"""The clocks: the machine's, and the one that tests move by hand."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.clock import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Clock,
    Instant,
    Kick,
    ManualClock,
    SystemClock,
    instant,
    micros,
    moment,
    rfc3339,
)

MOMENTS = st.datetimes(
    min_value=datetime(1600, 1, 1), max_value=datetime(2400, 1, 1),  # noqa: DTZ001  hypothesis wants naive bounds
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(timedelta(hours=-11))]),
)


@given(MOMENTS)
def test_an_instant_and_its_moment_are_the_same_time(at: datetime) -> None:
    assert moment(instant(at)) == at
    assert instant(moment(instant(at))) == instant(at)


@given(MOMENTS)
def test_rfc_3339_reads_back_to_the_same_instant(at: datetime) -> None:
    written = rfc3339(instant(at))
    assert written is not None
    assert written.endswith("Z")
    assert instant(datetime.fromisoformat(written)) == instant(at)


def test_rfc_3339_has_a_fraction_only_where_there_is_one() -> None:
    at = instant(datetime(2026, 3, 27, 8, tzinfo=UTC))
    assert rfc3339(at) == "2026-03-27T08:00:00Z"
    assert rfc3339(Instant(at + 500_000)) == "2026-03-27T08:00:00.5Z"
    assert rfc3339(Instant(at + 10)) == "2026-03-27T08:00:00.00001Z"
    assert rfc3339(None) is None


def test_a_moment_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="names no zone"):
        instant(datetime(2026, 3, 27, 8))  # noqa: DTZ001  that is the point


@given(st.timedeltas())
def test_a_duration_loses_nothing_in_microseconds(duration: timedelta) -> None:
    assert timedelta(microseconds=micros(duration)) == duration


def test_the_units_fit_one_another() -> None:
    assert (micros(timedelta(seconds=1)), micros(timedelta(minutes=1))) == (SECOND, MINUTE)
    assert (micros(timedelta(hours=1)), micros(timedelta(days=1))) == (HOUR, DAY)


# -- kicks --------------------------------------------------------------------------------------------------------


def test_a_ring_before_the_wait_is_not_lost() -> None:
    kick = Kick()
    kick.ring()
    assert kick.wait(0)


def test_a_ring_just_when_a_wait_gave_up_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kick = Kick()

    def nothing_came(seconds: float) -> bool:
        kick.ring()
        return False

    with monkeypatch.context() as patch:
        patch.setattr(kick._event, "wait", nothing_came)
        assert not kick.wait(1)
    assert kick.wait(0)


def test_rings_while_nobody_waits_are_one() -> None:
    kick = Kick()
    kick.ring()
    kick.ring()
    assert kick.wait(0)
    assert not kick.wait(0)


# -- the clocks ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [SystemClock(), ManualClock(Instant(0))], ids=["system", "manual"])
def test_waiting_for_what_has_passed_returns_at_once(of: Clock) -> None:
    of.wait(Instant(of.now() - SECOND), Kick())
    of.wait(of.now(), Kick())


@pytest.mark.parametrize("of", [SystemClock(), ManualClock(Instant(0))], ids=["system", "manual"])
def test_a_kick_ends_the_wait_and_is_taken(of: Clock) -> None:
    kick = Kick()
    kick.ring()
    of.wait(Instant(of.now() + HOUR), kick)
    assert not kick.wait(0)


def test_the_machines_clock_waits_until_its_instant_and_not_less() -> None:
    of = SystemClock()
    until = Instant(of.now() + 20_000)
    of.wait(until, Kick())
    assert of.now() >= until


def test_the_machines_clock_is_the_machines() -> None:
    of = SystemClock()
    before = time.time_ns() // 1000
    assert before <= of.now() <= time.time_ns() // 1000
    assert of.monotonic() <= of.monotonic()


def test_time_passes_on_both_clocks_but_a_step_is_seen_on_the_wall_only() -> None:
    of = ManualClock(datetime(2026, 3, 27, 8, tzinfo=UTC))
    began, ticks = of.now(), of.monotonic()
    of.advance(timedelta(minutes=1))
    assert (of.now() - began, of.monotonic() - ticks) == (MINUTE, MINUTE)
    of.step(timedelta(hours=-2))
    assert (of.now() - began, of.monotonic() - ticks) == (MINUTE - 2 * HOUR, MINUTE)


def test_whoever_waits_on_the_manual_clock_is_woken_when_it_is_moved_there() -> None:
    of = ManualClock(Instant(0))
    waiting = threading.Thread(target=of.wait, args=(Instant(HOUR), Kick()))
    waiting.start()
    of.advance(timedelta(hours=1))
    waiting.join(10)
    assert not waiting.is_alive()
