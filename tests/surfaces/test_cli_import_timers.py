"""Bringing over timers of systemd and jobs of at, from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from machines import machine
from shell import Shell
from units import ETC, WANTS

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")

JOB = "/var/spool/cron/atjobs/a00007039f4b40"
FILES = {
    f"{ETC}/dump.timer": "[Timer]\nOnCalendar=*-*-* 03:00\nOnCalendar=Sat 12:00\nPersistent=yes\n"
                         "RandomizedDelaySec=60\n",
    f"{ETC}/dump.service": "[Service]\nType=oneshot\nEnvironment=A=one\nExecStart=/bin/echo ${A} 100%%\n"
                           "ExecStart=/bin/echo \"it's\" two\n",
    f"{ETC}/off.timer": "[Timer]\nOnBootSec=5\n",
    f"{JOB}+x": "#!/bin/sh\n# atrun uid=1000 gid=1000\n# mail ana 0\numask 22\nA=1; export A\n"
                "cd / || {\n\t echo 'Execution directory inaccessible' >&2\n\t exit 1\n}\ndate\n",
    "/etc/crontab": "0 3 * * * root /usr/local/bin/tidy.sh\n",
}


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(machine(tmp_path, FILES, links={f"{WANTS}/dump.timer": "../dump.timer"}))


def test_a_look_shows_each_time_with_its_fires_and_what_would_not_come_over(shell: Shell, root: str) -> None:
    said = shell("import", "systemd", "--root", root, "--dry-run")
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert f"{ETC}/dump.timer would be imported as dump" in lines
    whens = [line for line in lines if line.startswith("when ")]
    assert [line.partition("[")[2] for line in whens] == ["cron 0 3 * * *]", "cron 0 12 * * sat]"]
    assert [line.count("Europe/Berlin") for line in lines if line.startswith("next ")] == [3, 3]
    assert "does not another delay each time: here it is drawn once, from its name" in lines
    assert lines[-2:] == ["2 found = 1 imported, 0 already there, 0 refused, 1 skipped.", "Nothing was changed."]


@pytest.mark.parametrize(("what", "names"), [("systemd", {"dump"}), ("at", {"date"}), ("crontab", {"tidy"}),
                                             ("os", {"dump", "date", "tidy"})])
def test_whose_jobs_come_over_is_chosen(shell: Shell, root: str, what: str, names: set[str]) -> None:
    answer = shell("import", what, "--root", root, "--json").json
    assert {item["name"] for item in answer["items"] if item["state"] == "imported"} == names
    assert {(line["name"], line["state"]) for line in shell("list", "--json").json["items"]} == {
        (name, "paused") for name in names}


@pytest.mark.parametrize("flags", [(), ("--files",)])
def test_a_second_import_changes_nothing(shell: Shell, root: str, flags: tuple[str, ...]) -> None:
    first = shell("import", "os", "--root", root, "--json", *flags).json
    assert first["counts"] == {"found": 4, "imported": 3, "already": 0, "refused": 0, "skipped": 1}
    assert shell("tick").code == 0
    lines = shell("list", "--json").json["items"]
    again = shell("import", "os", "--root", root, "--json", *flags).json
    assert again["counts"] == {"found": 4, "imported": 0, "already": 3, "refused": 0, "skipped": 1}
    assert shell("list", "--json").json["items"] == lines
    assert {line["state"] for line in lines} == {"paused"}


def test_a_timer_that_is_let_go_does_what_its_service_did(shell: Shell, root: str) -> None:
    assert shell("import", "systemd", "--root", root).code == 0
    assert shell("enable", "dump").code == 0
    assert shell("run", "dump", "--wait", "--json").json["run"]["state"] == "succeeded"
    assert shell("logs", "dump", "--json").json["output"] == "one 100%\nit's two\n"
    audit = shell("audit", "--json")
    assert audit.code == 0, audit.out
