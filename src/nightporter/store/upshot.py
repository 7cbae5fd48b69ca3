"""What became of a write: its result, once that is durable, or why nothing was written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """It is durable."""

    result: T


@dataclass(frozen=True, slots=True)
class Unwritten:
    """It is not in the store, as far as anybody knows: see `doubted` of `Writer.post` for when that is not far."""

    error: BaseException


Upshot = Written[T] | Unwritten
