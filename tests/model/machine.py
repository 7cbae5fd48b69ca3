"""The rules: what may happen next. Each step is followed by a comparison of the whole ledger with the account."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from model.account import ENDED
from model.aftermath import Aftermath
from model.asking import a_firing
from model.books import compare
from model.hands import ENDS, PICK, TAKER, TROUBLE, trouble_of
from model.rest import at_rest
from model.wishes import PARTS, WISHES, Wish
from model.workday import Workday
from nightporter.clock import Instant, instant

STARTS = [instant(datetime(2026, 3, 28, 20, 0, tzinfo=UTC)), instant(datetime(2026, 10, 24, 21, 30, tzinfo=UTC)),
          instant(datetime(2026, 6, 30, 23, 0, tzinfo=UTC))]
"""The evenings before a zone's clock goes forward and back, and before a month ends."""
CHANGES = [instant(datetime(2026, 3, 29, 0, 59, tzinfo=UTC)), instant(datetime(2026, 10, 25, 0, 59, tzinfo=UTC))]
"""A minute before Rome's clocks jump."""
WEEK = 7 * 86_400_000_000
NAMES = ["attic", "bath", "cellar"]
KEYS = st.integers(-1, 4)
SIZES = st.sampled_from([0, 0, 0, 0, 5, 262_145])
SPANS = [timedelta(milliseconds=1), timedelta(seconds=1), timedelta(seconds=30), timedelta(seconds=61),
         timedelta(minutes=2), timedelta(minutes=6), timedelta(minutes=16), timedelta(hours=1), timedelta(hours=7),
         timedelta(days=1), timedelta(days=3), timedelta(days=8), timedelta(days=31)]


