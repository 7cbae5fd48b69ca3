"""What in the ledger cannot be read as what it should be, each row once, with its id and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from nightporter.clock import Instant
from nightporter.errors import NightporterError
from nightporter.ledger.home import Finding
from nightporter.rules.schedule import next_due
from nightporter.states import AutomationState, DeliveryState, RunState
from nightporter.store import Tx
from nightporter.store.tx_clock import schedule_from
from nightporter.store.tx_strange import STRANGE
from nightporter.words import Policy, Receipt, Sleep, Verdict
from nightporter.words.kept import read_back

ROWS = 10_000
"""Triggers and payloads that are looked into at most."""
KINDS = ("clock", "manual", "call")

_KNOWN: dict[str, tuple[str, ...]] = {
    "automation": tuple(AutomationState), "trigger": KINDS, "pause": tuple(Sleep), "firing": tuple(Verdict),
    "run": tuple(RunState), "transition": tuple(RunState), "effect": ("intended", "done"),
    "delivery": tuple(DeliveryState), "delivery_try": tuple(Receipt),
}


def strange_rows(tx: Tx, now: Instant, room: int) -> Iterator[Finding]:
    """A finding for each row, `room` at most of each kind. Those that are quarantined are named already."""
    named: set[str] = set()
    for table in STRANGE:
        for key, column, value in tx.strange_rows(table, _KNOWN.get(table, ()), room):
            if key not in named:
                named.add(key)
                yield _named(table, key, f"its {column} is {_short(value)}", "nothing that this program writes there")
    for trigger, policy, schedule in tx.triggers_in_the_loop(ROWS):
        why = _unreadable(policy, schedule, now)
        if why and trigger not in named:
            named.add(trigger)
            yield _named("trigger", trigger, "it cannot be read", why)
    for run, payload in tx.payloads_to_come(ROWS):
        try:
            read_back(payload)
        except ValueError as error:
            if run not in named:
                named.add(run)
                yield _named("run", run, "its payload cannot be read", str(error))


def _named(table: str, key: str, what: str, why: str) -> Finding:
    return Finding("unreadable_row", "error", f"{table} {key}: {what}", why,
                   "mend the row, or restore the latest backup beside the store; the rest of the desk goes on", key)


def _unreadable(policy: str, schedule: str | None, now: Instant) -> str:
    try:
        Policy.from_json(policy)
        if schedule is not None:
            next_due(schedule_from(schedule), now)
    except (NightporterError, ValueError, ArithmeticError) as error:
        return " ".join(str(error).split())[:200]
    return ""


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
