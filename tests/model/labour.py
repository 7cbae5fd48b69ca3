"""What workers do at the desk: claim, act, end, deliver; stand still, die, come back from the dead; and the sweep."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from typing import Any

from model.account import ENDED, OPEN, Delivery, Run
from model.asking import Asking
from model.desk import HOST, Worker
from model.trouble import Trouble
from model.wishes import DESTINATIONS, ENDINGS, RUNNERS
from nightporter import sweep
from nightporter.clock import Instant
from nightporter.delivery import LANE_SLOTS, Taken, Tried, record, take
from nightporter.delivery.recover import take_back as take_back_deliveries
from nightporter.dispatch import Attempt, Claimed, Definitions, claim, end
from nightporter.dispatch.claim import take as take_at_once
from nightporter.dispatch.desk import NotWrittenDown, WorkerDesk
from nightporter.dispatch.recover import take_back
from nightporter.errors import LostClaim, MayHaveHappened, StoreError
from nightporter.store import Tx
from nightporter.store.tx_admission import Arrival
from nightporter.store.tx_sweep import SweepTx
from nightporter.sweep import Leases, bury, prune
from nightporter.words import Receipt, RunId, Sent

ASLEEP = ("proposed", "paused")
SLOTS = 5
CLASS_OF = {"transient": "transient", "transient, later": "transient", "nonzero": "nonzero_exit",
            "exception": "exception", "configuration": ""}
DAY = 86_400_000_000


class Labour(Asking):
    """A desk with workers."""

    def live(self) -> list[Worker]:
        return [w for w in self.workers if w.alive]

    # -- claims ------------------------------------------------------------------------------------------------

    def claim(self, worker: Worker, room: int, trouble: Trouble | None = None, only: str | None = None) -> None:
        now = self.now
        error = self.try_("run now" if only else "claim", lambda: self.store.write(lambda tx: claim(
            tx, worker=worker.id, room=room, now=now, runners=worker.runners, definitions=worker.known,
            only=None if only is None else RunId(only))), trouble)
        if not self.done:
            return
        claimed: list[Claimed] = self.done[0].result
        if self.account.stopped or worker.ended:
            assert not claimed
            return
        for run in self.account.in_state("held", "queued"):
            if run.ready <= now:  # once it is over, a wait stays over, though the wall be put back
                run.ready = 0
                if run.state == "held":
                    run.becomes("queued")
        ranks: dict[str, int] = {}
        for one in claimed:
            run = self.account.runs[one.work.run_id]
            self._may_start(run, worker, now, by_name=only is not None)
            in_turn = self.went_back or ranks.get(one.work.workspace, 0) <= run.rank
            assert in_turn, f"{run.id} was claimed out of its turn"
            ranks[one.work.workspace] = run.rank
            self.account.starts(run, worker.id, now, marked=run.wish.runner == "python" and "python" in worker.runners)
            assert (one.work.token, one.work.attempt) == (run.token, run.attempt)
            assert one.definition is not None
        if only is None and len(claimed) < room:
            self._nobody_was_left(worker, now)
        if error is None:
            worker.flying += claimed

    def _may_start(self, run: Run, worker: Worker, now: int, *, by_name: bool) -> None:
        self.account.may_start(run)
        assert run.ready <= now, f"{run.id} was claimed {run.ready - now} too early"
        assert by_name or run.wish.runner in worker.runners
        if run.alone and not self.went_back:
            before = [r.id for r in self.account.of(run.automation, *OPEN)
                      if r.order < run.order and "review" not in r.states]
            assert not before or "review" in run.states, f"{run.id} goes alone, and {before} are going"

    @contextlib.contextmanager
    def taking(self, worker: Worker | None) -> Iterator[None]:
        """A worker is offered what is admitted meanwhile, and takes what it has room for."""
        if worker is None or len(worker.flying) >= SLOTS:
            yield
            return
        fetched: list[Claimed] = []

        def taker(tx: Tx, arrivals: Sequence[Arrival], now: Instant) -> Collection[str]:
            room = SLOTS - len(worker.flying) - len(tx.taken.get("queued", ()))
            taken = [] if room <= 0 else take_at_once(
                tx, arrivals, worker=worker.id, room=room, now=now, runners=worker.runners, definitions=worker.known)
            tx.taken.setdefault("queued", []).extend(taken)
            fetched[:] = [c for c in fetched if c not in taken] + taken
            return {c.work.run_id for c in taken}

        self.store.taker, self.account.taker = taker, worker.id
        done = len(self.told)
        try:
            yield
        finally:
            self.store.taker = None
            if all(self.told[done:]):  # whoever was not told does not know what it has taken
                worker.flying += [c for c in fetched if c.work.run_id in self.account.runs
                                  and self.account.runs[c.work.run_id].worker == worker.id]

    def _nobody_was_left(self, worker: Worker, now: int) -> None:
        """A claim that had room for more left nothing that could have been claimed."""
        for a in self.account.automations.values():
            going = self.account.of(a, *OPEN)
            limit = a.wish.concurrent
            if limit is not None and len(self.account.of(a, "running")) >= limit:
                continue
            could = [r for r in going if r.state == "queued" and r.ready <= now and r.wish.runner in worker.runners
                     and (r.by_hand or a.state not in ASLEEP)]
            free = [r.id for r in could if not r.alone]
            assert not free, f"nothing stands in the way of {free}, and they were not claimed"
            assert not could or len(could) < len(going), f"one of {[r.id for r in could]} could have been claimed"

    # -- acts ----------------------------------------------------------------------------------------------------

    def act(self, worker: Worker, one: Claimed, step: str, key: str, trouble: Trouble | None = None) -> None:
        """A runner lets its child go, intends an effect, or did it."""
        run = self.account.runs.get(one.work.run_id)
        if run is None:  # it is over for so long that it was pruned
            return
        desk = WorkerDesk(self.store, self.clock, worker=worker.id, host="elsewhere")  # type: ignore[arg-type]
        current = run.state == "running" and run.token == one.work.token
        before = run.effects.get(key)
        if step == "did" and (before is None or before != ("intended", one.work.token)):
            return
        calls: dict[str, Any] = {
            "let go": lambda: desk.child_started(one.work, 999_999, 1),
            "intends": lambda: desk.effect_intended(one.work, "post", key),
            "did": lambda: desk.effect_done(one.work, key, "https://example.org/1"),
        }
        error: Exception | None = None
        self.store.done.clear()
        self.store.ill.trouble = trouble
        try:
            self._loop.run_until_complete(calls[step]())
        except (LostClaim, MayHaveHappened, StoreError) as raised:
            error = raised
        except NotWrittenDown as raised:
            error = raised
        finally:
            self.store.ill.trouble = None
        self.tally[f"act: {step}{': ' + type(error).__name__ if error else ''}"] += 1
        if isinstance(error, LostClaim):
            assert not current
        elif isinstance(error, MayHaveHappened):
            assert current
            assert before is not None
            assert before[0] == "intended"
            assert before[1] != run.token
        if not self.store.done:
            return
        assert current, f"{run.id} acted under a lost claim"
        if step == "let go":
            run.let_go = run.token
        elif step == "did":
            run.effects[key] = ("done", one.work.token)
        elif before is None or before[0] == "intended":
            assert before is None or before[1] == run.token
            run.effects[key] = ("intended", run.token)

    # -- ends ------------------------------------------------------------------------------------------------------

    def end(
        self, worker: Worker, ones: Sequence[Claimed], endings: Sequence[str], trouble: Trouble | None = None
    ) -> None:
        now = self.now
        attempts = [Attempt(c, ENDINGS[e]()) for c, e in zip(ones, endings, strict=True)]
        error = self.try_("end", lambda: self.store.write(lambda tx: end(tx, attempts, RUNNERS, now=now)), trouble)
        if error is None:
            worker.flying = [c for c in worker.flying if c not in ones]
        if not self.done:
            return
        for one, ending, became in zip(ones, endings, self.done[0].result, strict=True):
            run = self.account.runs.get(one.work.run_id)
            if run is None or run.state != "running" or run.token != one.work.token:
                assert became is None, f"{one.work.run_id}: a lost claim has written {became}"
                self.tally["end: lost claim"] += 1
                continue
            assert became is not None, f"{run.id} was ended under its claim, and nothing was written"
            self.tally[f"ended: {ending}"] += 1
            self._ended(run, ending, now)

    def _ended(self, run: Run, ending: str, now: int) -> None:
        state, outcome, dead, back = self._end_of(run, ending)
        if run.cancel is not None and state not in ENDED:
            state, outcome, dead, back = "cancelled", None, False, False
        if state in ENDED:
            self.account.conclude(run, state, outcome, run.cancel, now, dead=dead)
        else:
            run.becomes(state)
            run.attempt -= back
        if state == "review":
            run.notices.add("review")
        else:
            run.let_go = 0
            run.marks.discard(run.token)
        if state in ("queued", "held"):
            self._waits(run, now, at_once=ending == "shut down")

    def _waits(self, run: Run, now: int, *, at_once: bool) -> None:
        """How long it waits is drawn, or as somebody asked; within a day, and not at all after a shutdown."""
        ready, rank = self.store.read(lambda tx: next(iter(tx.sql._connection.execute(  # type: ignore[attr-defined]
            f"SELECT run_after, rank FROM run WHERE id = '{run.id}'"))))
        assert (ready == now) if at_once else (now < ready <= now + DAY)
        run.ready, run.rank = 0 if at_once else ready, rank

    def _end_of(self, run: Run, ending: str) -> tuple[str, str | None, bool, bool]:
        """State, outcome, whether it is a dead letter, whether the attempt is given back."""
        failed = ("failed", "failed", True, False)
        match ending:
            case "words" | "data":
                return "succeeded", "action" if run.done else "report", False, False
            case "nothing":
                return ("succeeded", "action", False, False) if run.done else ("skipped", "noop", False, False)
            case "needs you":
                return "succeeded", "needs_you", False, False
            case "timeout":
                return "timed_out", "failed", True, False
            case "cancelled":
                return "cancelled", None, False, False
            case "hold" | "hold, soon":
                return "held", None, False, True
            case "shut down":
                return ("queued", None, False, True) if run.may_repeat() else ("review", None, False, False)
            case "not started":
                return "queued", None, False, True
            case "may have acted":
                return "review", None, False, False
            case "says it failed":
                return failed
            case _:
                again = run.attempt < run.attempts and CLASS_OF[ending] in run.wish.retry_on
                return ("queued", None, False, False) if again else failed

    # -- deliveries ------------------------------------------------------------------------------------------------

    def take(self, worker: Worker, room: int, trouble: Trouble | None = None) -> None:
        now = self.now
        lanes = Counter(t.lane for t in worker.sending)
        error = self.try_("take", lambda: self.store.write(
            lambda tx: take(tx, worker=worker.id, room=room, lanes=lanes, now=now)), trouble)
        if not self.done:
            return
        taken: list[Taken] = self.done[0].result
        assert not taken or not (self.account.stopped or worker.ended)
        for one in taken:
            delivery = self._delivery(one)
            assert delivery.state == "pending"
            assert delivery.due <= now
            assert not one.error, one.error
            delivery.state, delivery.worker, delivery.tries = "sending", worker.id, delivery.tries + 1
            assert (one.token, one.tries) == (delivery.tries, delivery.tries - delivery.before)
            lanes[one.lane] += 1
            delivery.run.bodies.setdefault(delivery.name, set()).add(f"{one.parcel.event_id} {one.body_hash}")
            assert len(delivery.run.bodies[delivery.name]) == 1, "another body, or under another event id"
        assert all(n <= LANE_SLOTS for n in lanes.values())
        if len(taken) < room and not (self.account.stopped or worker.ended):
            left = [d.run.id for d in self.account.deliveries("pending") if d.due <= now and lanes[d.lane] < LANE_SLOTS]
            assert not left, f"these could have been taken: {left}"
        if error is None:
            worker.sending += taken

    def _delivery(self, taken: Taken) -> Delivery:
        run = self.account.runs[taken.parcel.run_id]
        config: Any = taken.parcel.config
        name = "pager" if taken.kind == "pager" else "hook" if "one" in config["url"] else "quiet"
        return run.deliveries[name]

    def record(
        self, worker: Worker, ones: Sequence[Taken], receipt: Receipt, doubtful: bool, trouble: Trouble | None = None
    ) -> None:
        now = self.now
        sent = Sent(receipt, evidence="202" if receipt is Receipt.DELIVERED else "", error="no" * (receipt > "e"))
        tried = [Tried(t, sent, doubtful=doubtful) for t in ones]
        error = self.try_("record", lambda: self.store.write(
            lambda tx: record(tx, tried, DESTINATIONS, now=now)), trouble)
        if error is None:
            worker.sending = [t for t in worker.sending if t not in ones]
        if not self.done:
            return
        for one, current in zip(ones, self.done[0].result, strict=True):
            run = self.account.runs.get(one.parcel.run_id)
            delivery = None if run is None else self._delivery(one)
            holds = delivery is not None and delivery.state == "sending" and delivery.tries == one.token
            assert current == holds, f"a claim on {one.parcel.delivery_id} counted, and should not, or the reverse"
            self.tally[f"tried: {receipt}{'' if holds else ', lost claim'}"] += 1
            if delivery is not None and holds:
                self._tried(delivery, receipt, doubtful, now)

    def _tried(self, delivery: Delivery, receipt: Receipt, doubtful: bool, now: int) -> None:
        match receipt:
            case Receipt.DELIVERED | Receipt.UNVERIFIED:
                delivery.state = str(receipt)
                return
            case Receipt.PERMANENT:
                delivery.state = "given_up"
            case _ if doubtful and not delivery.repeatable:
                delivery.state = "unknown"
            case _ if delivery.tries - delivery.before >= 50:
                delivery.state = "given_up"
            case _:
                delivery.state = "pending"
                of = self.delivery_id(delivery)
                (delivery.due,) = self.store.read(lambda tx: next(iter(tx.sql._connection.execute(  # type: ignore[attr-defined]
                    f"SELECT next_try_at FROM delivery WHERE id = '{of}'"))))
                assert now < delivery.due <= now + DAY
                return
        if not delivery.best_effort:
            delivery.run.notices.add("given_up")

    # -- what nobody is behind any more ------------------------------------------------------------------------------

    def take_back(self, worker: Worker, trouble: Trouble | None = None) -> None:
        """A worker asks for what it holds and never began: the answer to its claim was lost."""
        now = self.now
        ours = {c.key for c in worker.flying}
        self.try_("take back runs", lambda: self.store.write(lambda tx: take_back(
            tx, worker.id, ours, RUNNERS, worker.known, now=now)), trouble)
        if self.done:
            back = [r for r in self.account.in_state("running")
                    if r.worker == worker.id and (r.id, r.token) not in ours]
            assert self.done[0].result == len(back)
            for run in back:
                self.tally["taken back: run"] += 1
                self._ended(run, "not started", now)
        sending = {t.key for t in worker.sending}
        self.try_("take back deliveries", lambda: self.store.write(lambda tx: take_back_deliveries(
            tx, worker.id, sending, now=now)))
        lost = [d for d in self.account.deliveries("sending") if d.worker == worker.id
                and not any(self._delivery(t) is d and t.token == d.tries for t in worker.sending)]
        assert self.done[0].result == len(lost)
        for delivery in lost:
            self.tally["taken back: delivery"] += 1
            delivery.state, delivery.due = "pending", now

    def bury(self, worker: Worker, trouble: Trouble | None = None) -> bool:
        """A worker is found dead, and what it held is taken back; False where a trouble came between."""
        error = self.try_("bury", lambda: bury(
            self.store, worker.id, RUNNERS, DESTINATIONS, Definitions(), host=HOST, now=self.clock.now), trouble)  # type: ignore[arg-type]
        self._buried(worker, whole=error is None)
        return error is None

    def _buried(self, worker: Worker, *, whole: bool) -> None:
        is_now = self.store.read(lambda tx: (
            dict(tx.sql._connection.execute("SELECT id, state FROM run")),  # type: ignore[attr-defined]
            {(r, n): s for r, n, s in tx.sql._connection.execute("SELECT run_id, destination, state FROM delivery")},  # type: ignore[attr-defined]
            [row[0] for row in tx.workers()],
        ))
        worker.ended = worker.id not in is_now[2]
        held = [r for r in self.account.in_state("running") if r.worker == worker.id]
        left = [r.id for r in held if is_now[0][r.id] == "running"]
        assert not left or (not whole and len(left) == len(held)), f"{left} of {len(held)} were left with the dead"
        if not left:
            for run in held:
                self._lost(run, self.now)
        sending = [d for d in self.account.deliveries("sending") if d.worker == worker.id]
        still = [d for d in sending if is_now[1][d.run.id, d.name] == "sending"]
        assert not still or (not whole and len(still) == len(sending))
        self.unrepaired = self.unrepaired or bool(left or still)
        for delivery in [] if still else sending:
            self.tally["lost: delivery"] += 1
            if delivery.repeatable:
                delivery.state, delivery.due = "pending", self.now
            else:
                delivery.state = "unknown"
                if not delivery.best_effort:
                    delivery.run.notices.add("given_up")

    def _lost(self, run: Run, now: int) -> None:
        self.tally["lost: run"] += 1
        run.becomes("lost")
        may, run.let_go = run.may_repeat(), 0
        if not may:
            run.becomes("review")
            run.notices.add("review")
        elif run.cancel is not None:
            reason = run.cancel
            self.requeued(run, now)
            self.account.conclude(run, "cancelled", None, reason, now)
        elif run.attempt >= run.attempts:
            self.account.conclude(run, "failed", "failed", "worker_lost", now, dead=True)
        else:
            self.requeued(run, now)

    def restart(self, trouble: Trouble | None = None) -> None:
        """All processes die, everything in memory is gone; one boots and takes back what they held."""
        old = [w for w in self.workers if not w.ended]
        for worker in old:
            worker.alive, worker.flying, worker.sending = False, [], []
        from nightporter.clock import Kick
        from nightporter.sources.clock import ClockSource

        self.source = ClockSource(self.store, self.clock, Kick())  # type: ignore[arg-type]
        self.join()
        self.tally["restart"] += 1
        buried = [self.bury(worker, trouble) for worker in old]
        owing = self.store.read(SweepTx.workers_owing)
        buried += [self.bury(w) for w in self.workers if w.id in owing]
        whole = all(buried)
        self.unrepaired = self.unrepaired and not whole
        self.tick(trouble)
        self.upkeep(trouble)

    def stand_still(self, worker: Worker, seconds: int = 100) -> None:
        """A worker stands still, and the others sweep; its lease ends, and it may come back later."""
        others = [w for w in self.live() if w is not worker and not w.ended] or [self.join()]
        leases = Leases(self.clock, host="a machine", lease=timedelta(seconds=60))
        owing = self.store.read(SweepTx.workers_owing)
        for second in range(0, seconds, 4):
            self.clock.advance(timedelta(seconds=4))
            for other in others:
                assert self.store.write(lambda tx, other=other: tx.beat(other.id))  # type: ignore[misc]
            leases.renewed()
            if second % 20 == 0:
                self.try_("sweep", lambda: sweep.take_from_dead(
                    self.store, leases, RUNNERS, DESTINATIONS, Definitions(), me=others[0].id, host=HOST,  # type: ignore[arg-type]
                    clock=self.clock))
                for one in self.workers:
                    if one is worker or not one.alive or one.id in owing:
                        self._buried(one, whole=False)
        assert worker.ended, f"{worker.id} stood still and was not found dead"
        assert not any(w.ended for w in others), "a worker that lives was found dead"
        assert not self.store.read(SweepTx.workers_owing)
        self.unrepaired = False

    def leave(self, worker: Worker, trouble: Trouble | None = None) -> None:
        """A worker stops in order: what it has in the air is cut short and written, then it says that it goes."""
        self.end(worker, list(worker.flying), ["shut down"] * len(worker.flying), trouble)
        self.record(worker, list(worker.sending), Receipt.TRANSIENT, True)
        self.store.write(lambda tx: tx.end_worker(worker.id, "stopped", now=self.now))
        worker.alive, worker.ended = False, True
        worker.flying, worker.sending = [], []
        if any(r.worker == worker.id for r in self.account.in_state("running")):
            self.unrepaired = True

    # -- retention ---------------------------------------------------------------------------------------------------

    def prune(self) -> None:
        now = self.now
        self.try_("prune", lambda: prune(
            self.store, keep_runs=timedelta(days=7), keep_ledger=timedelta(days=30), now=Instant(now)))  # type: ignore[arg-type]
        runs, lines = self.store.read(lambda tx: (
            {r for (r,) in tx.sql._connection.execute("SELECT id FROM run")},  # type: ignore[attr-defined]
            {r for (r,) in tx.sql._connection.execute("SELECT id FROM firing")}))  # type: ignore[attr-defined]
        for run in [r for r in self.account.runs.values() if r.id not in runs]:
            assert run.state in ENDED
            assert run.ended_at is not None
            assert run.ended_at < now - 7 * DAY
            assert not run.dead or run.ended_at < now - 30 * DAY
            assert all(d.state not in ("pending", "sending") for d in run.deliveries.values())
            del self.account.runs[run.id]
            self.tally["pruned: run"] += 1
        for line in [each for each in self.account.lines if each not in lines]:
            trigger, external, *_, run_id, keeps, _, _, _, _ = self.account.lines[line]
            assert self.account.arrived[line] < now - 30 * DAY
            assert run_id not in self.account.runs
            del self.account.lines[line]
            if keeps:
                del self.account.kept[trigger, external]
            self.tally["pruned: line"] += 1


