"""Dates and instants as somebody writes them, in the zone of the definition."""

from __future__ import annotations

import re
from typing import Final

from nightporter.clock import Instant, moment
from nightporter.errors import BadSchedule
from nightporter.rules import schedule, zones

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_BEFORE_ALL: Final = Instant(zones.EARLIEST * 1_000_000)


def instant_of(text: str, timezone: str) -> Instant:
    """The instant of `2026-11-03T09:00`, with an offset or in the zone. Raises BadSchedule."""
    at = schedule.next_due(schedule.parse("at", text, timezone), _BEFORE_ALL)
    if at is None:
        raise BadSchedule(f"{text[:40]!r} is too far in the past", next="write a later date")
    return at


def end_of(text: str, timezone: str) -> Instant:
    """When something ends that is said to last until `text`: an instant, or the end of a day. Raises BadSchedule."""
    written = text.strip()
    return instant_of(written + "T24:00" if _DATE.fullmatch(written) else written, timezone)


def shown(at: Instant, timezone: str) -> str:
    """An instant as the zone's clock shows it, to the minute, as it is written in a definition."""
    return moment(at).astimezone(zones.zone(timezone)).strftime("%Y-%m-%dT%H:%M")
