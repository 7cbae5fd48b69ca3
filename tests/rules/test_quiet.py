"""Quiet hours: when it is one, and when it ends, on ordinary nights and on those on which the clock is changed."""

from __future__ import annotations

import pytest

from nightporter.clock import DAY, Instant, rfc3339
from nightporter.errors import BadInput
from nightporter.rules.quiet import parse, quiet_until, written
from nightporter.rules.schedule import next_due
from nightporter.rules.schedule import parse as schedule
from nightporter.words import QuietHours


def at(text: str) -> Instant:
    """The instant of an RFC 3339 text."""
    found = next_due(schedule("at", text, "UTC"), Instant(0))
    assert found is not None
    return found


def ends(now: str, *spans: str, timezone: str = "UTC") -> str | None:
    return rfc3339(quiet_until(QuietHours(tuple(map(written, spans)), timezone), at(now)))


NIGHT = "22:00-07:00"


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-06-10T21:59:59.999999Z", None),
        ("2026-06-10T22:00:00Z", "2026-06-11T07:00:00Z"),
        ("2026-06-11T00:00:00Z", "2026-06-11T07:00:00Z"),
        ("2026-06-11T06:59:59.999999Z", "2026-06-11T07:00:00Z"),
        ("2026-06-11T07:00:00Z", None),
    ],
)
def test_a_night_goes_across_midnight(now: str, end: str | None) -> None:
    assert ends(now, NIGHT) == end


def test_hours_are_those_of_the_zone() -> None:
    assert ends("2026-06-10T20:30:00Z", NIGHT, timezone="Europe/Lisbon") is None
    assert ends("2026-06-10T20:30:00Z", NIGHT, timezone="Europe/Berlin") == "2026-06-11T05:00:00Z"


def test_days_are_those_on_which_it_begins() -> None:
    friday = "fri 22:00-07:00"  # the 12th of June 2026 is one
    assert ends("2026-06-12T06:00:00Z", friday) is None
    assert ends("2026-06-12T23:00:00Z", friday) == "2026-06-13T07:00:00Z"
    assert ends("2026-06-13T06:00:00Z", friday) == "2026-06-13T07:00:00Z"
    assert ends("2026-06-13T23:00:00Z", friday) is None


def test_hours_that_follow_one_another_are_one_silence() -> None:
    weekend = "sat,sun 00:00-24:00"
    assert ends("2026-06-12T23:00:00Z", NIGHT, weekend) == "2026-06-15T07:00:00Z"
    assert ends("2026-06-14T12:00:00Z", weekend) == "2026-06-15T00:00:00Z"


def test_what_never_ends_is_asked_for_as_far_as_somebody_would_read() -> None:
    end = quiet_until(QuietHours(("00:00-24:00",), "UTC"), at("2026-06-14T12:00:00Z"))
    assert end is not None
    assert end - at("2026-06-14T12:00:00Z") > 7 * DAY


@pytest.mark.parametrize(
    ("now", "span", "end"),
    [
        # the clock goes from 02:00 to 03:00 on the 29th of March: what ends in between ends then
        ("2026-03-29T00:30:00Z", "22:00-02:30", "2026-03-29T01:00:00Z"),
        ("2026-03-29T00:59:59Z", "02:30-04:00", None),
        ("2026-03-29T01:00:00Z", "02:30-04:00", "2026-03-29T02:00:00Z"),
        # and from 03:00 back to 02:00 on the 25th of October: it is quiet until it has been 02:30 for the last time
        ("2026-10-25T00:45:00Z", "22:00-02:30", "2026-10-25T01:30:00Z"),
        ("2026-10-25T01:29:59Z", "22:00-02:30", "2026-10-25T01:30:00Z"),
        ("2026-10-25T01:30:00Z", "22:00-02:30", None),
        # and from when it first was
        ("2026-10-25T00:30:00Z", "02:30-04:00", "2026-10-25T03:00:00Z"),
        ("2026-10-25T01:15:00Z", "02:30-04:00", "2026-10-25T03:00:00Z"),
    ],
)
def test_on_the_nights_of_change_hours_are_what_the_clock_shows(now: str, span: str, end: str | None) -> None:
    assert ends(now, span, timezone="Europe/Berlin") == end


def test_where_none_are_set_it_is_never_quiet() -> None:
    assert quiet_until(None, Instant(0)) is None
    assert quiet_until(QuietHours((), "UTC"), Instant(0)) is None


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("22:00-07:00", "22:00-07:00"),
        ("9:00 - 17:30", "09:00-17:30"),
        ("Mon-Fri 22:00-07:00", "mon,tue,wed,thu,fri 22:00-07:00"),
        ("sun, sat 00:00-24:00", "sat,sun 00:00-24:00"),
        ("fri-mon 22:00-07:00", "mon,fri,sat,sun 22:00-07:00"),
        ("mon-sun 22:00-07:00", "22:00-07:00"),
    ],
)
def test_a_span_is_stored_in_one_form(text: str, stored: str) -> None:
    assert written(text) == stored
    assert parse(stored) == parse(text)


@pytest.mark.parametrize("text", ["22-7", "22:00", "25:00-07:00", "22:60-07:00", "07:00-07:00", "", "noon-17:00",
                                  "weekdays 22:00-07:00", "22:00-24:01", "24:00-07:00"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        written(text)
