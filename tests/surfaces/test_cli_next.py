"""`next` answers for any schedule without a store, and for automations with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell import Shell

from nightporter.surfaces.cli import main

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")


@pytest.mark.parametrize(
    ("words", "fires"),
    [
        (["--schedule", "0 9 * * mon-fri", "--timezone", "Europe/Berlin", "--after", "2026-03-27T00:00:00Z", "-n", "3"],
         ["2026-03-27T08:00:00Z", "2026-03-30T07:00:00Z", "2026-03-31T07:00:00Z"]),
        (["--schedule", "0 9 * * mon-fri", "--timezone", "Europe/Berlin", "--after", "2026-03-27T08:00:00Z", "-n", "1"],
         ["2026-03-30T07:00:00Z"]),
        (["--every", "12h", "--timezone", "America/New_York", "--anchor", "2026-10-31T13:00:00Z",
          "--after", "2026-10-31T13:00:00Z", "-n", "2"], ["2026-11-01T01:00:00Z", "2026-11-01T13:00:00Z"]),
        (["--every", "1h", "--anchor", "2026-01-01T00:17:00Z", "--after", "2026-01-01T09:16:59.999Z", "-n", "1"],
         ["2026-01-01T09:17:00Z"]),
        (["--every", "500ms", "--after", "2026-01-01T00:00:00Z"], None),
        (["--at", "2026-11-01T01:30:00", "--timezone", "America/New_York", "--after", "2026-10-01T00:00:00Z"],
         ["2026-11-01T05:30:00Z"]),
        (["--at", "2026-11-01T01:30:00", "--timezone", "America/New_York", "--after", "2026-12-01T00:00:00Z"], []),
        (["--schedule", "@every_hour"], None),
        (["--schedule", ""], None),
        (["--at", "30m"], None),
        (["--schedule", "0 9 * * *", "--timezone", "Mars"], None),
        (["--schedule", "0 9 * * *", "--after", "tomorrow"], None),
        (["--schedule", "0 9 * * *", "--anchor", "2026-01-01T00:00:00Z"], None),
        (["--schedule", "0 9 * * *", "--every", "5m"], None),
        (["--schedule", "0 9 * * *", "-n", "0"], None),
        (["--schedule", "0 9 * * *", "-n", "many"], None),
        (["--timezone", "UTC"], None),
        (["brief", "--every", "5m"], None),
    ],
)
def test_any_schedule_has_its_fires_or_a_refusal(
    words: list[str], fires: list[str] | None, capsys: pytest.CaptureFixture[str], nobodys_place: Path
) -> None:
    code = main(["next", *words, "--json"])
    answer = json.loads(capsys.readouterr().out)
    if fires is None:
        assert code == 2
        assert set(answer) == {"error"}
        assert {"code", "what", "why", "next"} <= set(answer["error"])
    else:
        assert (code, answer["fires"]) == (0, fires)
        assert set(answer) == {"fires", "sentence", "timezone", "kind", "expression", "normalised", "notes", "warnings"}
    assert list(nobodys_place.iterdir()) == []


def test_a_schedule_is_shown_as_a_sentence_with_its_zone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "--schedule", "0 9 * * *", "--after", "2026-03-28T00:00", "-n", "2"]) == 0
    assert capsys.readouterr().out == (
        "At 09:00 every day, Europe/Berlin  [cron 0 9 * * *]\n"
        "  2026-03-28 09:00 Europe/Berlin  2026-03-28T08:00:00Z\n"
        "  2026-03-29 09:00 Europe/Berlin  2026-03-29T07:00:00Z\n"
    )
    assert main(["next", "--at", "2026-03-28T00:00", "--after", "2026-03-29T00:00"]) == 0
    assert capsys.readouterr().out.endswith("\n  never\n")


def test_automations_have_their_next_fires(shell: Shell) -> None:
    shell("add", "0 9 * * *", "morning", "--name", "morning")
    shell("add", "0 21 * * *", "evening", "--name", "evening", "--timezone", "Asia/Tokyo")
    both = shell("next", "-n", "4", "--json").json
    assert {item["automation"] for item in both["items"]} == {"morning", "evening"}
    assert both["items"] == sorted(both["items"], key=lambda item: item["at"])
    one = shell("next", "even", "-n", "2", "--json").json["items"]
    assert [(item["timezone"], item["local"][11:]) for item in one] == [("Asia/Tokyo", "21:00:00+09:00")] * 2
    assert "21:00 Asia/Tokyo  evening" in shell("next", "evening").out
    later = shell("next", "evening", "-n", "1", "--after", one[0]["at"], "--json").json["items"]
    assert later[0]["at"] == one[1]["at"]
    assert shell("next", "noon").code == 3


@pytest.mark.parametrize(("text", "after", "why"), [
    ("when: sometimes", "", "its definition has an error. "),
    ("when: at 2020-01-01T00:00", "", "tea is completed. its only moment has passed"),
    ("when: every 5m", "disable", "tea is paused."), ("description: by hand", "", "it has no schedule"),
    ("triggers: [{every: 5m, enabled: false}]", "", "its schedule is switched off"),
])
def test_an_automation_with_nothing_armed_says_why(shell: Shell, text: str, after: str, why: str) -> None:
    shell.write("tea.md", f"---\n{text}\n---\nTea.\n")
    shell("tick")
    if after:
        assert shell(after, "tea").code == 0
    said = shell("next", "tea")
    assert (said.code, said.out.startswith("Nothing is armed: "), why in said.out) == (0, True, True)


def test_a_schedule_in_words_is_said_back_with_its_zone_its_form_and_its_fires(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["next", "mon, wed and fri at 7:30pm", "--after", "2026-12-01T00:00", "-n", "2"]
    assert main(words) == 0
    assert capsys.readouterr().out == (
        "At 19:30 on Monday, Wednesday and Friday, Europe/Berlin  [cron 30 19 * * mon,wed,fri]\n"
        "  2026-12-02 19:30 Europe/Berlin  2026-12-02T18:30:00Z\n"
        "  2026-12-04 19:30 Europe/Berlin  2026-12-04T18:30:00Z\n"
    )
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "sentence": "At 19:30 on Monday, Wednesday and Friday, Europe/Berlin", "timezone": "Europe/Berlin",
        "kind": "cron",
        "expression": "30 19 * * mon,wed,fri", "normalised": "30 19 * * mon,wed,fri",
        "fires": ["2026-12-02T18:30:00Z", "2026-12-04T18:30:00Z"], "notes": [], "warnings": [],
    }


def test_words_that_count_from_now_count_from_the_instant_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "tomorrow at 9 in Lisbon", "--after", "2026-12-24T12:00", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["fires"], answer["timezone"]) == (["2026-12-25T09:00:00Z"], "Europe/Lisbon")
    assert answer["normalised"] == "at 2026-12-25T09:00"
    assert answer["notes"] == ["9 is read as 09:00; for the evening write 21:00"]


def test_one_word_is_an_automation_where_there_is_one_and_else_a_schedule(shell: Shell) -> None:
    assert "every day, Europe/Berlin" in shell("next", "daily").out
    assert "At 08:00 every day, Asia/Tokyo" in shell("next", "daily_morning", "--timezone", "Asia/Tokyo").out
    shell("add", "0 21 * * *", "tea", "--name", "daily")
    assert "21:00 Europe/Berlin  daily" in shell("next", "daily").out
    elsewhere = shell("next", "daily", "--timezone", "Asia/Tokyo")
    assert "At 00:00 every day, Asia/Tokyo" in elsewhere.out
    assert "daily is read as a schedule here; an automation of that name has a zone of its own" in elsewhere.err
    unknown = shell("next", "hourglass")
    assert (unknown.code, "no automation is called 'hourglass'" in unknown.err) == (3, True)
    ambiguous = shell("next", "30m", "--timezone", "Asia/Tokyo")
    assert (ambiguous.code, "ambiguous" in ambiguous.err) == (2, True)


def test_a_recurrence_rule_is_shown_from_its_start(shell: Shell) -> None:
    said = shell("next", "--rrule", "FREQ=MONTHLY;BYDAY=2TU", "--anchor", "2026-12-01T09:00", "-n", "2", "--after",
                 "2026-12-01T00:00", "--json").json
    assert said["fires"] == ["2026-12-08T08:00:00Z", "2027-01-12T08:00:00Z"]
    assert said["sentence"].startswith("Every month on the second Tuesday")
    assert shell("next", "--rrule", "FREQ=NEVER").code == 2


def test_a_trap_is_said_beside_the_fires(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "--schedule", "0 9 13 * fri", "--after", "2026-12-01T00:00"]) == 0
    said = capsys.readouterr()
    assert "mind: it fires on each day of month 13 and on each weekday FRI" in said.err
    assert "mind" not in said.out
    assert main(["next", "--schedule", "0 9 13 * fri", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 1


@pytest.mark.parametrize(("words", "says"), [
    ("30m alone", "not understood"), ("friday at 17:00", "ambiguous"), ("every blursday", "blursday"),
])
def test_words_that_are_not_understood_are_refused_with_what_was_not(
    words: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["next", words]) == 2
    assert says in capsys.readouterr().err
