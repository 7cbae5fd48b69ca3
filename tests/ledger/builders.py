"""A night at the desk: ledgers made by the stages themselves, one step after another, on a clock that stands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from acting import RUNNERS, a_worker, die
from words import a_clock_trigger, a_definition, rows

from nightporter import delivery, operations
from nightporter.clock import Instant, Kick, ManualClock
from nightporter.delivery import Taken, Tried
from nightporter.dispatch import Attempt, Claimed, Definitions, claim, end
from nightporter.ledger.audit import Report, audit
from nightporter.sources.clock import ClockSource
from nightporter.store import Store
from nightporter.words import Answer, Ended, Receipt, RunId, Sent, TriggerSpec

EVERY_HOUR = a_clock_trigger("0 * * * *")
_numbers = itertools.count(1)


class Night:
    """One store and one clock, and what happens at them. Each step is a transaction of its own."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.worker = a_worker(store, clock.now())
        self.source = ClockSource(store, clock, Kick())

    @property
    def now(self) -> Instant:
        return self.clock.now()

    # -- time -------------------------------------------------------------------------------------------------

    def pass_time(self, **span: float) -> None:
        """Time passes, and nobody looks."""
        self.clock.advance(timedelta(**span))

    def tick(self, **span: float) -> None:
        """Time passes, and then the clock answers what is due."""
        self.pass_time(**span)
        while self.source.tick():
            pass

    def hours(self, count: int) -> None:
        """So many hours, the desk awake at each of them, everything run and ended within."""
        for _ in range(count):
            self.tick(hours=1)
            self.work()

    # -- automations --------------------------------------------------------------------------------------------

    def define(self, name: str = "brief", *triggers: TriggerSpec, **rest: Any) -> str:
        """An automation is written, or written again."""
        definition = a_definition(name, triggers=triggers, **rest)
        return self.store.write(
            lambda tx: operations.define(tx, definition, truth="code", by="test", now=self.now)
        ).automation_id

    def pause(self, automation: str) -> None:
        self.store.write(lambda tx: operations.pause(tx, automation, by="ann", reason="a holiday", now=self.now))

    def enable(self, automation: str) -> None:
        self.store.write(lambda tx: operations.enable(tx, automation, by="ann", now=self.now))

    def remove(self, automation: str) -> None:
        self.store.write(lambda tx: operations.remove(tx, automation, by="ann", now=self.now))

    # -- runs -----------------------------------------------------------------------------------------------------

    def fire(self, automation: str, external_id: str = "", *, trigger: str = "call", **rest: Any) -> Answer:
        """Something arrives."""
        key = external_id or f"e-{next(_numbers)}"
        return self.store.write(
            lambda tx: operations.fire(tx, automation, trigger=trigger, external_id=key, now=self.now, **rest)
        )

    def begin(self, room: int = 1, *, worker: str = "") -> list[Claimed]:
        """Runs are claimed."""
        return self.store.write(lambda tx: claim(
            tx, worker=worker or self.worker, room=room, now=self.now, runners=RUNNERS, definitions=Definitions()
        ))

    def finish(self, claimed: Claimed | Sequence[Claimed], ended: Ended) -> None:
        """Attempts end so."""
        attempts = [Attempt(c, ended) for c in (claimed if isinstance(claimed, Sequence) else [claimed])]
        self.store.write(lambda tx: end(tx, attempts, RUNNERS, now=self.now))

    def work(self, ended: Ended | None = None) -> list[str]:
        """Everything that waits is run, and ends so; the runs."""
        done: list[str] = []
        while claimed := self.begin(50):
            self.finish(claimed, ended or Ended.ok("three things to know"))
            done += [c.work.run_id for c in claimed]
        return done

    def run(self, automation: str, ended: Ended | None = None, **rest: Any) -> str:
        """One arrival that is run to its end; the run."""
        answer = self.fire(automation, **rest)
        assert answer.run_id is not None, answer
        self.work(ended)
        return answer.run_id

    def lose_worker(self) -> dict[str, int]:
        """The worker dies, is found dead, and another takes its place."""
        became = die(self.store, self.worker, self.now)
        self.worker = a_worker(self.store, self.now)
        return became

    def review(self, run: str, decision: Any) -> None:
        self.store.write(lambda tx: operations.review(tx, run, decision, by="ann", now=self.now))

    def cancel(self, run: str) -> None:
        from nightporter.words import Reason

        self.store.write(lambda tx: operations.cancel_runs(
            tx, [run], reason=Reason.CANCELLED_BY, by="ann", now=self.now))

    def intend(self, claimed: Claimed, key: str, *, done: bool = False) -> None:
        """A runner writes the intent of an effect, and perhaps that it is done."""
        work = claimed.work
        self.store.write(lambda tx: tx.intend([(work.run_id, key, "post", work.attempt, work.token)], now=self.now))
        if done:
            self.store.write(lambda tx: tx.effect_done(work.run_id, key, "https://example.org/1", now=self.now))

    # -- deliveries -------------------------------------------------------------------------------------------------

    def take(self, room: int = 10) -> list[Taken]:
        """Deliveries are taken to be sent."""
        return self.store.write(lambda tx: delivery.take(tx, worker=self.worker, room=room, lanes={}, now=self.now))

    def send(self, *receipts: Receipt) -> None:
        """What is due is sent, once for each of these, a day between them."""
        for n, receipt in enumerate(receipts):
            if n:
                self.pass_time(days=1)
            sent = Sent(receipt, "200 OK" if receipt is Receipt.DELIVERED else "", "" if n else "so it went")
            tried = [Tried(taken, sent) for taken in self.take()]
            assert tried
            self.store.write(lambda tx, tried=tried: delivery.record(tx, tried, {}, now=self.now))  # type: ignore[misc]

    # -- what the ledger says of it ----------------------------------------------------------------------------------

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Plain SQL, as somebody who tampers with the store would write it."""
        return rows(self.store, statement, *parameters)

    def audit(self, **rest: Any) -> Report:
        return self.store.read(lambda tx: audit(tx, now=self.now, **rest))

    def found(self, **rest: Any) -> dict[str, int]:
        """What an audit finds: how many of each check."""
        return {check.id: check.violations for check in self.audit(**rest).findings}


__all__ = ["EVERY_HOUR", "Night", "RunId"]
