"""Letting a machine run, so many nights."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import run_state_machine_as_test

from model.machine import LedgerMachine

STEPS = 30
"""Of one night, at most."""


class _Told(KeyboardInterrupt):
    """Somebody ends this process. Hypothesis lets go of what is of this kind; a `SystemExit` it takes for a finding,
    plays that night again, and says that it is another one."""


def run_nights(
    machine: type[LedgerMachine], *, examples: int, steps: int = STEPS, from_seed: int | None = None,
    shrink: bool = True,
) -> tuple[int, Counter[str]]:
    """How many nights there were, and how often each thing was done. Raises what a night found, with its steps.
    Without a seed they are the same each time."""
    machine.tally, machine.examples = Counter(), 0
    repeated: dict[str, Any] = {"derandomize": True} if from_seed is None else {}
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
        phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate], report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck), verbosity=Verbosity.normal, **repeated,
    )
    factory: Any = machine if from_seed is None else seed(from_seed)(machine)
    log = logging.getLogger("nightporter")
    before = log.level
    log.setLevel(logging.CRITICAL)  # troubles are what it is all about
    try:
        # Its constants are those of whatever modules are loaded: the nights would be others beside other tests.
        with _gone_when_told_to(), patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None):
            run_state_machine_as_test(factory, settings=chosen)
    finally:
        log.setLevel(before)
    return machine.examples, machine.tally


@contextlib.contextmanager
def _gone_when_told_to() -> Iterator[None]:
    """Whoever is ended in the middle of a night goes at once, and has found nothing."""
    def told(*_: object) -> None:
        raise _Told

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield
    except _Told:
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
