"""`next` of all automations, and the same as a calendar file that other programs can read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from icalendar import Calendar
from shell import Shell

pytest_plugins = ["homes"]


@pytest.fixture
def two(shell: Shell) -> Shell:
    for name, when in (("brief", "0 9 * * *"), ("backup", "0 9 * * *"), ("tea", "0 16 * * *")):
        assert shell("add", when, "hello", "--name", name, "--timezone", "Europe/Berlin").code == 0
    return shell


def test_what_comes_of_all_is_a_table_with_notes_and_a_warning_about_who_meets(two: Shell) -> None:
    for words in (("next",), ("next", "--all")):
        said = two(*words, "-n", "3")
        assert said.code == 0
        lines = said.out.splitlines()
        assert len(lines) == 4
        assert any("with backup" in line and " brief " in line for line in lines)
        assert "mind: backup, brief are due in the same minute 7 times; let brief by 1 min come later" in said.err


def test_days_and_until_bound_it(two: Shell) -> None:
    assert len(two("next", "--days", "2", "--json").json["items"]) == 6
    assert len(two("next", "--until", "24h", "--json").json["items"]) == 3
    assert two("next", "tea", "--days", "4", "--json").json["items"][0]["automation"] == "tea"
    for wrong in (("--days", "0"), ("--days", "1", "--until", "2h"), ("--all", "tea"),
                  ("--every", "5m", "--days", "2")):
        assert two("next", *wrong).code == 2, wrong


def test_in_json_clusters_stand_beside_the_fires(two: Shell) -> None:
    found = two("next", "--json").json
    assert (set(found), found["next_cursor"]) == ({"items", "next_cursor", "clusters"}, None)
    assert found["clusters"][0]["stagger_minutes"] == {"brief": 1}
    assert two("audit", "--json").json["clusters"] == found["clusters"]
    [note] = [item for item in two("doctor", "--json").json["items"] if item["code"] == "cluster"]
    assert note["severity"] == "note"


def test_a_paused_automation_is_shown_and_said_to_be_held(two: Shell) -> None:
    two("disable", "tea")
    shown = two("next", "-n", "3").out
    assert "held: paused by" in shown
    assert "Nothing is armed: tea is paused." in two("next", "tea").out


def test_a_calendar_file_has_an_event_for_each_fire_with_ids_that_stay(two: Shell, tmp_path: Path) -> None:
    path = tmp_path / "night.ics"
    assert two("next", "--ical", str(path), "--days", "5").code == 0
    fires = two("next", "--days", "5", "--json").json["items"]
    first = Calendar.from_ical(path.read_bytes())
    events = list(first.walk("VEVENT"))
    assert [str(event["summary"]) for event in events] == [fire["automation"] for fire in fires]
    starts = [event.decoded("dtstart") for event in events]
    assert starts == [datetime.fromisoformat(fire["at"]).astimezone(UTC) for fire in fires]
    assert all(event.decoded("dtend") > event.decoded("dtstart") for event in events)
    assert (str(first["version"]), first["prodid"] != "") == ("2.0", True)
    ids = [str(event["uid"]) for event in events]
    assert len(set(ids)) == len(ids) == 15
    again = Calendar.from_ical(two("next", "--ical", "-", "--days", "5").out)
    assert [str(event["uid"]) for event in again.walk("VEVENT")] == ids
    assert b"\r\n" in path.read_bytes()


def test_in_a_calendar_what_is_held_is_tentative(two: Shell) -> None:
    two("disable", "tea")
    events = Calendar.from_ical(two("next", "--ical", "-", "--days", "1").out).walk("VEVENT")
    assert {str(e["summary"]): str(e["status"]) for e in events} == {
        "brief": "CONFIRMED", "backup": "CONFIRMED", "tea": "TENTATIVE"}
