"""What somebody means by a time of day, an instant or a span."""

from __future__ import annotations

import pytest

from nightporter.clock import HOUR, Instant, rfc3339
from nightporter.errors import BadSchedule
from nightporter.ledger.moments import asked_moment, asked_span

NOW = Instant(1_774_602_000_000_000)
"""2026-03-27T09:00:00Z, 10:00 in Berlin."""


@pytest.mark.parametrize(("text", "ahead", "means"), [
    ("09:59", False, "2026-03-27T08:59:00Z"), ("10:00", False, "2026-03-27T09:00:00Z"),
    ("10:01", False, "2026-03-26T09:01:00Z"), ("9:59:30", False, "2026-03-27T08:59:30Z"),
    ("10:00:01", False, "2026-03-26T09:00:01Z"), ("09:59", True, "2026-03-28T08:59:00Z"),
    ("10:00:01", True, "2026-03-27T09:00:01Z"), ("2026-03-01T00:00", False, "2026-02-28T23:00:00Z"),
])
def test_a_time_of_day_is_the_last_or_the_next_one(text: str, ahead: bool, means: str) -> None:
    assert rfc3339(asked_moment(text, "Europe/Berlin", NOW, ahead=ahead)) == means


def test_a_span_goes_back_or_ahead() -> None:
    assert asked_span("2h", "UTC", NOW) == NOW - 2 * HOUR
    assert asked_span("2h", "UTC", NOW, ahead=True) == NOW + 2 * HOUR


@pytest.mark.parametrize("text", ["yesterday", "25:00", "2026-13-01T00:00", ""])
def test_what_is_neither_is_refused_with_every_form(text: str) -> None:
    with pytest.raises(BadSchedule) as caught:
        asked_span(text, "UTC", NOW)
    assert all(form in caught.value.next for form in ("2h", "07:30", "2026-11-03T07:30"))
