"""Columns as PostgreSQL takes them: the text of an array.

The driver's own dumper looks at each value by itself; it took more of a run's time than all that decides about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

BETWEEN = '","'


def says_the_same(values: Sequence[Any]) -> bool:
    """Whether a column says the same of all rows: then it need not be an array."""
    return bool(values[0] == values[-1] and values.count(values[0]) == len(values))


def single(value: Any) -> str | None:
    """A text or number by itself; its type is for the statement to say."""
    return None if value is None else str(value)


def array(values: Sequence[Any]) -> str:
    """The text of an array of texts or of numbers; None is NULL."""
    try:
        joined = BETWEEN.join(values)
    except TypeError:  # numbers, or a None among them
        return f"{{{','.join(map(_item, values))}}}"
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        return f"{{{','.join(map(_item, values))}}}"
    return f'{{"{joined}"}}'


def _item(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return str(value)
