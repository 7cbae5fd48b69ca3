"""Keeping the store in step with a program that defines automations in code. The program is their source of truth."""

from __future__ import annotations

from collections.abc import Sequence

from nightporter.clock import Instant
from nightporter.operations.define import define
from nightporter.operations.life import vanish
from nightporter.store import Tx
from nightporter.words import Definition


def follow_program(tx: Tx, definitions: Sequence[Definition], *, path: str, now: Instant) -> None:
    """Define all that the program defines; what the one at that path defined before and no longer does is paused until
    it does again. Raises as `define` does."""
    tx.lock_names()
    before = tx.automations_of_program(path)
    tx.lock_automations([row[0] for row in before])
    wanted = {(d.workspace, d.name) for d in definitions}
    left = {(workspace, name): automation_id for automation_id, workspace, name, _ in before
            if (workspace, name) not in wanted}
    kept = set()
    for definition in definitions:
        # One that moved to another workspace is the same one, as long as nobody has that name there.
        moved = [one for (_, name), one in left.items() if name == definition.name]
        there = tx.automation_named(definition.name, workspace=definition.workspace)
        same = moved[0] if len(moved) == 1 and not there else None
        kept.add(define(
            tx, definition, truth="code", by="code", path=path, automation_id=same, now=now
        ).automation_id)
    for automation_id, *_ in before:
        if automation_id not in kept:
            vanish(tx, automation_id, reason="no longer in the program", now=now)
