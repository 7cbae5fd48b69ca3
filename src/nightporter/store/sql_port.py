"""What a dialect gives the transaction's methods: four ways to run a named query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

Row = tuple[Any, ...]


class Sql(Protocol):
    """Runs named queries inside one transaction. Errors leave as the driver's; the writer translates them."""

    def all(self, name: str, /, **parameters: Any) -> list[Row]: ...

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        """The first row, or None."""

    def run(self, name: str, /, **parameters: Any) -> int:
        """The number of rows changed."""

    def each(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> list[Row]:
        """A set-based query over `rows`; all rows it returns. No rows, no query."""
