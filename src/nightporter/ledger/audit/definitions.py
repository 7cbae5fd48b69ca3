"""The definitions that runs ran with, as far as they can be read."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from nightporter.store import Tx
from nightporter.words import Definition


def readable(tx: Tx, versions: Collection[tuple[str, int]]) -> dict[tuple[str, int], Definition]:
    """By automation and version. One that cannot be read is left out: its runs failed, and said so."""
    found = {}
    for key, text in tx.audited_definitions(versions).items():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # what `from_json` raises for what is no definition
            found[key] = Definition.from_json(text)
    return found
