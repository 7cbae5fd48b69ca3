"""Arrays: what is handed to PostgreSQL as the text of an array comes back as it was."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightporter.store.postgres_array import array
from nightporter.words import Reason

TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")) | st.sampled_from(
    ['"', "\\", '","', "NULL", "null", "", " ", "{}", "a,b", '\\"', "\n", "'"]
)
NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("values", [
    ["a", "b"], ["a", "a"], [None, None], ["a", None], ['","', '","'], ['a"', "b"], ["\\", "b"], [""], ["NULL", None],
    [Reason.OVERLAP, "overlap"], [Reason.OVERLAP] * 2, ["a", 'b","c'],
])
def test_texts_come_back_as_they_were(postgres_url: str, values: Sequence[str | None]) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT %s::text[]", (array(values),)).fetchone() == (list(values),)


def test_whatever_is_in_them(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(TEXTS, min_size=1, max_size=6), st.lists(NUMBERS, min_size=1, max_size=6))
        def same(texts: list[str | None], numbers: list[int | None]) -> None:
            found = connection.execute("SELECT %s::text[], %s::bigint[]", (array(texts), array(numbers))).fetchone()
            assert found == (texts, numbers)

        same()
