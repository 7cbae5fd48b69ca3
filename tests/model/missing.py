"""What becomes of missed slots, by the rules as they are told to people; and the cards that wait for a person."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from model.slots import MICRO
from model.standing import Trigger
from nightporter.words import Firing, Settled

GRACE = 120 * MICRO
COUNTED = 480
CARDS = 20
APART = 2 * MICRO
DAY = 86_400 * MICRO
DAILY = frozenset({"30 2 * * *", "0 9 * * mon-fri"})

Owed = tuple[object, ...]
"""`(slot, made up for)` alone; `(from, to, how many, exactly, a card)` without a run."""


def policy_of(trigger: Trigger) -> tuple[str, int | None]:
    """The policy that holds and how far it reaches back."""
    if trigger.missed is not None:
        policy, within = trigger.missed
        default = 3 * 3_600 * MICRO if policy in ("run_once", "run_all") else None
        return policy, default if within is None else within * MICRO
    if trigger.plan[0] == "at":
        return "review", None
    return ("run_once", 3 * 3_600 * MICRO) if trigger.plan[1] in DAILY else ("skip", None)


def owed(trigger: Trigger, now: int) -> list[Owed]:
    """How the slots up to now should be answered, in their order."""
    if trigger.owed is None:
        return []
    slots, limit = trigger.slots, now - GRACE
    first = slots.next(trigger.owed)
    if first is None or first > now:
        return []
    fresh: list[Owed] = [(slot, False) for slot in slots.between(max(first, limit) - 1, now)]
    if first >= limit:
        return fresh
    policy, reach = policy_of(trigger)
    if trigger.plan[0] == "at" and policy in ("run_once", "run_all") and reach is not None and now - first > reach:
        policy, reach = "review", None
    young = first if reach is None else max(first, now - reach)
    most = {"run_once": 0 if fresh else 1, "skip": 0, "review": CARDS, "run_all": COUNTED}[policy]
    kept = _newest(trigger, young - 1, limit - 1, most)
    end = kept[0] if kept else limit
    before: list[Owed] = []
    if first < end:
        count = slots.count(first - 1, end - 1)
        before = [(first, first, 1, True, False) if count == 1 else (first, end - 1, *counted(trigger, count), False)]
    if policy == "review":
        return [*before, *((slot, slot, 1, True, True) for slot in kept), *fresh]
    return [*before, *((slot, True) for slot in kept), *fresh]


def _newest(trigger: Trigger, after: int, until: int, most: int) -> list[int]:
    if not most or until <= after:
        return []
    low, slots = after, trigger.slots
    while until - low > DAY and slots.count(until - (until - low) // 2, until) >= most:
        low = until - (until - low) // 2
    return slots.between(low, until)[-most:]


def counted(trigger: Trigger, count: int) -> tuple[int, bool]:
    """As a line tells it: calendars are not enumerated without end."""
    if trigger.plan[0] != "every" and count > COUNTED:
        return COUNTED, False
    return count, True


def told(firing: Firing | Settled) -> Owed:
    """What was told, in the form of what is owed."""
    if isinstance(firing, Settled):
        assert (firing.verdict == "missed") == (firing.count == 1 and firing.exact), f"{firing} is of another number"
        return firing.slot_from, firing.slot_to, firing.count, firing.exact, firing.card
    return firing.scheduled_for, firing.catchup


@dataclass
class Missing:
    """The cards, and whose turn it is among what is late."""

    cards: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    """State by trigger and slot."""
    turns: list[int] = field(default_factory=list)
    """When each run that catches up may begin."""

    def hear(self, trigger: Trigger, firing: Firing | Settled, now: int) -> None:
        """A slot waits as a card, or a run has its turn: two seconds from every other."""
        if isinstance(firing, Settled):
            if firing.card:
                self.cards[trigger.id][firing.slot_from] = "pending"
                for slot in self.waiting(trigger.id)[:-CARDS]:
                    self.cards[trigger.id][slot] = "dismissed"
        elif firing.catchup:
            at = firing.not_before
            assert at is not None
            assert now <= at <= now + DAY, f"{firing} has its turn at {at}, and it is {now}"
            near = [turn for turn in self.turns if abs(turn - at) < APART]
            assert not near, f"{firing} has its turn at {at}, and others have theirs at {near}"
            self.turns.append(at)

    def waiting(self, trigger_id: str) -> list[int]:
        """The slots that wait, the oldest first."""
        return sorted(slot for slot, state in self.cards[trigger_id].items() if state == "pending")

    def dismiss(self, trigger_id: str) -> None:
        for slot in self.waiting(trigger_id):
            self.cards[trigger_id][slot] = "dismissed"
