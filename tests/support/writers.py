"""A writer over transactions that fail where a test says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults import Faults

from nightporter.store.writer import Writer


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def kicked() -> list[frozenset[str]]:
    return []


@pytest.fixture
def writer(faults: Faults, kicked: list[frozenset[str]]) -> Iterator[Writer]:
    """A writer over transactions that fail where they are told to."""
    made = Writer(lambda: faults, kicked.append, group=10)
    yield made
    made.close()
