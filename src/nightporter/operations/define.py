"""Defining: a definition becomes an automation, a new version of one, or a visible error.

An edit that touches a schedule settles the old one first and sets a new slot in the same write; one that does not
leaves the slot alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Literal

from nightporter.clock import Instant, micros
from nightporter.dispatch import release_behind
from nightporter.errors import BadDefinition, Conflict
from nightporter.operations.arm import arm, edited_since, open_schedule, owes, readable
from nightporter.operations.sleep import as_it_was, caught_up, end_pause, fall_asleep, log_change, paused_before
from nightporter.rules.expiry import ends_at
from nightporter.rules.schedule import next_due, wants_anchor
from nightporter.rules.stagger import staggered
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.store.tx_automations import AutomationRow, TriggerRow
from nightporter.store.tx_clock import schedule_text
from nightporter.words import Definition, Schedule, Sleep, SourceOfTruth, Target, TriggerSpec, derived_id, policy_of

ALWAYS = ("manual", "call")
"""Triggers that every automation has."""


@dataclass(frozen=True, slots=True)
class Defined:
    """What defining did."""

    automation_id: str
    change: Literal["created", "changed", "unchanged"]


def define(
    tx: Tx, definition: Definition, *, truth: SourceOfTruth, by: str, now: Instant, path: str = "",
    automation_id: str | None = None, state: AutomationState = AutomationState.ACTIVE, reason: str = "",
) -> Defined:
    """Create the automation of that name and workspace, or give it a new version. `state` and `reason` serve a new one.

    `automation_id` names the one to change, whatever and wherever it is called so far. One that what it was made by had
    left, that was broken or that this renews acts again. Raises Conflict when the name belongs to an automation with
    another source of truth, and BadSchedule when a schedule cannot be enumerated.
    """
    definition = staggered(definition)
    tx.lock_names()
    named = tx.automation_named(definition.name, workspace=definition.workspace)
    present = automation_id or (named[0] if named else None)
    if named and present != named[0]:
        raise Conflict(f"another automation is called {definition.name}", why="names are unique in a workspace",
                       next="choose another name")
    if present is None:
        return _create(tx, definition, truth, by, path, state, reason, now)
    row = tx.lock_automation(present)
    assert row is not None
    if row.truth != truth:
        raise Conflict(f"automation {row.name} cannot be changed from here", why=_made_where(row),
                       next="change it there")
    return _change(tx, row, definition, by, path, now)


def digest(definition: Definition) -> str:
    """What tells whether a definition is another one."""
    return sha256(definition.as_json().encode()).hexdigest()[:32]


def break_file(
    tx: Tx, error: BadDefinition, *, path: str, name: str, workspace: str, default_timezone: str, now: Instant
) -> str:
    """Show a definition file that cannot be read: its automation keeps the last good version and does not fire.
    A file that never was good gets a row of its own. Returns the automation's id. Raises Conflict when the name belongs
    to an automation that something else makes."""
    tx.lock_names()
    text = json.dumps(error.as_json(), ensure_ascii=False)
    found = _broken_by(tx, path, name, workspace)
    if found is None:
        stand_in = Definition(name=name, workspace=workspace, timezone=default_timezone, target=Target("noop"))
        return _insert(tx, stand_in, "file", "desk", path, AutomationState.CONFIG_ERROR, error.what, now, error=text)
    row, now = caught_up(tx, found, now=now)
    if tx.break_(row.id, before=as_it_was(row), reason=str(error), error=text, path=path, now=now):
        pause = tx.pause_now(row.id)
        fall_asleep(tx, row.id, Sleep.CONFIGURATION if pause is None else Sleep(pause[1]), now=now)
        log_change(tx, row.id, "break", "desk", str(error), now)
    return row.id


def _broken_by(tx: Tx, path: str, name: str, workspace: str) -> str | None:
    """The automation that the file makes, or made before it was moved here. Raises Conflict when its name belongs to
    one that is made by something else."""
    at_path = tx.automations_at_path(path)
    if at_path:
        return str(at_path[0][0])
    for automation_id in tx.automation_named(name, workspace=workspace):
        row = tx.lock_automation(automation_id)
        assert row is not None
        if row.truth != "file" or Path(row.path).exists():
            raise Conflict(f"another automation is called {name}", why=_made_where(row), next="choose another name")
        return automation_id
    return None


def _made_where(row: AutomationRow) -> str:
    return f"its file is {row.path}" if row.truth == "file" else f"its source of truth is `{row.truth}`"


def _create(
    tx: Tx, definition: Definition, truth: SourceOfTruth, by: str, path: str, state: AutomationState, reason: str,
    now: Instant,
) -> Defined:
    automation_id = _insert(tx, definition, truth, by, path, state, reason, now)
    in_force = replace(definition, expires=ends_at(definition, now))
    for spec in specs(definition):
        _insert_trigger(tx, automation_id, in_force, spec, now)
    if state is AutomationState.ACTIVE:
        arm(tx, automation_id, since=now, now=now)
    else:
        tx.open_pause(automation_id, Sleep.PAUSED, at=now)
    log_change(tx, automation_id, "create", by, definition.name, now)
    return Defined(automation_id, "created")


def _insert(
    tx: Tx, definition: Definition, truth: SourceOfTruth, by: str, path: str, state: AutomationState, reason: str,
    now: Instant, *, error: str = "",
) -> str:
    # One that was removed in this very instant is another one.
    namesakes = tx.namesakes(definition.name, workspace=definition.workspace)
    automation_id = derived_id("aut", now, definition.workspace, definition.name, *[str(namesakes)] * bool(namesakes))
    tx.insert_automation(
        id=automation_id, workspace=definition.workspace, owner=definition.owner, name=definition.name, state=state,
        state_reason=reason, by=by, now=now, truth=truth, path=path, error=error, version=1,
        definition_hash="" if error else digest(definition), concurrent=definition.limits.concurrent,
        cooldown=micros(definition.cooldown), expires=ends_at(definition, now),
    )
    tx.insert_version(automation_id, 1, definition.as_json(), digest(definition), by=by, now=now)
    return automation_id


def _change(tx: Tx, row: AutomationRow, definition: Definition, by: str, path: str, now: Instant) -> Defined:
    as_before = row.definition_hash == digest(definition) and row.path == path and not row.error
    if as_before and not _has_vanished(tx, row):
        return Defined(row.id, "unchanged")
    row, now = caught_up(tx, row.id, now=now)
    version = row.version
    changed = row.definition_hash != digest(definition)
    if changed:
        version += 1
        tx.insert_version(row.id, version, definition.as_json(), digest(definition), by=by, now=now)
    expires = ends_at(definition, now) if changed else tx.expiry(row.id)
    tx.redefine(
        id=row.id, workspace=definition.workspace, name=definition.name, owner=definition.owner, version=version,
        definition_hash=digest(definition), truth=row.truth, path=path, concurrent=definition.limits.concurrent,
        cooldown=micros(definition.cooldown), expires=expires, renewed_at=now if changed else None, now=now,
    )
    if definition.limits.max_runs is None:
        tx.count_anew(row.id)
    definition = replace(definition, expires=expires)  # from here on: until when it acts
    tx.forget_looks(row.id, _looks(definition))
    release_behind(tx, [row.id], now=now)  # more may run at once by now than when they began to wait
    # The slots of a pause that is under way are answered under the schedules they belong to.
    asleep = end_pause(tx, row.id, until=now, now=now)
    _change_triggers(tx, row.id, definition, now)
    _go_on(tx, row, definition, asleep, by, now)
    if changed:
        log_change(tx, row.id, "change", by, f"version {version}", now)
    return Defined(row.id, "changed")


def _looks(definition: Definition) -> set[str]:
    looks = [definition.look, *(trigger.look for trigger in definition.triggers)]
    return {look.key for look in looks if look is not None}


def _has_vanished(tx: Tx, row: AutomationRow) -> bool:
    pause = tx.pause_now(row.id) if row.state == AutomationState.PAUSED else None
    return pause is not None and pause[1] == Sleep.VANISHED


def _go_on(
    tx: Tx, row: AutomationRow, definition: Definition, asleep: Sleep | None, by: str, now: Instant
) -> None:
    """After a change: what was broken is mended, what had vanished is back, what had expired is renewed; whatever else
    slept sleeps on."""
    state = AutomationState(row.state)
    if state is AutomationState.CONFIG_ERROR:
        paused = None if asleep is Sleep.VANISHED else paused_before(row, now)
        if paused is None:
            tx.mend(row.id, now=now)
        else:
            tx.pause(row.id, by=paused.by, reason=paused.reason, until=paused.until, now=now)
            tx.open_pause(row.id, asleep or Sleep.PAUSED, at=now)
            return
    elif (state is AutomationState.PAUSED and asleep is Sleep.VANISHED) or (
        state is AutomationState.EXPIRED and (definition.expires is None or definition.expires > now)
    ):
        tx.enable(row.id, by=by, now=now)
        log_change(tx, row.id, "enable", by, "", now)
    elif state is not AutomationState.ACTIVE and state is not AutomationState.COMPLETED:
        if asleep is not None:
            tx.open_pause(row.id, asleep, at=now)
        return
    elif asleep is Sleep.USED_UP and tx.counted_runs(row.id) >= (definition.limits.max_runs or 0) > 0:
        tx.open_pause(row.id, asleep, at=now)
        return
    armed = arm(tx, row.id, since=now, now=now)
    if armed and state is AutomationState.COMPLETED:
        tx.enable(row.id, by=by, now=now)
        log_change(tx, row.id, "enable", by, "", now)
    if state is not AutomationState.ACTIVE:
        tx.unpause_runs(row.id)


def _change_triggers(tx: Tx, automation_id: str, definition: Definition, now: Instant) -> None:
    present = {t.name: t for t in tx.triggers(automation_id)}
    wanted = {spec.name: spec for spec in specs(definition)}
    for name, trigger in present.items():
        if name not in wanted and trigger.removed_at is None:
            _retire(tx, trigger, now)
    for name, spec in wanted.items():
        stored = present.get(name)
        if stored is None:
            _insert_trigger(tx, automation_id, definition, spec, now)
            continue
        scheduled = stored.kind == "clock" and stored.schedule is not None
        was = readable(tx, stored, now=now) if scheduled else None
        unread = bool(stored.error) or (scheduled and was is None)
        tx.redefine_trigger(
            id=stored.id, kind=spec.kind, enabled=int(spec.enabled), policy=policy_of(definition, spec).as_json(),
            removed_at=None, error="",
        )
        if unread:
            tx.release_trigger(stored.id)
        is_ = anchored(spec, was, now)
        if was != is_ or stored.enabled != spec.enabled or stored.removed_at is not None or unread:
            tx.close_version(stored.id, at=now)
            tx.disarm([stored.id])
            if is_ is not None:
                since = edited_since(stored, was, is_, now) if was is not None and owes(stored) else now
                open_schedule(tx, stored.id, stored.version + 1, is_, enabled=spec.enabled, since=since)


def _retire(tx: Tx, trigger: TriggerRow, now: Instant) -> None:
    tx.close_version(trigger.id, at=now)
    tx.disarm([trigger.id])
    tx.redefine_trigger(
        id=trigger.id, kind=trigger.kind, enabled=int(trigger.enabled), policy=trigger.policy, removed_at=now, error=""
    )


def _insert_trigger(tx: Tx, automation_id: str, definition: Definition, spec: TriggerSpec, now: Instant) -> None:
    schedule = anchored(spec, None, now)
    trigger_id = f"{automation_id}/{spec.name}"
    tx.insert_trigger(
        id=trigger_id, automation_id=automation_id, name=spec.name, kind=spec.kind, enabled=int(spec.enabled),
        policy=policy_of(definition, spec).as_json(), schedule=None if schedule is None else schedule_text(schedule),
        version=1, next_fire_at=None, tzdata="", now=now,
    )
    if schedule is not None:
        open_schedule(tx, trigger_id, 1, schedule, enabled=spec.enabled, since=now)


def specs(definition: Definition) -> list[TriggerSpec]:
    """The definition's triggers, and the two that every automation has."""
    listed = {t.name for t in definition.triggers}
    return [*definition.triggers, *(TriggerSpec(name, name) for name in ALWAYS if name not in listed)]


def anchored(spec: TriggerSpec, before: Schedule | None, now: Instant) -> Schedule | None:
    """The schedule with its grid: an `every` or `rrule` without an anchor keeps the one it had, or counts from now.
    Raises BadSchedule for a rule that never matches when it is counted from there."""
    schedule = spec.schedule
    if schedule is None or not wants_anchor(schedule):
        return schedule
    if before is not None and replace(before, anchor=None) == schedule:
        return before
    schedule = replace(schedule, anchor=now)
    next_due(schedule, now)
    return schedule
