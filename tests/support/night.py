"""One worker's night, step by step: claim, end and recover against a real store, with runners that do nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from acting import a_worker

from nightporter import delivery
from nightporter.clock import ManualClock
from nightporter.delivery import Destinations, Sending, Tried, record
from nightporter.dispatch import Attempt, Claimed, Definitions, Runners, claim, end, recover
from nightporter.dispatch.end import Result
from nightporter.store import Store
from nightporter.words import Desk, Ended, Parcel, RunId, Sent, Work


@dataclass
class StillRunner:
    """Never called by these steps; what counts is what the desk can see of it."""

    kind: str
    opaque: bool = False
    launches: bool = False

    async def run(self, work: Work, desk: Desk) -> Ended:
        raise AssertionError("nothing is run here")


RUNNERS: Runners = {
    "echo": StillRunner("echo"),
    "python": StillRunner("python", opaque=True),
    "script": StillRunner("script", opaque=True, launches=True),
    "function": StillRunner("function"),
}
"""`python` marks its start when it is claimed, `script` when its child is let go, `function` shows its effects."""


@dataclass
class StillDestination:
    """Never called either."""

    kind: str
    repeatable: bool

    async def send(self, parcel: Parcel) -> Sent:
        raise AssertionError("nothing is sent here")


DESTINATIONS: Destinations = {
    "webhook": StillDestination("webhook", repeatable=True), "pager": StillDestination("pager", repeatable=False),
}


@dataclass
class Night:
    """The steps of one worker."""

    store: Store
    clock: ManualClock
    worker: str = "wrk_1"
    known: Definitions = field(default_factory=Definitions)

    def __post_init__(self) -> None:
        a_worker(self.store, self.clock.now(), name=self.worker)

    def claim(self, room: int = 100, *, only: str | None = None) -> list[Claimed]:
        return self.store.write(lambda tx: claim(
            tx, worker=self.worker, room=room, now=self.clock.now(), runners=RUNNERS, definitions=self.known,
            only=None if only is None else RunId(only),
        ))

    def end(self, *attempts: tuple[Claimed, Ended]) -> Sequence[Result]:
        wanted = [Attempt(claimed, ended) for claimed, ended in attempts]
        return self.store.write(lambda tx: end(tx, wanted, RUNNERS, now=self.clock.now()))

    def run_all(self, ended: Ended, room: int = 100) -> list[Claimed]:
        """Claim what is due and end all of it the same way."""
        claimed = self.claim(room)
        self.end(*[(one, ended) for one in claimed])
        return claimed

    def recover(self, worker: str | None = None) -> dict[str, int]:
        return self.store.write(
            lambda tx: recover(tx, worker or self.worker, RUNNERS, self.known, now=self.clock.now())
        )

    def take(self, room: int = 100, lanes: dict[str, int] | None = None) -> list[Sending]:
        return self.store.write(
            lambda tx: delivery.claim(tx, worker=self.worker, room=room, lanes=lanes or {}, now=self.clock.now())
        )

    def record(self, *tried: tuple[Sending, Sent]) -> list[bool]:
        wanted = [Tried(taken, sent) for taken, sent in tried]
        return self.store.write(lambda tx: record(tx, wanted, DESTINATIONS, now=self.clock.now()))

    def sleep(self, **by: float) -> None:
        """Time passes."""
        self.clock.advance(timedelta(**by))
