"""An automation as the account has it: its triggers, its sleep, and the slots it owes."""

from __future__ import annotations

from dataclasses import dataclass, field

from model.slots import MICRO, Slots
from model.wishes import Plan, Wish
from nightporter.words import Overlap


@dataclass(eq=False)
class Trigger:
    """One of its triggers."""

    automation: Automation
    name: str
    kind: str
    created_at: int
    enabled: bool = True
    overlap: Overlap = Overlap.PARALLEL
    removed: bool = False
    plan: Plan = ("", "", "")
    missed: tuple[str, int | None] | None = None
    """What was chosen of missed slots, and how many seconds it reaches back."""
    anchor: int = 0
    owed: int | None = None
    """Slots after it are owed and have no answer yet; None: it is not armed."""
    lines: int = 0
    runs: int = 0
    last_line: int | None = None
    counted: int = 0
    """Arrivals since its threshold last let one through, and when the first of them came."""
    counted_at: int = 0

    @property
    def id(self) -> str:
        return f"{self.automation.id}/{self.name}"

    @property
    def slots(self) -> Slots:
        return slots_of(self.plan, self.anchor)

    @property
    def acts(self) -> bool:
        """It has a schedule whose slots want an answer."""
        return self.kind == "clock" and self.enabled and not self.removed

    @property
    def thins(self) -> bool:
        """Not every arrival makes a run."""
        return self.automation.wish.nth is not None and self.name in ("hook", "clock")

    def nth(self, now: int) -> tuple[int, int]:
        """Which of those that count together one of now is, and when the first of them came."""
        wish = self.automation.wish.nth
        assert wish is not None
        over = wish[1] is not None and now - self.counted_at > wish[1] * MICRO
        return (1, now) if over or not self.counted else (self.counted + 1, self.counted_at)

    def moves_on(self, after: int) -> None:
        """What came up to then is answered; nothing more is owed where nothing comes."""
        self.owed = None if self.slots.next(after) is None else after

    @property
    def armed(self) -> int | None:
        return None if self.owed is None else self.slots.next(self.owed)


_slots: dict[tuple[Plan, int], Slots] = {}


def slots_of(plan: Plan, anchor: int) -> Slots:
    key = (plan, anchor)
    if key not in _slots:
        if len(_slots) > 2000:
            _slots.clear()
        _slots[key] = Slots(*plan, anchor)
    return _slots[key]


@dataclass(eq=False)
class Automation:
    """One automation."""

    id: str
    name: str
    wish: Wish
    state: str
    state_at: int
    updated_at: int
    version: int = 1
    until: int | None = None
    asleep: int | None = None
    """Since when it sleeps."""
    why: str = ""
    triggers: dict[str, Trigger] = field(default_factory=dict)
    last_start: int | None = None
    errors: int = 0
    told_of: int = 0
    """Ended runs that its months tell of."""

    @property
    def clock(self) -> Trigger | None:
        return self.triggers.get("clock")

    def changed_at(self, now: int) -> int:
        """The instant of a change that somebody asks for now: nothing is changed before it was answered or changed."""
        clocks = [t.last_line for t in self.triggers.values() if t.kind == "clock" and t.last_line is not None]
        return max(now, self.state_at, self.updated_at, *clocks)

    def is_over(self, now: int) -> bool:
        return self.state == "paused" and self.until is not None and self.until <= now

    def turns(self, state: str, now: int, until: int | None = None) -> None:
        self.state, self.state_at, self.until = state, now, until

    def complete(self, now: int) -> None:
        """A one-shot has its outcome, unless something is still to come."""
        if self.state == "active" and not any(t.owed is not None for t in self.triggers.values()):
            self.turns("completed", now)

    def fall_asleep(self, why: str, now: int) -> None:
        for trigger in self.triggers.values():
            trigger.owed = None
        self.asleep, self.why = now, why

    def arm(self, since: int) -> int:
        """How many triggers are armed that were not."""
        armed = 0
        for trigger in self.triggers.values():
            if trigger.acts and trigger.owed is None:
                trigger.moves_on(since)
                armed += trigger.owed is not None
        return armed

    def take_wish(self, wish: Wish, now: int, *, new: bool = False) -> None:
        """Its triggers are those of the wish."""
        if new:
            for name in ("manual", "call"):
                self.triggers[name] = Trigger(self, name, name, now)
            self.triggers["hook"] = Trigger(self, "hook", "call", now)
        hook = self.triggers["hook"]
        hook.enabled, hook.overlap = wish.hook_on, wish.hook or Overlap.PARALLEL
        self._take_clock(wish, now)
        self.wish = wish

    def _take_clock(self, wish: Wish, now: int) -> None:
        clock = self.clock
        if wish.schedule is None:
            if clock is not None and not clock.removed:
                clock.removed, clock.owed = True, None
            return
        assert isinstance(wish.schedule, tuple)
        if clock is None:
            clock = self.triggers["clock"] = Trigger(
                self, "clock", "clock", now, plan=wish.schedule, anchor=now, enabled=wish.clock_on)
        elif clock.plan != wish.schedule or clock.enabled != wish.clock_on or clock.removed:
            if clock.plan != wish.schedule:
                clock.anchor = now
            clock.plan, clock.enabled, clock.removed, clock.owed = wish.schedule, wish.clock_on, False, None
        runs_all = wish.missed is not None and wish.missed[0] == "run_all"
        clock.overlap = wish.clock or (Overlap.QUEUE if runs_all else Overlap.SKIP)
        clock.missed = wish.missed
