"""The course of a run: its states, the log of them, and who has it."""

from __future__ import annotations

from collections.abc import Mapping

from nightporter.clock import MINUTE, Instant, micros, rfc3339
from nightporter.ledger.audit.check import Check, Tally, Terms, asked
from nightporter.ledger.audit.definitions import readable
from nightporter.states import ENDED, TRANSITIONS, AutomationState, DeliveryState, RunState
from nightporter.store import Tx
from nightporter.words import ErrorClass, Outcome, Reason, Receipt

BLOCKED = frozenset({"time", "overlap", "concurrency", "paused"})
RUNNING_LONG = 30 * MINUTE
"""Beyond its timeout. Durations follow a clock that stands while a machine sleeps; this one is only a backstop."""
PAGE = 1000

_EDGES = {(None, RunState.QUEUED), *((before, after) for (before, _), after in TRANSITIONS.items())}
_OUTCOMES: Mapping[RunState, frozenset[Outcome | None]] = {
    RunState.SUCCEEDED: frozenset({Outcome.REPORT, Outcome.ACTION, Outcome.NEEDS_YOU}),
    RunState.SKIPPED: frozenset({Outcome.NOOP}),
    RunState.FAILED: frozenset({Outcome.FAILED}),
    RunState.TIMED_OUT: frozenset({Outcome.FAILED}),
}


