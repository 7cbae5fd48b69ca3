"""The rules: what may happen next. Each step is followed by a comparison of the whole ledger with the account."""

from __future__ import annotations

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from model.account import ENDED
from model.asking import a_firing
from model.books import compare
from model.desk import Worker
from model.labour import Labour
from model.trouble import TROUBLES, Trouble
from model.wishes import ENDINGS, PARTS, RUNNERS, WISHES, Wish
from nightporter.clock import Instant, instant
from nightporter.store import Store
from nightporter.words import Receipt

T = TypeVar("T")

STARTS = [instant(datetime(2026, 3, 28, 20, 0, tzinfo=UTC)), instant(datetime(2026, 10, 24, 21, 30, tzinfo=UTC)),
          instant(datetime(2026, 6, 30, 23, 0, tzinfo=UTC))]
"""The evenings before a zone's clock goes forward and back, and before a month ends."""
CHANGES = [instant(datetime(2026, 3, 29, 0, 59, tzinfo=UTC)), instant(datetime(2026, 10, 25, 0, 59, tzinfo=UTC))]
"""A minute before Rome's clocks jump."""
WEEK = 7 * 86_400_000_000
NAMES = ["attic", "bath", "cellar"]
TROUBLE = st.sampled_from(TROUBLES)
PICK = st.integers(0, 11)
SOME = st.lists(PICK, min_size=1, max_size=4)
TAKER = st.sampled_from([None, None, 0, 1, 2])
"""Whose desk it is that admits, if it has a worker of its own."""
KEYS = st.integers(-1, 4)
SIZES = st.sampled_from([0, 0, 0, 0, 5, 262_145])
SPANS = [timedelta(milliseconds=1), timedelta(seconds=1), timedelta(seconds=30), timedelta(seconds=61),
         timedelta(minutes=2), timedelta(minutes=6), timedelta(minutes=16), timedelta(hours=1), timedelta(hours=7),
         timedelta(days=1), timedelta(days=3), timedelta(days=8), timedelta(days=31)]
STEPS = ["intends it k1", "intends it k2", "did it k1", "did it k2"]
ENDS = st.sampled_from([*ENDINGS, "words", "words", "transient", "transient", "nonzero", "exception", "nothing"])


def trouble_of(drawn: tuple[Any, int] | None) -> Trouble | None:
    return None if drawn is None else Trouble(*drawn)


