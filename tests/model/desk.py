"""The desk that is put to the test: its stages as they are, one write after another, each followed in the account."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from model.account import Account, counted, owed
from model.standing import Automation
from model.trouble import Admitted, Done, Trouble, Watched, overheard
from model.wishes import RUNNERS
from nightporter.clock import Instant, Kick, ManualClock
from nightporter.delivery import Sending
from nightporter.dispatch import Claimed, Definitions, Runners
from nightporter.errors import Conflict, LostClaim, StoreError
from nightporter.sources.clock import ClockSource
from nightporter.store import Store
from nightporter.words import Reason, Settled

HOST = "here"
ASLEEP_BECAUSE = {"paused": "paused", "vanished": "paused", "expired": "expired"}


@dataclass(eq=False)
class Worker:
    """One worker process."""

    id: str
    runners: Runners
    known: Definitions = field(default_factory=Definitions)
    flying: list[Claimed] = field(default_factory=list)
    sending: list[Sending] = field(default_factory=list)
    ended: bool = False
    """As the store has it."""
    alive: bool = True
    """As a process."""


class Hearing:
    """What one change admitted, in its order."""

    def __init__(self, done: list[Done]) -> None:
        self._left: deque[Admitted] = deque(one for each in done for one in each.admitted)

    def take(self, count: int) -> list[Admitted]:
        assert len(self._left) >= count, f"{count} answers were owed, and there were {list(self._left)}"
        return [self._left.popleft() for _ in range(count)]

    def over(self) -> None:
        assert not self._left, f"nobody owed these answers: {list(self._left)}"


class Desk:
    """One ledger, one clock, and the account of both."""

    def __init__(self, store: Store, start: Instant) -> None:
        self.clock = ManualClock(start)
        self.store = Watched(store)
        self.account = Account()
        self.workers: list[Worker] = []
        self.tally: Counter[str] = Counter()
        self.told: list[bool] = []
        """Of each thing that was tried, whether nothing went wrong."""
        self.went_back = False
        """The wall clock was put back."""
        self.unrepaired = False
        """A repair was cut short, and nobody has come yet to finish it."""
        self._joined = 0
        self._overheard = overheard(self.store)
        self._overheard.__enter__()
        self._loop = asyncio.new_event_loop()
        self.source = ClockSource(self.store, self.clock, Kick())  # type: ignore[arg-type]  # as far as it goes, a Store
        self.join()

    def close(self) -> None:
        self._overheard.__exit__(None, None, None)
        self.store.store.writer._transactions = self.store.ill.inner
        self._loop.close()

    @property
    def now(self) -> Instant:
        return self.clock.now()

    def go_back(self, by: timedelta) -> None:
        """The wall clock is put back, and the desk has noticed it and written it down."""
        before = self.now
        self.clock.step(-by)
        self.went_back = True
        self.store.write(lambda tx: tx.write_gap("step_back", self.now, before, worker=self.workers[0].id))

    def join(self, runners: Runners = RUNNERS) -> Worker:
        self._joined += 1
        worker = Worker(f"wrk_{self._joined}", runners)
        self.store.write(lambda tx: tx.join(
            worker.id, role="command", host=HOST, pid=1, lock_path="", now=self.now))
        self.workers.append(worker)
        return worker

    def try_(self, what: str, work: Callable[[], object], trouble: Trouble | None = None) -> Exception | None:
        """Do something that may meet a trouble; what was raised. What stands of it is in `done`."""
        self.store.done.clear()
        self.store.ill.trouble = trouble
        error: Exception | None = None
        try:
            work()
        except (StoreError, Conflict, LostClaim) as raised:
            error = raised
        finally:
            self.store.ill.trouble = None
        if isinstance(error, StoreError) and not (trouble is not None and trouble.struck):
            raise error
        self.told.append(error is None)
        outcome = f"{what}: {type(error).__name__}" if error else what
        self.tally[outcome] += 1
        if trouble is not None and trouble.struck:
            self.tally[f"trouble: {trouble.kind}"] += 1
        return error

    @property
    def done(self) -> list[Done]:
        return self.store.done

    # -- sleep, slots: what every change of an automation begins with -------------------------------------------

    def settle(self, a: Automation, now: int, hearing: Hearing) -> None:
        for _, trigger in sorted(a.triggers.items()):
            if trigger.owed is None or (trigger.armed or 0) > now:
                continue
            heard = hearing.take(len(owed(trigger, now)))
            ran = self.account.hear_slots(trigger, heard, now)
            if trigger.owed is None and not ran:
                a.complete(now)

    def end_pause(self, a: Automation, until: int, now: int, hearing: Hearing) -> str | None:
        """One line for the slots of each trigger; why it slept."""
        if a.asleep is None:
            return None
        for _, trigger in sorted(a.triggers.items()):
            since = max(a.asleep, trigger.created_at)
            first = trigger.slots.next(since) if trigger.acts else None
            if first is None or first > until:
                continue
            (one,) = hearing.take(1)
            at, line, *_ = one
            assert isinstance(line, Settled), f"{trigger.id} slept, and its slots became {line}"
            told = (at, line.verdict, line.reason, line.slot_from, line.slot_to, line.count, line.exact)
            expected = (now, "collapsed", Reason(ASLEEP_BECAUSE[a.why]), first, until,
                        *counted(trigger, trigger.slots.count(since, until)))
            assert told == expected, f"{trigger.id} slept from {a.asleep}: {told}, not {expected}"
            self.account.hear(*one)
        a.asleep = None
        return a.why

    def wake(self, a: Automation, now: int, hearing: Hearing) -> None:
        ended = now if a.state != "paused" or a.until is None else min(now, a.until)
        a.turns("active", now)
        a.errors = 0
        self.end_pause(a, ended, now, hearing)
        self.account.arm(a, ended, now)
        self.settle(a, now, hearing)

    def catch_up(self, a: Automation, hearing: Hearing) -> int:
        now = a.changed_at(self.now)
        if a.is_over(now):
            self.wake(a, now, hearing)
        self.settle(a, now, hearing)
        return now

    def tick(self, trouble: Trouble | None = None) -> None:
        """The clock answers what is due."""
        now = self.now

        def ticks() -> None:
            for _ in range(4):
                if not self.source.tick():
                    return
            raise AssertionError("what was answered is due again")

        error = self.try_("tick", ticks, trouble)
        heard: dict[str, list[Admitted]] = defaultdict(list)
        begun: list[Claimed] = []
        for each in self.done:
            for at, firing, answer, place, at_once in each.admitted:
                heard[firing.trigger_id].append((at, firing, answer, place, ()))
                begun += at_once
        for a in list(self.account.automations.values()):
            for trigger in a.triggers.values():
                due = trigger.owed is not None and (trigger.armed or 0) <= now
                if trigger.id not in heard and (not due or error):
                    continue
                ran = self.account.hear_slots(trigger, heard.pop(trigger.id, []), now)
                if trigger.owed is None and not ran:
                    a.complete(now)
        assert not heard, f"these owed nothing: {heard}"
        for run in begun:  # of whichever trigger: once all that was admitted beside them is there
            self.account.begins_at_once(run, now)
        if error is None and self.source.evaluated_at is not None:
            self.store.write(lambda tx: tx.put_setting("due_evaluated_at", str(self.source.evaluated_at)))
