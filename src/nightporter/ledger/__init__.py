"""ledger: the record read back. Lists, details, timelines, and why something did or did not happen.

Every function takes the transaction it reads in, and changes nothing. What it returns is frozen, and `as_json()` is
the stable shape that the surfaces show: lists are `{"items": [...], "next_cursor": ...}`, instants are RFC 3339 in UTC
with the zone beside them where one matters, durations are seconds.

What takes long to load and is seldom asked has to be imported where it is: `audit`, `doctor`, `heartbeat`, `tasks`.
"""

from nightporter.ledger.details import AutomationDetail, RunDetail, automation_detail, run_detail
from nightporter.ledger.explain import explain
from nightporter.ledger.finding import resolve, resolve_firing, resolve_run
from nightporter.ledger.home import Finding, Home
from nightporter.ledger.pages import Page
from nightporter.ledger.reads import automations, dead_letters, deliveries, firings, inbox, refused_files, runs
from nightporter.ledger.status import Status, status
from nightporter.ledger.why import Explanation

__all__ = [
    "AutomationDetail", "Explanation", "Finding", "Home", "Page", "RunDetail", "Status", "automation_detail",
    "automations", "dead_letters", "deliveries", "explain", "firings", "inbox", "refused_files", "resolve",
    "resolve_firing", "resolve_run", "run_detail", "runs", "status",
]
