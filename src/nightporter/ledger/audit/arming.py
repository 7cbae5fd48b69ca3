"""The armed slot: what is to come is set, once, and not in the past."""

from __future__ import annotations

from nightporter.clock import SECOND, rfc3339
from nightporter.ledger.audit.check import Row, asked


def _late(row: Row) -> str:
    run, slot, started, mark = row
    after = "has no slot" if slot is None else "has not started" if started is None else \
        f"started {(started - slot) / SECOND:,.6g} s after its slot"
    return f"{run} {after} and is marked {'late' if mark else 'in time'}"


CHECKS = (
    asked("I-13", "no armed slot is overdue while the clock is read", "audit_overdue",
          lambda r: f"{r[0]} is armed for {rfc3339(r[1])}, which has passed unanswered"),
    asked("I-15", "what does not act is not armed", "audit_armed_inert",
          lambda r: f"{r[0]} {r[2]}, and is armed for {rfc3339(r[1])}"),
    asked("I-16", "a one-shot that has its answer is not armed", "audit_armed_once_more",
          lambda r: f"{r[0]} has its answer, and is armed for {rfc3339(r[1])}"),
    asked("I-17", "the armed slot is after every slot that has its answer", "audit_armed_in_the_past",
          lambda r: f"{r[0]} is armed for {rfc3339(r[1])}, and {rfc3339(r[2])} has its answer"),
    asked("I-19", "no slot is answered before it comes", "audit_answered_early",
          lambda r: f"{r[0]} answers the slot {rfc3339(r[1])} at {rfc3339(r[2])}"),
    asked("I-20", "no run starts before its slot", "audit_started_early",
          lambda r: f"{r[0]} is of the slot {rfc3339(r[1])} and started at {rfc3339(r[2])}"),
    asked("I-21", "a run is marked late when it starts more than 300 s after its slot or makes up for one",
          "audit_ran_late", _late),
    asked("N-01", "the spans of a trigger's schedules follow one another", "audit_versions_chain",
          lambda r: f"{r[0]}: version {r[1]}, in force after {rfc3339(r[2])} until {rfc3339(r[3]) or 'now'}, "
                    "does not follow the one before it"),
    asked("N-02", "what owes slots has its schedule in force, what owes none has none", "audit_version_in_force",
          lambda r: f"{r[0]} " + (f"has version {r[1]} of its schedule, and "
                                  + ("none" if r[2] is None else f"another or {r[2]}") + " is in force"
                                  if r[3] else f"owes no slots, and version {r[2]} of its schedule is in force")),
    asked("N-03", "an automation's pauses follow one another, and one is open while it sleeps", "audit_pauses",
          lambda r: f"{r[0]}: its pause from {rfc3339(r[1])} until {rfc3339(r[2]) or 'now'} {r[3]}"),
)
