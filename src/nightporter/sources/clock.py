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
from functools import lru_cache, partial

from nightporter import logs
from nightporter.admission import admit
from nightporter.clock import SECOND, Clock, Instant, Kick, rfc3339
from nightporter.errors import LostLead, StoreError
from nightporter.rules.exclusions import Row, rows
from nightporter.rules.schedule import count_between, next_due, slots_between
from nightporter.rules.zones import TZDATA
from nightporter.sources.rezoning import rezone, rezone_one
from nightporter.sources.together import Together
from nightporter.store import Store, Tx
from nightporter.store.portion import Portion
from nightporter.store.tx_clock import Armed, as_armed, schedule_from
from nightporter.words import Answer, Firing, Policy, Reason, Schedule, Settled, TriggerId, Verdict

log = logs.get(__name__)

NOT_MISSED = 120 * SECOND
"""A slot answered this late or less is merely late."""
LONGEST_SLEEP = 60 * SECOND
CHUNK = 250
LATE_AT_ONCE = 480
"""Slots of one trigger that are enumerated at most; beyond that a count is a lower bound."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one trigger's slots up to an instant become, and where its next slot is."""

    armed: Armed
    at: Instant
    firings: tuple[Firing | Settled, ...]
    next_fire_at: Instant | None

    def holds_at(self, now: Instant) -> bool:
        """Whether it says of `now` too what `plan` would: no further slot has come, and none is missed by now."""
        if now < self.at or now - self.armed.next_fire_at > NOT_MISSED:
            return False
        return self.next_fire_at is None or now < self.next_fire_at


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


def plan(armed: Armed, schedule: Schedule, now: Instant) -> Plan:
    """Answer the slots from the armed one up to `now`. Pure.

    Up to 120 s late a slot fires. Older ones are one collapsed line; an `at` that is older is missed. Slots that the
    schedule leaves out are told as such, those that follow each other in one line.
    """
    first = armed.next_fire_at
    trigger = TriggerId(armed.trigger_id)
    firings: list[Firing | Settled] = []
    limit = Instant(now - NOT_MISSED)
    if first < limit:
        told = rows(schedule, Instant(first - 1), Instant(limit - 1), cap=LATE_AT_ONCE)
        for row in told:
            end = limit if row is told[-1] else Instant(row.last + 1)
            firings.append(
                missed(trigger, schedule, row.first, end) if row.excluded is None else left_out(trigger, row)
            )
    fresh, following = _slots_up_to(now, schedule, max(first, limit))
    firings += [
        Firing(trigger, key, scheduled_for=each) if isinstance(each, int) else left_out(trigger, each)
        for each, key in fresh
    ]
    return Plan(armed, now, tuple(firings), following)


@lru_cache(maxsize=256)
def _slots_up_to(
    now: Instant, schedule: Schedule, begin: Instant
) -> tuple[tuple[tuple[Instant | Row, str], ...], Instant | None]:
    """Slots from `begin` on with their keys, rows of those that are left out, and the first slot after now. Of a busy
    instant many triggers ask alike."""
    fresh: list[tuple[Instant | Row, str]] = []
    for row in rows(schedule, Instant(begin - 1), now, cap=LATE_AT_ONCE):
        if row.excluded is None:
            fresh += [(slot, slot_key(slot)) for slot in slots_between(schedule, Instant(row.first - 1), row.last)]
        else:
            fresh.append((row, ""))
    return tuple(fresh), next_due(schedule, max(now, begin))


def _read_and_plan(armed: Armed, now: Instant) -> Plan:
    Policy.from_json(armed.policy)  # what admission could not read either
    return plan(armed, schedule_from(armed.schedule), now)


def missed(trigger: TriggerId, schedule: Schedule, first: Instant, limit: Instant) -> Settled:
    """One line for the slots from `first` up to, but not including, `limit`."""
    if schedule.kind == "at":
        return Settled(trigger, slot_key(first), Verdict.MISSED, Reason.MISSED_POLICY, first, first, 1)
    count, exact = count_between(schedule, Instant(first - 1), Instant(limit - 1), cap=LATE_AT_ONCE)
    return Settled(
        trigger, f"collapsed:{slot_key(first)}", Verdict.COLLAPSED, Reason.MISSED_POLICY, first, Instant(limit - 1),
        count, exact,
    )


