"""Rezoning: what is armed moves to where another release of the zone data has it, occurrence by occurrence.

A slot is an instant, and what the zone's clock shows then is stored beside it: the instant alone does not tell nine
o'clock of the new rules from ten o'clock of the old.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from nightporter import logs
from nightporter.clock import Instant, rfc3339
from nightporter.rules.schedule import next_due, same_occurrence
from nightporter.rules.zones import TZDATA
from nightporter.sources.together import Together
from nightporter.store import Store, Tx
from nightporter.store.tx_clock import Armed, Stale, as_armed, schedule_from

log = logs.get(__name__)

CHUNK = 250
"""Triggers that are moved in one transaction."""


@dataclass(frozen=True, slots=True)
class Move:
    """Where an armed slot is by our release of the zone data."""

    armed: Armed
    slot: Instant | None


def moved(stale: Stale) -> Move:
    """The same occurrence, unless that has its answer or came before the schedule: then the next slot. Pure."""
    schedule = schedule_from(stale.armed.schedule)
    slot = same_occurrence(schedule, stale.armed.next_fire_at, stale.wall)
    if schedule.kind == "at":
        return Move(stale.armed, slot)
    begin = Instant(max(stale.owed_since or 0, stale.answered_at or 0))
    untold = stale.answered_at is None and stale.owed_since is not None  # nothing was told that could be repeated
    return Move(stale.armed, next_due(schedule, begin) if untold or slot is None or slot <= begin else slot)


def move(tx: Tx, moves: Sequence[Move], *, now: Instant) -> list[Move]:
    """Set the slots; those that are others now. A schedule whose slots have moved goes on as another version, so that
    the account of what was owed by the old rules can be told from that by the new ones."""
    tx.lock_automations({m.armed.automation_id for m in moves})  # as `answer` does
    still = tx.advance([(m.armed, m.slot) for m in moves], tzdata=TZDATA)
    others = [m for m in moves if m.armed.trigger_id in still and m.slot != m.armed.next_fire_at]
    for each in others:
        since = now if each.slot is None else Instant(min(now, each.slot - 1))
        tx.renew_version(each.armed, schedule_from(each.armed.schedule), each.slot, tzdata=TZDATA, at=since)
    return others


def rezone_one(tx: Tx, automation_id: str, *, now: Instant) -> None:
    """The same for the triggers of one automation that is about to change: which of their occurrences are answered
    cannot be told afterwards."""
    moves = []
    for trigger in tx.triggers(automation_id):
        armed = as_armed(automation_id, trigger)
        if armed is None or armed.tzdata == TZDATA:
            continue
        with contextlib.suppress(Exception):  # it is put aside when its slot comes
            moves.append(moved(Stale(armed, trigger.wall, trigger.owed_since, trigger.last_fired_at)))
    if moves:
        _told(move(tx, moves, now=now))


def _stale(tx: Tx, after: str) -> list[Stale]:
    return tx.stale_zones(TZDATA, CHUNK, after=after)


def rezone(store: Store, together: Together, *, now: Instant) -> int:
    """Move slots that were armed under another release of the zone data to where this one has them; how many moved.
    One that is past by now is answered like any that was missed. Raises StoreError."""
    if store.read(lambda tx: tx.setting("tzdata")) == TZDATA:
        return 0
    changed, after = 0, ""
    while stale := store.read(partial(_stale, after=after)):
        # On from there: a million that are done would be passed over again for each chunk.
        after = stale[-1].armed.trigger_id
        moves = together.planned([(each.armed, partial(moved, each)) for each in stale], now)
        for others in together.written(moves, lambda tx, some: move(tx, some, now=now), now):
            changed += len(others)
            _told(others)
    store.write(lambda tx: tx.put_setting("tzdata", TZDATA))
    return changed


def _told(others: Sequence[Move]) -> None:
    for each in others:
        log.warning("clock.slot_moved", trigger=each.armed.trigger_id, zone_data=TZDATA,
                    was=rfc3339(each.armed.next_fire_at), becomes=rfc3339(each.slot))
