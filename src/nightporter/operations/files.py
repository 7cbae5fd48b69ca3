"""Keeping the store in step with a folder of definition files. The file is the source of truth of its automation.

A file that is gone pauses its automation, where its folder is there to say so: a folder that is missing, or another
one than before, says nothing of the files that are not in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nightporter import logs
from nightporter.clock import Instant
from nightporter.definitions import Change, Found
from nightporter.errors import BadDefinition, NightporterError, StoreError, StoreRefused
from nightporter.operations.define import break_file, define
from nightporter.operations.life import vanish
from nightporter.store import Store, Tx
from nightporter.words import Definition

log = logs.get(__name__)

Now = Callable[[], Instant]
"""The clock, read where a write has its turn."""


@dataclass(frozen=True, slots=True)
class Synced:
    """One line of what a look at the files changed."""

    name: str
    path: str
    change: str
    """created, changed, broken, vanished, refused, unknown."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class _File:
    """What there is to say of one file, found at a look or changed since."""

    path: str
    name: str
    workspace: str
    definition: Definition | None
    error: BadDefinition | None


def load(
    store: Store, folder: Path, found: Sequence[Found], *, default_timezone: str, now: Now, whole: bool = True
) -> list[Synced]:
    """Bring the store in step with all files of the folder: `found` is what stands in it.

    `whole`: what is not there is gone, and its automation is paused. Without it, and where the folder itself is
    missing, nothing is. Raises StoreError when the store is ill.
    """
    synced = []
    refused = dict(store.read(lambda tx: tx.refused_files()))
    for one in found:
        file = _File(str(one.path), one.name, one.workspace, one.definition, one.error)
        synced += _apply(store, file, refused, default_timezone, now)
    if not whole:
        return synced
    there = {str(one.path) for one in found}
    gone = [row for row in store.read(lambda tx: tx.automations_of_files())
            if row[3] not in there and Path(row[3]).parent == folder]
    if gone and not folder.is_dir():
        return [*synced, Synced(f"{len(gone)} automation(s)", str(folder), "unknown",
                                "the folder of their definition files is missing; they go on as they were")]
    for automation_id, name, _, path, _ in gone:
        synced += _vanish(store, automation_id, name, path, now)
    for path in refused.keys() - there:
        if Path(path).parent == folder:
            store.write(partial(Tx.accept_file, path=path))
    return synced


def follow(store: Store, change: Change, *, default_timezone: str, now: Now) -> list[Synced]:
    """Bring the store in step with one change in the folder. Raises StoreError when the store is ill."""
    path = str(change.path)
    refused = dict(store.read(lambda tx: tx.refused_files()))
    if change.kind != "vanished":
        file = _File(path, change.name, change.workspace, change.definition, change.error)
        return _apply(store, file, refused, default_timezone, now)
    if _unkept(path):
        return []
    if path in refused:
        store.write(lambda tx: tx.accept_file(path))
    gone = store.read(lambda tx: tx.automations_at_path(path))
    return [line for row in gone for line in _vanish(store, row[0], row[1], path, now)]


def _apply(store: Store, file: _File, refused: dict[str, str], default_timezone: str, now: Now) -> list[Synced]:
    if _unkept(file.path):
        shown = file.path.encode(errors="backslashreplace").decode()
        return [Synced(shown, shown, "refused", "its path is not UTF-8; rename it")]
    try:
        change = store.write(lambda tx: _take(tx, file, default_timezone, now()))
    except Exception as error:
        if _is_ill(error):
            raise
        return [_refuse(store, file, file.error or _as_said(error, file), default_timezone, now)]
    if file.path in refused:
        store.write(lambda tx: tx.accept_file(file.path))
    if change == "unchanged":
        return []
    return [Synced(file.name, file.path, change, "" if file.error is None else str(file.error))]


def _unkept(path: str) -> bool:
    """Whether no store keeps such a path: it is not UTF-8."""
    return any("\ud800" <= letter <= "\udfff" for letter in path)


def _is_ill(error: Exception) -> bool:
    """Whether it is the store's trouble, and no file's."""
    return isinstance(error, StoreError) and not isinstance(error, StoreRefused)


def _as_said(error: Exception, file: _File) -> BadDefinition:
    """Why a file is not taken. Whatever is in one, it keeps no other from its turn."""
    if isinstance(error, NightporterError):
        return BadDefinition(error.what, why=error.why, next=error.next, path=file.path)
    log.error("definition.failed", path=file.path, error=str(error), exc_info=error)
    return BadDefinition("the file cannot be taken up", why=f"{type(error).__name__}: {error}"[:500], path=file.path)


def _take(tx: Tx, file: _File, default_timezone: str, now: Instant) -> str:
    owned = tx.automations_at_path(file.path)
    if file.error is not None:
        if not file.name and not owned:  # another file owns the name: that file's automation is not touched
            raise file.error
        break_file(tx, file.error, path=file.path, name=file.name, workspace=file.workspace,
                   default_timezone=default_timezone, now=now)
        return "broken"
    assert file.definition is not None
    named = tx.automation_named(file.definition.name, workspace=file.definition.workspace)
    # A file that came to be called otherwise keeps its automation; a moved file is found by the name in it.
    automation_id = named[0] if named else owned[0][0] if owned else None
    change = define(
        tx, file.definition, truth="file", by=file.path, path=file.path, automation_id=automation_id, now=now
    ).change
    for left, *_ in owned:  # by a file that speaks of another one now
        if left != automation_id:
            vanish(tx, left, reason="its definition file is another's now", now=now)
    return change


def _refuse(store: Store, file: _File, error: BadDefinition, default_timezone: str, now: Now) -> Synced:
    """Show why no automation comes of a file: where it made one, that one is broken; otherwise the file is named."""

    def show(tx: Tx) -> None:
        if tx.automations_at_path(file.path):
            break_file(tx, error, path=file.path, name=file.name, workspace=file.workspace,
                       default_timezone=default_timezone, now=now())
        else:
            tx.refuse_file(file.path, json.dumps(error.as_json(), ensure_ascii=False), now=now())

    try:
        store.write(show)
    except Exception as unshown:
        if _is_ill(unshown):
            raise
        log.error("definition.failed", path=file.path, error=str(unshown), exc_info=unshown)
    return Synced(file.name or file.path, file.path, "refused", str(error))


def _vanish(store: Store, automation_id: str, name: str, path: str, now: Now) -> list[Synced]:
    try:
        changed = store.write(lambda tx: vanish(tx, automation_id, reason="its definition file is gone", now=now()))
    except Exception as error:
        if _is_ill(error):
            raise
        return [Synced(name, path, "refused", str(error))]
    return [Synced(name, path, "vanished")] if changed else []
