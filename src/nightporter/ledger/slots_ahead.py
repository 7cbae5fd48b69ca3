"""What will become of a slot that comes: whether it is left out, what will hold it, and what it will be asked."""

from __future__ import annotations

from nightporter.clock import Instant
from nightporter.ledger.ahead import GateAhead, Standing, gates_ahead
from nightporter.ledger.lines import AutomationLine, TriggerLine
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.why import Explanation, Fact, clause, remedy
from nightporter.rules.exclusions import excluded, next_running
from nightporter.store import Tx
from nightporter.words import Policy, Reason

_AS_QUESTIONS = {
    Reason.OVERLAP: "whether the run before it has ended",
    Reason.INCIDENT_HOLD: "whether an incident of it is open",
}


def explain_ahead(tx: Tx, line: AutomationLine, trigger: TriggerLine, slot: Instant, now: Instant) -> Explanation:
    """Of a slot that has not come. Raises NightporterError, ValueError where the trigger cannot be read."""
    schedule = trigger.schedule
    if schedule is None:
        raise ValueError(f"{trigger.id} has no schedule")
    zone = schedule.timezone
    when, left = spoken(slot, zone), lasting(slot - now)
    row = tx.read_trigger(trigger.id)
    policy = Policy.from_json(row[5] if row is not None else "")
    runs = tx.counted_runs(line.id)
    standing = Standing(line.state, line.state_by, line.state_until, line.state_reason, tx.stopped(), runs)
    gates = gates_ahead(policy, standing, slot, zone)
    held = next((gate for gate in gates if gate.holds), None)
    left_out = excluded(schedule, slot)
    reason: str | None = None
    if left_out is not None:
        following = next_running(schedule, slot)
        then = "" if following is None else f" The next one at which it runs is {spoken(following, zone)}."
        text = f"{line.name} has a slot at {when}, in {left}, and will not run: {left_out} is left out.{then}"
    elif held is not None:
        reason = held.gate
        then = remedy(held.gate, name=line.name)
        text = f"{line.name} has a slot at {when}, in {left}, and will not run as things stand: {held.text}. {then}"
    elif line.state not in ("active", "paused", "auto_paused"):  # a pause whose end comes first holds nothing then
        text = f"{line.name} would run at {when}, but it is {line.state.replace('_', ' ')}."
    else:
        text = f"{line.name} will run at {when}, in {left}{_asked(gates)}."
    facts = [Fact("slot", when), Fact("trigger", f"{trigger.name}: {clause(trigger.sentence)}")]
    facts += [Fact("left out", left_out)] if left_out is not None else []
    facts += [Fact("held by" if gate.holds else "will be asked", f"{gate.gate}: {gate.text}") for gate in gates]
    return Explanation("automation", line.id, line.name, text.rstrip(), reason=reason, slot=slot, facts=tuple(facts))


def _asked(gates: tuple[GateAhead, ...]) -> str:
    """What is asked when the slot has come, as the end of a sentence."""
    if not gates:
        return ""
    questions = [_AS_QUESTIONS.get(Reason(gate.gate), f"{gate.gate.replace('_', ' ')} ({gate.text})") for gate in gates]
    listed = questions[0] if len(questions) == 1 else f"{', '.join(questions[:-1])} and {questions[-1]}"
    return f"; when it comes, it is asked about {listed}".replace("asked about whether", "asked whether", 1)
