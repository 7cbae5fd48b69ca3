"""The lead, and the sources while this process has it: what is due is answered, then the clock's loop goes on by
itself.

The lead is a row that names a worker, and goes with it: it is free when that worker has left or was declared dead, by
its free lock or its lease. It only spares work. That each slot has one answer is the compare-and-set's doing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from nightporter import logs
from nightporter.clock import Clock, Instant, Kick
from nightporter.errors import LostLead
from nightporter.sources.clock import ClockSource
from nightporter.store import Store, Tx

log = logs.get(__name__)


class Sources:
    """Started, watched and stopped by the engine, as often as the lead comes and goes."""

    def __init__(self, store: Store, clock: Clock, kick: Kick, *, me: Callable[[], str]) -> None:
        """`me`: the name under which this process has joined; one that was declared dead joins under another."""
        self._store = store
        self._clock = clock
        self._kick = kick
        self._me = me
        self._lock = threading.Lock()
        """Whoever is closed leads no more, though a take-over ends in the same moment."""
        self._closed = False
        self._thread: threading.Thread | None = None
        self._source = self._new_source()
        self.leading = False
        """Whether this process runs the sources."""

    def _new_source(self) -> ClockSource:
        return ClockSource(self._store, self._clock, self._kick, leads=lambda tx: tx.leader() == self._me())

    @property
    def evaluated_at(self) -> Instant | None:
        """When what is due was last evaluated, whole."""
        return self._source.evaluated_at

    @property
    def not_run(self) -> int:
        """Slots that were answered without a run because they were missed."""
        return self._source.not_run

    # -- the lead ---------------------------------------------------------------------------------------------

    def take_over(self, load: Callable[[], None]) -> None:
        """Become the one whose sources run, if nobody is: answer what is due, then `load`. Blocks. When it raises,
        nothing was taken over, and the next second this process or another tries again."""
        me = self._me()
        if not self._store.write(lambda tx: tx.take_lead(me)):
            return
        ours = False
        try:
            self.answer()
            load()
            self._store.write(self._note)
            with self._lock:
                ours = self.leading = me == self._me() and not self._closed
        except LostLead:
            log.warning("desk.lead_went_on", worker=me)  # it took so long that somebody else had to
        finally:
            if not ours:
                self._store.write(lambda tx: tx.leave_lead(me))

    def step_down(self, seconds: float) -> None:
        """End the sources of one who leads no more. Blocks for `seconds` at most."""
        if self.leading:
            self.leading = False
            log.error("desk.lost_the_lead", worker=self._me())
            self.stop(seconds)

    def close(self, seconds: float) -> None:
        """End the sources for good, so that nobody takes the lead here any more. Blocks for `seconds` at most."""
        with self._lock:
            self._closed, self.leading = True, False
        self.stop(seconds)

    def note(self, tx: Tx) -> None:
        """Write down that what is due was looked at, and the latest wall clock, if this process leads."""
        if self.leading:
            self._note(tx)

    def _note(self, tx: Tx) -> None:
        if self.evaluated_at is not None:
            tx.put_setting("due_evaluated_at", str(self.evaluated_at))
            tx.raise_setting("clock_high_water", self._clock.now())

    # -- the clock's loop -------------------------------------------------------------------------------------

    def answer(self) -> None:
        """Answer everything that is due. Blocks; raises StoreError, LostLead."""
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
        if self._thread is not None and not self._thread.is_alive() and not self._source.lost_the_lead:
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
        self._source = self._new_source()
