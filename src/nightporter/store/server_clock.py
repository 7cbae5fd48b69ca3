"""One clock for several machines: that of the server they share."""

from __future__ import annotations

from nightporter.clock import LOOK_SECONDS, SECOND, Clock, Instant, Kick

SHORTEST_DOUBT = 5_000
"""Microseconds that the server's clock and ours may differ by before ours is set: a jitter is no step."""


class ServerClock:
    """The server's wall clock, carried on between two looks at it by what this machine counts since it was started, its
    sleep included.

    So a machine whose own wall clock is off by minutes, or is set while it works, does everything when the others do;
    and one that has slept knows what time it is as it wakes.
    """

    def __init__(self, own: Clock) -> None:
        self._own = own
        self._ahead = own.now() - own.elapsed()
        self._set = False

    def now(self) -> Instant:
        return Instant(self._own.elapsed() + self._ahead)

    def monotonic(self) -> int:
        return self._own.monotonic()

    def elapsed(self) -> int:
        return self._own.elapsed()

    def wait(self, until: Instant, kick: Kick) -> None:
        # In pieces: the server's clock may be set meanwhile.
        while (left := until - self.now()) > 0:
            if kick.wait(min(left / SECOND, LOOK_SECONDS)):
                return

    def set(self, said: Instant, asked: int, heard: int) -> int:
        """The server said what time it is, between two instants of our `elapsed`. How far off we were; 0 where
        we agree with it within the time that the answer took."""
        doubt = max((heard - asked) // 2, SHORTEST_DOUBT)
        off = said - (asked + heard) // 2 - self._ahead
        if not self._set or abs(off) > doubt:
            self._ahead += off
            self._set = True
            return off
        return 0
