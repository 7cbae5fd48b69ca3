"""Random delays of other schedulers as `stagger`: an offset that is always the same, below five minutes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from nightporter.clock import MINUTE, SECOND
from nightporter.exchange.entry import Leftover
from nightporter.rules.durations import format_duration
from nightporter.rules.stagger import MOST


def random_delay(minutes: str, leftovers: list[Leftover]) -> dict[str, Any]:
    """The options for cron's `RANDOM_DELAY`, which is up to so many minutes, drawn anew as often as cron starts."""
    text = minutes.strip()
    said = f"RANDOM_DELAY={text.encode('utf-8', 'replace').decode()[:60]}"
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        leftovers.append(Leftover(said, "it is no number of minutes"))
        return {}
    return spread([(said, int(text) * MINUTE)], leftovers)


def spread(delays: Iterable[tuple[str, int]], leftovers: list[Leftover]) -> dict[str, Any]:
    """The options of a trigger for delays, each as it is written and in microseconds; what is lost is said."""
    said = [(text, micros) for text, micros in delays if micros > 0]
    total = sum(micros for _, micros in said)
    if total < SECOND:
        return {}
    if total > MOST:
        leftovers.append(Leftover(", ".join(text for text, _ in said), "a stagger goes up to 5m, and that is what it "
                                  "has here"))
    return {"stagger": format_duration(timedelta(microseconds=min(total, MOST) // SECOND * SECOND))}
