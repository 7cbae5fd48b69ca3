"""What the slots of one trigger become, up to an instant. Pure: of what is armed, its schedule, its policy and now."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from nightporter.clock import Instant
from nightporter.rules.exclusions import Row, rows
from nightporter.rules.missed import MOST, NOT_MISSED, policy_of_missed, reach_of
from nightporter.rules.schedule import next_due, slots_between
from nightporter.sources.missed import left_out, made_of_missed, slot_key
from nightporter.store.tx_clock import Armed, schedule_from
from nightporter.words import Firing, Policy, Schedule, Settled, TriggerId
from nightporter.words.missed import CATCHES_UP


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


def plan(
    armed: Armed, schedule: Schedule, policy: Policy, now: Instant, *, doubtful: Instant | None = None
) -> Plan:
    """Answer the slots from the armed one up to `now`: those up to 120 s late fire, older ones were missed, and their
    policy says what becomes of them. Those that the schedule leaves out are told as such.

    `doubtful`: up to when nobody knows what has run already, because the store was put back; no slot up to then fires.
    """
    first = armed.next_fire_at
    trigger = TriggerId(armed.trigger_id)
    missed = policy_of_missed(schedule, policy.missed)
    limit = Instant(max(now - NOT_MISSED, -1 if doubtful is None else min(doubtful, now) + 1))
    fresh, following = _slots_up_to(now, schedule, max(first, limit))
    firings: list[Firing | Settled] = []
    if first < limit:
        firings += made_of_missed(
            trigger, schedule, missed, (first, limit), now, doubtful=doubtful,
            fires=any(isinstance(slot, int) for slot, _ in fresh),
        )
    reach = reach_of(missed) if missed.policy in CATCHES_UP else None
    firings += [
        Firing(trigger, key, scheduled_for=slot, stale_at=None if reach is None else Instant(slot + reach))
        if isinstance(slot, int) else left_out(trigger, slot)
        for slot, key in fresh
    ]
    return Plan(armed, now, tuple(firings), following)


@lru_cache(maxsize=256)
def _slots_up_to(
    now: Instant, schedule: Schedule, begin: Instant
) -> tuple[tuple[tuple[Instant | Row, str], ...], Instant | None]:
    """Slots from `begin` on with their keys, rows of those that are left out, and the first slot after now. Of a busy
    instant many triggers ask alike."""
    fresh: list[tuple[Instant | Row, str]] = []
    for row in rows(schedule, Instant(begin - 1), now, cap=MOST):
        if row.excluded is None:
            fresh += [(slot, slot_key(slot)) for slot in slots_between(schedule, Instant(row.first - 1), row.last)]
        else:
            fresh.append((row, ""))
    return tuple(fresh), next_due(schedule, max(now, begin))


def read_and_plan(armed: Armed, now: Instant, *, doubtful: Instant | None = None) -> Plan:
    """The same for what is stored. Raises what a row that cannot be read raises."""
    return plan(armed, schedule_from(armed.schedule), Policy.from_json(armed.policy), now, doubtful=doubtful)
