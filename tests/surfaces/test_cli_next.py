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
        assert (code, answer) == (0, {"fires": fires})
    assert list(nobodys_place.iterdir()) == []


def test_a_schedule_is_shown_as_a_sentence_with_its_zone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "--schedule", "0 9 * * *", "--after", "2026-03-28T00:00", "-n", "2"]) == 0
    assert capsys.readouterr().out == (
        "At 09:00 every day, Europe/Berlin:\n"
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
