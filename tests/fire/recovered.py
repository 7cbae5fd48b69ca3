"""What is asked of a desk that is past its trouble: it goes on, and everything adds up."""

from __future__ import annotations

from fire.accounts import findings
from fire.house import Desk, House, until

SLOTS = 6


def goes_on(house: House) -> None:
    """Wait until further slots are answered."""
    lines = house.ledger.count("firing WHERE source = 'clock'")
    until(lambda: house.ledger.count("firing WHERE source = 'clock'") > lines + SLOTS, "slots are answered")


def adds_up(house: House, desk: Desk) -> None:
    """Let what was begun end; no work was blamed for what befell the desk, and all accounts are clean."""
    desk.tell("quiet")
    house.idle()
    assert house.ledger.rows("SELECT id, error FROM run WHERE state = 'failed'") == []
    assert desk.stop() == 0, desk.log()
    assert findings(house) == []
