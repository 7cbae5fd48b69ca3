"""dispatch: a queued run is claimed, handed to a runner, and ends.

    Promise       A run is claimed by one worker at a time, under a token that fences every write of its holder;
                  how an attempt ended, and all that follows from it, is one transaction. An attempt that was cut
                  short repeats only where nothing can have happened or repeating is declared safe.
    Takes         Runs in state `queued`, due and not blocked.
    Leaves        Ended runs, with a delivery for each destination; or queued, held or review.
    Picked up by  delivery; a person, for review and dead letters

Read `claim` over `at_hand`, `end`, `looking`, `flight` over `nightporter.air`, then `traces`, `behind`, `recover` and
`cancel`.
"""

from nightporter.dispatch.at_hand import Definitions, Runners
from nightporter.dispatch.behind import release_behind
from nightporter.dispatch.cancel import cancel
from nightporter.dispatch.claim import claim
from nightporter.dispatch.claimed import Claimed
from nightporter.dispatch.end import Attempt, Final, conclude, end
from nightporter.dispatch.flight import Flight
from nightporter.dispatch.looking import Lookers
from nightporter.dispatch.recover import recover

__all__ = [
    "Attempt", "Claimed", "Definitions", "Final", "Flight", "Lookers", "Runners", "cancel", "claim", "conclude", "end",
    "recover", "release_behind",
]
