"""Long walks through what a desk and its people may do, in any order: after each few steps the ledger is clean."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random

import pytest
from builders import SAID, Night
from full_night import FAILS, HOLDS, HOOK, INBOX, LATER, QUIET

from nightporter.clock import ManualClock
from nightporter.dispatch import Claimed
from nightporter.errors import Conflict
from nightporter.store import Store
from nightporter.words import Destination, Ended, Ending, Limits, Overlap, Reason, Receipt, Retry, TriggerSpec
from words import a_clock_trigger

SCHEDULES = (("0 * * * *", "cron"), ("*/15 * * * *", "cron"), ("30 9 * * *", "cron"), ("40m", "every"), ("7m", "every"))
CUT_SHORT = Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN)
ENDINGS = (SAID, SAID, Ended.ok(), FAILS, LATER, HOLDS, CUT_SHORT, Ended.timed_out("too long"), Ended.cancelled())
TIMED = {"I-31", "I-50b", "N-08"}
"""What only a desk that is looked after keeps: this one is left alone for hours."""


class Walk:
    """One walk; the draws decide."""

    def __init__(self, night: Night, draws: Random) -> None:
        self.night = night
        self.draws = draws
        self.flying: list[Claimed] = []

    def step(self) -> None:
        """One thing is done, or refused."""
        steps: list[Callable[[], object]] = [
            *[self.arrive] * 6, *[self.begin] * 5, *[self.finish] * 6, *[self.tick] * 6, self.night.work, self.define,
            self.pause, self.enable, self.remove, self.cancel, self.review, self.review, self.send, self.send,
            self.night.change_shifts, self.nobody_looks,
        ]
        try:
            self.draws.choice(steps)()
        except Conflict:
            pass  # it is so already, or cannot be: nothing was changed

    def one(self, column: str, table: str, where: str = "1 = 1") -> str | None:
        found = sorted(row[0] for row in self.night.sql(f"SELECT {column} FROM {table} WHERE {where}"))
        return str(self.draws.choice(found)) if found else None

    def define(self) -> None:
        draw = self.draws
        triggers = [TriggerSpec("call", "call", overlap=draw.choice([None, *Overlap]))]
        for each in ("one", "two")[: draw.randrange(3)]:
            expression, kind = draw.choice(SCHEDULES)
            triggers.append(a_clock_trigger(
                expression, kind=kind, name=each, timezone=draw.choice(["UTC", "Europe/Berlin", "America/New_York"]),
                enabled=draw.random() > 0.15, overlap=draw.choice([None, *Overlap]),
            ))
        name = self.one("name", "automation", "state <> 'removed'") if draw.random() < 0.6 else None
        destinations: list[Destination] = draw.sample([HOOK, INBOX, QUIET], draw.randrange(4))
        self.night.define(
            name or f"new-{draw.getrandbits(32)}", *triggers, runner=draw.choice(["echo", "script", "noop"]),
            deliver=destinations, cooldown=timedelta(minutes=draw.choice([0, 0, 20])), idempotent=draw.random() < 0.3,
            limits=Limits(per_hour=draw.choice([None, 3]), queued=draw.choice([2, 100]),
                          concurrent=draw.choice([None, 1])),
            retry=Retry(attempts=draw.choice([1, 3])),
        )

    def arrive(self) -> None:
        automation = self.one("id", "automation")
        if automation:
            self.night.fire(automation, self.draws.choice(["", "", "again"]),
                            trigger=self.draws.choice(["call", "call", "manual"]), payload={"n": 1})

    def begin(self) -> None:
        self.flying += self.night.begin(self.draws.choice([1, 3]))

    def finish(self) -> None:
        if self.flying:
            claimed = self.flying.pop(self.draws.randrange(len(self.flying)))
            self.night.finish(claimed, self.draws.choice(ENDINGS))

    def tick(self) -> None:
        self.night.tick(minutes=self.draws.choice([1, 1, 5, 16, 31, 61, 130]), seconds=self.draws.choice([0, 13]))

    def nobody_looks(self) -> None:
        self.night.pass_time(minutes=self.draws.choice([3, 90]))

    def pause(self) -> None:
        if automation := self.one("id", "automation"):
            self.night.pause(automation)

    def enable(self) -> None:
        if automation := self.one("id", "automation", "state = 'paused'"):
            self.night.enable(automation)

    def remove(self) -> None:
        if self.draws.random() < 0.3 and (automation := self.one("id", "automation")):
            self.night.remove(automation)

    def cancel(self) -> None:
        if run := self.one("id", "run", "state IN ('queued', 'held', 'running')"):
            self.night.cancel(run)

    def review(self) -> None:
        if run := self.one("id", "run", "state = 'review'"):
            self.night.review(run, self.draws.choice(["retry", "dismiss"]))

    def send(self) -> None:
        self.night.send(self.draws.choice(list(Receipt)))


@pytest.mark.parametrize("seed", range(3))
def test_a_ledger_is_clean_whatever_the_desk_and_its_people_did(store: Store, clock: ManualClock, seed: int) -> None:
    night = Night(store, clock)
    walk = Walk(night, Random(seed))
    for _ in range(4):
        walk.define()
    for n in range(120):
        walk.step()
        if n % 6 == 5:
            assert [found for found in night.audit().findings if found.id not in TIMED] == []
    assert night.audit().counts["slots"] > 0