class LedgerMachine(RuleBasedStateMachine):
    """One night of one ledger. A subclass says where its store comes from."""

    tally: ClassVar[Counter[str]] = Counter()
    examples: ClassVar[int] = 0

    def a_store(self, start: Instant) -> Store:
        raise NotImplementedError

    def leave_store(self, store: Store) -> None:
        store.close()

    def __init__(self) -> None:
        super().__init__()
        self.desk: Labour | None = None
        self.numbers = 0
        self.steady = True
        """The wall clock is never put back: then every instant can be looked at."""
        type(self).examples += 1

    @initialize(start=st.sampled_from(STARTS), wish=WISHES, steady=st.sampled_from([True, True, True, False]))
    def begin(self, start: Instant, wish: Wish, steady: bool) -> None:
        self.desk = Labour(self.a_store(start), start)
        self.desk.define("attic", wish)
        self.steady = steady

    @property
    def d(self) -> Labour:
        assert self.desk is not None
        return self.desk

    # -- picking ------------------------------------------------------------------------------------------------

    def an_automation(self, pick: int) -> Any:
        there = list(self.d.account.automations.values())
        return there[pick % len(there)]

    def a_worker(self, pick: int) -> Worker:
        """Mostly one that lives."""
        there = [w for w in self.d.workers if w.alive]
        return there[pick % len(there)] if there else self.d.join()

    def picked(self, from_: Sequence[T], picks: Sequence[int]) -> list[T]:
        return [from_[n] for n in dict.fromkeys(p % len(from_) for p in picks)] if from_ else []

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

    def a_taker(self, pick: int | None) -> Worker | None:
        return None if pick is None else self.a_worker(pick)

    @precondition(lambda self: self.d.account.runs)
    @rule(pick=PICK, key=st.integers(0, 3), trouble=TROUBLE)
    def replay(self, pick: int, key: int, trouble: Any) -> None:
        (run,) = self.picked(list(self.d.account.runs.values()), [pick])
        self.d.replay(run, f"again-{key}", trouble_of(trouble))

    # -- workers -------------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.d.live()) < 3)
    @rule(narrow=st.booleans())
    def join(self, narrow: bool) -> None:
        self.d.join({"echo": RUNNERS["echo"], "function": RUNNERS["function"]} if narrow else RUNNERS)
        self.d.tally["join"] += 1

    @rule(picks=SOME, key=st.integers(1_000, 10_000), trigger=st.sampled_from(["hook", "call", "manual"]), worker=PICK,
          steps=st.lists(st.sampled_from(STEPS), max_size=4), taker=TAKER)
    def work(self, picks: list[int], key: int, trigger: str, worker: int, steps: list[str], taker: int | None) -> None:
        """Something arrives for some of them, is begun, and acts."""
        with self.d.taking(self.a_taker(taker)):
            self.d.arrive([a_firing(self.an_automation(pick), trigger, key + n, 0, 0) for n, pick in enumerate(picks)])
        by = self.a_worker(worker)
        self.d.claim(by, 5)
        for one in by.flying:
            for step in steps if one.work.kind == "function" else ["let go"] * (one.work.kind == "script"):
                self.d.act(by, one, *step.split(" it ") if " it " in step else (step, "k1"))

    @precondition(lambda self: any(w.flying for w in self.d.workers))
    @rule(pick=PICK, endings=st.lists(ENDS, min_size=1, max_size=6), trouble=TROUBLE, leave=st.integers(0, 2))
    def end_most(self, pick: int, endings: list[str], trouble: Any, leave: int) -> None:
        def most(worker: Worker) -> None:
            ones = worker.flying[leave:]
            self.d.end(worker, ones, [endings[n % len(endings)] for n in range(len(ones))], trouble_of(trouble))

        self.busy(pick, most)

    @precondition(lambda self: self.d.account.deliveries("pending"))
    @rule(pick=PICK, receipts=st.lists(st.tuples(st.sampled_from(Receipt), st.booleans()), min_size=1, max_size=4),
          trouble=TROUBLE)
    def deliver(self, pick: int, receipts: list[tuple[Receipt, bool]], trouble: Any) -> None:
        worker = self.a_worker(pick)
        for receipt, doubtful in receipts:
            self.d.take(worker, 2)
            self.d.record(worker, list(worker.sending), receipt, doubtful and receipt is Receipt.TRANSIENT,
                          trouble_of(trouble))

    @precondition(lambda self: self.d.account.in_state("queued", "held"))
    @rule(pick=PICK, room=st.sampled_from([1, 1, 2, 5, 50]), trouble=TROUBLE)
    def claim(self, pick: int, room: int, trouble: Any) -> None:
        self.d.claim(self.a_worker(pick), room, trouble_of(trouble))

    @rule(pick=PICK, worker=PICK, key=st.integers(20, 40))
    def run_now(self, pick: int, worker: int, key: int) -> None:
        a = self.an_automation(pick)
        self.d.arrive([a_firing(a, "manual", key, 0, 0)])
        run = self.d.account.kept.get((f"{a.id}/manual", f"e-{key}"))
        if run in self.d.account.runs:
            self.d.claim(self.a_worker(worker), 1, only=run)

    @precondition(lambda self: any(w.flying for w in self.d.workers))
    @rule(picks=SOME, endings=st.lists(ENDS, min_size=4, max_size=4), trouble=TROUBLE)
    def end(self, picks: list[int], endings: list[str], trouble: Any) -> None:
        self.busy(picks[0], lambda w: self._end(w, picks, endings, trouble))

    def _end(self, worker: Worker, picks: list[int], endings: list[str], trouble: Any) -> None:
        ones = self.picked(worker.flying, picks)
        self.d.end(worker, ones, endings[: len(ones)], trouble_of(trouble))

    def busy(self, pick: int, work: Callable[[Worker], None], *, sending: bool = False) -> None:
        """With a worker that has something in the air, whether it still is its own or not."""
        there = [w for w in self.d.workers if w.alive and (w.sending if sending else w.flying)]
        if there:
            work(there[pick % len(there)])

    @precondition(lambda self: any(w.flying for w in self.d.workers))
    @rule(pick=PICK, step=st.sampled_from(["let go", "intends", "intends", "did", "did"]),
          key=st.sampled_from(["k1", "k2"]), trouble=TROUBLE)
    def act(self, pick: int, step: str, key: str, trouble: Any) -> None:
        def some(worker: Worker) -> None:
            acting = [c for c in worker.flying if c.work.kind in ("script", "function")]
            for one in self.picked(acting, [pick]):
                if (step == "let go") == (one.work.kind == "script"):
                    self.d.act(worker, one, step, key, trouble_of(trouble))

        self.busy(pick, some)

    @rule(pick=PICK, trouble=TROUBLE)
    def take_back(self, pick: int, trouble: Any) -> None:
        self.d.take_back(self.a_worker(pick), trouble_of(trouble))

    @rule(pick=PICK, trouble=TROUBLE)
    def leave(self, pick: int, trouble: Any) -> None:
        self.d.leave(self.a_worker(pick), trouble_of(trouble))
        if not self.d.live():
            self.d.join()

    @precondition(lambda self: any(w.alive and not w.ended and (w.flying or w.sending) for w in self.d.workers))
    @rule(pick=PICK)
    def stand_still(self, pick: int) -> None:
        """A worker that has something in the air, mostly."""
        there = [w for w in self.d.live() if not w.ended and (w.flying or w.sending or pick == 0)]
        for worker in self.picked(there, [pick]):
            self.d.stand_still(worker)

    @precondition(lambda self: any(w.ended and w.alive for w in self.d.workers))
    @rule(pick=PICK, ending=ENDS, receipt=st.sampled_from(Receipt), taken_over=st.sampled_from([True, True, False]))
    def come_back(self, pick: int, ending: str, receipt: Receipt, taken_over: bool) -> None:
        """A worker that was declared dead writes all it has, and claims: nothing of it counts."""
        (worker,) = self.picked([w for w in self.d.workers if w.ended and w.alive], [pick])
        self.write_late(worker, ending, receipt, taken_over)

    def write_late(self, worker: Worker, ending: str, receipt: Receipt, taken_over: bool) -> None:
        if taken_over:
            other = self.d.join()
            self.d.claim(other, 20)
            self.d.take(other, 20)
        for one in worker.flying:
            self.d.act(worker, one, "intends" if one.work.kind == "function" else "let go", "k1")
        self.d.end(worker, list(worker.flying), [ending] * len(worker.flying))
        self.d.record(worker, list(worker.sending), receipt, False)
        self.d.claim(worker, 5)
        self.d.take(worker, 5)

    @precondition(lambda self: any(w.flying and not w.ended for w in self.d.live()))
    @rule(pick=PICK, ending=ENDS, receipt=st.sampled_from(Receipt))
    def overtaken(self, pick: int, ending: str, receipt: Receipt) -> None:
        """A worker stands still until another one has what it had, and then ends it."""
        (worker,) = self.picked([w for w in self.d.live() if w.flying and not w.ended], [pick])
        self.d.stand_still(worker, 80)
        self.write_late(worker, ending, receipt, True)

    @rule(trouble=TROUBLE)
    def restart(self, trouble: Any) -> None:
        self.d.restart(None if trouble is None or trouble[0] == "refused" else trouble_of(trouble))

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

    # -- deliveries ------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.d.account.deliveries("pending"))
    @rule(pick=PICK, room=st.sampled_from([1, 3, 10]), trouble=TROUBLE)
    def take(self, pick: int, room: int, trouble: Any) -> None:
        self.d.take(self.a_worker(pick), room, trouble_of(trouble))

    @precondition(lambda self: any(w.sending for w in self.d.workers))
    @rule(picks=SOME, receipt=st.sampled_from(Receipt), doubtful=st.booleans(), trouble=TROUBLE)
    def record(self, picks: list[int], receipt: Receipt, doubtful: bool, trouble: Any) -> None:
        self.busy(picks[0], lambda w: self.d.record(
            w, self.picked(w.sending, picks), receipt, doubtful and receipt is Receipt.TRANSIENT,
            trouble_of(trouble)), sending=True)

    @precondition(lambda self: self.d.account.deliveries("pending"))
    @rule(tries=st.sampled_from([3, 20, 52]))
    def outage(self, tries: int) -> None:
        """A receiver is away for long."""
        worker = self.d.join()
        for _ in range(tries):
            if not self.d.account.deliveries("pending") or self.d.account.stopped:
                break
            self.d.take(worker, 50)
            self.d.record(worker, list(worker.sending), Receipt.TRANSIENT, False)
            self.d.clock.advance(timedelta(hours=1, seconds=1))

    @precondition(lambda self: self.d.account.deliveries("given_up", "unknown", "unverified", "delivered"))
    @rule(pick=PICK, trouble=TROUBLE)
    def resend(self, pick: int, trouble: Any) -> None:
        there = self.d.account.deliveries("given_up", "unknown", "unverified") or self.d.account.deliveries("delivered")
        for delivery in self.picked(there, [pick]):
            self.d.resend(delivery, trouble_of(trouble))

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
        self.d.clock.step(timedelta(minutes=-minutes))
        self.d.went_back = True
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


