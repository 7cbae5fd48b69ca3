"""The rules of workers: what they claim, do, end and deliver next; how they stand still, come back and start anew."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from model.asking import a_firing
from model.desk import Worker
from model.hands import ENDS, PICK, SOME, TAKER, TROUBLE, Hands, trouble_of
from model.wishes import RUNNERS
from nightporter.words import Receipt

STEPS = ["intends it k1", "intends it k2", "did it k1", "did it k2"]


class Workday(Hands):
    """What workers may do next."""

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

    @precondition(lambda self: self.d.account.deliveries("given_up", "unknown", "unverified", "delivered", "pending"))
    @rule(pick=PICK, trouble=TROUBLE)
    def resend(self, pick: int, trouble: Any) -> None:
        there = self.d.account.deliveries("given_up", "unknown", "unverified", "pending") or (
            self.d.account.deliveries("delivered"))
        for delivery in self.picked(there, [pick]):
            self.d.resend(delivery, trouble_of(trouble))
