"""The sweep: hostile values in columns of a full ledger, and every command that reads."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import apsw
from full_night import a_full_night
from shell import Said, Shell

from conftest import START
from ill.hostile import Column, columns, spoil
from nightporter.clock import Instant, ManualClock
from nightporter.store import open_store

LISTS = (("list",), ("next",), ("runs",), ("firings", "-n", "500"), ("deliveries",), ("inbox", "--all"), ("dead",),
         ("status",), ("doctor",), ("audit",))


def a_ledger(folder: Path) -> Path:
    """A ledger in which everything happened that can, closed in order."""
    path = folder / "night.db"
    store = open_store(str(path), now=START)
    a_full_night(store, ManualClock(Instant(START)))
    store.close()
    return path


def one_of_each_table(ledger: Path) -> Iterator[list[Column]]:
    """The columns of the ledger, in groups that have one of each table, so that a few sweeps see all of them."""
    by_table = [list(group) for _, group in itertools.groupby(columns(ledger), key=lambda column: column.table)]
    for group in itertools.zip_longest(*by_table):
        yield [column for column in group if column is not None]


def sweep(ledger: Path, home: Path, spoilt: Sequence[Column], *, details: int, both: bool) -> list[str]:
    """Write hostile values into those columns of a copy, and ask everything that reads, about `details` automations,
    runs and lines each, in `both` forms or in one of them; what did not answer as it should."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    store = home / "nightporter.sqlite"
    shutil.copy(ledger, store)
    for column in spoilt:
        spoil(store, column)
    shell = Shell(home)
    forms: tuple[tuple[str, ...], ...] = ((), ("--json",))
    found = []
    for number, words in enumerate([*LISTS, *_details(store, details)]):
        for form in forms if both else forms[(number + len(spoilt)) % 2 :][:1]:
            if why := _wrong(shell, [*words, *form]):
                found.append(f"{', '.join(map(str, spoilt))}: {' '.join([*words, *form])}: {why}")
    return found


def _details(store: Path, count: int) -> Iterator[tuple[str, ...]]:
    connection = apsw.Connection(str(store))
    try:
        automations, runs, firings = (
            [str(id) for (id,) in connection.execute(f"SELECT id FROM {table} ORDER BY id LIMIT {count}")]
            for table in ("automation", "run", "firing")
        )
    finally:
        connection.close()
    for automation in automations:
        yield from (("show", automation), ("explain", automation), ("next", automation))
    for run in runs:
        yield from (("explain", run), ("logs", run))
    yield from (("explain", firing) for firing in firings)


def _wrong(shell: Shell, words: Sequence[str]) -> str:
    """What is wrong with how a command answers; empty: nothing."""
    try:
        said: Said = shell(*words)
        if "--json" in words:
            said.json  # noqa: B018  it has to be one
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    if said.code not in (0, 1):
        return f"code {said.code}: {said.err[:200]}"
    commands = {character for character in said.out + said.err if _commands(character)}
    return f"it commands the terminal: {sorted(map(repr, commands))}" if commands else ""


def _commands(character: str) -> bool:
    control = (character < " " and character not in "\n\t") or "\x7f" <= character <= "\x9f"
    return control or "\u202a" <= character <= "\u202e"


def swept(
    ledger: Path, home: Path, groups: Iterable[Sequence[Column]], *, details: int, both: bool = False
) -> list[str]:
    """What any of the sweeps found."""
    return [one for group in groups for one in sweep(ledger, home, group, details=details, both=both)]
