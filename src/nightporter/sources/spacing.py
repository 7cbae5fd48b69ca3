"""Spacing: what is late does not begin all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

from nightporter.clock import DAY, SECOND, Instant
from nightporter.store import Tx
from nightporter.words import Firing, Settled

APART: Final = 2 * SECOND
"""Between the starts of two runs that catch up."""
FREE_AT: Final = "catchup_free_at"
"""The setting that says when the next one may begin."""


def push_of(trigger_id: str, most: int) -> int:
    """How much later a trigger's overdue runs begin after a restart: of each trigger the same, from 0 up to `most`."""
    drawn = int.from_bytes(blake2b(trigger_id.encode(), digest_size=8).digest())
    return drawn % (most + 1)


def spaced(
    tx: Tx, firings: Sequence[Firing | Settled], *, now: Instant, push: int = 0, at_once: frozenset[str] = frozenset()
) -> list[Firing | Settled]:
    """Say when the runs of firings may begin: those that catch up two seconds apart, the oldest slot first, whatever
    their automations, and behind those that were answered before them.

    `push`: of a restart; everything that is overdue begins up to so much later, but for the triggers of `at_once`. What
    waits for its turn here does not grow stale by it.
    """
    late = sorted(
        (f for f in firings if isinstance(f, Firing) and f.catchup), key=lambda f: (f.scheduled_for or 0, f.trigger_id)
    )
    if not late and not push:
        return list(firings)
    begins: dict[tuple[str, str], Instant] = {}
    if late:
        free = tx.setting_instant(FREE_AT)
        at = free if free is not None and now < free < now + DAY else now
        for firing in late:
            at = Instant(max(at, now + push_of(firing.trigger_id, push)))
            begins[firing.trigger_id, firing.external_id] = at
            at = Instant(at + APART)
        tx.put_setting(FREE_AT, str(at))
    return [_begins(f, begins, now, 0 if f.trigger_id in at_once else push) for f in firings]


def _begins(
    firing: Firing | Settled, begins: dict[tuple[str, str], Instant], now: Instant, push: int
) -> Firing | Settled:
    if isinstance(firing, Settled):
        return firing
    at = begins.get((firing.trigger_id, firing.external_id), now + push_of(firing.trigger_id, push))
    stale_at = None if firing.stale_at is None else Instant(firing.stale_at + at - now)
    return replace(firing, not_before=Instant(at), stale_at=stale_at)
