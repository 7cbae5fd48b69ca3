"""Cards: missed slots that a person decides about, written in the transaction that answers the slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nightporter.clock import Instant
from nightporter.rules.missed import CARDS
from nightporter.store import Tx
from nightporter.words import Answer, Firing, Reason, Settled, Verdict, derived_id

UNTOLD: Final = "missed_untold"
"""The setting that says since when something was missed of which nothing was told yet."""
_NEWER: Final = f"more than {CARDS} waited, and newer ones took its place"


def card_id(trigger_id: str, slot: Instant) -> str:
    """Derived: one slot has one card."""
    return derived_id("msd", slot, trigger_id, str(slot))


def note_missed(tx: Tx, answered: Sequence[tuple[Firing | Settled, Answer]], *, now: Instant) -> None:
    """Write the cards of what was answered, and that something is to be told; nothing where nothing was missed."""
    missed = [(f, told) for f, told in answered
              if (f.reason is Reason.MISSED_POLICY if isinstance(f, Settled) else f.catchup)]
    if not missed:
        return
    cards = [(f, told.firing_id) for f, told in missed
             if isinstance(f, Settled) and f.card and told.verdict is Verdict.MISSED]
    if cards:
        tx.write_cards([(card_id(f.trigger_id, f.slot_from), line) for f, line in cards], now=now)
        tx.trim_cards(
            {(f.trigger_id.rpartition("/")[0], f.trigger_id) for f, _ in cards}, most=CARDS, note=_NEWER, now=now
        )
    tx.lower_setting(UNTOLD, now)
