"""Tables: whole where nobody's screen is in the way, and made to fit where it is.

On a screen ids are never broken: what is empty goes first, then moments become short, then columns go that are said to
be dispensable, and only texts are folded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TEXTS = frozenset({"why", "when", "note", "evidence or why"})
"""Columns that may be folded; of the others each cell stays on its line."""
DISPENSABLE = ("attempt", "trigger", "source", "took", "late", "tries", "queued", "running", "last")
"""In this order they go where the screen is too narrow; texts go last, by their own order from the right."""
_LEAST = 18
"""Columns that a text needs to be worth folding."""
_GAP = 2
_MOMENT = re.compile(r"\d{4}-(\d\d-\d\d \d\d:\d\d(?::\d\d)?) (?:\w+/)*(\w[\w+-]*)")


@dataclass(frozen=True, slots=True)
class Table:
    """Heads and cells, each cell a single line."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
        return Table(tuple(heads), tuple(tuple(" ".join(cell.split()) for cell in row) for row in rows))

    def widths(self) -> Mapping[str, int]:
        return {head: max(len(head), *(len(row[n]) for row in self.rows)) for n, head in enumerate(self.heads)}

    def without(self, head: str) -> Table:
        n = self.heads.index(head)
        return Table(self.heads[:n] + self.heads[n + 1:], tuple(row[:n] + row[n + 1:] for row in self.rows))

    def with_moments(self, form: str) -> Table:
        """Moments in a shorter form: `\\1 \\2` without year and region, `\\1` without the zone."""
        return Table(self.heads, tuple(tuple(_MOMENT.sub(form, cell) for cell in row) for row in self.rows))

    def is_text(self, head: str) -> bool:
        """Whether a column may be folded: moments may not, whatever their column is called."""
        n = self.heads.index(head)
        return head in TEXTS and not all(_MOMENT.fullmatch(row[n]) or _SHORT.fullmatch(row[n]) for row in self.rows)

    def needs(self) -> int:
        """Columns of a screen below which something would break that must not."""
        widths = self.widths()
        least = [min(width, _LEAST) if self.is_text(head) else width for head, width in widths.items()]
        return sum(least) + _GAP * (len(least) - 1)


_SHORT = re.compile(r"\d\d-\d\d \d\d:\d\d(:\d\d)?( \S+)?|")


def lines(table: Table) -> list[str]:
    """The whole table, a line for each row however long."""
    widths = table.widths()
    rows = [[head.upper() for head in table.heads], *table.rows]
    return ["  ".join(f"{cell:<{widths[head]}}" for head, cell in zip(table.heads, row, strict=True)).rstrip()
            for row in rows]


def fitted(table: Table, screen: int) -> Table:
    """What of the table fits a screen of so many columns; the first two columns always stay."""
    for head in table.heads[1:]:
        n = table.heads.index(head)
        if not any(row[n] for row in table.rows):
            table = table.without(head)
    if table.needs() > screen:
        table = table.with_moments(r"\1 \2")
    for head in DISPENSABLE:
        if table.needs() > screen and head in table.heads[2:]:
            table = table.without(head)
    if table.needs() > screen:
        table = table.with_moments(r"\1")
        # The pattern has a year in it, so what is short already is cut by its own.
        table = Table(table.heads, tuple(
            tuple(cell.rpartition(" ")[0] if _SHORT.fullmatch(cell) and cell.count(" ") == 2 else cell for cell in row)
            for row in table.rows))
    for head in reversed(table.heads[2:]):
        if table.needs() > screen and table.is_text(head):
            table = table.without(head)
    return table
