"""A night at the desk: ledgers made by the stages themselves, one step after another, on a clock that stands."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from acting import RUNNERS, a_worker, after, die

from nightporter import delivery, operations, sweep
from nightporter.clock import HOUR, Instant, Kick, ManualClock
from nightporter.delivery import Sending, Tried
from nightporter.dispatch import Attempt, Claimed, Definitions, claim, end
from nightporter.ledger.audit import Report, audit
from nightporter.sources.clock import ClockSource
from nightporter.states import AutomationState
from nightporter.store import Store, Tx
from nightporter.store.tx_automations import AutomationRow
from nightporter.words import Answer, Definition, Ended, Reason, Receipt, RunId, Sent, TriggerSpec
from words import a_clock_trigger, a_definition, rows

EVERY_HOUR = a_clock_trigger("0 * * * *")
SAID = Ended.ok("three things to know")
_numbers = itertools.count(1)
_WHEN = "coalesce(scheduled_for, slot_from, arrived_at)"


class _Undo(Exception):
    """Ends a transaction that nobody wants to keep."""


@dataclass
class Night:
    """One store and one clock, and what happens at them. Each step is a transaction of its own."""

    store: Store
    clock: ManualClock
    worker: str = ""
    runs: dict[str, str] = field(default_factory=dict)
    """Runs by what became of them, in a full night."""

    def __post_init__(self) -> None:
        self.worker = self.worker or a_worker(self.store, self.now)
        self.source = ClockSource(self.store, self.clock, Kick())

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

    def next_hour(self) -> None:
        """The next hour strikes."""
        self.tick(microseconds=HOUR - self.now % HOUR)

    def hours(self, count: int) -> None:
        """So many hours strike, the desk awake at each of them, everything run and ended at once."""
        for _ in range(count):
            self.next_hour()
            self.work()

    # -- automations --------------------------------------------------------------------------------------------

    def define(self, name: str, *triggers: TriggerSpec, proposed: bool = False, **rest: Any) -> str:
        """An automation is written, or written again."""
        definition = self.written(name, *triggers, **rest)
        state = AutomationState.PROPOSED if proposed else AutomationState.ACTIVE
        return self.store.write(lambda tx: operations.define(
            tx, definition, truth="code", by="test", now=self.now, state=state)).automation_id

    @staticmethod
    def written(name: str, *triggers: TriggerSpec, **rest: Any) -> Definition:
        """What somebody wrote."""
        definition: Definition = a_definition(name, triggers=triggers, **rest)
        return definition

    def pause(self, automation: str, **lasting: float) -> None:
        """It is paused, for that long or until somebody enables it."""
        until = after(self.now, **lasting) if lasting else None
        self.store.write(lambda tx: operations.pause(
            tx, automation, by="ann", reason="a holiday", until=until, now=self.now))

    def enable(self, automation: str) -> None:
        self.store.write(lambda tx: operations.enable(tx, automation, by="ann", now=self.now))

    def remove(self, automation: str) -> None:
        self.store.write(lambda tx: operations.remove(tx, automation, by="ann", now=self.now))

    def upkeep(self) -> int:
        """What ends by itself, ends."""
        return operations.upkeep(self.store, now=self.clock.now)

    def row(self, automation: str) -> AutomationRow:
        """It, as it stands in the store."""
        row = self.store.write(lambda tx: tx.lock_automation(automation))
        assert row is not None
        return row

    def lines(self, *columns: str, source: str = "clock") -> list[tuple[Any, ...]]:
        """Columns of the ledger's lines, in their order: verdict and reason where nothing else is asked for."""
        asked = ", ".join(columns or ("verdict", "reason"))
        return self.sql(f"SELECT {asked} FROM firing WHERE source = ? ORDER BY {_WHEN}, id", source)

    def run_after_all(self, automation: str) -> None:
        """Its missed slots that wait for a person are run."""
        for card in self.store.read(lambda tx: tx.cards(automation_id=automation)):
            self.store.write(lambda tx, card=card: operations.execute_missed(tx, card.id, by="ann", now=self.now))  # type: ignore[misc]

    # -- runs -----------------------------------------------------------------------------------------------------

    def fire(self, automation: str, external_id: str = "", *, trigger: str = "call", **rest: Any) -> Answer:
        """Something arrives."""
        key = external_id or f"e-{next(_numbers)}"
        return self.store.write(
            lambda tx: operations.fire(tx, automation, trigger=trigger, external_id=key, now=self.now, **rest)
        )

    def begin(self, room: int = 1, *, run: str | None = None, worker: str = "") -> list[Claimed]:
        """Runs are claimed; `run` names one."""
        return self.store.write(lambda tx: claim(
            tx, worker=worker or self.worker, room=room, now=self.now, runners=RUNNERS, definitions=Definitions(),
            only=None if run is None else RunId(run),
        ))

    def start(self, automation: str, *, worker: str = "", **rest: Any) -> Claimed:
        """One arrival that is claimed at once."""
        answer = self.fire(automation, **rest)
        assert answer.run_id is not None, answer
        (claimed,) = self.begin(run=answer.run_id, worker=worker)
        return claimed

    def finish(self, claimed: Claimed | Sequence[Claimed], ended: Ended = SAID) -> None:
        """Attempts end so."""
        attempts = [Attempt(c, ended) for c in (claimed if isinstance(claimed, Sequence) else [claimed])]
        self.store.write(lambda tx: end(tx, attempts, RUNNERS, now=self.now))

    def work(self, ended: Ended = SAID) -> list[str]:
        """Everything that waits is run, and ends so; the runs."""
        done: list[str] = []
        while claimed := self.begin(50):
            self.finish(claimed, ended)
            done += [c.work.run_id for c in claimed]
        return done

    def run(self, automation: str, ended: Ended = SAID, **rest: Any) -> str:
        """One arrival that is run at once, and ends so; the run."""
        claimed = self.start(automation, **rest)
        self.finish(claimed, ended)
        return claimed.work.run_id

    def lose(self, worker: str) -> None:
        """A worker dies and is found dead."""
        assert any(die(self.store, worker, self.now).values())

    def change_shifts(self) -> None:
        """Every worker is found dead, what it held is taken back, and another begins."""
        for worker, *_ in self.store.read(lambda tx: tx.workers()):
            sweep.bury(self.store, worker, RUNNERS, {}, host="here", now=self.clock.now)
        self.worker = a_worker(self.store, self.now)

    def review(self, run: str, decision: Literal["retry", "dismiss"]) -> None:
        self.store.write(lambda tx: operations.review(tx, run, decision, by="ann", now=self.now))

    def cancel(self, run: str) -> None:
        self.store.write(lambda tx: operations.cancel_runs(
            tx, [run], reason=Reason.CANCELLED_BY, by="ann", now=self.now))

    def act(self, claimed: Claimed, key: str) -> None:
        """A runner writes the intent of an effect, and that it is done."""
        work = claimed.work
        self.store.write(lambda tx: tx.intend([(work.run_id, key, "post", work.attempt, work.token)], now=self.now))
        self.store.write(lambda tx: tx.effect_done(work.run_id, key, "https://example.org/1", now=self.now))

    # -- deliveries -------------------------------------------------------------------------------------------------

    def take(self, room: int = 10) -> list[Sending]:
        """Deliveries are taken to be sent."""
        return self.store.write(lambda tx: delivery.claim(tx, worker=self.worker, room=room, lanes={}, now=self.now))

    def send(self, *receipts: Receipt) -> None:
        """What is due is sent, once for each of these, a minute between them."""
        for n, receipt in enumerate(receipts):
            if n:
                self.pass_time(minutes=1)
            sent = Sent(receipt, "200 OK" if receipt is Receipt.DELIVERED else "")
            while taken := self.take():
                tried = [Tried(one, sent) for one in taken]
                self.store.write(lambda tx, tried=tried: delivery.record(tx, tried, {}, now=self.now))  # type: ignore[misc]

    # -- what the ledger says of it ----------------------------------------------------------------------------------

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Plain SQL, on a connection of its own."""
        return list(rows(self.store, statement, *parameters))

    def audit(self, **rest: Any) -> Report:
        return self.store.read(lambda tx: audit(tx, now=self.now, **rest))

    def found(self, **rest: Any) -> dict[str, int]:
        """What an audit finds: how many of each check."""
        return {check.id: check.violations for check in self.audit(**rest).findings}

    def found_after(self, *statements: tuple[Any, ...], **rest: Any) -> dict[str, int]:
        """The same had somebody tampered with the store: `(statement, parameters ...)`. Nothing of it stays."""
        found: dict[str, int] = {}

        def tamper(tx: Tx) -> None:
            connection = tx.sql._connection  # type: ignore[attr-defined]  # both databases have one
            for statement, *parameters in statements:
                text = statement if tx.dialect == "sqlite" else statement.replace("?", "%s").encode()
                connection.execute(text, parameters)
            report = audit(tx, **{"now": self.now, **rest})
            found.update({check.id: check.violations for check in report.findings})
            raise _Undo

        try:
            self.store.write(tamper)
        except _Undo:
            pass
        return found
