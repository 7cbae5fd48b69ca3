"""Sparse fields: left out of what is stored where they have their default, so that what was stored before they existed
is read, and hashed, as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any


def sparse(read: Callable[[Any], Any] | None = None) -> Mapping[str, Any]:
    """The metadata of such a field; `read` makes its value of plain JSON and raises ValueError, TypeError or KeyError.

    Without `read` the value is plain JSON itself.
    """
    return {"sparse": True, "read": read or (lambda raw: raw)}


def left_out(declared: Field[Any], held: Any) -> bool:
    """Whether a field with this value is not written down."""
    if not declared.metadata.get("sparse"):
        return False
    return bool(held == (declared.default if declared.default_factory is MISSING else declared.default_factory()))


def sparse_of(kind: Any, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The sparse fields of a dataclass that stand in what was stored."""
    return {
        each.name: each.metadata["read"](raw[each.name])
        for each in fields(kind) if each.metadata.get("sparse") and each.name in raw
    }