def _words(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()

    def look(where: str, value: str | None, known: frozenset[str], count: int, example: str) -> None:
        if value is not None and value not in known:
            tally.add(f"{where} is {value!r} on {count} rows, {example} among them", count)

    reasons = frozenset(Reason)
    for state, outcome, reason, error_class, blocked, cancel_reason, count, example in tx.sums("audit_run_groups"):
        look("run.state", state, frozenset(RunState), count, example)
        look("run.outcome", outcome, frozenset(Outcome), count, example)
        look("run.reason", reason, reasons, count, example)
        look("run.error_class", error_class, frozenset(ErrorClass), count, example)
        look("run.blocked", blocked, BLOCKED, count, example)
        look("run.cancel_reason", cancel_reason, reasons, count, example)
    for before, after, reason, error_class, count, example in tx.sums("audit_transition_groups"):
        look("transition.from_state", before, frozenset(RunState), count, example)
        look("transition.to_state", after, frozenset(RunState), count, example)
        look("transition.reason", reason, reasons, count, example)
        look("transition.error_class", error_class, frozenset(ErrorClass), count, example)
    for state, reason, count, example in tx.sums("audit_delivery_word_groups"):
        look("delivery.state", state, frozenset(DeliveryState), count, example)
        look("delivery.reason", reason, reasons, count, example)
    known = {
        "automation.state": frozenset(AutomationState), "delivery_try.result": frozenset(Receipt),
        "effect.state": frozenset({"intended", "done"}),
    }
    for where, value, count, example in tx.sums("audit_other_word_groups"):
        look(where, value, known[where], count, example)
    return tally


def _edges(tx: Tx, terms: Terms) -> Tally:
    """What leaves an ended state is I-23's business, and an unknown word I-22's."""
    tally = Tally()
    known = frozenset(RunState)
    for before, after, _, _, count, example in tx.sums("audit_transition_groups"):
        if before not in ENDED and {before or after, after} <= known and (before, after) not in _EDGES:
            tally.add(f"{example} and {count - 1} others went from {before or 'nothing'} to {after}", count)
    return tally


def _together(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    for state, outcome, reason, _, blocked, _, count, example in tx.sums("audit_run_groups"):
        if state not in set(RunState):
            continue
        allowed = _OUTCOMES.get(RunState(state), frozenset({None}))
        if state == RunState.FAILED and reason in (Reason.DISMISSED, Reason.DELETED):
            allowed = frozenset({None})  # a person closed it, or removed its automation; nobody can say what it was
        if state == RunState.SKIPPED and reason == Reason.STALE:
            allowed = frozenset({None})  # it was never begun
        if outcome not in allowed:
            tally.add(f"{example}, one of {count}, is {state} with the outcome {outcome}", count)
        waits = {RunState.QUEUED: blocked is None or blocked in BLOCKED, RunState.HELD: blocked == "time"}
        if not waits.get(RunState(state), blocked is None):
            tally.add(f"{example}, one of {count}, is {state} and waits for {blocked or 'nothing'}", count)
    return tally


def _running_long(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    before, after = Instant(terms.now - RUNNING_LONG), ""
    while rows := tx.running_long(started_before=before, after=after, room=PAGE):
        definitions = readable(tx, {(automation, version) for _, automation, version, _ in rows})
        for run, automation, version, attempt_at in rows:
            definition = definitions.get((automation, version))
            if definition is None or definition.limits.timeout is None:
                continue
            if attempt_at + micros(definition.limits.timeout) < before:
                tally.add(f"{run} has been running since {rfc3339(attempt_at)}; its timeout is "
                          f"{definition.limits.timeout}")
        after = rows[-1][0]
    return tally


CHECKS = (
    Check("I-22", "states, reasons and other words come from their lists", _words),
    asked("I-23", "a run ends once, and nothing follows", "audit_ended_once",
          lambda r: f"{r[0]} ended {r[2]} times in {r[1]} steps, or went on"),
    asked("I-24", "a run's state is where its log ends", "audit_row_and_log",
          lambda r: f"{r[0]} is {r[1]} at step {r[2]}; its log says {r[3] or 'nothing'} there"),
    Check("I-25", "a run only took steps that there are", _edges),
    asked("I-26", "each step begins where the one before it ended, in number and in time", "audit_log_chain",
          lambda r: f"{r[0]}: step {r[1]} is from {r[2] or 'nothing'} at {rfc3339(r[4])}; the one before led to "
                    f"{r[3] or 'nothing'} at {rfc3339(r[5]) or 'no time'}"),
    asked("I-27", "a run's instants are those of its log, and it has an end exactly when it ended", "audit_instants",
          lambda r: f"{r[0]} is {r[1]}, and its {r[2]} is not what its log says"),
    Check("N-04", "a run's state, outcome and what it waits for go together", _together),
    asked("I-28", "what runs is held by a worker, under a token", "audit_running_unheld",
          lambda r: f"{r[0]} runs under {r[1] or 'nobody'}, token {r[2]}, attempt {r[3]}"),
    asked("I-29", "what an ended worker held is taken back within a minute", "audit_running_under_the_dead",
          lambda r: f"{r[0]} runs under {r[1]}, which ended at {rfc3339(r[2])}"),
    asked("I-30", "a boot leaves nothing running under a worker that had ended", "audit_running_since_before_boot",
          lambda r: f"{r[0]} runs under {r[1]}, which ended at {rfc3339(r[2])}, before the boot"),
    asked("I-31", "no run waits for more than ten minutes without a cause", "audit_queue_stands",
          lambda r: f"{r[0]} of {r[1]} could have been claimed since {rfc3339(r[2])}; nothing of its workspace was"),
    asked("N-05", "what waits for another run has one to wait for", "audit_waits_for_nobody",
          lambda r: f"{r[0]} of {r[1]} waits ({r[2]}), and no run of it is going"),
    asked("N-06", "what a pause holds back is held by a pause", "audit_held_by_no_pause",
          lambda r: f"{r[0]} of {r[1]} waits for a pause to end, and the automation is {r[2]}"),
    asked("N-07", "no run is left lost", "audit_left_lost",
          lambda r: f"{r[0]} was lost with {r[1]} at {rfc3339(r[2]) or 'no time'}, and nothing became of it"),
    asked("N-24", "a run ended as its look answered, and what looks keep was left by runs that ended well",
          "audit_looks", lambda r: f"{r[0]} is {r[1]} ({r[2] or 'no reason'}) and {r[3]}"),
    Check("N-08", "no run is still running half an hour beyond its timeout", _running_long),
)
