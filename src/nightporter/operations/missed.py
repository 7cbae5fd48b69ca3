"""What a person may decide about a missed slot: that it runs after all, or that it does not."""

from __future__ import annotations

from nightporter.admission import admit
from nightporter.clock import Instant
from nightporter.errors import Conflict, NotFound
from nightporter.sources.missed import slot_key
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.store.tx_missed import CardRow
from nightporter.words import Answer, Firing, TriggerId

REMOVED = "the automation was removed"


def execute_missed(tx: Tx, card_id: str, *, by: str, now: Instant) -> Answer:
    """Run a missed slot late. The line that says it was missed stays; the run has a line of its own, by hand, as of
    that slot. Raises NotFound, and Conflict where somebody has decided already or nothing can run now: then the card
    waits on."""
    card = _card(tx, card_id)
    row = tx.lock_automation(card.automation_id)
    if row is None or row.state == AutomationState.REMOVED:
        raise Conflict(f"{card_id} cannot run", why=f"{card.automation} was removed")
    if not tx.execute_card(card_id, by=by, now=now):
        raise _decided(_card(tx, card_id))
    firing = Firing(
        TriggerId(f"{card.automation_id}/manual"), external_id_of(card), scheduled_for=card.slot, sender=by,
        catchup=True,
    )
    answer = admit(tx, [firing], now=now)[0]
    if answer.run_id is None:
        why = f"{answer.reason.sentence if answer.reason else ''} {answer.detail}".strip()
        raise Conflict(f"{card_id} cannot run now", why=why, next="it goes on waiting for you")
    tx.card_became(card_id, answer.run_id)
    return answer


def external_id_of(card: CardRow) -> str:
    """Of the firing that executing it makes: the slot, and the trigger where the automation has more than one."""
    name = card.trigger_id.rpartition("/")[2]
    return f"missed:{slot_key(card.slot)}" + ("" if name == "clock" else f"@{name}")


def dismiss_missed(tx: Tx, card_id: str, *, by: str, note: str = "", now: Instant) -> None:
    """Say of a missed slot that it is not to run. Its line stays as it is. Raises NotFound, and Conflict where somebody
    has decided already."""
    if not tx.dismiss_cards([card_id], by=by, note=note, now=now):
        raise _decided(_card(tx, card_id))


def _card(tx: Tx, card_id: str) -> CardRow:
    card = tx.card(card_id)
    if card is None:
        raise NotFound(f"no missed slot has the id {card_id}", next="`nightporter missed` lists those that wait")
    return card


def _decided(card: CardRow) -> Conflict:
    return Conflict(f"{card.id} was {card.state} already", why=f"by {card.decided_by}" if card.decided_by else "",
                    next="nightporter missed --all")
