"""Expiry: how an automation is renewed, and what is said of its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from nightporter.clock import Instant, micros
from nightporter.definitions.policy import LONGEST, SHORTEST_LIFE
from nightporter.errors import BadInput, Conflict
from nightporter.ledger.moments import spoken
from nightporter.operations.sleep import caught_up, fall_asleep, log_change, wake
from nightporter.operations.work import definition_of
from nightporter.rules.durations import format_duration
from nightporter.rules.expiry import FARTHEST, Told, to_be_told
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.words import Definition, Policy, Sleep, derived_id


def renew(
    tx: Tx, automation_id: str, *, by: str, lasting: timedelta | None = None, now: Instant
) -> Instant:
    """Let it act for as long as its definition says, from now on, or as `lasting` says this once; until when. One that
    has expired acts again, with its error counters cleared.

    Raises Conflict where its end is a date, it has none, or it was removed; BadInput for a span that a definition could
    not say either.
    """
    if lasting is not None and not SHORTEST_LIFE <= lasting <= LONGEST:
        raise BadInput(f"nothing is renewed for {format_duration(lasting)}", why="it goes from 1h to 365d",
                       next="write for example 30d")
    row, now = caught_up(tx, automation_id, now=now)
    definition = definition_of(tx, automation_id)
    if row.state == AutomationState.REMOVED:
        raise Conflict(f"{row.name} was removed")
    if definition.lasts is None:
        end = "its end is a date" if definition.expires is not None else "it does not expire"
        raise Conflict(f"{row.name} cannot be renewed", why=end,
                       next="write `expires` in its definition: a later date, or a duration such as 30d")
    expires = Instant(now + micros(lasting or definition.lasts))
    set_expiry(tx, automation_id, expires, now=now)
    log_change(tx, automation_id, "renew", by, f"until {spoken(expires, definition.timezone)}", now)
    if row.state == AutomationState.EXPIRED:
        wake(tx, row, by=by, now=now)
    return expires


def set_expiry(tx: Tx, automation_id: str, expires: Instant, *, now: Instant) -> None:
    """Another end, counted from now, for it and for what its triggers go by."""
    tx.renew(automation_id, expires, now=now)
    for trigger in tx.triggers(automation_id):
        try:
            policy = Policy.from_json(trigger.policy)
        except ValueError:  # unreadable: the trigger is out of the loop, and its definition makes it anew
            continue
        tx.redefine_trigger(
            id=trigger.id, kind=trigger.kind, enabled=int(trigger.enabled), removed_at=trigger.removed_at,
            policy=replace(policy, expires=expires).as_json(), error=trigger.error,
        )


def ending(tx: Tx, now: Instant) -> list[str]:
    """Automations of whose end something is to be said."""
    return [
        automation_id for automation_id, expires, renewed_at, told in tx.ending(Instant(now + FARTHEST), now)
        if to_be_told(expires, renewed_at, told, now) is not None
    ]


def tell_of_end(tx: Tx, automation_id: str, now: Instant) -> bool:
    """Say that it ends soon, once. Whether it was said."""
    row = tx.lock_automation(automation_id)
    facts = tx.expiry_facts(automation_id)
    if row is None or row.state != AutomationState.ACTIVE or facts is None:
        return False
    expires, renewed_at, told = facts
    word = to_be_told(expires, renewed_at, told, now)
    return word is not None and _say(tx, automation_id, expires, word, now)


def expire(tx: Tx, automation_id: str, now: Instant) -> bool:
    """Its end has come: it sleeps, and a person is told. Whether it did."""
    row, now = caught_up(tx, automation_id, now=now)
    expires = tx.expiry(automation_id)
    if expires is None or expires > now or not tx.expire(row.id, now=now):
        return False
    fall_asleep(tx, automation_id, Sleep.EXPIRED, now=now)
    log_change(tx, automation_id, "expire", "desk", "", now)
    _say(tx, automation_id, expires, Told.AFTER, now)
    return True


def _say(tx: Tx, automation_id: str, expires: Instant, word: Told, now: Instant) -> bool:
    if not tx.tell_of_expiry(automation_id, expires, word):
        return False
    row = tx.lock_automation(automation_id)
    assert row is not None
    try:
        definition: Definition | None = definition_of(tx, automation_id)
    except ValueError:  # unreadable: the end is told all the same
        definition = None
    when = spoken(expires, definition.timezone if definition else "UTC")
    title = f"{row.name} has expired" if word is Told.AFTER else f"{row.name} expires at {when}"
    happened = f"It acts no more since {when}." if word is Told.AFTER else "From then on nothing fires it any more."
    if definition is not None and definition.lasts is not None:
        next = f"nightporter renew {row.name} lets it act for another {format_duration(definition.lasts)}."
    else:
        next = "A later `expires` in its definition lets it act on."
    tx.write_inbox([(
        derived_id("inb", now, automation_id, f"expiry {int(word)} {expires}"), row.workspace, row.owner, automation_id,
        None, "expiry", title, f"{happened}\n{next}",
    )], now=now)
    return True
