"""Attempts: effects happen once, failures are retried as declared, dead letters are announced."""

from __future__ import annotations

from nightporter.clock import rfc3339
from nightporter.ledger.audit.check import Check, Tally, Terms, asked
from nightporter.ledger.audit.definitions import readable
from nightporter.rules.ending import Traces, may_repeat
from nightporter.rules.retry import worth_another
from nightporter.store import Tx
from nightporter.words import ErrorClass


def _retries(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    groups = tx.sums("audit_retry_groups")
    definitions = readable(tx, {(automation, version) for automation, version, *_ in groups})
    for automation, version, error_class, count, example in groups:
        definition = definitions.get((automation, version))
        known = error_class in set(ErrorClass)
        if definition is not None and not (known and worth_another(ErrorClass(error_class), definition.retry)):
            tally.add(f"{example}, one of {count} of {automation}, was tried again after {error_class or 'no error'}",
                      count)
    return tally


def _cut_short(tx: Tx, terms: Terms) -> Tally:
    tally = Tally()
    groups = tx.sums("audit_cut_short_groups")
    definitions = readable(tx, {(automation, version) for automation, version, *_ in groups})
    for automation, version, count, example in groups:
        definition = definitions.get((automation, version))
        if definition is None or not may_repeat(definition, Traces(acted=True)):
            tally.add(f"{example}, one of {count} of {automation}, may have acted, was cut short and was queued again",
                      count)
    return tally


CHECKS = (
    asked("I-39", "an effect is intended, then done", "audit_effect_shape",
          lambda r: f"{r[0]}: effect {r[1]!r} is {r[2]}, intended at {rfc3339(r[3])}, "
                    f"done at {rfc3339(r[4]) or 'no time'}"),
    asked("I-40", "what may have happened is not tried again unasked", "audit_doubtful_repeats",
          lambda r: f"{r[0]} was queued again after its attempt was cut short; "
                    f"effect {r[1]!r} ({r[2]}) may have happened"),
    Check("N-10", "an attempt that may have acted and was cut short repeats only where that is declared", _cut_short),
    asked("N-11", "an attempt that has ended leaves no mark of being under way", "audit_left_marks",
          lambda r: f"{r[0]}: {r[1]} under token {r[2]} is still there"),
    asked("I-41", "no run has more attempts than it may", "audit_attempts_bounded",
          lambda r: f"{r[0]} is {r[1]} after attempt {r[2]} of {r[3]}"),
    asked("I-42", "a run's token and attempt are what its log adds up to", "audit_attempts_and_log",
          lambda r: f"{r[0]} has token {r[1]} and attempt {r[2]}; its log has {r[3]} claims, {r[4]} given back"),
    Check("I-43", "only what may end differently is tried again", _retries),
    asked("I-44", "what failed for good is a dead letter, announced, and nothing else is", "audit_dead_letters",
          lambda r: f"{r[0]} is {r[1]}; as a dead letter it {r[2]}"),
    asked("I-45", "a retry waits", "audit_backoff",
          lambda r: f"{r[0]} is due again at {rfc3339(r[1])}, and its attempt ended at {rfc3339(r[2])}"),
    asked("N-12", "what a person has to decide was put before one", "audit_unannounced",
          lambda r: f"{r[0]} {r[1]}, and no message says so"),
)
