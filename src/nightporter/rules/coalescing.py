"""coalescing: which arrivals belong together, and how long their run waits for more. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from nightporter.clock import Instant, micros
from nightporter.words import Coalesce
from nightporter.words.kept import read_back

MOST_JOINED: Final = 100
"""Arrivals whose words one run carries; the next begins another."""
_LONGEST: Final = 100


@dataclass(frozen=True, slots=True)
class Gathering:
    """A run that waits for others like it."""

    run_id: str
    queued_at: Instant
    run_after: Instant
    merged: int
    """Arrivals that were folded into it so far."""

    def takes(self, coalesce: Coalesce) -> bool:
        """Whether another may be folded into it."""
        return not coalesce.joins or self.merged + 1 < MOST_JOINED

    def with_one_more(self, coalesce: Coalesce, now: Instant) -> Gathering:
        """It, after another arrival: it waits anew, but not beyond its longest wait."""
        return replace(self, run_after=waits_until(coalesce, now, self.queued_at), merged=self.merged + 1)


def waits_until(coalesce: Coalesce, now: Instant, since: Instant) -> Instant:
    """When a run may start to which something was added just now, and that has waited since then."""
    return Instant(min(now + micros(coalesce.window), since + micros(coalesce.max_wait)))


def key_of(coalesce: Coalesce, payload: str | None) -> str:
    """What arrivals share that belong together; empty where they need not share anything, or have no such field."""
    if not coalesce.key or payload is None:
        return ""
    try:
        value: Any = read_back(payload)
    except ValueError:  # whoever runs it says so
        return ""
    for name in coalesce.key.split(".")[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return ""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return text if len(text) <= _LONGEST else blake2b(text.encode(), digest_size=16).hexdigest()
