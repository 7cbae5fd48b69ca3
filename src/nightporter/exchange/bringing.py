"""Bringing jobs over: paused automations in the store, or as definition files. Nothing changes where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from nightporter.clock import Instant
from nightporter.definitions import read, render
from nightporter.errors import Conflict, NightporterError, StoreError, StoreRefused
from nightporter.exchange.planning import Item
from nightporter.exchange.translating import mark_in
from nightporter.operations import define, remove
from nightporter.outside.files import write_durably
from nightporter.states import AutomationState
from nightporter.store import Store, Tx
from nightporter.words import Definition

PAUSED: Final = "imported, and not let go yet"


def present(tx: Tx) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """By mark, `(id, name)` of what was made of a foreign job before; and every name that is given."""
    marks: dict[str, tuple[str, str]] = {}
    names: set[str] = set()
    for automation_id, name, text in tx.definitions_in_force():
        names.add(name)
        try:
            mark = mark_in(Definition.from_json(text).description)
        except ValueError:  # a row that cannot be read is no import of ours
            continue
        if mark is not None:
            marks.setdefault(mark, (automation_id, name))
    return marks, names


def bring(store: Store, item: Item, *, by: str, now: Callable[[], Instant], folder: Path | None = None) -> Item:
    """Make the automation of one job: in the store, or as a file of `folder` that a desk reads. It is paused.

    What cannot be made says why. Raises StoreError when the store is ill.
    """
    assert item.definition is not None
    try:
        if folder is None:
            made = store.write(lambda tx: _define(tx, item, item.definition, by, now()))
        else:
            made = _as_file(store, item, item.definition, by, now, folder)
    except NightporterError as error:
        if isinstance(error, StoreError) and not isinstance(error, StoreRefused):
            raise
        return replace(item, state="refused", reason=": ".join(part for part in (error.what, error.why) if part))
    except OSError as error:
        return replace(item, state="refused", reason=f"its file cannot be written: {error.strerror}")
    return replace(item, automation_id=made)


def _define(tx: Tx, item: Item, definition: Definition | None, by: str, now: Instant, path: str = "") -> str:
    assert definition is not None
    if tx.automation_named(definition.name, workspace=definition.workspace):
        raise Conflict(f"an automation called {definition.name} came to be meanwhile", next="import again")
    return define(tx, definition, truth="file" if path else "store", by=by, path=path, now=now,
                  state=AutomationState.PAUSED, reason=PAUSED).automation_id


def _as_file(
    store: Store, item: Item, definition: Definition, by: str, now: Callable[[], Instant], folder: Path
) -> str:
    path = (folder / f"{definition.name}.md").absolute()
    if path.exists():
        raise Conflict(f"{path} is there already", next="move it, and import again")
    text = render(definition)
    # As a desk will read it. The row comes first: a file that a desk finds before it would come up awake.
    as_read = read(text, path=str(path), format="markdown", default_timezone=definition.timezone, now=now())
    made = store.write(lambda tx: _define(tx, item, as_read, by, now(), str(path)))
    try:
        write_durably(path, text.encode())
    except OSError:
        store.write(lambda tx: remove(tx, made, by=by, reason="its file could not be written", now=now()))
        raise
    return made
