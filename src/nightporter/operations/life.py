"""The life of an automation: enable, pause, remove, and what comes to an end by itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nightporter import logs
from nightporter.clock import Instant, micros, rfc3339
from nightporter.errors import Conflict, StoreError, StoreRefused
from nightporter.operations.expiry import ending, expire, set_expiry, tell_of_end
from nightporter.operations.missed import REMOVED
from nightporter.operations.sleep import (
    caught_up,
    end_pause,
    fall_asleep,
    is_over,
    locked,
    log_change,
    paused_before,
    wake,
)
from nightporter.operations.work import cancel_runs, definition_of, dismiss_runs
from nightporter.states import AutomationState
from nightporter.store import Store, Tx
from nightporter.words import Reason, Sleep

log = logs.get(__name__)


def enable(tx: Tx, automation_id: str, *, by: str, now: Instant) -> None:
    """Let it act again, from now on; the slots it slept through are one line. Clears its error counters. One that has
    expired is renewed, where it can be.

    Raises Conflict when it acts already, is broken, or has passed an expiry that is a date.
    """
    row, now = locked(tx, automation_id, now=now)
    expires = tx.expiry(automation_id)
    over = expires is not None and expires <= now
    lasts = definition_of(tx, automation_id).lasts if over else None
    if over and lasts is None:
        raise Conflict(f"{row.name} has expired", why=f"its expiry is {rfc3339(expires)}",
                       next="change or remove `expires` in its definition")
    if row.error:
        raise Conflict(f"{row.name} cannot be enabled", why=f"its definition has an error; see {row.path}",
                       next="mend its definition file")
    if lasts is not None:
        set_expiry(tx, automation_id, Instant(now + micros(lasts)), now=now)
    if not wake(tx, row, by=by, now=now):
        raise Conflict(f"{row.name} is {row.state} already")


def pause(
    tx: Tx, automation_id: str, *, by: str, reason: str, until: Instant | None = None, now: Instant
) -> None:
    """Stop it from acting; what is queued waits. `until` ends the pause by itself.

    Raises Conflict when it is not acting.
    """
    row, now = caught_up(tx, automation_id, now=now)
    if until is not None and until <= now:
        raise Conflict(f"{row.name} cannot be paused until {rfc3339(until)}", why="that has passed")
    if not tx.pause(automation_id, by=by, reason=reason, until=until, now=now):
        raise Conflict(f"{row.name} is {row.state}, not active", next=f"nightporter show {row.name}")
    fall_asleep(tx, automation_id, Sleep.PAUSED, now=now)
    log_change(tx, automation_id, "pause", by, reason, now)


def vanish(tx: Tx, automation_id: str, *, reason: str, now: Instant) -> bool:
    """What it was made by is gone: pause it until that is back. Whether that changed anything.

    A person's own pause stays one. A file that never was good leaves nothing behind that could be paused: its row is
    removed.
    """
    row, now = caught_up(tx, automation_id, now=now)
    if not row.definition_hash:
        remove(tx, automation_id, by="desk", reason=reason, now=now)
        return True
    if row.error:
        tx.forget_error(automation_id)
    if row.state == AutomationState.AUTO_PAUSED:  # by errors of its own, and the file's return mends none
        return False
    before = paused_before(row, now) if row.state == AutomationState.CONFIG_ERROR else None
    if before is not None:
        tx.pause(automation_id, by=before.by, reason=before.reason, until=before.until, now=now)
        return True
    if not tx.pause(automation_id, by="desk", reason=reason, until=None, now=now):
        return False
    fall_asleep(tx, automation_id, Sleep.VANISHED, now=now)
    log_change(tx, automation_id, "pause", "desk", reason, now)
    return True


def remove(tx: Tx, automation_id: str, *, by: str, reason: str = "", now: Instant) -> None:
    """Take it out of the lists: what waits is cancelled, what runs is asked to end, what waits for a review is
    dismissed; history stays. Raises Conflict when it is removed already, or its definition file is still there."""
    row, now = caught_up(tx, automation_id, now=now)
    if row.truth == "file" and row.state != AutomationState.REMOVED and Path(row.path).exists():
        # A desk would read the file again and make the automation anew.
        raise Conflict(f"{row.name} is made by a file", why=f"{row.path} would bring it back",
                       next="remove the file; nightporter disable only pauses it")
    if not tx.remove(automation_id, by=by, reason=reason, now=now):
        raise Conflict(f"{row.name} is removed already")
    tx.forget_looks(automation_id, ())
    triggers = tx.triggers(automation_id)
    end_pause(tx, automation_id, until=now, now=now)
    tx.disarm([t.id for t in triggers])
    for trigger in triggers:
        tx.close_version(trigger.id, at=now)
    dismiss_runs(tx, tx.runs_in_review(automation_id), reason=Reason.DELETED, by=by, now=now)
    tx.dismiss_cards_of(automation_id, by=by, note=REMOVED, now=now)
    runs = tx.waiting_runs(automation_id) + tx.running_runs(automation_id)
    cancel_runs(tx, runs, reason=Reason.DELETED, by=by, now=now)
    log_change(tx, automation_id, "remove", by, reason, now)


def upkeep(store: Store, *, now: Callable[[], Instant]) -> int:
    """Pauses whose end has come, and expiry dates that have passed or are near; how many automations were touched.

    Each is a transaction of its own: the trouble of one is said, and stops no other. Raises StoreError when the store
    is ill.
    """
    changed = 0
    for automation_id in store.read(lambda tx: tx.pauses_due(now())):
        changed += _alone(store, automation_id, _end_due_pause, now)
    for automation_id in store.read(lambda tx: tx.expired(now())):
        changed += _alone(store, automation_id, expire, now)
    for automation_id in store.read(lambda tx: ending(tx, now())):
        changed += _alone(store, automation_id, tell_of_end, now)
    return changed


def _alone(
    store: Store, automation_id: str, change: Callable[[Tx, str, Instant], bool], now: Callable[[], Instant]
) -> bool:
    try:
        return store.write(lambda tx: change(tx, automation_id, now()))
    except Exception as error:
        if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
            raise
        log.error("upkeep.failed", automation=automation_id, error=str(error))
        return False


def _end_due_pause(tx: Tx, automation_id: str, now: Instant) -> bool:
    row, now = locked(tx, automation_id, now=now)
    return is_over(row, now) and wake(tx, row, by="desk", now=now)
