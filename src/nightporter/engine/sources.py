"""The sources, while this process leads: what is due is answered, then the clock's loop goes on by itself."""

from __future__ import annotations

import threading

from nightporter import logs
from nightporter.clock import Clock, Instant, Kick
from nightporter.sources.clock import ClockSource
from nightporter.store import Store

log = logs.get(__name__)


class Sources:
    """Started, watched and stopped by the engine, as often as the lead comes and goes."""

    def __init__(self, store: Store, clock: Clock, kick: Kick) -> None:
        self._store = store
        self._clock = clock
        self._kick = kick
        self._thread: threading.Thread | None = None
        self._source = ClockSource(store, clock, kick)

    @property
    def evaluated_at(self) -> Instant | None:
        """When what is due was last evaluated, whole."""
        return self._source.evaluated_at

    @property
    def not_run(self) -> int:
        """Slots that were answered without a run because they were missed."""
        return self._source.not_run

    def answer(self) -> None:
        """Answer everything that is due. Blocks; raises StoreError."""
        if moved := self._source.rezone():
            log.warning("clock.zones_changed", slots=moved)
        while self._source.tick():
            pass

    def start(self) -> None:
        """Let the clock's loop run, on a thread of its own."""
        self._thread = threading.Thread(target=self._source.run, name="nightporter-clock", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """Start the loop again where it should run and does not."""
        if self._thread is not None and not self._thread.is_alive():
            log.error("clock.died")
            self.start()

    def stop(self, seconds: float) -> None:
        """End the loop; wait for it `seconds` at most. Blocks."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._source.close()
        thread.join(seconds)
        if thread.is_alive():  # in a write: its compare-and-set decides, whoever else answers the slot
            log.warning("clock.still_writing")
        self._source = ClockSource(self._store, self._clock, self._kick)
