"""delivery: an ended run's result is carried to each of its destinations.

    Promise       One delivery per run and destination, created with the run's end; tried by itself until it is
                  delivered with evidence or given up, and never a reason to run the work again. Every try sends the
                  same event id and the same body. One receiver never holds up another.
    Takes         Deliveries in state `pending` whose time has come.
    Leaves        delivered, unverified, given_up or unknown; a line for each try.
    Picked up by  nobody; a person, for what was given up

Read `claim`, `record`, `courier` over `nightporter.air`, then `recover`.
"""

from nightporter.delivery.claim import LANE_SLOTS, Sending, claim, still_there
from nightporter.delivery.courier import Courier
from nightporter.delivery.record import Destinations, Tried, record
from nightporter.delivery.recover import recover

__all__ = ["LANE_SLOTS", "Courier", "Destinations", "Sending", "Tried", "claim", "record", "recover", "still_there"]