def left_out(trigger: TriggerId, row: Row) -> Settled:
    """The line for slots that the schedule leaves out."""
    key, verdict = slot_key(row.first), Verdict.SKIPPED
    if row.count > 1:
        key, verdict = f"collapsed:{key}", Verdict.COLLAPSED
    return Settled(
        trigger, key, verdict, Reason.EXCLUDED, row.first, row.last, row.count, row.exact, row.excluded or ""
    )


def slot_key(slot: Instant) -> str:
    """A clock firing's external id is its slot, in UTC: local times repeat."""
    return rfc3339(slot) or ""


def answer(tx: Tx, plans: Sequence[Plan], *, now: Instant) -> list[tuple[Firing | Settled, Answer]]:
    """Move the slots on and admit what they became. What another scheduler moved on first is left out. The caller has
    the locks of their automations."""
    moved = tx.advance([(p.armed, p.next_fire_at) for p in plans], tzdata=TZDATA)
    ours = [p for p in plans if p.armed.trigger_id in moved]
    firings = [firing for p in ours for firing in p.firings]
    answered = list(zip(firings, admit(tx, firings, now=now), strict=True))
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
            plans.append(plan(armed, schedule_from(armed.schedule), now))
        except Exception as error:  # as in a tick: whoever pauses or mends it must get past it
            log.error("clock.unreadable_trigger", trigger=trigger.id, error=str(error))
            tx.quarantine_trigger(trigger.id, str(error), now=now)
    answer(tx, plans, now=now)


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

    def tick(self) -> bool:
        """Answer one chunk of what is due. True when there was work. Raises StoreError."""
        now = self._clock.now()
        room = self._chunk.size
        due = self._store.read(lambda tx: tx.due(now, room))
        self._answer([(armed, None) for armed in due], now)
        if len(due) < room:
            self.evaluated_at = now
        return bool(due)

    def rezone(self) -> int:
        """Move slots that were armed under another release of the zone data to where this one has them; how many
        moved. Raises StoreError."""
        return rezone(self._store, self._together, now=self._clock.now())

    def _answer(self, due: Sequence[tuple[Armed, Plan | None]], now: Instant) -> Glance | None:
        """Answer slots that have come, by their plans where these hold. What stands next, as the last of the writes
        saw it; None where there was none."""
        plans = [thought for _, thought in due if thought is not None and thought.holds_at(now)]
        planned = {thought.armed.trigger_id for thought in plans}
        plans += self._together.planned([
            (armed, partial(_read_and_plan, armed, now)) for armed, _ in due if armed.trigger_id not in planned
        ], now)
        glance: Glance | None = None

        def write(tx: Tx, some: Sequence[Plan]) -> tuple[list[tuple[Firing | Settled, Answer]], Glance]:
            tx.lock_automations({p.armed.automation_id for p in some})  # before their triggers, as an edit does
            # The store, or the locks, may have been somebody else's for a while: what is decided now is of now.
            with self._chunk.taking(len(some)):
                answered = answer(tx, some, now=Instant(max(now, self._clock.now())))
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
                due.append((armed, _read_and_plan(armed, max(armed.next_fire_at, glance.at))))
            except Exception:  # it is put aside when its slot has come
                due.append((armed, None))
        return Ahead(until, tuple(due))

    def close(self) -> None:
        self._closing = True
        self._kick.ring()

    def _heard(self, answered: Sequence[tuple[Firing | Settled, Answer]]) -> None:
        for firing, told in answered:
            if isinstance(firing, Settled):
                self.not_run += firing.count
            if told.reason is not None:
                log.info("firing.not_run", trigger=firing.trigger_id, verdict=str(told.verdict),
                         reason=str(told.reason), detail=told.detail)
