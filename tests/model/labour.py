"""What workers do with runs: claim them, act, and end them."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from model.account import ENDED, OPEN, Run
from model.asking import Asking
from model.desk import Worker
from model.trouble import Trouble
from model.wishes import ENDINGS, RUNNERS
from nightporter.clock import Instant
from nightporter.dispatch import Attempt, Claimed, claim, end
from nightporter.dispatch.claim import take as take_at_once
from nightporter.dispatch.desk import NotWrittenDown, WorkerDesk
from nightporter.errors import LostClaim, MayHaveHappened, StoreError
from nightporter.store import Tx
from nightporter.store.tx_admission import Arrival
from nightporter.words import RunId

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
        self._lapse(now)
        ranks: dict[str, int] = {}
        for one in claimed:
            run = self.account.run(one.work.run_id)
            assert run.began is not None or run.stale_at is None or run.stale_at >= now, f"{run.id} is stale"
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

    def _lapse(self, now: int) -> None:
        """Runs that a claim met and that were too old to be begun have ended."""
        stale = [r for r in self.account.in_state("queued") if r.began is None and r.stale_at is not None
                 and r.stale_at < now and r.ready <= now]
        ended = self.store.read(lambda tx: {row[0] for row in tx.sql._connection.execute(  # type: ignore[attr-defined]
            "SELECT id FROM run WHERE state = 'skipped' AND reason = 'stale'")}) if stale else set()
        for run in stale:
            if run.id in ended:
                self.account.conclude(run, "skipped", None, "stale", now)
                self.tally["lapsed"] += 1

    def _may_start(self, run: Run, worker: Worker, now: int, *, by_name: bool) -> None:
        self.account.may_start(run)
        assert run.ready <= now, f"{run.id} was claimed {run.ready - now} too early"
        assert by_name or run.wish.runner in worker.runners
        if run.alone and not self.went_back:
            before = [r.id for r in self.account.of(run.automation, *OPEN)
                      if r.before(run) and "review" not in r.states]
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
