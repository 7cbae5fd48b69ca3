"""The life of an automation: enable, pause, remove, and what comes to an end by itself."""

from __future__ import annotations

from nightporter.clock import Instant, rfc3339
from nightporter.errors import Conflict, NotFound
from nightporter.operations.arm import arm, reopen
from nightporter.operations.define import log_change
from nightporter.operations.work import cancel_runs
from nightporter.sources.clock import settle
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.store.tx_automations import AutomationRow
from nightporter.words import Reason


def enable(tx: Tx, automation_id: str, *, by: str, now: Instant) -> None:
    """Let it act again, from now on; the slots it slept through are one line. Clears its error counter.

    Raises Conflict when it acts already, is broken, or has passed its expiry.
    """
    row = _row(tx, automation_id)
    expires = tx.expiry(automation_id)
    if expires is not None and expires <= now:
        raise Conflict(f"{row.name} has expired", why=f"its expiry is {rfc3339(expires)}",
                       next="change or remove `expires` in its definition")
    if row.state == AutomationState.CONFIG_ERROR:
        raise Conflict(f"{row.name} cannot be enabled", why=row.state_reason, next="mend its definition file")
    if not tx.enable(automation_id, by=by, now=now):
        raise Conflict(f"{row.name} is {row.state} already")
    reopen(tx, automation_id, now=now)
    arm(tx, automation_id, now=now)
    tx.unpause_runs(automation_id)
    log_change(tx, automation_id, "enable", by, "", now)


def pause(
    tx: Tx, automation_id: str, *, by: str, reason: str, until: Instant | None = None, now: Instant
) -> None:
    """Stop it from acting; what is queued waits. `until` ends the pause by itself.

    Raises Conflict when it is not acting.
    """
    row = _row(tx, automation_id)
    if until is not None and until <= now:
        raise Conflict(f"{row.name} cannot be paused until {rfc3339(until)}", why="that has passed")
    settle(tx, automation_id, now=now)
    if not tx.pause(automation_id, by=by, reason=reason, until=until, now=now):
        raise Conflict(f"{row.name} is {row.state}, not active", next=f"nightporter show {row.name}")
    _sleep(tx, automation_id, "paused", now)
    log_change(tx, automation_id, "pause", by, reason, now)


def remove(tx: Tx, automation_id: str, *, by: str, reason: str = "", now: Instant) -> None:
    """Take it out of the lists: what waits is cancelled, what runs is asked to end, history stays."""
    row = _row(tx, automation_id)
    settle(tx, automation_id, now=now)
    reopen(tx, automation_id, now=now)
    if not tx.remove(automation_id, by=by, reason=reason, now=now):
        raise Conflict(f"{row.name} is removed already")
    triggers = tx.triggers(automation_id)
    tx.disarm([t.id for t in triggers])
    for trigger in triggers:
        tx.close_version(trigger.id, at=now)
    runs = tx.waiting_runs(automation_id) + tx.running_runs(automation_id)
    cancel_runs(tx, runs, reason=Reason.DELETED, by=by, now=now)
    log_change(tx, automation_id, "remove", by, reason, now)


def upkeep(tx: Tx, *, now: Instant) -> int:
    """Pauses whose end has come, and expiry dates that have passed; how many automations changed."""
    woken = tx.pauses_due(now)
    for automation_id in woken:
        enable(tx, automation_id, by="desk", now=now)
    expired = tx.expired(now)
    for automation_id in expired:
        settle(tx, automation_id, now=now)
        tx.expire(automation_id, now=now)
        _sleep(tx, automation_id, "expired", now)
        log_change(tx, automation_id, "expire", "desk", "", now)
    return len(woken) + len(expired)


def _sleep(tx: Tx, automation_id: str, reason: str, now: Instant) -> None:
    tx.disarm([t.id for t in tx.triggers(automation_id)])
    tx.open_pause(automation_id, reason, at=now)


def _row(tx: Tx, automation_id: str) -> AutomationRow:
    row = tx.automation(automation_id)
    if row is None:
        raise NotFound(f"no automation has the id {automation_id}", next="`nightporter list` shows what there is")
    return row