class LedgerMachine(Workday):
    """One night of one ledger. A subclass says where its store comes from."""

    @initialize(start=st.sampled_from(STARTS), wish=WISHES, steady=st.sampled_from([True, True, True, False]))
    def begin(self, start: Instant, wish: Wish, steady: bool) -> None:
        self.desk = Aftermath(self.a_store(start), start)
        self.desk.define("attic", wish)
        self.steady = steady

    # -- automations --------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), wish=WISHES, trouble=TROUBLE, proposed=st.sampled_from([False] * 5 + [True]))
    def define(self, name: str, wish: Wish, trouble: Any, proposed: bool) -> None:
        self.d.define(name, wish, trouble_of(trouble), proposed=proposed)

    @rule(pick=PICK, part=st.sampled_from(sorted(PARTS)), data=st.data(), trouble=TROUBLE)
    def edit(self, pick: int, part: str, data: st.DataObject, trouble: Any) -> None:
        a = self.an_automation(pick)
        if a.state != "removed":
            wish = dataclasses.replace(a.wish, **{part: data.draw(PARTS[part])})
            self.d.define(a.name, wish, trouble_of(trouble))

    @rule(pick=PICK, minutes=st.sampled_from([None, None, 1, 10, 100, 600, -5]), trouble=TROUBLE)
    def pause(self, pick: int, minutes: int | None, trouble: Any) -> None:
        until = None if minutes is None else self.d.now + minutes * 60_000_000
        self.d.pause(self.an_automation(pick), until, trouble_of(trouble))

    @rule(pick=PICK, trouble=TROUBLE)
    def enable(self, pick: int, trouble: Any) -> None:
        self.d.enable(self.an_automation(pick), trouble_of(trouble))

    @precondition(lambda self: len(self.d.account.automations) > 1)
    @rule(pick=PICK, trouble=TROUBLE)
    def remove(self, pick: int, trouble: Any) -> None:
        self.d.remove(self.an_automation(pick), trouble_of(trouble))

    @rule(pick=PICK, back=st.booleans(), trouble=TROUBLE)
    def vanish(self, pick: int, back: bool, trouble: Any) -> None:
        a = self.an_automation(pick)
        if a.state != "removed":
            self.d.vanish(a, trouble_of(trouble))
            if back:
                self.d.define(a.name, a.wish)

    @rule(trouble=TROUBLE)
    def upkeep(self, trouble: Any) -> None:
        self.d.upkeep(trouble_of(trouble))

    # -- arrivals -----------------------------------------------------------------------------------------------

    @rule(told=st.lists(st.tuples(PICK, st.sampled_from(["hook", "hook", "call", "manual"]), KEYS, SIZES),
                        min_size=1, max_size=6), trouble=TROUBLE, taker=TAKER)
    def arrive(self, told: list[tuple[int, str, int, int]], trouble: Any, taker: int | None) -> None:
        firings = []
        for pick, trigger, key, size in told:
            self.numbers += 1
            firings.append(a_firing(self.an_automation(pick), trigger, key, size, self.numbers))
        with self.d.taking(self.a_taker(taker)):
            self.d.arrive(firings, trouble_of(trouble))

    @rule(pick=PICK, key=st.integers(10, 400), trouble=TROUBLE, taker=TAKER)
    def one_more(self, pick: int, key: int, trouble: Any, taker: int | None) -> None:
        with self.d.taking(self.a_taker(taker)):
            self.d.arrive([a_firing(self.an_automation(pick), "hook", key, 0, 0)], trouble_of(trouble))

    @rule(trouble=TROUBLE, taker=TAKER)
    def tick(self, trouble: Any, taker: int | None) -> None:
        if trouble is None or trouble[0] != "refused":  # that one would put a good trigger aside
            with self.d.taking(self.a_taker(taker)):
                self.d.tick(trouble_of(trouble))

    @precondition(lambda self: self.d.account.runs)
    @rule(pick=PICK, key=st.integers(0, 3), trouble=TROUBLE)
    def replay(self, pick: int, key: int, trouble: Any) -> None:
        (run,) = self.picked(list(self.d.account.runs.values()), [pick])
        self.d.replay(run, f"again-{key}", trouble_of(trouble))

    # -- people ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.d.account.runs)
    @rule(pick=PICK, trouble=TROUBLE)
    def cancel(self, pick: int, trouble: Any) -> None:
        going = [r for r in self.d.account.runs.values() if r.state not in ENDED] or list(self.d.account.runs.values())
        for run in self.picked(going, [pick]):
            self.d.cancel(run, trouble_of(trouble))

    @precondition(lambda self: self.d.account.in_state("review"))
    @rule(pick=PICK, retry=st.booleans(), any_run=st.sampled_from([False] * 5 + [True]), trouble=TROUBLE)
    def review(self, pick: int, retry: bool, any_run: bool, trouble: Any) -> None:
        there = list(self.d.account.runs.values()) if any_run else self.d.account.in_state("review")
        (run,) = self.picked(there, [pick])
        self.d.review(run, "retry" if retry else "dismiss", trouble_of(trouble))

    @precondition(lambda self: any(self.d.account.missing.cards.values()))
    @rule(pick=PICK, run=st.booleans(), trouble=TROUBLE)
    def decide(self, pick: int, run: bool, trouble: Any) -> None:
        """Mostly about the newest that waits; two windows may decide about one."""
        cards = self.d.account.missing.cards
        there = [(t, slot) for t, of in cards.items() for slot in sorted(of)[-3:]]
        ((trigger, slot),) = self.picked(there, [pick])
        self.d.decide(self.d.account.trigger(trigger), slot, run, trouble_of(trouble))

    @precondition(lambda self: self.d.tally["steps"] % 3 == 2)
    @rule(trouble=TROUBLE, lift=st.booleans())
    def stop(self, trouble: Any, lift: bool) -> None:
        self.d.stop(trouble_of(trouble))
        if lift and self.d.account.stopped:
            self.d.lift()

    @precondition(lambda self: self.d.account.stopped)
    @rule(trouble=TROUBLE)
    def lift(self, trouble: Any) -> None:
        self.d.lift(trouble_of(trouble))

    # -- time ----------------------------------------------------------------------------------------------------------

    @rule(span=st.sampled_from(SPANS))
    def time_passes(self, span: timedelta) -> None:
        self.d.clock.advance(span)
        self.d.tally[f"time: {span}"] += 1

    @rule(count=st.integers(1, 5), ending=ENDS)
    def time_goes_on(self, count: int, ending: str) -> None:
        """An awake desk: a minute, the clock's look, and what it left."""
        for _ in range(count):
            self.d.clock.advance(timedelta(seconds=50))
            worker = self.a_worker(count)
            with self.d.taking(worker if count % 2 else None):
                self.d.tick()
            self.d.claim(worker, 10)
            self.d.end(worker, list(worker.flying), [ending] * len(worker.flying))

    @precondition(lambda self: any(0 < at - self.d.now < 10 * 3_600_000_000 for at in CHANGES))
    @rule()
    def over_the_change(self) -> None:
        """To just before the zone's clock jumps."""
        for at in CHANGES:
            if 0 < at - self.d.now < 10 * 3_600_000_000:
                self.d.clock.advance(timedelta(microseconds=at - self.d.now))
                self.d.tick()
                self.d.clock.advance(timedelta(seconds=75))
                self.d.tally["over a change of the zone's clock"] += 1

    @precondition(lambda self: not self.steady)
    @rule(minutes=st.sampled_from([1, 4, 20]))
    def time_goes_back(self, minutes: int) -> None:
        self.d.go_back(timedelta(minutes=minutes))
        self.d.tally["time goes back"] += 1

    @precondition(lambda self: any((r.ended_at or self.d.now) < self.d.now - WEEK for r in self.d.account.runs.values())
                  or any(at < self.d.now - 4 * WEEK for at in self.d.account.arrived.values()))
    @rule()
    def prune(self) -> None:
        self.d.prune()

    # -- at rest -------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.d.tally["steps"] % 4 == 3)
    @rule()
    def rest(self) -> None:
        """Everything that can go on goes on, until nothing does; only what waits for a person is left."""
        self.d.tally["rest"] += 1
        at_rest(self.d)
        compare(self.d, whole=True)

    @invariant()
    def the_books_agree(self) -> None:
        if self.desk is not None:
            self.desk.tally["steps"] += 1
            compare(self.desk)

    def teardown(self) -> None:
        if self.desk is None:
            return
        desk, self.desk = self.desk, None
        try:
            if sys.exc_info()[0] is None:  # otherwise a step has found something, and it is that which counts
                at_rest(desk)
                compare(desk, whole=True)
        finally:
            type(self).tally += desk.tally + Counter(
                {f"line: {key}": n for key, n in desk.account.tally.items()})
            desk.close()
            self.leave_store(desk.store.store)
