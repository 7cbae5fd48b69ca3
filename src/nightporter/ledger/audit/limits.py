"""Limits and counts: what was held back was held back rightly, and nothing slipped past."""

from __future__ import annotations

from nightporter.clock import SECOND, rfc3339
from nightporter.ledger.audit.check import asked

CHECKS = (
    asked("I-54", "no run is admitted within the cooldown of a start", "audit_too_warm",
          lambda r: f"{r[0]} was admitted at {rfc3339(r[1])}; the last start was at {rfc3339(r[2])}, "
                    f"the cooldown is {r[3] / SECOND:g} s"),
    asked("I-56", "a trigger has counted its lines", "audit_lines_counted",
          lambda r: f"{r[0]} has counted {r[1]} lines, and there are {r[2]}"),
    asked("N-22", "a run counts what was folded into it, and carries what one of its arrivals said", "audit_folded",
          lambda r: f"{r[0]} counts {r[1]} that were folded into it, and there are {r[2]}; "
                    f"it carries {r[3] or 'its own'}"),
    asked("N-21", "runs of schedules are counted where only so many may be", "audit_runs_in_all",
          lambda r: f"{r[0]} has counted {r[1]} runs of its schedules, and there are {r[2]}"),
    asked("I-58", "a run carries the root and depth of what caused it", "audit_origin",
          lambda r: f"{r[0]} has the root {r[1]} and the depth {r[2]}; its line says otherwise, or neither can be"),
    asked("I-60a", "a line keeps its key where its verdict says so", "audit_keys",
          lambda r: f"{r[0]} of {r[1]} is {r[4]}, its external id {r[2]!r} and its key {r[3]!r}"),
    asked("I-60b", "a key is kept once", "audit_key_twice",
          lambda r: f"{r[0]} keeps the key {r[1]!r} {r[2]} times"),
    asked("I-61", "a repeat names what the first telling became", "audit_first_telling",
          lambda r: f"{r[0]} repeats {r[1]!r} and names {r[2] or 'no run'}; the first telling became {r[3] or 'none'}"),
    asked("I-62", "nothing is admitted for, or started of, what was removed", "audit_after_removal",
          lambda r: f"{r[0]} was admitted at {rfc3339(r[1])} and started at {rfc3339(r[2]) or 'no time'}; "
                    f"it was removed at {rfc3339(r[3])}"),
    asked("N-15", "a pause admits nothing but by hand", "audit_admitted_asleep",
          lambda r: f"{r[0]} was admitted at {rfc3339(r[1])}; the pause was from {rfc3339(r[2])} until "
                    f"{rfc3339(r[3]) or 'now'}"),
    asked("I-70", "runs created are the runs there are and those that were pruned", "audit_conserved",
          lambda r: f"{r[0]} created {r[1]} runs; {r[2]} are there and {r[3]} were pruned"),
)
