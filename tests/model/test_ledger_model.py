"""A bounded number of nights, the same ones each time. `make soak PART=property` has as many as you like."""

from __future__ import annotations

import pytest
from databases import Databases

from model.soak import a_machine, run_nights


@pytest.mark.parametrize(("kind", "nights"), [("sqlite", 100), ("postgres", 12)])
def test_whatever_happens_the_ledger_is_what_the_account_says(kind: str, nights: int, databases: Databases) -> None:
    with a_machine(kind, databases) as machine:
        run_nights(machine, examples=nights)
