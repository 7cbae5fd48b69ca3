"""Letting a machine run, so many nights."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from model.machine import LedgerMachine

STEPS = 30
"""Of one night, at most."""


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
        run_state_machine_as_test(factory, settings=chosen)
    finally:
        log.setLevel(before)
    return machine.examples, machine.tally
