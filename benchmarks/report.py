"""The table that a person reads, the JSON that is kept, and what moved since the reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Row

RESULTS = Path(__file__).parent / "results"
LATEST = RESULTS / "latest.json"
REFERENCE = RESULTS / "reference.json"
MOVED = 0.15
"""A change that is more than noise, in parts of what was."""


def table(rows: Sequence[Row]) -> str:
    """Plain text, one line a row: the median of its rounds, its limit's, the ratio, and whether targets are met."""
    head = ("measured", "median", "rounds", "limit", "ratio", "target")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    text = []
    for line in lines:
        cells = [line[0].ljust(widths[0]), *(cell.rjust(widths[n]) for n, cell in enumerate(line[1:-1], 1)), line[-1]]
        text.append("  ".join(cells).rstrip())
    text.insert(1, "-" * max(len(line) for line in text))
    return "\n".join(text)


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    bound = row.limit_median
    return (
        row.title, f"{_number(row.median)} {row.unit}", f"{_number(min(row.values))} - {_number(max(row.values))}",
        "" if bound is None else f"{_number(bound)} {row.unit}", "" if row.ratio is None else f"{row.ratio:.3g}",
        ", ".join(f"{target} {'yes' if target.met(row) else 'NO'}" for target in row.targets),
    )


def moved(rows: Sequence[Row], reference: Mapping[str, Any]) -> list[str]:
    """One line for each row that moved: its ratio to its limit, or without one its own figure, by more than MOVED at
    the median and beyond the spread of the rounds, then and now. And for each that is new or missing."""
    before = {row["key"]: row for row in reference["rows"]}
    lines = []
    for row in rows:
        was = before.get(row.key)
        if was is None:
            lines.append(f"{'new':8} {row.title}")
            continue
        what, old, new = _comparable(was, row.as_json())
        was_at, is_at = median(old), median(new)
        if was_at and abs(is_at / was_at - 1) > MOVED and (min(new) > max(old) or max(new) < min(old)):
            better = (is_at > was_at) == row.more_is_better
            lines.append(f"{'better' if better else 'WORSE':8} {row.title}: {what} {_number(was_at)} -> "
                         f"{_number(is_at)} ({is_at / was_at - 1:+.0%})")
    gone = before.keys() - {row.key for row in rows}
    return lines + [f"{'missing':8} {before[key]['title']}" for key in sorted(gone)]


def _comparable(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, list[float], list[float]]:
    """What is compared, and one figure a round of it, then and now. Limits of one round were measured beside its
    value, and what slowed the machine down slowed both."""
    old, new = _ratios(was), _ratios(now)
    return ("ratio", old, new) if old and new else ("figure", list(was["values"]), list(now["values"]))


def _ratios(row: Mapping[str, Any]) -> list[float]:
    values, limits = row["values"], row["limit"]["values"]
    if len(values) != len(limits) or not all(limits):
        return []
    return [value / limit for value, limit in zip(values, limits, strict=True)]


def document(rows: Sequence[Row], facts: Mapping[str, Any]) -> dict[str, Any]:
    return {**facts, "rows": [row.as_json() for row in rows]}


def save(found: Mapping[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def load(path: Path) -> dict[str, Any] | None:
    """A document that was saved; None where there is none."""
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
