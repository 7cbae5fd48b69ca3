"""Clusters: automations that are due in the same minute again and again, and how they could be told apart. Pure.

Who comes more often than every quarter of an hour meets everybody: it is compared with others of its kind only, and is
no cluster with them where no minute is free for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nightporter.clock import DAY, MINUTE, Instant, rfc3339

MORE_THAN = 3
"""Meetings in the span that are looked at and no cluster yet."""
FREQUENT = 96
"""Fires a day."""
_FURTHEST = 60
"""Minutes that a fire is moved by at most."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Automations that meet, and by how many minutes each could come later."""

    names: tuple[str, ...]
    times: int
    """How often they meet in the span."""
    first: Instant
    later: Mapping[str, int]
    """Minutes, for all but the first, so that nobody else comes then; a name is missing where no such minute is
    found."""

    def as_json(self) -> dict[str, object]:
        return {"automations": list(self.names), "times": self.times, "first": rfc3339(self.first),
                "stagger_minutes": dict(self.later)}

    def __str__(self) -> str:
        others = len(self.names) - 3
        who = ", ".join(self.names[:3]) + (f" and {others} more" if others > 0 else "")
        moved = ", ".join(f"{name} by {minutes} min" for name, minutes in list(self.later.items())[:3])
        more = " ..." if len(self.later) > 3 else ""
        return f"{who} are due in the same minute {self.times} times" + (
            f"; let {moved}{more} come later, or give them `stagger`" if moved else "")


def clusters(
    fires: Iterable[tuple[Instant, str]], span: int, *, more_than: int = MORE_THAN
) -> list[Cluster]:
    """Of `(instant, automation)`, all within `span` microseconds: those that meet more often than so many times, the
    largest first."""
    minutes: dict[int, set[str]] = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    for at, name in fires:
        minute = at // MINUTE
        if name not in minutes[minute]:
            minutes[minute].add(name)
            counts[name] += 1
    often = {name for name, n in counts.items() if n * DAY > FREQUENT * span}
    met: dict[frozenset[str], list[int]] = defaultdict(list)
    for minute, names in minutes.items():
        for band in (names - often, names & often):
            if len(band) > 1:
                met[frozenset(band)].append(minute)
    found = [
        Cluster(tuple(sorted(names)), len(times), Instant(min(times) * MINUTE),
                _later(sorted(names), times, minutes, often))
        for names, times in met.items() if len(times) > more_than
    ]
    found = [each for each in found if each.later or not often.issuperset(each.names)]
    return sorted(found, key=lambda each: (-len(each.names), -each.times, each.names))


def _later(
    names: list[str], times: list[int], minutes: Mapping[int, set[str]], often: set[str]
) -> dict[str, int]:
    """For each but the first the next minute in which, each time, nobody of its kind comes."""
    taken: set[int] = set()
    found: dict[str, int] = {}
    rare = names[0] not in often
    for name in names[1:]:
        for step in range(1, _FURTHEST):
            free = step not in taken and not any(
                (minutes.get(minute + step, set()) - often if rare else minutes.get(minute + step)) for minute in times)
            if free:
                taken.add(step)
                found[name] = step
                break
    return found