def at_rest(desk: Labour) -> None:
    """Bring everything to its end, as a desk does that is left alone."""
    desk.restart()
    if desk.account.stopped:
        desk.lift()
    for a in list(desk.account.automations.values()):
        if a.state in ("proposed", "paused") and (a.wish.expires is None or a.wish.expires > a.changed_at(desk.now)):
            desk.enable(a)
    worker = desk.live()[-1]
    for _ in range(300):
        desk.tick()
        desk.claim(worker, 50)
        desk.end(worker, list(worker.flying), ["words"] * len(worker.flying))
        desk.take(worker, 50)
        desk.record(worker, list(worker.sending), Receipt.DELIVERED, False)
        waiting = [r for r in desk.account.in_state("queued", "held", "running") if not sleeps(r)]
        sending = desk.account.deliveries("pending", "sending")
        if not waiting and not sending:
            break
        soon = [at for at in [*(r.ready for r in waiting), *(d.due for d in sending)] if at > desk.now]
        if soon:
            desk.clock.advance(timedelta(microseconds=min(soon) - desk.now))
    else:
        raise AssertionError(f"these never end: {[(r.id, r.states) for r in waiting]}, {[d.run.id for d in sending]}")


def sleeps(run: Any) -> bool:
    """It waits for a person who lets its automation act again."""
    return run.automation.state in ("proposed", "paused") and run.state in ("queued", "held")
