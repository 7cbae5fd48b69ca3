"""What every command keeps: help, JSON, exit codes, dry runs, either database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell import Shell

from nightporter.clock import SystemClock
from nightporter.store import open_store
from nightporter.surfaces.cli import main
from nightporter.surfaces.cli.app import build, call
from nightporter.surfaces.cli.verbs import VERBS, Verb

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")


def test_help_lists_every_verb_and_loads_nothing_heavy() -> None:
    program = (
        "import sys; from nightporter.surfaces.cli import main; code = main(['--help']);"
        "print([m for m in ('cyclopts', 'rich', 'apsw', 'structlog', 'asyncio', 'nightporter.store') "
        "if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert all(f"\n  {verb.name} " in done.stdout for verb in VERBS)


def test_the_list_loads_nothing_that_it_does_not_show(tmp_path: Path) -> None:
    program = (
        "import sys; from nightporter.surfaces.cli import main; code = main(['list', '--json']);"
        "print([m for m in ('asyncio', 'rich', 'structlog', 'nightporter.engine', 'nightporter.operations', "
        "'nightporter.dispatch', 'nightporter.definitions') if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    environment = {**os.environ, "NIGHTPORTER_HOME": str(tmp_path), "NIGHTPORTER_STORE": str(tmp_path / "desk.sqlite")}
    open_store(str(tmp_path / "desk.sqlite"), now=SystemClock().now()).close()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("words", [[], ["-h"], ["help"]])
def test_no_words_at_all_are_a_question_for_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    assert "Usage: nightporter VERB" in capsys.readouterr().out


def test_the_version_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    from nightporter import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"nightporter {__version__}\n"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb.name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"nightporter {verb.name}" in shown
    assert "--json" in shown


def test_verbs_and_aliases_are_each_there_once() -> None:
    names = [name for verb in VERBS for name in (verb.name, *verb.aliases)]
    assert len(names) == len(set(names))
    assert all(build()[name] is not None for name in names)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lst"], 'Did you mean "list"'), (["list", "--jsn"], "--jsn"), (["show"], "name"),
        (["review", "run_1", "maybe"], "maybe"), (["show", "a", "b"], "b"),
    ],
)
def test_words_that_cannot_be_used_are_code_two(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error[usage]: ")
    assert said.lower() in shown.err.lower()
    assert main([*words, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], "nightporter" in error["next"]) == ("usage", True)


def test_flags_for_every_verb_may_stand_before_it(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "--home", str(shell.home), "list"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "items": [], "next_cursor": None, "refused_files": [], "stopped": None, "clock_behind": 0.0}
    assert main([f"--home={shell.home}", "list"]) == 0


READING = ("list", "runs", "dead", "inbox", "firings", "deliveries", "status", "doctor", "audit", "next")


@pytest.mark.parametrize("verb", READING)
def test_without_a_store_reading_says_what_to_do_and_makes_none(verb: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path / "home")
    said = shell(verb, "--json")
    assert (said.code, said.json["error"]["code"]) == (6, "store")
    assert "nightporter init" in said.json["error"]["next"]
    assert not shell.home.exists()


@pytest.mark.parametrize("verb", READING)
def test_an_empty_desk_has_an_answer_in_json_and_in_words(shell: Shell, verb: str) -> None:
    assert isinstance(shell(verb, "--json").json, dict)
    assert shell(verb).out.strip()


def test_a_bad_setting_names_its_variable(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTPORTER_SLOTS", "many")
    said = shell("list")
    assert said.code == 2
    assert "NIGHTPORTER_SLOTS" in said.err


def test_a_home_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = Shell(tmp_path / "file")("init")
    assert said.code == 2
    assert "cannot be made" in said.err


def test_a_newer_store_is_refused_untouched(shell: Shell) -> None:
    import apsw

    path = str(shell.home / "nightporter.sqlite")
    connection = apsw.Connection(path)
    connection.execute("UPDATE setting SET value = '999' WHERE key = 'schema_version'")
    connection.close()
    said = shell("list", "--json")
    assert (said.code, said.json["error"]["code"]) == (6, "store_newer")


def test_an_interruption_is_code_130(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("nightporter.surfaces.cli.listing.automations", interrupted)
    assert shell("list").code == 130


def everything(shell: Shell) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables."""
    import apsw

    connection = apsw.Connection(str(shell.home / "nightporter.sqlite"))
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    rows = {str(t): list(connection.execute(f"SELECT * FROM {t}")) for t in tables}
    connection.close()
    return rows


