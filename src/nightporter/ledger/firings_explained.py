"""Why a firing became what it became."""

from __future__ import annotations

from typing import assert_never

from nightporter.clock import Instant
from nightporter.ledger.lateness import ON_TIME, answered_late, in_a_gap
from nightporter.ledger.lines import FiringLine
from nightporter.ledger.moments import spoken
from nightporter.ledger.runs_explained import asked, explain_run, zone_of
from nightporter.ledger.why import Explanation, because, clause, remedy, strange
from nightporter.store import Tx
from nightporter.words import Reason, Verdict

_OF_ITS_MOMENT = frozenset({Reason.OVERLAP, Reason.COOLDOWN, Reason.HOURLY_CEILING, Reason.QUEUE_FULL})
"""What is true when the slot is answered, and need not have been when it came."""


def explain_firing(tx: Tx, firing: FiringLine, now: Instant) -> Explanation:
    """Why a firing became what it became; of an admitted one, the explanation of its run."""
    timezone = zone_of(tx, firing.automation_id, firing.trigger_id)
    occasion = _occasion(firing, timezone)
    name = firing.automation
    why = because(firing.reason, firing.detail)
    next = remedy(firing.reason, name=name)
    if firing.verdict not in set(Verdict):
        text = f"What became of what came for {name} {occasion} cannot be told: {strange(firing.verdict)}."
        return Explanation("firing", firing.id, name, text, run_id=firing.run_id, firing_id=firing.id)
    verdict = Verdict(firing.verdict)
    match verdict:
        case Verdict.ADMITTED:
            if firing.run_id is not None and tx.read_run(firing.run_id) is not None:
                return explain_run(tx, firing.run_id, now)
            text = f"{name} ran {occasion} as {firing.run_id}, which is past its retention."
        case Verdict.REPEATED:
            first = f"became {firing.run_id}" if firing.run_id else "became no run"
            text = (f"{name} did not run again {occasion}: {clause(Reason.SUPPRESSED_DUPLICATE.sentence)}, and it "
                    f"{first} (the id is {firing.external_id}).")
        case Verdict.MERGED:
            text = f"{name} did not run by itself {occasion}: it was folded into {firing.run_id}, which was waiting."
        case Verdict.SKIPPED:
            text = f"{name} did not run {occasion}: {why}{_late(tx, firing, timezone)}. {next}"
        case Verdict.REFUSED:
            text = f"{name} refused what came {occasion}: {why}. {next}"
        case Verdict.MISSED:
            text = f"{name} missed its moment {occasion}: {why}{_desk_back(tx, firing, timezone)}. {next}"
        case Verdict.COLLAPSED:
            back = _desk_back(tx, firing, timezone) if firing.reason == Reason.MISSED_POLICY else ""
            text = f"{name} did not run {occasion}, and one line stands for all of it: {why}{back}. {next}"
        case _:
            assert_never(verdict)
    return Explanation(
        "firing", firing.id, name, text.strip(), verdict=firing.verdict, reason=firing.reason, run_id=firing.run_id,
        firing_id=firing.id,
    )


def _late(tx: Tx, firing: FiringLine, timezone: str) -> str:
    """Why what stood in the way is that of a later moment than the slot, where it is."""
    if (firing.reason not in _OF_ITS_MOMENT or firing.scheduled_for is None
            or firing.arrived_at - firing.scheduled_for <= ON_TIME):
        return ""
    cause = answered_late(tx, firing.scheduled_for, firing.arrived_at, timezone)
    return f". Its slot was answered only at {spoken(firing.arrived_at, timezone)}: {cause}"


def _desk_back(tx: Tx, firing: FiringLine, timezone: str) -> str:
    """Why nobody answered it then: a gap that it lies in, or when the desk came back, where it had a start since."""
    gap = in_a_gap(tx, firing.slot_from or firing.arrived_at, timezone)
    if gap is not None:
        return f"; {gap}"
    began = tx.read_desk_after(firing.slot_from or firing.arrived_at, firing.arrived_at)
    return f"; the desk was back at {spoken(began, timezone)}" if began is not None else ""


def _occasion(firing: FiringLine, timezone: str) -> str:
    if firing.slots is not None and firing.slot_from is not None and firing.slot_to is not None:
        first = spoken(firing.slot_from, timezone)
        if firing.slots == 1:
            return f"for its slot of {first}"
        least = "" if firing.slots_exact else "at least "
        return f"for {least}{firing.slots} slots from {first} to {spoken(firing.slot_to, timezone)}"
    if firing.scheduled_for is not None:
        return f"for its slot of {spoken(firing.scheduled_for, timezone)}"
    return f"when {asked(firing.source, firing.sender, firing.arrived_at, timezone)}"
