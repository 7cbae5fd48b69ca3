"""The plain account: what stands of automations, arrivals, runs and deliveries, and what each arrival should become.

By the rules as they are told to people, in plain Python and as short as can be. It reads nothing of the store; what it
cannot know (how long a wait is drawn) it takes from there and looks whether that may be. Automations are in `standing`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from model.missing import COUNTED, GRACE, Missing, counted, owed, told
from model.slots import MICRO, Slots
from model.standing import Automation, Trigger
from model.trouble import Admitted
from model.wishes import QUIET, SENT_TO, Wish
from nightporter.dispatch import Claimed
from nightporter.words import Answer, Firing, Overlap, Settled

OPEN = ("queued", "running", "held")
ENDED = ("succeeded", "failed", "timed_out", "cancelled", "skipped")
HOUR = 3_600 * MICRO
TOO_LARGE = 262_144


@dataclass(eq=False)
class Delivery:
    """One result on its way to one destination."""

    run: Run
    name: str
    state: str = "pending"
    tries: int = 0
    token: int = 0
    before: int = 0
    worker: str = ""
    due: int = 0

    @property
    def repeatable(self) -> bool:
        return SENT_TO[self.name].kind == "webhook"

    @property
    def best_effort(self) -> bool:
        return SENT_TO[self.name].best_effort

    @property
    def lane(self) -> str:
        host = str(SENT_TO[self.name].config.get("url", ""))[8:].partition("/")[0]
        return SENT_TO[self.name].kind + (f":{host}" if host else "")


@dataclass(eq=False)
class Run:
    """One piece of work."""

    id: str
    automation: Automation
    trigger: Trigger
    wish: Wish
    order: int
    """Of its admission, among all."""
    queued_at: int
    rank: int
    overlap: Overlap
    """Of its trigger, when it was admitted."""
    slot: int | None
    attempts: int
    states: list[str] = field(default_factory=lambda: ["queued"])
    ready: int = 0
    """When its wait is over; 0 where it waits for no time."""
    stale_at: int | None = None
    """When it is too old to be begun."""
    attempt: int = 0
    token: int = 0
    worker: str = ""
    began: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    reason: str | None = None
    dead: bool = False
    cancel: str | None = None
    let_go: int = 0
    """The token under which its child was let go."""
    marks: set[int] = field(default_factory=set)
    """The tokens under which it was begun by what nobody can see into, and did not end."""
    effects: dict[str, tuple[str, int]] = field(default_factory=dict)
    """State and token, by key."""
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    notices: set[str] = field(default_factory=set)
    bodies: dict[str, set[str]] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return self.states[-1]

    @property
    def by_hand(self) -> bool:
        return self.trigger.kind == "manual"

    def becomes(self, *states: str) -> None:
        self.states += states

    @property
    def alone(self) -> bool:
        """It has to wait for those that were admitted before it."""
        return self.overlap in (Overlap.QUEUE, Overlap.REPLACE)

    def before(self, other: Run) -> bool:
        """It comes first. Of two that were admitted at the same instant by different hands, either may."""
        same_instant = self.queued_at == other.queued_at and self.rank >= other.rank and self.state == "queued"
        return self.order < other.order and not same_instant

    @property
    def done(self) -> int:
        return sum(state == "done" for state, _ in self.effects.values())

    def may_repeat(self) -> bool:
        """Whether an attempt that was cut short may be made again unasked."""
        if any(state == "intended" for state, _ in self.effects.values()):
            return False
        acted = bool(self.marks) or self.let_go == self.token
        declared = self.wish.on_crash != "review" and (self.wish.idempotent or self.wish.on_crash == "retry")
        return declared or (not acted and not self.done)


Line = tuple[str, str, str, str | None, str | None, int, int | None, int | None, int | None, int | None]
"""Trigger, external id, verdict, reason, run, whether the key is kept, slot, range and how many."""


@dataclass
class Account:
    """All of it."""

    automations: dict[str, Automation] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)
    arrived: dict[str, int] = field(default_factory=dict)
    kept: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The run that the first telling became, by trigger and external id."""
    stopped: bool = False
    taker: str = ""
    """The worker that is offered what is admitted."""
    tally: Counter[str] = field(default_factory=Counter)
    missing: Missing = field(default_factory=Missing)
    _turns: Iterator[int] = field(default_factory=itertools.count)

    def named(self, name: str) -> Automation | None:
        return next((a for a in self.automations.values() if a.name == name and a.state != "removed"), None)

    def trigger(self, trigger_id: str) -> Trigger:
        automation, _, name = trigger_id.rpartition("/")
        return self.automations[automation].triggers[name]

    def run(self, run_id: str) -> Run:
        """One that the ledger names; it is to be known here."""
        assert run_id in self.runs, f"nobody was told of {run_id}, or it was pruned"
        return self.runs[run_id]

    def of(self, automation: Automation, *states: str) -> list[Run]:
        return [r for r in self.runs.values() if r.automation is automation and r.state in states]

    def in_state(self, *states: str) -> list[Run]:
        return [r for r in self.runs.values() if r.state in states]

    def deliveries(self, *states: str) -> list[Delivery]:
        return [d for r in self.runs.values() for d in r.deliveries.values() if d.state in states]

    # -- an arrival -------------------------------------------------------------------------------------------

    def verdict(self, trigger: Trigger, external: str, size: int, now: int) -> tuple[str, str | None]:
        """What an arrival should become: the first of the reasons that there are, in their order."""
        a, wish = trigger.automation, trigger.automation.wish
        if (trigger.id, external) in self.kept:
            return "repeated", "suppressed_duplicate"
        for reason, there in self._objections(trigger, a, wish, size, now):
            if there:
                return ("refused" if reason == "payload_too_large" else "skipped"), reason
        return "admitted", None

    def _objections(
        self, trigger: Trigger, a: Automation, wish: Wish, size: int, now: int
    ) -> Iterator[tuple[str, bool]]:
        by_hand = trigger.kind == "manual"
        yield "deleted", a.state == "removed" or trigger.removed
        yield "disabled", not trigger.enabled
        yield "expired", wish.expires is not None and wish.expires <= now
        yield "paused", a.state == "proposed" or (a.state == "paused" and not by_hand)
        yield "stopped", self.stopped
        yield "payload_too_large", size > TOO_LARGE
        if by_hand:
            return
        waiting = [r for r in self.of(a, "queued") if not r.by_hand]
        if wish.cooldown:
            yield "cooldown", a.last_start is not None and now - a.last_start < wish.cooldown * MICRO
            yield "cooldown", bool(waiting)
        hour = [r for r in self.runs.values() if r.automation is a and not r.by_hand and r.queued_at > now - HOUR]
        yield "hourly_ceiling", wish.per_hour is not None and len(hour) >= wish.per_hour
        yield "queue_full", wish.queued is not None and len(waiting) >= wish.queued
        yield "overlap", trigger.overlap is Overlap.SKIP and bool(self.of(a, *OPEN))
        yield "quiet_hours", wish.quiet is not None and (now // HOUR - wish.quiet) % 24 < QUIET
        if trigger.thins:
            yield "threshold", trigger.nth(now)[0] < (wish.nth or (0,))[0]

    def hear(
        self, now: int, firing: Firing | Settled, answer: Answer, place: int, begun: Sequence[Claimed] = ()
    ) -> None:
        """An arrival was told to be this: it is what it should be, and stands from now on. `begun`: runs of its batch
        that began in the write that admitted them."""
        trigger = self.trigger(firing.trigger_id)
        span: tuple[int | None, ...] = (None, None, None)
        slot = None
        if isinstance(firing, Settled):
            again = (trigger.id, firing.external_id) in self.kept
            expected: tuple[str, str | None] = (
                ("repeated", "suppressed_duplicate") if again else (str(firing.verdict), str(firing.reason)))
            span = (firing.slot_from, firing.slot_to, firing.count)
        else:
            size = len(firing.text) + len(firing.payload or "")
            expected = self.verdict(trigger, firing.external_id, size, now)
            slot = firing.scheduled_for
        verdict, reason = str(answer.verdict), None if answer.reason is None else str(answer.reason)
        assert (verdict, reason) == expected, f"{firing} became {verdict} ({reason}), and should have {expected}"
        self.tally[f"{verdict} {reason or ''}".strip()] += 1
        key = (trigger.id, firing.external_id)
        if isinstance(firing, Firing) and trigger.thins and reason in (None, "threshold"):
            trigger.counted, trigger.counted_at = trigger.nth(now) if reason else (0, 0)
        asks_again = reason in ("hourly_ceiling", "queue_full", "quiet_hours") and trigger.kind != "clock"
        keeps = verdict != "repeated" and not asks_again and not getattr(firing, "drawn", False)
        run = self.kept.get(key) if verdict == "repeated" else answer.run_id
        assert answer.run_id == run, f"{firing} named {answer.run_id}, and the first telling became {run}"
        if keeps:
            self.kept[key] = run
        assert answer.firing_id not in self.lines, f"the line {answer.firing_id} is there already"
        self.lines[answer.firing_id] = (  # type: ignore[assignment]  # the span has three
            trigger.id, firing.external_id, verdict, reason, run, int(keeps), slot, *span)
        self.arrived[answer.firing_id] = now
        trigger.lines += 1
        trigger.last_line = now
        if verdict == "admitted":
            assert run is not None
            self._admit(run, trigger, slot, now, place)
            if isinstance(firing, Firing):
                self._waits_its_turn(self.runs[run], firing, now)
        for one in begun:
            self.begins_at_once(one, now)

    def _admit(self, run_id: str, trigger: Trigger, slot: int | None, now: int, place: int) -> None:
        assert run_id not in self.runs, f"{run_id} was admitted twice"
        a = trigger.automation
        by_hand = trigger.kind == "manual"
        going = self.of(a, *OPEN)
        if not by_hand and trigger.overlap is Overlap.REPLACE:
            for run in going:
                if run.state == "running":
                    run.cancel = run.cancel or "superseded"
                else:
                    run.becomes("cancelled")
                    run.ended_at, run.reason = now, "superseded"
                    a.told_of += 1
        priority = 3 if by_hand else a.wish.priority
        self.runs[run_id] = Run(
            run_id, a, trigger, a.wish, next(self._turns), now, now + priority * 10 * MICRO + place,
            Overlap.PARALLEL if by_hand else trigger.overlap, slot, a.wish.attempts,
        )
        trigger.runs += 1

    @staticmethod
    def _waits_its_turn(run: Run, firing: Firing, now: int) -> None:
        run.stale_at = firing.stale_at
        if firing.not_before is not None and firing.not_before > now:
            run.ready, run.rank = firing.not_before, run.rank + firing.not_before - now

    # -- a start ----------------------------------------------------------------------------------------------

    def may_start(self, run: Run) -> None:
        """Nothing stands in the way of a run that is claimed."""
        a = run.automation
        assert run.state == "queued", f"{run.id} was {run.state} and is claimed"
        assert not self.stopped
        assert run.by_hand or a.state not in ("proposed", "paused"), f"{run.id} was claimed and {a.id} is {a.state}"
        limit = a.wish.concurrent
        assert limit is None or len(self.of(a, "running")) < limit, f"{run.id}: no more than {limit} at once"

    def starts(self, run: Run, worker: str, now: int, *, marked: bool) -> None:
        """`marked`: as begun by something that nobody can see into."""
        run.becomes("running")
        run.token, run.attempt, run.worker = run.token + 1, run.attempt + 1, worker
        run.began = run.began or now
        if run.automation.wish.cooldown and not run.by_hand:
            run.automation.last_start = now
        if marked:
            run.marks.add(run.token)

    def begins_at_once(self, one: Claimed, now: int) -> None:
        run = self.run(one.work.run_id)
        self.may_start(run)
        passed = [r.id for r in self.of(run.automation, "queued") if r.before(run) and not r.ready
                  and (r.by_hand or run.automation.state == "active") and not r.alone]
        assert not passed, f"{run.id} began at once and passed {passed}"
        others = [r.id for r in self.of(run.automation, *OPEN) if r.before(run)]
        assert not (run.alone and others), f"{run.id} goes alone, began at once, and {others} are going"
        self.tally["began at once"] += 1
        self.starts(run, self.taker, now, marked=run.wish.runner == "python")
        assert (one.work.token, one.work.attempt) == (1, 1)

    # -- slots ------------------------------------------------------------------------------------------------

    def hear_slots(
        self, trigger: Trigger, heard: Sequence[Admitted], now: int
    ) -> bool:
        """The slots of a trigger up to now were answered so. Whether one became a run."""
        expected = owed(trigger, now)
        answered = [told(firing) for _, firing, *_ in heard]
        assert answered == expected, f"{trigger.id} at {now} answered {answered}, and owed {expected}"
        for one in heard:
            assert one[0] == now
            self.missing.hear(trigger, one[1], now)
            self.hear(*one)
        trigger.moves_on(now)
        return any(answer.run_id is not None for _, _, answer, *_ in heard)

    def arm(self, a: Automation, since: int, now: int) -> int:
        """Arm what owes slots and is not armed; how many. A one-shot whose moment has passed is over."""
        armed = a.arm(since)
        clocks = [t for t in a.triggers.values() if t.acts]
        passed = bool(clocks) and all(t.owed is None and t.plan[0] == "at" for t in clocks)
        if passed and not armed and not self.of(a, *OPEN):
            a.complete(now)
        return armed

    # -- an end -----------------------------------------------------------------------------------------------

    def conclude(self, run: Run, state: str, outcome: str | None, reason: str | None, now: int, *,
                 dead: bool = False) -> None:
        """A run has ended, and what follows from that."""
        run.becomes(state)
        run.ended_at, run.outcome, run.reason, run.dead = now, outcome, reason, dead
        a = run.automation
        a.told_of += 1
        if state in ("succeeded", "skipped") and reason != "stale":
            a.errors = 0
        if dead:
            a.errors += not run.by_hand
            run.notices.add("dead_letter")
        for name in sorted(run.wish.deliver):
            wanted = SENT_TO[name]
            if outcome in (None, "noop") or outcome not in wanted.on or wanted.kind == "none":
                continue
            if wanted.kind == "announce":
                if outcome == "failed":
                    continue
                run.notices.add("result")
            at_once = wanted.kind in ("announce", "silent")
            run.deliveries[name] = Delivery(run, name, "delivered" if at_once else "pending", due=now)
        if is_once(run.wish):
            a.complete(now)


def is_once(wish: Wish) -> bool:
    return isinstance(wish.schedule, tuple) and wish.schedule[0] == "at" and wish.clock_on


__all__ = ["COUNTED", "ENDED", "GRACE", "HOUR", "OPEN", "Account", "Delivery", "Run", "Slots", "counted",
           "is_once", "owed"]
