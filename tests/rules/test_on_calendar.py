"""OnCalendar expressions are read as systemd reads them, or refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightporter.clock import Instant, instant, rfc3339
from nightporter.errors import BadSchedule
from nightporter.rules.on_calendar import on_calendar
from nightporter.rules.plain import read_words
from nightporter.rules.schedule import next_due

VECTORS = json.loads((Path(__file__).parent / "data" / "on_calendar.json").read_text(encoding="utf-8"))["vectors"]
NOW = instant(datetime(2026, 12, 1, tzinfo=UTC))
BEYOND_US = {"*-*-* 9:00:00.5": "seconds are whole ones"}
"""What systemd takes and we refuse, with the reason."""


def fires(text: str, count: int) -> list[str | None]:
    schedule = read_words(text, "UTC").schedule
    found: list[str | None] = []
    slot: Instant | None = NOW
    while slot is not None and len(found) < count:
        slot = next_due(schedule, slot)
        found += [] if slot is None else [rfc3339(slot)]
    return found


@pytest.mark.parametrize(("text", "expected"), VECTORS, ids=[text for text, _ in VECTORS])
def test_an_expression_fires_when_systemd_says_or_is_refused_as_there(text: str, expected: list[str] | None) -> None:
    if expected is None or text in BEYOND_US:
        with pytest.raises(BadSchedule, match=BEYOND_US.get(text, ".")):
            read_words(text, "UTC")
    else:
        assert fires(text, 5) == expected


def test_a_zone_at_the_end_is_the_zone_of_the_schedule() -> None:
    assert on_calendar("Sun *-*-* 03:00 Europe/Lisbon", "UTC").schedule.timezone == "Europe/Lisbon"
    assert on_calendar("Sun *-*-* 03:00", "Asia/Tokyo").schedule.timezone == "Asia/Tokyo"


@pytest.mark.parametrize(("text", "why"), [
    ("2026..2028-*-* 0:0", "no years"), ("Mon..Fry 9:00", "no day of the week"), ("*-*-* 9", "is no day of the week"),
    ("*-*-1-1 9:00", "goes from 1 to 31|a part is|a date is"), ("1..0:00", "upwards"),
    ("*:30/40", "beyond 59 at once"), ("*-5/9-1", "beyond 12 at once"), ("*-*~2/2", "beyond the last day at once"),
])
def test_a_refusal_names_the_part(text: str, why: str) -> None:
    with pytest.raises(BadSchedule, match=why):
        on_calendar(text, "UTC")
