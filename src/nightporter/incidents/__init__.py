"""incidents: what fails is written down once, told once, and stopped where it goes on.

    Promise       A fault that recurs is one incident with a count, written in the transaction that found it; it is told
                  to the first route that takes it and to the inbox, not again within its cooldown, and its end once.
                  An automation whose errors reach its own number in a row is paused in that transaction too.
    Takes         Runs that ended, deliveries that were given up, schedules that cannot be made sense of.
    Leaves        Incidents; deliveries about them, in state `pending`; messages in the inbox; `auto_paused`.
    Picked up by  delivery; a person

Read `record`, `telling`, `routes`, `pausing` and `runs`.
"""

from nightporter.incidents.pausing import schedule_failed, schedule_readable
from nightporter.incidents.record import Fault, happened, lanes_work, message_of, over
from nightporter.incidents.routes import next_route, route_by_default
from nightporter.incidents.runs import Concluded, account_for

__all__ = [
    "Concluded", "Fault", "account_for", "happened", "lanes_work", "message_of", "next_route", "over",
    "route_by_default", "schedule_failed", "schedule_readable",
]
