"""Bringing over what other schedulers have to do, from the command line."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from machines import machine
from shell import Shell

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")

FILES = {
    "/etc/crontab": "# Tidy up\n0 3 * * * root /usr/local/bin/tidy.sh\n@reboot root /bin/hello\n",
    "/etc/cron.d/report": 'MAILTO=""\n*/10 * * * * ana cd /srv && ./report.py 100\\%\n',
    "/etc/cron.daily/plain": "",
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(machine(tmp_path, FILES))


def states(answer: Any) -> dict[str, str]:
    return {item["name"]: item["state"] for item in answer["items"]}


def test_a_look_says_what_would_become_of_each_job_and_changes_nothing(tmp_path: Path, root: str) -> None:
    shell = Shell(tmp_path / "nowhere")
    said = shell("import", "os", "--root", root, "--dry-run")
    assert said.code == 0
    assert not shell.home.exists()
    lines = said.out.splitlines()
    assert "/etc/crontab:2  would be imported as tidy" in lines
    assert any(line.strip() == "when        At 03:00 every day, Europe/Berlin  [cron 0 3 * * *]" for line in lines)
    assert any(line.startswith("  next") and line.count("03:00 Europe/Berlin") == 3 for line in lines)
    assert "/etc/crontab:3  refused: it runs when the machine starts: that is no clock time" in lines
    assert lines[-2:] == ["4 found = 2 imported, 0 already there, 1 refused, 1 skipped.", "Nothing was changed."]


def test_the_look_for_programs_has_everything(tmp_path: Path, root: str) -> None:
    answer = Shell(tmp_path / "nowhere")("import", "os", "--root", root, "--dry-run", "--json").json
    assert {key: answer[key] for key in ("timezone", "dry_run", "counts", "unread")} == {
        "timezone": "Europe/Berlin", "dry_run": True, "unread": [],
        "counts": {"found": 4, "imported": 2, "already": 0, "refused": 1, "skipped": 1}}
    assert answer["sources"][0] == {"path": "/etc/crontab", "found": 2, "lines": 3, "variables": 0, "comments": 1}
    report = next(item for item in answer["items"] if item["name"] == "report")
    (schedule,) = report.pop("schedules")
    assert (len(schedule.pop("next")), schedule) == (3, {
        "kind": "cron", "expression": "*/10 * * * *", "timezone": "Europe/Berlin",
        "sentence": "Every 10 minutes, Europe/Berlin", "warning": None})
    assert report.pop("not_carried")[0]["what"].startswith("the user ana")
    assert (len(report.pop("mark")), report) == (10, {
        "state": "imported", "reason": "", "name": "report", "automation_id": None,
        "source": {"kind": "crontab", "path": "/etc/cron.d/report", "line": 2,
                   "text": "*/10 * * * * ana cd /srv && ./report.py 100\\%"},
        "user": "ana", "command": "cd /srv && ./report.py 100\\%", "runs": "cd /srv && ./report.py 100%",
        "environment": {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "HOME": "/home/ana", "LOGNAME": "ana",
                        "USER": "ana"},
        "cwd": "/home/ana", "carried": ["cron's own PATH", 'MAILTO="" as no delivery'], "take_out": None,
        "taken_out": None})


@pytest.mark.parametrize("flags", [(), ("--files",)])
def test_jobs_come_over_paused_and_a_second_time_changes_nothing(
    shell: Shell, root: str, flags: tuple[str, ...]
) -> None:
    first = shell("import", "os", "--root", root, "--json", *flags).json
    assert first["counts"] == {"found": 4, "imported": 2, "already": 0, "refused": 1, "skipped": 1}
    lines = {line["name"]: line for line in shell("list", "--json").json["items"]}
    assert {name: (line["state"], line["truth"], line["owner"]) for name, line in lines.items()} == {
        "tidy": ("paused", "file" if flags else "store", "root"),
        "report": ("paused", "file" if flags else "store", "ana")}
    assert sorted(path.name for path in shell.definitions.iterdir()) == (["report.md", "tidy.md"] if flags else [])
    again = shell("import", "os", "--root", root, "--json", *flags).json
    assert again["counts"] == {"found": 4, "imported": 0, "already": 2, "refused": 1, "skipped": 1}
    assert {line["name"]: line for line in shell("list", "--json").json["items"]} == lines


def test_files_that_were_written_are_what_a_desk_reads_and_stay_paused(shell: Shell, root: str) -> None:
    made = shell("import", "os", "--root", root, "--files", "--json").json
    before = {line["name"]: (line["id"], line["state"], line["version"])
              for line in shell("list", "--json").json["items"]}
    assert shell("tick").code == 0
    after = {line["name"]: (line["id"], line["state"], line["version"])
             for line in shell("list", "--json").json["items"]}
    assert before == after
    assert {item["automation_id"] for item in made["items"]} - {None} == {each[0] for each in after.values()}
    text = (shell.definitions / "tidy.md").read_text()
    assert "Tidy up. Imported from /etc/crontab:2 [import:" in text


def test_an_imported_job_can_be_let_go_and_does_what_it_did(shell: Shell, tmp_path: Path) -> None:
    tab = tmp_path / "tab"
    tab.write_text("GREETING=hello\n0 3 * * * cat; echo $GREETING 100\\%%from standard input\n")
    assert shell("import", "crontab", "--file", str(tab)).code == 0
    assert shell("enable", "cat").code == 0
    ran = shell("run", "cat", "--wait", "--json").json
    assert ran["run"]["state"] == "succeeded"
    assert shell("logs", "cat", "--json").json["output"] == "from standard input\nhello 100%\n"
    audit = shell("audit", "--json")
    assert audit.code == 0, audit.out


def test_a_name_that_is_given_is_not_taken(shell: Shell, root: str) -> None:
    assert shell("add", "manual", "mine", "--name", "tidy").code == 0
    item = next(i for i in shell("import", "os", "--root", root, "--json").json["items"] if i["state"] == "imported")
    assert item["name"] == f"tidy-{item['mark'][:4]}"
    assert shell("show", "tidy", "--json").json["definition"]["target"]["kind"] == "echo"


@pytest.mark.parametrize("asked", ["report", "/etc/cron.d/report", "/etc/cron.d/report:2"])
def test_only_what_is_asked_for_comes_over(shell: Shell, root: str, asked: str) -> None:
    answer = shell("import", "os", "--root", root, "--only", asked, "--json").json
    assert answer["counts"] == {"found": 4, "imported": 1, "already": 0, "refused": 0, "skipped": 3}
    assert [line["name"] for line in shell("list", "--json").json["items"]] == ["report"]


def test_one_crontab_may_be_named_or_come_by_standard_input(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = tmp_path / "tab"
    tab.write_text("0 3 * * * root /bin/x\n")
    users, systems = (shell("import", "crontab", "--file", str(tab), "--dry-run", "--json", *flags).json["items"][0]
                      for flags in ((), ("--system",)))
    assert (users["command"], systems["command"], systems["user"]) == ("root /bin/x", "/bin/x", "root")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"@daily /bin/y\n")))
    assert shell("import", "crontab", "--file", "-", "--dry-run", "--json").json["items"][0]["source"]["path"] == (
        "standard input")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("os", "--file", "tab"), "os takes no file"),
        (("crontab", "--file", "nothing"), "nothing cannot be read"),
        (("crontab", "--system"), "--system belongs to a file"),
        (("os", "--root", "nothing"), "nothing is no folder"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(shell: Shell, words: tuple[str, ...], what: str) -> None:
    said = shell("import", *words)
    assert (said.code, what in said.err) == (2, True)


def test_a_job_whose_file_is_in_the_way_is_refused_and_the_others_come_over(shell: Shell, root: str) -> None:
    shell.write("tidy.yaml", "name: other\ntarget: noop\n")
    names = states(shell("import", "os", "--root", root, "--files", "--json").json)
    assert "tidy" not in {name for name, state in names.items() if state == "imported"}
    assert names["report"] == "imported"
