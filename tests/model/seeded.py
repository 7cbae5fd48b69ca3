"""Bugs that are put into the engine, to see that random nights find them."""

from __future__ import annotations

import contextlib
import importlib
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any
from unittest.mock import patch

from model.machine import LedgerMachine
from model.nights import run_nights
from nightporter import admission
from nightporter.operations import sleep
from nightporter.rules import gates, slots
from nightporter.store.sqlite import SqliteTransactions
from nightporter.store.tx_admission import AdmissionTx
from nightporter.store.tx_clock import ClockTx
from nightporter.store.tx_delivery import DeliveryTx
from nightporter.store.tx_dispatch import DispatchTx

# By their names: the package has functions of these names.
end, recover = (importlib.import_module(f"nightporter.dispatch.{name}") for name in ("end", "recover"))

NIGHTS = 1000
"""In how many of them a bug is to be found."""

_fences, _health, _create = DispatchTx.fences, DispatchTx.note_health, DeliveryTx.create_deliveries


def _no_slot_is_moved(self: Any, moves: Sequence[Any], *, tzdata: str) -> set[str]:
    return {armed.trigger_id for armed, _ in moves}


def _any_token(self: Any, claims: Sequence[tuple[str, int]]) -> Any:
    now = dict(self.sql._connection.execute("SELECT id, token FROM run"))
    found = _fences(self, [(run, now.get(run, token)) for run, token in claims])
    return {(run, token): found[run, now[run]] for run, token in claims if (run, now.get(run)) in found}


def _one_forgotten(self: Any, rows: Sequence[Any], *, now: int) -> None:
    _create(self, rows[:-1], now=now)  # type: ignore[arg-type]


def _starts_of_the_good(self: Any, rows: Sequence[Any]) -> Any:
    for row in rows:
        if row[3] is not None:
            self.sql.each("automation_started", [(row[0],)], now=row[3])
    return _health(self, rows)


def _kept_for_good(self: Any) -> None:
    if self._saved:
        self._connection.execute("RELEASE job")


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _without(name: str) -> tuple[Any, ...]:
    return tuple(gate for gate in gates.OF_THE_RUN if gate.__name__ != name)


SEEDED: dict[str, Callable[[], Collection[Any]]] = {
    "a repeat is not known again": lambda: [patch.object(admission, "_keeps_key", lambda *_: False)],
    "a slot is answered and not moved on": lambda: [patch.object(ClockTx, "advance", _no_slot_is_moved)],
    "a lost claim is not fenced": lambda: [patch.object(DispatchTx, "fences", _any_token)],
    "a trigger does not count": lambda: [patch.object(AdmissionTx, "count_triggers", _nothing)],
    "one delivery of an ending is forgotten": lambda: [
        patch.object(DeliveryTx, "create_deliveries", _one_forgotten)],
    "the bound of the waiting line is ignored": lambda: [
        patch.object(admission, "OF_THE_RUN", _without("line_has_room"))],
    "the cooldown counts from a success": lambda: [
        patch.object(DispatchTx, "note_starts", _nothing),
        patch.object(DispatchTx, "note_health", _starts_of_the_good)],
    "within a batch nobody counts those before": lambda: [
        patch.object(gates.Load, "with_one_more", lambda self, *_, **__: self)],
    "nobody lets go what waited behind a run": lambda: [
        patch.object(end, "release_behind", _nothing), patch.object(recover, "release_behind", _nothing)],
    "what may have acted is repeated": lambda: [patch.object(recover, "may_repeat", lambda *_: True)],
    "nobody is asked about a review": lambda: [
        patch.object(end, "announce_reviews", _nothing), patch.object(recover, "announce_reviews", _nothing)],
    "the line of a pause counts one too few": lambda: [
        patch.object(sleep, "count_between", lambda schedule, since, until, cap: (1, True))],
    "what a spring night leaves out is not made up": lambda: [patch.object(slots, "_CORRECTION", 0)],
    "a write that failed is kept by half": lambda: [patch.object(SqliteTransactions, "rollback_to", _kept_for_good)],
}
"""By what is wrong: the patches that make it so."""


@contextlib.contextmanager
def seeded(name: str) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for each in SEEDED[name]():
            stack.enter_context(each)
        yield


def found_after(name: str, machine: type[LedgerMachine], *, from_seed: int | None = None) -> tuple[int, str]:
    """In which night a bug is found, and what is said of it; 0 where it is not. Raises what is no finding of a
    check: the nights themselves went wrong then."""
    with seeded(name):
        try:
            run_nights(machine, examples=NIGHTS, from_seed=from_seed, shrink=False)
        except Exception as error:
            if not is_a_finding(error):
                raise
            return machine.examples, f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return 0, ""


def is_a_finding(error: BaseException) -> bool:
    """Whether a check of the model says so, and not an assertion of the engine, a fall or a flaw of the nights."""
    if isinstance(error, BaseExceptionGroup):  # several findings, each of which must be one
        return all(map(is_a_finding, error.exceptions))
    if not isinstance(error, AssertionError) or error.__traceback__ is None:
        return False
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals["__name__"]).startswith("model.")
