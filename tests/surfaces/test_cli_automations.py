"""Making automations and changing their life from the command line."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from shell import Shell

from nightporter.errors import NotFound
from nightporter.ledger import resolve
from nightporter.store import open_store

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")


def test_init_makes_a_private_home_and_leaves_what_is_there(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    first = shell("init", "--example", "--json").json
    assert first["made"] == [str(shell.home), str(shell.definitions), str(shell.home / "outputs")]
    assert [(shell.home / name).stat().st_mode & 0o777 for name in ("", "nightporter.sqlite")] == [0o700, 0o600]
    (shell.definitions / "hello.md").write_text("mine")
    again = shell("init", "--example", "--json").json
    assert again["made"] == []
    assert (shell.definitions / "hello.md").read_text() == "mine"


def test_an_automation_of_words_is_previewed_saved_listed_and_shown(shell: Shell) -> None:
    said = shell("add", "30 7 * * mon-fri", "Good morning", "--name", "brief", "--timezone", "Europe/Lisbon",
                 "--deliver", "file=brief.md", "--deliver", '{"announce": {"on": ["failed"]}}', "--timeout", "2m",
                 "--overlap", "queue", "--idempotent")
    assert said.code == 0
    first, *fires, saved = said.out.splitlines()
    assert first == "At 07:30 on Monday to Friday, Europe/Lisbon  [cron 30 7 * * mon-fri]"
    assert len(fires) == 5
    assert all(fire.endswith("07:30 Europe/Lisbon") for fire in fires)
    assert saved == "Saved as brief (active)."
    line = shell("list", "--json").json["items"][0]
    assert (line["name"], line["truth"], line["target"]) == ("brief", "store", "echo")
    shown = shell("show", "bri", "--json").json
    assert shown["definition"]["limits"]["timeout"] == 120.0
    assert [d["name"] for d in shown["definition"]["deliver"]] == ["file", "announce"]
    words = shell("show", "brief").out
    assert "timeout           2 min" in words
    assert "per hour          120" in words
    assert "clock queue" in words


@pytest.mark.parametrize("words", [("--file", "-"), ("--file=-",)])
def test_a_definition_may_come_by_standard_input(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"---\nname: tea\nwhen: every 5m\n---\nTea.\n")))
    said = shell("add", *words)
    assert (said.code, "Saved as tea (active)." in said.out) == (0, True)


def test_an_automation_of_a_file_may_be_kept_in_the_store(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "tea.yaml"
    file.write_text("name: tea\ntarget: {noop: }\nwhen: every 15m\n")
    assert shell("add", "--file", str(file)).code == 0
    assert shell("show", "tea", "--json").json["truth"] == "store"
    file.write_text("name: tea\ntarget: {noop: }\nwhne: every 15m\n")
    refused = shell("add", "--file", str(file), "--replace")
    assert refused.code == 2
    assert f"{file}:3:1: unknown key `whne`: did you mean `when`?" in refused.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["30m", "tea", "--name", "tea"], 2, "write `when: every 30m`, or `when: at "),
        (["every 15m", "tea"], 2, "the automation has no name"),
        (["every 15m", "--name", "tea"], 2, "nothing is said to run"),
        (["every 15m", "tea", "--script", "true", "--name", "tea"], 2, "more than one thing is said to run"),
        (["--name", "tea", "--script", "true"], 2, "nothing is said about when"),
        (["every 15m", "tea", "--name", "tea", "--timezone", "Mars"], 2, "no time zone is named 'Mars'"),
        (["every 15m", "tea", "--name", "tea", "--deliver", "{file: x}"], 2, "is no JSON"),
        (["every 15m", "tea", "--name", "tea", "--deliver", "fax=1"], 2, "fax"),
        (["every 15m", "tea", "--name", "tea", "--reason", "x"], 2, "--reason belongs to --paused"),
        (["every 15m", "tea", "--name", "taken"], 4, "there is an automation called taken already"),
        (["every 15m", "tea", "--name", "taken", "--replace", "--paused"], 4, "nightporter disable pauses it"),
        (["--file", "nowhere.md"], 2, "nowhere.md cannot be read"),
        (["every 15m", "--file", "nowhere.md"], 2, "WHEN is said by the file"),
    ],
)
def test_what_cannot_be_used_is_refused_and_saves_nothing(shell: Shell, words: list[str], code: int, said: str) -> None:
    shell("add", "manual", "there", "--name", "taken")
    refused = shell("add", *words)
    assert refused.code == code
    assert said in refused.err
    assert [item["name"] for item in shell("list", "--json").json["items"]] == ["taken"]


def test_an_automation_is_changed_by_replacing_it(shell: Shell) -> None:
    shell("add", "manual", "one", "--name", "tea")
    assert shell("add", "every 1h", "two", "--name", "tea", "--replace").code == 0
    shown = shell("show", "tea", "--json").json
    assert (shown["version"], shown["definition"]["target"]["config"]) == (2, {"text": "two"})


def test_an_automation_is_paused_with_a_reason_and_an_end_and_enabled_again(shell: Shell) -> None:
    shell("add", "every 1h", "tea", "--name", "tea")
    paused = shell("disable", "tea", "--reason", "on holiday", "--until", "2h", "--json").json
    assert (paused["state"], paused["state_reason"], paused["next_fire_at"]) == ("paused", "on holiday", None)
    assert paused["state_until"] is not None
    assert "on holiday until" in shell("list").out
    assert shell("disable", "tea").code == 4
    assert shell("enable", "tea").out.startswith("tea is active; next ")
    assert shell("enable", "tea").code == 4
    assert shell("disable", "tea", "--until", "2020-01-01T00:00").code == 4
    assert shell("add", "every 1h", "later", "--name", "later", "--paused", "--reason", "not yet").code == 0
    assert shell("show", "later", "--json").json["state_reason"] == "not yet"


def test_a_removed_automation_is_gone_from_the_list_and_its_history_stays(shell: Shell) -> None:
    shell("add", "manual", "tea", "--name", "tea")
    run = shell("run", "tea", "--json").json["run_id"]
    assert shell("remove", "tea", "--reason", "done with it").code == 0
    assert shell("list", "--json").json["items"] == []
    assert shell("show", "tea").code == 3
    assert shell("logs", run).code == 0


def test_an_automation_of_a_file_is_removed_by_removing_the_file(shell: Shell) -> None:
    path = shell.write("tea.md", "---\nname: tea\n---\nTea.\n")
    assert "not loaded yet, because no desk is running: tea.md" in shell("list").err
    shell("tick")
    assert shell("list").err == ""
    refused = shell("remove", "tea")
    assert refused.code == 4
    assert f"{path} would bring it back" in refused.err
    path.unlink()
    assert shell("remove", "tea").code == 0


def _to_do(shell: Shell) -> list[dict[str, str]]:
    """What doctor finds, without what is for knowing only."""
    return [f for f in shell("doctor", "--json").json["items"] if f["severity"] != "note"]


def test_a_broken_file_is_in_the_list_and_in_doctor_with_its_place(shell: Shell) -> None:
    path = shell.write("tea.md", "---\nname: tea\nwhne: every 1h\n---\nTea.\n")
    unread = shell("doctor", "--json")
    assert unread.code == 1
    assert [f["what"] for f in _to_do(shell)] == [f"{path}:3:1: unknown key `whne`: did you mean `when`?"]
    shell("tick")
    assert "tea.md:3:1: unknown key `whne`: did you mean `when`?" in shell("list").out
    found = _to_do(shell)
    assert [f["code"] for f in found] == ["config_error"]
    path.write_text("---\nname: tea\n---\nTea.\n")
    shell("tick")
    assert shell("doctor").code == 0
    assert shell("doctor").out.startswith("Nothing to do. Looked at: store, clock,")


def test_a_file_that_is_not_taken_is_in_the_list_and_in_doctor_once(shell: Shell) -> None:
    shell("add", "manual", "x", "--name", "tea")
    path = shell.write("tea.md", "---\nname: tea\n---\nTea.\n")
    other = shell.write("z.md", "---\nname: brief\n---\nBrief.\n")
    same = shell.write("zz.md", "---\nname: brief\n---\nBrief.\n")
    shell("tick")
    listed = shell("list")
    assert f"not taken: {path}: automation tea cannot be changed from here" in listed.err
    assert f"not taken: {same}:2:1: the name `brief` is taken: z.md has it" in listed.err
    assert "not loaded yet" not in listed.err
    assert [file["path"] for file in shell("list", "--json").json["refused_files"]] == [str(path), str(same)]
    found = _to_do(shell)
    assert [(f["code"], f["subject"]) for f in found] == [("refused_file", str(path)), ("refused_file", str(same))]
    path.unlink()
    other.unlink()
    shell("tick")
    assert shell("list", "--json").json["refused_files"] == []
    assert shell("doctor").code == 0


def test_running_by_hand_from_elsewhere_pauses_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.write("tea.md", "---\nname: tea\n---\nTea.\n")
    shell("tick")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "milk.md").write_text("---\nname: milk\n---\nMilk.\n")
    (shell.definitions / "tea.md").unlink()
    assert shell("run", "tea", "--config", str(elsewhere)).code == 0
    assert shell("run", "tea").code == 0
    assert [(i["name"], i["state"]) for i in shell("list", "--json").json["items"]] == [
        ("milk", "active"), ("tea", "active")
    ]
    shell("tick")
    assert {i["name"]: i["state_reason"] for i in shell("list", "--json").json["items"]} == {
        "milk": "", "tea": "its definition file is gone"
    }


def test_names_that_fit_several_or_none_are_code_three(shell: Shell) -> None:
    for name in ("brief-am", "brief-pm"):
        shell("add", "manual", "x", "--name", name)
    several = shell("show", "brief")
    assert several.code == 3
    assert "brief-am" in several.err
    assert "did you mean brief-am?" in shell("show", "breif-am").err
    store = open_store(str(shell.home / "nightporter.sqlite"), now=0)
    try:
        with pytest.raises(NotFound):
            store.read(lambda tx: resolve(tx, ""))
    finally:
        store.close()


def test_the_list_says_how_a_last_run_ended_that_amounted_to_nothing(shell: Shell) -> None:
    shell("add", "manual", "--script", "sleep 60", "--timeout", "100ms", "--name", "slow")
    assert shell("run", "slow").code == 124
    assert "timed out" in shell("list").out


def test_several_automations_are_removed_together_or_not_at_all(shell: Shell) -> None:
    for name in ("one", "two", "three"):
        shell("add", "every 5m", "tea", "--name", name)
    refused = shell("remove", "one", "two", "nine")
    assert refused.code == NotFound.exit_code
    assert len(shell("list", "--json").json["items"]) == 3
    both = shell("remove", "two", "one", "two", "--reason", "moved")
    assert (both.code, both.out) == (0, "two is removed\none is removed\n")
    assert [line["name"] for line in shell("list", "--json").json["items"]] == ["three"]
    assert shell("remove").code == 2


def test_a_moment_that_has_passed_is_said_and_never_looks_as_if_it_were_to_come(shell: Shell) -> None:
    said = shell("add", "at 2020-01-01T00:00", "tea", "--name", "tea")
    assert said.code == 0
    assert "never: that has passed" in said.out
    assert "Saved as tea (completed)." in said.out
    assert "the moment it is to run at has passed" in said.err
    [line] = shell("list", "--json").json["items"]
    assert (line["state"], line["state_reason"], line["next_fire_at"]) == (
        "completed", "its only moment has passed", None)
    assert shell("explain", "tea").out.startswith("tea is completed: its only moment has passed")


@pytest.mark.parametrize(("when", "slots"), [("every 10s", 360), ("*/20 9 * * * *", 0), ("* 8,9 1 * *", 0),
                                             ("*/10 * 9 * * mon", 360), ("every 30s", 0)])
def test_a_schedule_that_its_own_ceiling_would_silence_is_named_when_it_is_added(
    shell: Shell, when: str, slots: int
) -> None:
    said = shell("add", when, "tea", "--name", "tea", "--json").json
    wanted = [f"it is due {slots} times in an hour, and limits.per_hour lets 120 through"] if slots else []
    assert [text.partition(": ")[0] for text in said["warnings"] if text.startswith("it is due")] == wanted


@pytest.mark.parametrize("words", [
    ("list",), ("show", "big"), ("next", "big"), ("explain", "big"), ("run", "big"), ("doctor",),
], ids=lambda words: words[0])
def test_a_file_that_is_wrong_as_a_whole_is_named_without_a_line(shell: Shell, words: tuple[str, ...]) -> None:
    shell("init")
    file = shell.definitions / "big.yaml"
    file.write_text("name: big\n" + "#" * 1_000_001)
    shell("tick")
    said = shell(*words)
    assert "big.yaml: " in said.out + said.err


def test_plain_words_are_said_back_before_they_are_saved(shell: Shell) -> None:
    dry = shell("add", "first monday at 10", "Tea", "--name", "tea", "--dry-run")
    assert dry.out.startswith("At 10:00 on the first Monday of the month, ")
    assert "[cron 0 10 * * mon#1]" in dry.out
    assert shell("list", "--json").json["items"] == []
    saved = shell("add", "first monday at 10", "Tea", "--name", "tea", "--json").json
    (schedule,) = saved["schedules"]
    assert (schedule["normalised"], len(schedule["fires"])) == ("0 10 * * mon#1", 5)
    assert schedule["sentence"] in [trigger["sentence"] for trigger in saved["triggers"]]
    shown = shell("show", "tea").out
    assert "kept as" in shown
    assert "cron 0 10 * * mon#1" in shown


def test_words_that_count_from_now_are_kept_as_an_instant(shell: Shell) -> None:
    saved = shell("add", "in 20m", "Tea", "--name", "tea", "--json").json
    (schedule,) = saved["schedules"]
    assert schedule["kind"] == "at"
    (trigger,) = shell("show", "tea", "--json").json["definition"]["triggers"]
    assert trigger["schedule"]["expression"] == schedule["expression"]


@pytest.mark.parametrize(("others", "warned"), [(2, False), (3, True)])
def test_a_minute_that_many_fire_in_is_said_when_another_is_added(shell: Shell, others: int, warned: bool) -> None:
    for n in range(others):
        shell("add", "every day at 09:00", "Tea", "--name", f"tea-{n}")
    said = shell("add", "weekdays at 09:00", "Tea", "--name", "late")
    assert ("3 others fire in the same minute" in said.err) == warned
    assert ("3 others fire in the same minute" in shell("show", "late").out) == warned


def test_a_trap_is_said_when_it_is_added_and_shown(shell: Shell) -> None:
    said = shell("add", "0 9 31 * *", "Tea", "--name", "tea")
    assert "mind: day 31 is not in every month" in said.err
    assert "day 31 is not in every month" in shell("show", "tea").out
    assert any("day 31" in text for text in shell("show", "tea", "--json").json["warnings"])


def test_how_words_were_read_is_said(shell: Shell) -> None:
    assert "note: 7 is read as 07:00; for the evening write 19:00" in shell(
        "add", "daily at 7", "Tea", "--name", "tea").err
    assert shell("add", "daily at 07:00", "Tea", "--name", "other", "--json").json["notes"] == []
