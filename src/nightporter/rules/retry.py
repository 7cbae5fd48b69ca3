"""retry: transient, permanent or never; and when to try again. The one place that decides it."""

from __future__ import annotations

from datetime import timedelta
from hashlib import blake2b
from typing import assert_never

from nightporter.words import ErrorClass, Retry

INTERACTIVE = (timedelta(seconds=2), timedelta(seconds=4))
"""Where a person waits for it and the definition names no delays of its own."""

DELIVERY_TRIES = 50
ALERT_TRIES = 5
"""Of an alert that has another route to go: it is of use soon, or not at all."""
STUCK_TRIES = 10
"""Tries of one delivery after which its receiver counts as being at fault: about half an hour."""
DELIVERY_FIRST = timedelta(seconds=2)
DELIVERY_CAP = timedelta(hours=4)
"""With this one all tries take three days and more: longer than a weekend."""
RECOVERED_APART = timedelta(seconds=2)
"""Between the results that waited for a receiver which takes things again."""
DELIVERY_LONGEST = timedelta(hours=24)
"""However late a time the receiver names."""


def worth_another(error_class: ErrorClass, retry: Retry) -> bool:
    """Whether the same attempt may end differently next time."""
    match error_class:
        case ErrorClass.TRANSIENT | ErrorClass.RESOURCE:
            return "transient" in retry.on
        case ErrorClass.NONZERO_EXIT:
            return "nonzero_exit" in retry.on
        case ErrorClass.EXCEPTION:
            return "exception" in retry.on
        case ErrorClass.TIMEOUT | ErrorClass.CONFIGURATION | ErrorClass.PERMISSION | ErrorClass.WORKER_LOST:
            return False
        case _:
            assert_never(error_class)


def base_delay(attempt: int, retry: Retry, *, interactive: bool) -> timedelta:
    """The wait after `attempt` failed, before jitter. The last delay repeats."""
    delays = INTERACTIVE if interactive and retry.delays == Retry().delays else retry.delays
    return delays[min(attempt, len(delays)) - 1] if delays else timedelta(0)


def delivery_delay(tries: int) -> timedelta:
    """The wait after the delivery's `tries`-th try failed, before jitter: doubling, to a cap."""
    doublings: int = 2 ** min(tries - 1, 20)
    return min(DELIVERY_FIRST * doublings, DELIVERY_CAP)


def delivery_wait(tries: int, draw: float) -> timedelta:
    """The same, drawn from its upper half: even the shortest waits of all tries together take three days. `draw` is in
    [0, 1)."""
    return delivery_delay(tries) * (0.5 + 0.5 * draw)


def jittered(delay: timedelta, draw: float) -> timedelta:
    """Full jitter over a floor of a tenth, so that no wait shrinks to nothing. `draw` is in [0, 1)."""
    return delay * (0.1 + 0.9 * draw)


def spread(asked: timedelta, draw: float) -> timedelta:
    """No sooner than somebody asked us to come back, and up to a quarter of that later: whom they asked at the same
    time does not come back at the same time. `draw` is in [0, 1)."""
    return asked * (1 + 0.25 * draw)


def draw(*parts: str | int) -> float:
    """A number in [0, 1) derived from what it is for: spread like chance, and the same when asked again."""
    digest = blake2b("\0".join(map(str, parts)).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big") / 2**48
