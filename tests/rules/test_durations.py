"""Durations are read as written, or refused with what to write."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightporter.errors import BadSchedule
from nightporter.rules.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("1w", timedelta(weeks=1)),
        ("1h30m", timedelta(minutes=90)),
        (" 1h 30m ", timedelta(minutes=90)),
        ("500ms", timedelta(milliseconds=500)),
        ("1m1ms", timedelta(minutes=1, milliseconds=1)),
        ("1.5h", timedelta(minutes=90)),
        ("0s", timedelta(0)),
        ("PT15M", timedelta(minutes=15)),
        ("P1D", timedelta(days=1)),
        ("P1DT12H", timedelta(hours=36)),
        ("PT0.5S", timedelta(milliseconds=500)),
        ("P2W", timedelta(weeks=2)),
    ],
)
def test_a_duration_is_what_is_written(written: str, meant: timedelta) -> None:
    assert parse_duration(written) == meant


@pytest.mark.parametrize(
    "written",
    ["", " ", "15", "abc", "m", "PT", "P", "P1M", "P1Y", "1mo", "1y", "-5m", "5 minutes ago", "NaN", "1e9d", "30m1h",
     "1h1h", "15M", "1,5h", "٣m", "1.h", ".5h", "999999999999999w", "P1DT", "inf"],
)  # fmt: skip
def test_what_is_no_duration_is_refused_with_what_to_write(written: str) -> None:
    with pytest.raises(BadSchedule) as refusal:
        parse_duration(written)
    assert refusal.value.what
    assert refusal.value.why
    assert refusal.value.next


def test_a_number_alone_is_asked_for_its_unit() -> None:
    with pytest.raises(BadSchedule) as refusal:
        parse_duration("30")
    assert refusal.value.next == "write 30s, 30m or 30h"


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(minutes=15), "15m"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=14), "2w"),
        (timedelta(days=10), "10d"),
        (timedelta(milliseconds=1500), "1s500ms"),
        (timedelta(microseconds=250), "0.25ms"),
        (timedelta(seconds=-5), "-5s"),
    ],
)
def test_a_duration_is_shown_short(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@settings(derandomize=True, database=None)
@given(st.timedeltas(timedelta(0), timedelta(days=36_525)))
def test_what_is_shown_can_be_read_again(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
