"""What a measurement is: values of several rounds, those of its limit, and what it has to reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

Of = Literal["value", "ratio"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a row has to reach: its median, or the ratio to its limit."""

    of: Of
    way: Literal[">=", "<"]
    number: float

    def met(self, row: Row) -> bool | None:
        """None where the row has no such figure."""
        figure = row.median if self.of == "value" else row.ratio
        if figure is None:
            return None
        return figure >= self.number if self.way == ">=" else figure < self.number

    def __str__(self) -> str:
        return f"{self.way} {self.number:,g}" if self.of == "value" else f"{self.way} {self.number:g} of limit"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `values` and `limit` have one figure a round, in `unit`."""

    key: str
    title: str
    unit: str
    values: tuple[float, ...]
    limit_title: str = ""
    limit: tuple[float, ...] = ()
    more_is_better: bool = True
    targets: tuple[Target, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def limit_median(self) -> float | None:
        return median(self.limit) if self.limit else None

    @property
    def ratio(self) -> float | None:
        """The row's median in parts of its limit's."""
        bound = self.limit_median
        return self.median / bound if bound else None

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key, "title": self.title, "unit": self.unit, "more_is_better": self.more_is_better,
            "values": [_short(v) for v in self.values], "median": _short(self.median),
            "limit": {"title": self.limit_title, "values": [_short(v) for v in self.limit],
                      "median": None if self.limit_median is None else _short(self.limit_median)},
            "ratio": None if self.ratio is None else _short(self.ratio),
            "targets": [{"target": str(t), "met": t.met(self)} for t in self.targets],
            "details": dict(self.details),
        }


@dataclass(frozen=True, slots=True)
class Pace:
    """One round of work."""

    a_second: float
    processor: float
    """Microseconds of processor time for each, in all threads of the process: a busy machine changes it less."""


def rounds(times: int, *measures: Callable[[], Any]) -> list[list[Any]]:
    """Each measure `times` times, by turns, so that a change of the machine's mood meets all of them."""
    taken: list[list[Any]] = [[] for _ in measures]
    for _ in range(times):
        for results, measure in zip(taken, measures, strict=True):
            results.append(measure())
    return taken


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed (nearest rank). Raises ValueError for no values."""
    if not values:
        raise ValueError("nothing was measured")
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 1000) * len(ordered) // 1000) - 1))]


def _short(value: float) -> float:
    return float(f"{value:.5g}")
