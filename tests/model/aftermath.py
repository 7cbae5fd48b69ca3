"""What comes after workers: what nobody is behind any more is taken back, and what is old is deleted."""

from __future__ import annotations

from datetime import timedelta

from model.account import ENDED, Run
from model.desk import HOST, Worker
from model.labour import DAY
from model.sending import Sending
from model.trouble import Trouble
from model.wishes import DESTINATIONS, RUNNERS
from nightporter import sweep
from nightporter.clock import Instant, Kick
from nightporter.delivery.recover import take_back as take_back_deliveries
from nightporter.dispatch.recover import take_back
from nightporter.sources.clock import ClockSource
from nightporter.store.tx_sweep import SweepTx
from nightporter.sweep import Leases, bury, portions, prune
from nightporter.words import Receipt


class Aftermath(Sending):
    """A desk that outlives its workers: all there is of it."""

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
                and not any(self._delivery(t) is d and t.token == d.token for t in worker.sending)]
        assert self.done[0].result == len(lost)
        for delivery in lost:
            self.tally["taken back: delivery"] += 1
            self.not_sent(delivery, now)

    def bury(self, worker: Worker, trouble: Trouble | None = None) -> bool:
        """A worker is found dead, and what it held is taken back; False where a trouble came between."""
        error = self.try_("bury", lambda: bury(
            self.store, worker.id, RUNNERS, DESTINATIONS, host=HOST, now=self.clock.now), trouble)  # type: ignore[arg-type]
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
        left = [r.id for r in held if is_now[0].get(r.id) == "running"]
        assert not left or (not whole and len(left) == len(held)), f"{left} of {len(held)} were left with the dead"
        if not left:
            for run in held:
                self._lost(run, self.now)
        sending = [d for d in self.account.deliveries("sending") if d.worker == worker.id]
        still = [d for d in sending if is_now[1].get((d.run.id, d.name)) == "sending"]
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
                    self.store, leases, RUNNERS, DESTINATIONS, me=others[0].id,  # type: ignore[arg-type]
                    now=self.clock.now))
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
        begun, not_begun = worker.sending[::2], worker.sending[1::2]
        self.record(worker, begun, Receipt.TRANSIENT, True)
        self.record(worker, not_begun, Receipt.TRANSIENT, False, begun=False)
        self.store.write(lambda tx: tx.end_worker(worker.id, "stopped", now=self.now))
        worker.alive, worker.ended = False, True
        worker.flying, worker.sending = [], []
        if any(r.worker == worker.id for r in self.account.in_state("running")) or any(
            d.worker == worker.id for d in self.account.deliveries("sending")
        ):  # under a claim whose answer was lost
            self.unrepaired = True

    # -- retention ---------------------------------------------------------------------------------------------------

    def prune(self) -> None:
        now = self.now
        self.try_("prune", lambda: prune(
            self.store, keep_runs=timedelta(days=7), keep_ledger=timedelta(days=30), now=Instant(now),  # type: ignore[arg-type]
            learnt=portions(self.clock)))  # which stands still: how much is deleted hangs on no machine
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
