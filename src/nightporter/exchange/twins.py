"""Jobs that act in two places: here, and still where they were brought over from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from nightporter.exchange.bringing import present
from nightporter.exchange.entry import Entry
from nightporter.exchange.machine import Found
from nightporter.exchange.translating import marks_of
from nightporter.ledger import Finding
from nightporter.states import AutomationState
from nightporter.store import Tx

MACHINE = Path("/")
"""Where the old schedulers are."""
_STATE = 4


def acting(tx: Tx) -> dict[str, str]:
    """By mark, the name of each imported automation that is active."""
    marks, _ = present(tx)
    rows = {mark: (tx.read_automation(automation_id), name) for mark, (automation_id, name) in marks.items()}
    return {mark: name for mark, (row, name) in rows.items()
            if row is not None and row[_STATE] == AutomationState.ACTIVE}


def twins(names: dict[str, str], look: Callable[[], Found]) -> list[Finding]:
    """A finding for each of these that its old scheduler still runs. Nothing is looked at where there are none."""
    if not names:
        return []
    entries = [entry for reading in look().readings for entry in reading.entries]
    return [_finding(names[mark], entry) for entry, mark in zip(entries, marks_of(entries), strict=True)
            if mark in names and not entry.skipped and not entry.refused]


def _finding(name: str, entry: Entry) -> Finding:
    where = entry.source.where
    only = where if " " not in where else f"'{where}'"
    return Finding(
        "twin", "warning", f"{name} acts here, and {where} still runs it too",
        "it was brought over and let go, and was not taken out where it was: it runs twice",
        f"take it out there: nightporter import os --disable-source --only {only}", name,
    )
