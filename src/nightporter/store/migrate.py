"""Migrations: forward only, numbered, each in its own transaction, a backup first."""

from __future__ import annotations

from collections.abc import Callable

from nightporter.errors import StoreNewer
from nightporter.store.named import for_postgres, migrations


def migrate(
    version: Callable[[], int], execute: Callable[[str, int], None], back_up: Callable[[int], None], *, postgres: bool
) -> None:
    """Bring a store to this program's schema.

    `version()` reads the store's number (0 for an empty one), `execute(schema, number)` applies one migration and
    records its number in one transaction, `back_up(version)` copies a store that holds something.
    Raises StoreNewer, and changes nothing, when the store is ahead of this program.
    """
    known = migrations()
    newest = known[-1][0]
    present = version()
    if present > newest:
        raise StoreNewer(
            f"the store has schema {present}, this program knows {newest}", why="a newer program has used it",
            next="install that newer version; this one leaves the store alone",
        )
    if 0 < present < newest:
        back_up(present)
    for number, schema in known:
        if number > present:
            execute(for_postgres(schema) if postgres else schema, number)
