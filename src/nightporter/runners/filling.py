"""Filling: what a run's look found, in the texts of its target."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")

LOOK = "{{look}}"


def filled(value: T, look: str | None) -> T:
    """The value with what the look found in place of `{{look}}`, in every text of it. Unchanged where there was no
    look: then nobody meant it."""
    return value if look is None else _filled(value, look)


def _filled(value: Any, look: str) -> Any:
    match value:
        case str():
            return value.replace(LOOK, look)
        case dict():
            return {key: _filled(item, look) for key, item in value.items()}
        case list():
            return [_filled(item, look) for item in value]
        case _:
            return value
