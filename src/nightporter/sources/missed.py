"""Missed slots: what those that passed while nothing was running become, by the policy of their trigger. Pure.

    run_once   the newest one within reach runs late, unless a slot fires that is merely late; one line for the others
    skip       one line for all
    review     the newest ones, a line and a card each; one line for those before them
    run_all    each one within reach runs late, in order; one line for those before them

A one-shot that is out of reach waits as a card, too: it comes no second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nightporter.clock import Instant, rfc3339
from nightporter.rules.exclusions import Row, excluded, rows
from nightporter.rules.missed import CARDS, MOST, newest, reach_of
from nightporter.rules.schedule import count_between
from nightporter.words import Firing, Missed, MissedPolicy, Reason, Schedule, Settled, TriggerId, Verdict
from nightporter.words.missed import CATCHES_UP

_KEPT: Final = {
    MissedPolicy.RUN_ONCE: 1, MissedPolicy.SKIP: 0, MissedPolicy.REVIEW: CARDS, MissedPolicy.RUN_ALL: MOST,
}
"""How many of the newest slots do not end in the one line."""


def slot_key(slot: Instant) -> str:
    """A clock firing's external id is its slot, in UTC: local times repeat."""
    return rfc3339(slot) or ""


def made_of_missed(
    trigger: TriggerId, schedule: Schedule, missed: Missed, span: tuple[Instant, Instant], now: Instant, *,
    fires: bool, doubtful: Instant | None = None,
) -> list[Firing | Settled]:
    """What becomes of the slots of a span, from its first up to, not including, its end. Those that the schedule leaves
    out are told as such, and never made up for.

    `fires`: a slot after them is only late and fires. `doubtful`: up to when nobody knows what has run already, because
    the store was put back: what would be run by itself is put before a person.
    """
    first, end = span
    policy, reach = missed.policy, reach_of(missed)
    in_doubt = doubtful is not None and policy in CATCHES_UP and first <= doubtful
    if in_doubt or (schedule.kind == "at" and policy in CATCHES_UP and reach is not None and now - first > reach):
        policy, reach = MissedPolicy.REVIEW, None
    room = 0 if fires and policy is MissedPolicy.RUN_ONCE else _KEPT[policy]
    oldest = first if reach is None else max(first, Instant(now - reach))
    answers: list[Sequence[Firing | Settled]] = []
    for row in reversed(rows(schedule, Instant(first - 1), Instant(end - 1), cap=MOST)):
        if row.excluded is not None:
            answers.append([left_out(trigger, row)])
        else:
            kept = _that_run(schedule, newest(schedule, Instant(max(oldest, row.first) - 1), Instant(end - 1), room))
            room -= len(kept)
            answers.append([
                *one_line(trigger, schedule, row.first, kept[0] if kept else end),
                *(_late(trigger, slot, reach) if policy in CATCHES_UP else _card(trigger, slot) for slot in kept),
            ])
        end = row.first
    return [each for answered in reversed(answers) for each in answered]


def _that_run(schedule: Schedule, slots: list[Instant]) -> list[Instant]:
    """Those behind the last one that is left out: the first row of many may hold such slots too."""
    left = (n for n, slot in enumerate(reversed(slots)) if excluded(schedule, slot) is not None)
    return slots[len(slots) - next(left, len(slots)):]


def left_out(trigger: TriggerId, row: Row) -> Settled:
    """The line for slots that the schedule leaves out."""
    key, verdict = slot_key(row.first), Verdict.SKIPPED
    if row.count > 1:
        key, verdict = f"collapsed:{key}", Verdict.COLLAPSED
    return Settled(
        trigger, key, verdict, Reason.EXCLUDED, row.first, row.last, row.count, row.exact, row.excluded or ""
    )


def _late(trigger: TriggerId, slot: Instant, reach: int | None) -> Firing:
    return Firing(
        trigger, slot_key(slot), scheduled_for=slot, catchup=True,
        stale_at=None if reach is None else Instant(slot + reach),
    )


def _card(trigger: TriggerId, slot: Instant) -> Settled:
    return Settled(trigger, slot_key(slot), Verdict.MISSED, Reason.MISSED_POLICY, slot, slot, 1, card=True)


def one_line(trigger: TriggerId, schedule: Schedule, first: Instant, end: Instant) -> Sequence[Settled]:
    """One line for the slots from `first`, which is one, up to, not including, `end`; none where there are none. Of a
    single slot it says that it was missed."""
    if first >= end:
        return ()
    count, exact = count_between(schedule, Instant(first - 1), Instant(end - 1), cap=MOST)
    if count == 1 and exact:
        return (Settled(trigger, slot_key(first), Verdict.MISSED, Reason.MISSED_POLICY, first, first, 1),)
    return (Settled(
        trigger, f"collapsed:{slot_key(first)}", Verdict.COLLAPSED, Reason.MISSED_POLICY, first, Instant(end - 1),
        count, exact,
    ),)
