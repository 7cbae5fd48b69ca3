"""operations: what a person or an agent may ask of the desk. Every surface calls these and nothing below them.

Each takes the transaction it happens in, the moment, and who asks; and raises an error that says what, why and next.
"""

from nightporter.operations.deciding import (
    acknowledge,
    close_deliveries,
    dismiss_dead,
    replay_together,
    resolve_incident,
)
from nightporter.operations.define import Defined, break_file, define
from nightporter.operations.expiry import renew
from nightporter.operations.files import Synced, follow, load
from nightporter.operations.life import enable, pause, remove, upkeep, vanish
from nightporter.operations.mending import take_up_again
from nightporter.operations.missed import dismiss_missed, execute_missed
from nightporter.operations.programs import follow_program
from nightporter.operations.work import (
    as_payload,
    cancel_runs,
    definition_of,
    fire,
    lift,
    replay,
    resend,
    review,
    stop,
)

__all__ = [
    "Defined", "Synced", "acknowledge", "as_payload", "break_file", "cancel_runs", "close_deliveries", "define",
    "definition_of", "dismiss_dead", "dismiss_missed", "enable", "execute_missed", "fire", "follow", "follow_program",
    "lift", "load", "pause", "remove", "renew", "replay", "replay_together",
    "resend", "resolve_incident", "review", "stop",
    "take_up_again", "upkeep", "vanish",
]
