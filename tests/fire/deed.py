"""What a Python child of the house does: it writes down that it started. Imports nothing: each child pays for it."""

from __future__ import annotations

from typing import Any


def done(run: Any, starts: str) -> str:
    with open(starts, "a") as book:  # noqa: PTH123
        book.write(f"{run.id} {run.attempt}\n")
    return "done"
