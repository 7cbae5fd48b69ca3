"""The clock source: slots of cron, every and at become firings.

    Promise       Each slot up to now has exactly one answer: a firing, or a line that says how many were missed.
                  The slot is moved on in the transaction that answers it, before anything executes.
    Takes         Triggers whose stored slot has come. No schedule is parsed to find out what is due.
    Leaves        Ledger lines and queued runs, through admission; the next slot, strictly after now.
    Picked up by  dispatch

One loop serves all triggers, on a thread of its own, sleeping until the next slot or a kick. What comes next is read
in the transaction that answers what came before, and thought out before the sleep: between waking and the write
stands nothing. What is due is answered in chunks, so that nobody else waits for the whole of a busy instant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from nightporter import logs
from nightporter.admission import admit
from nightporter.clock import SECOND, Clock, Instant, Kick
from nightporter.errors import LostLead, StoreError
from nightporter.rules.zones import TZDATA
from nightporter.sources.cards import note_missed
from nightporter.sources.plan import Plan, read_and_plan
from nightporter.sources.rezoning import rezone, rezone_one
from nightporter.sources.spacing import spaced
from nightporter.sources.together import Together
from nightporter.store import Store, Tx
from nightporter.store.portion import Portion
from nightporter.store.tx_clock import Armed, as_armed
from nightporter.words import Answer, Firing, Reason, Settled

log = logs.get(__name__)

LONGEST_SLEEP = 60 * SECOND
CHUNK = 250


@dataclass(frozen=True, slots=True)
class Glance:
    """What was armed next, as one transaction saw it."""

    at: Instant
    armed: tuple[Armed, ...]
    """Everything that was due then, or else what comes at the next slot; a chunk at most."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """When to wake, and what is due then with what is to be done about it: None where that could not be said."""

    until: Instant
    due: tuple[tuple[Armed, Plan | None], ...]


def answer(
    tx: Tx, plans: Sequence[Plan], *, now: Instant, push: int = 0
) -> list[tuple[Firing | Settled, Answer]]:
    """Move the slots on and admit what they became; what a person is to decide about becomes a card. What another
    scheduler moved on first is left out. The caller has the locks of their automations.

    `push`: of a restart, see `spacing`. One-shots that are merely late go at once.
    """
    moved = tx.advance([(p.armed, p.next_fire_at) for p in plans], tzdata=TZDATA)
    ours = [p for p in plans if p.armed.trigger_id in moved]
    once = frozenset(p.armed.trigger_id for p in ours if p.next_fire_at is None) if push else frozenset()
    firings = spaced(tx, [firing for p in ours for firing in p.firings], now=now, push=push, at_once=once)
    answered = list(zip(firings, admit(tx, firings, now=now), strict=True))
    note_missed(tx, answered, now=now)
    # An automation whose last slot became a run is completed when that run ends; without one, it is now.
    running = {firing.trigger_id for firing, told in answered if told.run_id is not None}
    tx.complete(
        {p.armed.automation_id for p in ours if p.next_fire_at is None and p.armed.trigger_id not in running}, now=now
    )
    return answered


def settle(tx: Tx, automation_id: str, *, now: Instant) -> None:
    """Answer every slot of an automation's triggers up to now, under the schedules in force. Edits, pauses and
    removals call it first."""
    rezone_one(tx, automation_id, now=now)
    plans = []
    for trigger in tx.triggers(automation_id):
        armed = as_armed(automation_id, trigger)
        if armed is None or armed.next_fire_at > now:
            continue
        try:
            plans.append(read_and_plan(armed, now))
        except Exception as error:  # as in a tick: whoever pauses or mends it must get past it
            log.error("clock.unreadable_trigger", trigger=trigger.id, error=str(error))
            tx.quarantine_trigger(trigger.id, str(error), now=now)
    answer(tx, plans, now=now)


@dataclass(frozen=True, slots=True)
class Restart:
    """What a desk that starts knows of the time before."""

    push: int = 0
    """Microseconds: what is overdue begins up to so much later."""
    doubtful: Instant | None = None
    """Up to when nobody knows what has run already, because the store was put back."""


NO_RESTART = Restart()


class ClockSource:
    """The loop. `tick` is what tests call; `run` is what the engine's thread does."""

    def __init__(
        self, store: Store, clock: Clock, kick: Kick, *, leads: Callable[[Tx], bool] = lambda _: True
    ) -> None:
        """`leads` is asked in each transaction that moves slots: who stood still may have been succeeded meanwhile."""
        self._store = store
        self._clock = clock
        self._kick = kick
        self._together = Together(store, leads=leads)
        self._chunk = Portion(CHUNK, commit=lambda: store.writer.commit_seconds)
        self._closing = False
        self.lost_the_lead = False
        """The loop ended because another process leads."""
        self._ill = logs.Seldom(log)
        self.evaluated_at: Instant | None = None
        """When the due set was last evaluated, whole."""
        self.not_run = 0
        """Slots that were answered without a run because they were missed."""

    def tick(self, restart: Restart = NO_RESTART) -> bool:
        """Answer one chunk of what is due. True when there was work. Raises StoreError."""
        now = self._clock.now()
        room = self._chunk.size
        due = self._store.read(lambda tx: tx.due(now, room))
        self._answer([(armed, None) for armed in due], now, restart)
        if len(due) < room:
            self.evaluated_at = now
        return bool(due)

    def rezone(self) -> int:
        """Move slots that were armed under another release of the zone data to where this one has them; how many
        moved. Raises StoreError."""
        return rezone(self._store, self._together, now=self._clock.now())

    def _answer(
        self, due: Sequence[tuple[Armed, Plan | None]], now: Instant, restart: Restart = NO_RESTART
    ) -> Glance | None:
        """Answer slots that have come, by their plans where these hold. What stands next, as the last of the writes
        saw it; None where there was none."""
        plans = [thought for _, thought in due if thought is not None and thought.holds_at(now)]
        planned = {thought.armed.trigger_id for thought in plans}
        plans += self._together.planned([
            (armed, partial(read_and_plan, armed, now, doubtful=restart.doubtful))
            for armed, _ in due if armed.trigger_id not in planned
        ], now)
        glance: Glance | None = None

        def write(tx: Tx, some: Sequence[Plan]) -> tuple[list[tuple[Firing | Settled, Answer]], Glance]:
            tx.lock_automations({p.armed.automation_id for p in some})  # before their triggers, as an edit does
            # The store, or the locks, may have been somebody else's for a while: what is decided now is of now.
            with self._chunk.taking(len(some)):
                answered = answer(tx, some, now=Instant(max(now, self._clock.now())), push=restart.push)
            return answered, self._glance(tx)

        for answered, seen in self._together.written(plans, write, now):
            self._heard(answered)
            glance = seen
        return glance

    def run(self) -> None:
        """Until `close`, or until another leads: sleep until the next slot, a kick, a minute, and answer what is due.

        Whoever was edited since it was read is no longer where it was, and is left to the next look.
        """
        glance: Glance | None = None
        while not self._closing:
            try:
                seen, glance = glance or self._store.read(self._glance), None
                ahead = self._thought_out(seen)
                self._clock.wait(ahead.until, self._kick)
                now = self._clock.now()
                glance = self._answer([each for each in ahead.due if each[0].next_fire_at <= now], now)
            except LostLead:
                self.lost_the_lead = True
                return
            except StoreError as error:
                self._ill.error("clock.store_failed", error=str(error))
                self._pause()
            except Exception:  # no slot would be answered any more, and nothing would say so
                log.exception("clock.failed")
                self._pause()

    def _pause(self) -> None:
        self._clock.wait(Instant(self._clock.now() + SECOND), self._kick)

    def _glance(self, tx: Tx) -> Glance:
        now = self._clock.now()
        return Glance(now, tuple(tx.due_next(now, self._chunk.size)))

    def _thought_out(self, glance: Glance) -> Ahead:
        """When to wake, and what to write then, as far as that can be said before."""
        first = glance.armed[0].next_fire_at if glance.armed else None
        if first is None or first > glance.at:
            self.evaluated_at = glance.at
        until = Instant(glance.at + LONGEST_SLEEP) if first is None else min(first, Instant(glance.at + LONGEST_SLEEP))
        due: list[tuple[Armed, Plan | None]] = []
        for armed in glance.armed:
            try:
                due.append((armed, read_and_plan(armed, max(armed.next_fire_at, glance.at))))
            except Exception:  # it is put aside when its slot has come
                due.append((armed, None))
        return Ahead(until, tuple(due))

    def close(self) -> None:
        self._closing = True
        self._kick.ring()

    def _heard(self, answered: Sequence[tuple[Firing | Settled, Answer]]) -> None:
        told = [(firing, answer) for firing, answer in answered if answer.reason is not None]
        if not told:
            return
        names = self._store.read(lambda tx: tx.automation_names({automation_of(f.trigger_id) for f, _ in told}))
        for firing, answer in told:
            if answer.reason is Reason.MISSED_POLICY and isinstance(firing, Settled):
                self.not_run += firing.count
            log.info("firing.not_run", automation=names.get(automation_of(firing.trigger_id), ""),
                     trigger=firing.trigger_id.rpartition("/")[2], verdict=str(answer.verdict),
                     reason=str(answer.reason), detail=answer.detail)


def automation_of(trigger_id: str) -> str:
    """The automation that a trigger is of."""
    return trigger_id.rpartition("/")[0]
