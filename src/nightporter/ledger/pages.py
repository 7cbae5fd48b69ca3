"""Lists that are read page by page, and the one way in which values become JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from nightporter.clock import Instant, rfc3339
from nightporter.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST = 500
"""Rows of one page."""
NEWEST = (1 << 62, "")
"""Before it is everything: where a list by (instant, id) begins."""


class Shown(Protocol):
    """What a surface shows."""

    def as_json(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=Shown)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows of a list, and where to go on; None at its end."""

    items: tuple[T, ...]
    next_cursor: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"items": [item.as_json() for item in self.items], "next_cursor": self.next_cursor}


def page(rows: Sequence[R], limit: int, line: Callable[[R], T], cursor: Callable[[T], str]) -> Page[T]:
    """A page of `limit` rows out of one row more, which says whether there is a next one."""
    items = tuple(line(row) for row in rows[:limit])
    return Page(items, cursor(items[-1]) if len(rows) > limit and items else None)


def room(limit: int) -> int:
    """A page's size within its bounds. Raises BadInput."""
    if limit < 1:
        raise BadInput(f"a page of {limit} rows shows nothing", next=f"ask for 1 to {MOST}")
    return min(limit, MOST)


def cursor_at(at: int, id: str) -> str:
    """A place in a list by (instant, id)."""
    return f"{at}~{id}"


def place_of(cursor: str) -> tuple[int, str]:
    """The inverse; an empty cursor is the beginning. Raises BadInput."""
    if not cursor:
        return NEWEST
    at, mark, id = cursor.partition("~")
    if not mark or not at.lstrip("-").isdigit():
        raise no_cursor(cursor)
    return int(at), id


def id_before(cursor: str, prefix: str) -> str:
    """The cursor of a list by id alone; empty is the beginning. Raises BadInput."""
    if cursor and not cursor.startswith(f"{prefix}_"):
        raise no_cursor(cursor)
    return cursor


def no_cursor(cursor: str) -> BadInput:
    return BadInput(f"{cursor[:60]!r} is no cursor of this list", why="a cursor is what `next_cursor` said before",
                    next="begin the list anew, without a cursor")


def plain(value: DataclassInstance) -> dict[str, Any]:
    """A frozen value by its fields, in their order. What is declared an Instant becomes RFC 3339."""
    return {name: _json(getattr(value, name), instant) for name, instant in _columns(type(value))}


@cache
def _columns(kind: type[DataclassInstance]) -> tuple[tuple[str, bool], ...]:
    """Its fields, and whether each is declared an Instant."""
    return tuple((each.name, "Instant" in str(each.type)) for each in fields(kind))


def _json(value: Any, instant: bool) -> Any:
    if value is None or isinstance(value, str):
        return value
    if instant and isinstance(value, int):
        return rfc3339(Instant(value))
    if hasattr(value, "as_json"):
        return value.as_json()
    if isinstance(value, (tuple, list)):
        return [_json(item, instant) for item in value]
    if isinstance(value, Mapping):
        return dict(value)
    return value
