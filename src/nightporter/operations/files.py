"""Keeping the store in step with a folder of definition files. The file is the source of truth of its automation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightporter.clock import Instant
from nightporter.definitions import Change, Found
from nightporter.errors import BadDefinition, NightporterError
from nightporter.operations.define import break_file, define
from nightporter.operations.life import enable, pause
from nightporter.states import AutomationState
from nightporter.store import Store, Tx
from nightporter.words import Definition

VANISHED = "its definition file is gone"


@dataclass(frozen=True, slots=True)
class Synced:
    """One line of what a look at the files changed."""

    name: str
    path: str
    change: str
    """created, changed, broken, vanished, refused."""
    error: str = ""


def load(store: Store, found: Sequence[Found], *, default_timezone: str, now: Instant) -> list[Synced]:
    """Bring the store in step with all files of the folder; automations whose file is gone are paused."""
    synced = []
    for one in found:
        synced += _apply(
            store, str(one.path), one.name, one.workspace, one.definition, one.error, default_timezone, now
        )
    there = {str(one.path) for one in found}
    for automation_id, name, state, path, *_ in store.read(lambda tx: tx.automations_of_files()):
        if path not in there and state == AutomationState.ACTIVE:
            synced += _vanish(store, automation_id, name, path, now)
    return synced


def follow(store: Store, change: Change, *, default_timezone: str, now: Instant) -> list[Synced]:
    """Bring the store in step with one change in the folder."""
    path = str(change.path)
    if change.kind != "vanished":
        return _apply(
            store, path, change.name, change.workspace, change.definition, change.error, default_timezone, now
        )
    gone = store.read(lambda tx: tx.automations_at_path(path))
    return [line for row in gone for line in _vanish(store, row[0], row[1], path, now)]


def _apply(
    store: Store, path: str, name: str, workspace: str, definition: Definition | None, error: BadDefinition | None,
    default_timezone: str, now: Instant,
) -> list[Synced]:
    try:
        if error is not None:
            if not name:  # another file owns the name: that file's automation is not touched
                return [Synced(path, path, "refused", str(error))]
            store.write(lambda tx: break_file(
                tx, error, path=path, name=name, workspace=workspace, default_timezone=default_timezone, now=now
            ))
            return [Synced(name, path, "broken", str(error))]
        assert definition is not None
        defined = store.write(lambda tx: _define(tx, definition, path, now))
    except NightporterError as refused:
        return [Synced(name, path, "refused", str(refused))]
    return [] if defined == "unchanged" else [Synced(name, path, defined)]


def _define(tx: Tx, definition: Definition, path: str, now: Instant) -> str:
    owned = tx.automations_at_path(path)
    named = tx.automation_named(definition.name, workspace=definition.workspace)
    # A file that came to be called otherwise keeps its automation; a moved file is found by the name in it.
    automation_id = named[0] if named else owned[0][0] if owned else None
    defined = define(tx, definition, truth="file", by=path, path=path, automation_id=automation_id, now=now)
    row = tx.automation(defined.automation_id)
    if row is not None and row.state == AutomationState.PAUSED and row.state_reason == VANISHED:
        enable(tx, defined.automation_id, by=path, now=now)
        return "changed"
    return defined.change


def _vanish(store: Store, automation_id: str, name: str, path: str, now: Instant) -> list[Synced]:
    try:
        store.write(lambda tx: pause(tx, automation_id, by="desk", reason=VANISHED, now=now))
    except NightporterError as error:
        return [Synced(name, path, "refused", str(error))]
    return [Synced(name, path, "vanished")]