def test_a_dry_run_says_what_would_happen_and_changes_nothing(shell: Shell) -> None:
    shell.write("fails.yaml", "name: fails\ntarget: {script: 'exit 1'}\n"
                              "deliver: [{webhook: 'http://127.0.0.1:9/in', unsigned: true}]\n")
    shell("add", "every 1h", "tea", "--name", "tea")
    shell("add", "every 1h", "tea", "--name", "asleep", "--paused")
    run = shell("run", "fails", "--json").json["run_id"]
    before = everything(shell)
    for words, said in (
        (["add", "every 1h", "tea", "--name", "tea2"], "Would be saved as tea2 (active)."),
        (["disable", "tea"], "tea would be paused"),
        (["enable", "asleep"], "asleep would be active"),
        (["remove", "tea"], "tea would be removed"),
        (["run", "tea"], "tea would run in this process: no desk is running"),
        (["replay", run], "would run"),
        (["deliver", run], "webhook: would be sent again"),
        (["stop"], "Would stop"),
        (["init", "--example"], "Nothing was made: a dry run."),
    ):
        done = shell(*words, "--dry-run")
        assert (done.code, said in done.out) == (0, True), (words, done)
        assert json.loads(shell(*words, "--dry-run", "--json").out)["dry_run"] is True
        assert everything(shell) == before, words
    assert not (shell.definitions / "hello.md").exists()
    refused = shell("enable", "tea", "--dry-run")
    assert (refused.code, everything(shell) == before) == (4, True)


def test_the_same_commands_work_on_postgres(tmp_path: Path, migrated_postgres_url: str) -> None:
    shell = Shell(tmp_path / "home", store=migrated_postgres_url)
    assert shell("init", "--quiet").code == 0
    assert shell("add", "every 1h", "tea", "--name", "tea", "--deliver", "file=tea.txt").code == 0
    assert shell("run", "tea", "--dry-run").code == 0
    assert shell("run", "tea").code == 0
    for verb in READING:
        assert shell(verb, "--json").json
    assert shell("status", "--json").json["store"] == "postgres"
    assert "because" in shell("explain", "tea").out
    assert shell("audit").code == 0


@pytest.mark.parametrize("sample", ["0", "-5"])
def test_an_audit_of_nothing_is_refused(shell: Shell, sample: str) -> None:
    said = shell("audit", "--sample", sample)
    assert (said.code, "looks at nothing" in said.err) == (2, True)
    assert shell("audit", "--sample", "1").code == 0


def test_output_that_nobody_reads_any_more_is_no_error(shell: Shell) -> None:
    process = shell.process("list")
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(20) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""
    process.stderr.close()


def test_call_answers_with_a_code_for_every_kind_of_error(shell: Shell) -> None:
    assert call(["show", "nobody", "--home", str(shell.home)]) == 3


def test_init_ends_with_the_command_for_the_home_that_was_said(tmp_path: Path) -> None:
    home = tmp_path / "a home"
    assert Shell(home)("init").out.endswith(f"Next: nightporter up --home '{home}'\n")


def test_a_pass_under_a_stop_says_that_nothing_starts(shell: Shell) -> None:
    shell("stop")
    assert "the desk is stopped" in shell("tick").err
    shell("stop", "--lift")
    assert "the desk is stopped" not in shell("tick").err


def test_a_second_desk_says_who_leads_and_a_stopping_one_what_it_waits_for(shell: Shell) -> None:
    import signal

    first = shell.process("up")
    assert first.stdout is not None
    while "desk.started" not in first.stdout.readline():
        pass
    second = shell.process("up")
    assert second.stdout is not None
    while "standing by" not in (line := second.stdout.readline()):
        assert line
    assert f"another desk leads ({first.pid} on " in line
    said = shell("status").out
    assert "1 standing by" in said
    [leads] = [line for line in said.splitlines() if "leads" in line]
    assert f"desk {first.pid} on" in leads
    for desk in (second, first):
        desk.send_signal(signal.SIGINT)
        out, _ = desk.communicate(timeout=20)
        assert (desk.returncode, "nightporter: stopping" in out) == (0, True)


@pytest.mark.parametrize("words", [
    ("run", "brief", "--payload", "@/dev/zero"), ("add", "--file", "/dev/zero"),
    ("import", "crontab", "--file", "/dev/zero"), ("add", "--file", "/"), ("import", "crontab", "--file", "no\nsuch"),
])
def test_what_has_no_end_or_is_no_file_is_refused_where_a_file_is_given(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words)
    assert said.code == 2
    assert "too large" in said.err or "cannot be read" in said.err
