"""How a command speaks: JSON for programs, plain lines and tables for people."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from nightporter.logs import harmless, harmless_json
from nightporter.surfaces.cli.tables import Table, fitted, lines

COLORS = {
    "active": "green", "succeeded": "green", "skipped": "green", "delivered": "green", "admitted": "green",
    "running": "cyan", "queued": "cyan", "pending": "cyan", "sending": "cyan",
    "paused": "yellow", "auto_paused": "yellow", "review": "yellow", "held": "yellow", "lost": "yellow",
    "unverified": "yellow", "warning": "yellow", "missed": "yellow", "collapsed": "yellow",
    "failed": "red", "timed_out": "red", "config_error": "red", "given_up": "red", "unknown": "red", "error": "red",
    "refused": "red",
}
"""Colours go beside words, never instead of them."""


class Out:
    """Standard output of one command, and standard error for what is said beside it."""

    def __init__(self, *, as_json: bool = False, no_color: bool = False) -> None:
        self.as_json = as_json
        self._plain = no_color or bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()

    def json(self, value: Any) -> None:
        """One JSON value on one line."""
        print(harmless_json(json.dumps(value, ensure_ascii=False, separators=(", ", ": "))))

    def answer(self, value: Any, text: str) -> None:
        """The value for programs, the text for people."""
        if self.as_json:
            self.json(value)
        else:
            self.line(text)

    def line(self, text: str = "") -> None:
        print(harmless(text))

    def note(self, text: str) -> None:
        """Said to a person beside the output; programs that read JSON are spared it."""
        if not self.as_json:
            print(harmless(text), file=sys.stderr)

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Names and values under one another; empty values are left out."""
        shown = [(name, value) for name, value in facts if value]
        width = max((len(name) for name, _ in shown), default=0)
        for name, value in shown:
            first, *more = value.splitlines() or [""]
            self.line(f"  {name:<{width}}  {first}")
            for line in more:
                self.line(f"  {'':<{width}}  {line}")

    def _style(self, cell: str) -> str:
        return "" if self._plain else COLORS.get(cell.partition(" ")[0], "")

    def table(self, heads: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str = "none") -> None:
        """A table; `empty` where there are no rows. Where the output is no terminal nothing is folded or left out."""
        found = [[harmless(cell) for cell in row] for row in rows]
        if not found:
            self.line(empty)
            return
        whole = Table.of(heads, found)
        if not sys.stdout.isatty():
            print("\n".join(lines(whole)))
            return
        from rich import box, table
        from rich.console import Console
        from rich.text import Text

        screen = shutil.get_terminal_size().columns
        shown = fitted(whole, screen)
        drawn = table.Table(box=None if self._plain else box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for head in shown.heads:
            drawn.add_column(head.upper(), no_wrap=not shown.is_text(head), overflow="fold")
        for row in shown.rows:
            drawn.add_row(*(Text(cell, style=self._style(cell)) for cell in row))
        console = Console(no_color=self._plain, highlight=False, width=max(screen, shown.needs()), markup=False)
        with console.capture() as captured:
            console.print(drawn)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))
