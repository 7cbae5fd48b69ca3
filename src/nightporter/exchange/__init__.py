"""exchange: what other schedulers know, read, shown and brought over.

Promise        everything that is found is accounted for: imported, already there, refused or skipped, with the reason
Takes          crontabs, units and spools of a machine, or of a copy of one; writes there only when it is asked to
Leaves         paused automations, each with the mark of the job it was made of
Picked up by   a person, who lets them act
"""

from nightporter.exchange.bringing import bring, present
from nightporter.exchange.entry import Entry, Reading, Unread
from nightporter.exchange.machine import KINDS, Found, scan, tab_of_file
from nightporter.exchange.planning import Item, Plan, plan
from nightporter.exchange.taking_out import Places
from nightporter.exchange.tree import Tree

__all__ = [
    "KINDS", "Entry", "Found", "Item", "Places", "Plan", "Reading", "Tree", "Unread", "bring", "plan", "present",
    "scan", "tab_of_file",
]
