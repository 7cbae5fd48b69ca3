"""Slots and lines: every promise has exactly one answer. What only an enumeration can tell is in `enumeration`."""

from __future__ import annotations

from nightporter.clock import rfc3339
from nightporter.ledger.audit.check import Check, Tally, Terms, asked
from nightporter.store import Tx
from nightporter.words import Reason, Verdict

_NEED_NONE = (Verdict.ADMITTED, Verdict.MERGED)


def _verdicts(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    for verdict, reason, count, example in tx.sums("audit_verdict_groups"):
        if verdict not in set(Verdict):
            tally.add(f"{example}, one of {count}, has the verdict {verdict!r}, which there is not", count)
        elif (reason is None) != (verdict in _NEED_NONE) or (reason is not None and reason not in set(Reason)):
            tally.add(f"{example}, one of {count}, is {verdict} with {_because(reason)}", count)
    return tally


def _because(reason: str | None) -> str:
    return "no reason" if reason is None else f"the reason {reason!r}"


_WHAT = {
    "stray": "is {1} and names {2}",
    "none": "is {1} and names no run",
    "gone": "became {2}, which is not there and was not pruned",
    "other": "became {2}, which is of another line, trigger or slot",
}

CHECKS = (
    asked("I-01", "each slot has one line at most", "audit_slot_twice",
          lambda r: f"{r[0]} has {r[2]} lines for its slot {rfc3339(r[1])}"),
    asked("I-02", "each slot has one run at most", "audit_slot_run_twice",
          lambda r: f"{r[0]} has {r[2]} runs for its slot {rfc3339(r[1])}"),
    asked("I-05", "a slot's line names a version of the schedule that was in force then", "audit_slot_version",
          lambda r: f"{r[0]} answers {r[1]} from {rfc3339(r[3])} under version {r[2]}, in force "
                    + (f"after {rfc3339(r[4])} until {rfc3339(r[5]) or 'now'}" if r[4] is not None else "never")),
    Check("I-06", "each line has a verdict of the list, and a reason of the list unless it was admitted or merged",
          _verdicts),
    asked("I-07", "an admitted line names its run, and only it does", "audit_line_and_run",
          lambda r: f"{r[0]} " + _WHAT[r[3]].format(*r)),
    asked("I-08", "each run has the line that admitted it", "audit_run_without_line",
          lambda r: f"{r[0]} was admitted by {r[1]}, which " + ("is not there" if r[2] is None else f"became {r[2]}")),
    asked("I-09", "no slot is answered by two lines, alone or in a range", "audit_ranges_meet",
          lambda r: f"{r[0]} answers {r[1]} from {rfc3339(r[2])}, and a range before it reaches {rfc3339(r[3])}"),
    asked("I-10a", "a line for several slots says which, and how many", "audit_range_shape",
          lambda r: f"{r[0]} is {r[1]}, from {rfc3339(r[2])} to {rfc3339(r[3])}, {r[4]} slots"),
    asked("I-11", "no more of a trigger's missed slots wait for a person than may", "audit_cards_crowd",
          lambda r: f"{r[1]} cards of {r[0]} wait"),
    asked("I-12", "what waits for a person is of a line that says it was missed, and is decided once", "audit_cards",
          lambda r: f"{r[0]}, of the slot {rfc3339(r[2])} of {r[1]}, {r[3]}"),
    asked("I-57", "one run at most makes up for a gap, unless each is to", "audit_caught_up_twice",
          lambda r: f"{r[0]} has {r[2]} runs that catch up, admitted at {rfc3339(r[1])}"),
)
