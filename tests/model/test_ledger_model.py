"""A bounded number of nights, the same ones each time. `make soak PART=property` has as many as you like."""

from __future__ import annotations

import pytest
from databases import Databases

from model.nights import run_nights
from model.seeded import SEEDED, found_after
from model.soak import SqliteMachine, a_machine

SLOW_TO_FIND = {"the cooldown counts from a success", "what a spring night leaves out is not made up"}
"""They are left to the soak."""


@pytest.mark.timeout(900)  # what it finds it makes as small as can be, which takes its time
@pytest.mark.parametrize(("kind", "nights"), [("sqlite", 100), ("postgres", 8)])
def test_whatever_happens_the_ledger_is_what_the_account_says(kind: str, nights: int, databases: Databases) -> None:
    with a_machine(kind, databases) as machine:
        run_nights(machine, examples=nights)


@pytest.mark.parametrize("bug", sorted(SEEDED.keys() - SLOW_TO_FIND))
def test_a_bug_that_is_put_into_the_engine_is_found(bug: str) -> None:
    night, said = found_after(bug, SqliteMachine)
    assert night, said
