"""Numbers as the fields of a cron expression, as short as they can be said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import Final

from nightporter.rules.plain.times import Time

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


def day_name(day: int) -> str:
    """`mon`."""
    return _DAYS[day]


def weekday_field(days: Iterable[int]) -> str:
    """`mon-fri`, `sat,sun`, `*`: Monday first."""
    places = sorted({(day + 6) % 7 for day in days})
    if len(places) == 7:
        return "*"
    return ",".join(
        f"{_DAYS[(row[0] + 1) % 7]}-{_DAYS[(row[-1] + 1) % 7]}" if len(row) > 2
        else ",".join(_DAYS[(place + 1) % 7] for place in row)
        for row in _rows(places)
    )


def number_field(numbers: Iterable[int], whole: range | None = None) -> str:
    """`9-17`, `8-20/2`, `1,15`; and, where `whole` is all that the field may be, `*` and `*/15`.

    What begins with a star follows elapsed time when the clocks change; times that were named do not.
    """
    found = sorted(set(numbers))
    if whole is not None and found == list(whole):
        return "*"
    steps = {after - before for before, after in pairwise(found)}
    if len(steps) == 1 and len(found) > 2:
        (step,) = steps
        if step == 1:
            return f"{found[0]}-{found[-1]}"
        if whole is not None and (found[0], found[-1] + step) == (whole.start, whole.stop):
            return f"*/{step}"
        if len(found) > 3:
            return f"{found[0]}-{found[-1]}/{step}"
    return ",".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ",".join(map(str, row)) for row in _rows(found))


def month_field(months: Iterable[int]) -> str:
    """`*`, `6-8`, `1,4,7,10`."""
    found = sorted(set(months))
    if len(found) == 12:
        return "*"
    return ",".join(f"{row[0]}-{row[-1]}" if len(row) > 2 else ",".join(map(str, row)) for row in _rows(found))


def time_fields(times: Sequence[Time]) -> str | None:
    """`0 9,17` or, with seconds, `30 0 9`; None where the times are no hours that share their minutes."""
    parts = [sorted({getattr(time, part) for time in times}) for part in ("second", "minute", "hour")]
    seconds, minutes, hours = parts
    if len({time.of_day for time in times}) != len(hours) * len(minutes) * len(seconds):
        return None
    fields = [number_field(minutes), number_field(hours)]
    return " ".join(fields if seconds == [0] else [number_field(seconds), *fields])


def _rows(numbers: list[int]) -> list[list[int]]:
    """Those that follow one another, together."""
    return [[number for _, number in row] for _, row in groupby(enumerate(numbers), lambda each: each[1] - each[0])]
