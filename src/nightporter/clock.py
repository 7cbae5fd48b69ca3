"""The only clock. Everything else is handed `now`.

`now()` answers "is it due" and follows the wall; `monotonic()` measures durations (leases, timeouts, backoff
within a process) and never steps. An `Instant` is an integer of microseconds since 1970-01-01T00:00Z: one
representation in the store, the rules and the stages, so that no conversion can go wrong on the way.
Surfaces turn it into RFC 3339.
"""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import NewType, Protocol

Instant = NewType("Instant", int)
"""Microseconds since the epoch, UTC."""

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
LOOK_SECONDS = 1.0
"""How long a wait sleeps before it looks at the wall again."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST = -62_135_596_800 * SECOND
LAST = 253_402_300_800 * SECOND - 1
"""The first and the last instant that have a date."""


def micros(duration: timedelta) -> int:
    """A duration in whole microseconds."""
    return (duration.days * 86_400 + duration.seconds) * SECOND + duration.microseconds


def instant(moment: datetime) -> Instant:
    """The instant of an aware datetime. Raises ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} names no zone")
    return Instant(micros(moment - _EPOCH))


def moment(at: Instant) -> datetime:
    """The aware UTC datetime of an instant. Raises OverflowError beyond the calendar."""
    return _EPOCH + timedelta(microseconds=at)


def has_date(at: Instant) -> bool:
    """Whether an instant lies in the years 1 to 9999. In a store it may be any number that somebody wrote there."""
    return FIRST <= at <= LAST


def rfc3339(at: Instant | None) -> str | None:
    """`2026-03-27T08:00:00Z`, with a fraction only where there is one; None stays None. An instant beyond the calendar
    has no such text, and is said as the number it is."""
    if at is None:
        return None
    if not has_date(at):
        return f"no date ({at} microseconds)"
    text = moment(at).replace(tzinfo=None).isoformat()
    return text.rstrip("0") + "Z" if "." in text else text + "Z"


class Kick:
    """A doorbell: anybody rings, one thread waits. Rings while nobody waits are kept as one."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, `seconds` at most, and take it. True when it rang."""
        rang = self._event.wait(seconds)
        if rang:  # otherwise it may ring just now, and that is for the next to wait
            self._event.clear()
        return rang


class Clock(Protocol):
    """What the engine knows of time."""

    def now(self) -> Instant:
        """The wall, in microseconds UTC."""

    def monotonic(self) -> int:
        """Microseconds on a clock that never steps; only differences mean anything."""

    def elapsed(self) -> int:
        """As `monotonic`, and it goes on while the machine sleeps."""

    def wait(self, until: Instant, kick: Kick) -> None:
        """Return when the wall reaches `until` or the kick rings, whichever is first."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> Instant:
        return Instant(time.time_ns() // 1000)

    def monotonic(self) -> int:
        return time.monotonic_ns() // 1000

    def elapsed(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000

    def wait(self, until: Instant, kick: Kick) -> None:
        # The sleep goes by a clock that stands still while the machine sleeps, and the wall may be set meanwhile.
        while (left := until - self.now()) > 0:
            if kick.wait(min(left / SECOND, LOOK_SECONDS)):
                return


class ManualClock:
    """A clock that tests move by hand. Its three move together unless `step` or `sleep` is used."""

    def __init__(self, start: Instant | datetime) -> None:
        self._now = int(instant(start)) if isinstance(start, datetime) else int(start)
        self._monotonic = 0
        self._asleep = 0
        self._moved = threading.Condition()

    def now(self) -> Instant:
        return Instant(self._now)

    def monotonic(self) -> int:
        return self._monotonic

    def elapsed(self) -> int:
        return self._monotonic + self._asleep

    def advance(self, by: timedelta) -> None:
        """Time passes: both clocks move on."""
        with self._moved:
            self._now += micros(by)
            self._monotonic += micros(by)
            self._moved.notify_all()

    def sleep(self, by: timedelta) -> None:
        """The machine sleeps: the wall moves on, and what measures durations stands still."""
        with self._moved:
            self._now += micros(by)
            self._asleep += micros(by)
            self._moved.notify_all()

    def step(self, by: timedelta) -> None:
        """Somebody sets the wall clock; the monotonic one does not notice."""
        with self._moved:
            self._now += micros(by)
            self._moved.notify_all()

    def wait(self, until: Instant, kick: Kick) -> None:
        while self._now < until:
            if kick.wait(0.005):
                return
