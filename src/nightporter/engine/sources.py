"""The lead, and the sources while this process has it: what is due is answered, then the clock's loop goes on by
itself.

The lead is a row that names a worker, and goes with it: it is free when that worker has left or was declared dead, by
its free lock or its lease. It only spares work. That each slot has one answer is the compare-and-set's doing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from nightporter import logs
from nightporter.clock import Clock, Instant, Kick
from nightporter.engine.gaps import ClockWatch, Gap, Mark, ledger_of, say, since_it_was_kept, write_down
from nightporter.errors import LostLead
from nightporter.sources.clock import NO_RESTART, ClockSource, Restart
from nightporter.sources.telling import tell
from nightporter.store import Store, Tx

log = logs.get(__name__)


class Sources:
    """Started, watched and stopped by the engine, as often as the lead comes and goes."""

    def __init__(self, store: Store, clock: Clock, kick: Kick, *, me: Callable[[], str], mark: Path) -> None:
        """`me`: the name under which this process has joined; one that was declared dead joins under another. `mark`:
        the file that says up to when the store was kept."""
        self._store = store
        self._clock = clock
        self._kick = kick
        self._me = me
        self._lock = threading.Lock()
        """Whoever is closed leads no more, though a take-over ends in the same moment."""
        self._closed = False
        self._thread: threading.Thread | None = None
        self._source = self._new_source()
        self._watch = ClockWatch(clock)
        self._gaps: list[Gap] = []
        """Noticed and not written down yet."""
        self._mark = Mark(mark)
        self._kept: tuple[str, Instant] | None = None
        """Up to when the store is kept, and its name."""
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

    def take_over(self, load: Callable[[], None], *, push: int = 0) -> None:
        """Become the one whose sources run, if nobody is: answer what is due, then `load`. Blocks. When it raises,
        nothing was taken over, and the next second this process or another tries again.

        `push`: of a restart; what is overdue begins up to so much later.
        """
        me = self._me()
        if not self._store.write(lambda tx: tx.take_lead(me)):
            return
        ours = False
        try:
            self.answer(Restart(push, self._since_it_was_kept()))
            load()
            self._store.write(self._caught_up)
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

    def _caught_up(self, tx: Tx) -> None:
        # A store that was put back is as old as it is until everything is answered that may have run already: whoever
        # takes over from one that dies before has the same doubts.
        if (kept := self._mark.read(ledger_of(tx))) is not None:
            tx.raise_setting("clock_high_water", kept)
        self._note(tx)

    def _note(self, tx: Tx) -> None:
        if self.evaluated_at is None:
            return
        now = self._clock.now()
        # What is raised here is no fact before its commit: the file beside the store says what an earlier one left.
        if (high := tx.setting_instant("clock_high_water")) is not None:
            self._kept = ledger_of(tx), high
        tx.put_setting("due_evaluated_at", str(self.evaluated_at))
        tx.raise_setting("clock_high_water", now)
        tell(tx, evaluated_at=self.evaluated_at, now=now)

    # -- gaps ---------------------------------------------------------------------------------------------------

    def _since_it_was_kept(self) -> Instant | None:
        """Write down what lies between the last time that the store was kept and now; up to when nobody knows what has
        run, because it was put back."""
        gaps = self._store.write(self._gaps_before)
        for gap in gaps:
            say(gap)
        return next((gap.end for gap in gaps if gap.kind == "restored"), None)

    def _gaps_before(self, tx: Tx) -> list[Gap]:
        high, kept = tx.setting_instant("clock_high_water"), self._mark.read(ledger_of(tx))
        found = [gap for gap in since_it_was_kept(high, kept, self._clock.now())
                 if gap.kind != "step_back" or all(row.gap_to != gap.end for row in tx.gaps(since=gap.end - 1))]
        write_down(tx, found, worker=self._me(), now=self._clock.now())
        return found

    def watch(self) -> bool:
        """Look what has become of the clock since the last look, a second ago. True when there is something to write
        down. Does not block."""
        found = self._watch.look()
        if self.leading:
            for gap in found:
                say(gap)
            self._gaps += found
            if self._kept is not None:
                self._mark.write(*self._kept)
        if found:
            self._kick.ring()
        return bool(self._gaps)

    def write_down(self) -> None:
        """Write the gaps down that were noticed. Blocks; raises StoreError, and keeps them for the next time then."""
        gaps = list(self._gaps)
        self._store.write(lambda tx: write_down(tx, gaps, worker=self._me(), now=self._clock.now()))
        del self._gaps[:len(gaps)]  # what was noticed meanwhile stands behind them

    # -- the clock's loop -------------------------------------------------------------------------------------

    def answer(self, restart: Restart = NO_RESTART) -> None:
        """Answer everything that is due. Blocks; raises StoreError, LostLead."""
        if moved := self._source.rezone():
            log.warning("clock.zones_changed", slots=moved)
        while self._source.tick(restart):
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
