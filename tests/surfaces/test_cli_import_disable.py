"""Taking jobs out where they were: asked for, after they are here, with a copy, and never one that is not here."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
from machines import machine
from shell import Shell
from units import ETC, WANTS

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")

CRONTAB = (b"SHELL=/bin/sh\n# Tidy up\n0 3 * * * root /usr/local/bin/tidy.sh\n@reboot root /bin/hello\n"
           b"25 6 * * * root run-parts /etc/cron.daily\n")
FILES: dict[str, str | bytes] = {
    "/etc/crontab": CRONTAB, "/etc/cron.daily/clean+x": "", "/etc/cron.d/report": b"*/10 * * * * ana /srv/report\r\n",
    "/etc/anacrontab": "10 0 odd /bin/odd\n", "/var/spool/cron/crontabs/ana": "0 4 * * * /bin/a\n0 4 * * * /bin/a",
    f"{ETC}/dump.timer": "[Timer]\nOnCalendar=daily\n", f"{ETC}/dump.service": "[Service]\nExecStart=/bin/dump\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = machine(tmp_path, FILES, links={f"{WANTS}/dump.timer": "../dump.timer"})
    (made / "etc/cron.d/report").chmod(0o640)
    if os.geteuid() == 0:
        os.chown(made / "etc/cron.d/report", 4711, 4712)
    return made


def out(shell: Shell, root: Path, *more: str) -> Any:
    return shell("import", "os", "--root", str(root), "--disable-source", "--json", *more)


def offs(answer: Any) -> dict[str, tuple[str, str]]:
    return {item["source"]["path"] + f":{item['source']['line']}": (item["taken_out"]["state"], item["state"])
            for item in answer["items"] if item["taken_out"]}


def test_each_job_that_came_over_is_taken_out_and_nothing_else_changes(shell: Shell, root: Path) -> None:
    before = (root / "etc/cron.d/report").stat()
    said = out(shell, root, "--yes")
    assert said.code == 0
    assert offs(said.json) == {
        "/var/spool/cron/crontabs/ana:1": ("out", "imported"), "/var/spool/cron/crontabs/ana:2": ("out", "imported"),
        "/etc/crontab:3": ("out", "imported"), "/etc/cron.d/report:1": ("out", "imported"),
        "/etc/anacrontab:1": ("out", "imported"), "/etc/cron.daily/clean:None": ("out", "imported"),
        f"{ETC}/dump.timer:None": ("by_hand", "imported")}
    marks = {item["name"]: item["mark"] for item in said.json["items"]}
    assert (root / "etc/crontab").read_bytes() == CRONTAB.replace(
        b"0 3 *", f"#nightporter:{marks['tidy']}: 0 3 *".encode())
    report = root / "etc/cron.d/report"
    assert report.read_bytes() == f"#nightporter:{marks['report']}: ".encode() + b"*/10 * * * * ana /srv/report\r\n"
    after = report.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert [line.partition(": ")[2] for line in (root / "var/spool/cron/crontabs/ana").read_text().split("\n")] == [
        "0 4 * * * /bin/a"] * 2
    assert (root / "etc/cron.daily/clean").stat().st_mode & 0o777 == 0o644
    assert (root / "etc/systemd/system/timers.target.wants/dump.timer").is_symlink()
    assert not list(root.rglob("*.part"))


def test_the_file_as_it_was_is_kept_and_named(shell: Shell, root: Path) -> None:
    said = out(shell, root, "--yes").json
    kept = {item["source"]["path"]: item["taken_out"]["backup"] for item in said["items"] if item["taken_out"]}
    assert Path(kept["/etc/crontab"]).read_bytes() == CRONTAB
    assert Path(kept["/var/spool/cron/crontabs/ana"]).read_bytes() == FILES["/var/spool/cron/crontabs/ana"].encode()  # type: ignore[union-attr]
    assert kept["/etc/crontab"].startswith(str(shell.home / "imported"))
    assert Path(kept["/etc/crontab"]).stat().st_mode & 0o777 == 0o600


def test_a_second_import_finds_nothing_more_of_what_was_taken_out(shell: Shell, root: Path) -> None:
    out(shell, root, "--yes")
    held = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    lines = shell("list", "--json").json["items"]
    again = out(shell, root, "--yes")
    assert (again.code, offs(again.json)) == (0, {f"{ETC}/dump.timer:None": ("by_hand", "already")})
    assert again.json["counts"]["imported"] == 0
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == held
    assert shell("list", "--json").json["items"] == lines


def test_a_comment_that_was_a_job_is_no_description_of_the_next_one(shell: Shell, root: Path) -> None:
    out(shell, root, "--yes", "--only", "/etc/crontab:3")
    with (root / "etc/crontab").open("a") as file:
        file.write("#nightporter:0123456789: 1 1 * * * root /bin/y\n0 5 * * * root /bin/z\n")
    assert shell("import", "os", "--root", str(root), "--only", "z").code == 0
    assert shell("show", "z", "--json").json["definition"]["description"].startswith("Imported from /etc/crontab:7")


def test_a_look_says_what_would_be_done_and_does_nothing(shell: Shell, root: Path) -> None:
    said = shell("import", "os", "--root", str(root), "--disable-source", "--dry-run")
    lines = [" ".join(line.split()) for line in said.out.splitlines()]
    assert "would be out line 3 of /etc/crontab becomes a comment" in lines
    assert "by hand systemctl disable --now dump.timer: that is for the machine itself" in lines
    assert (root / "etc/crontab").read_bytes() == CRONTAB
    assert shell("list", "--json").json["items"] == []


@pytest.mark.parametrize("answer", ["n\n", "", "y\n"])
def test_a_person_is_asked_before_anything_is_done(
    shell: Shell, root: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    said = shell("import", "crontab", "--root", str(root), "--disable-source", "--only", "tidy")
    assert "/etc/crontab:3: line 3 of /etc/crontab becomes a comment" in said.out
    assert ((root / "etc/crontab").read_bytes() == CRONTAB) == (answer != "y\n")
    assert [line["name"] for line in shell("list", "--json").json["items"]] == (["tidy"] if answer == "y\n" else [])
    assert said.out.endswith("What was taken out runs nowhere until: nightporter enable NAME\n"
                             if answer == "y\n" else "Nothing was changed.\n")


def test_where_nobody_can_be_asked_it_is_refused(shell: Shell, root: Path) -> None:
    assert out(shell, root).code == 2
    assert ((root / "etc/crontab").read_bytes(), shell("list", "--json").json["items"]) == (CRONTAB, [])


@pytest.mark.parametrize("flags", [(), ("--files",)])
def test_a_crash_between_the_two_loses_no_job(
    shell: Shell, root: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("nightporter.exchange.taking_out.write_durably", dies)
        assert out(shell, root, "--yes", *flags).code == 130
    assert (root / "etc/crontab").read_bytes() == CRONTAB
    assert len(shell("list", "--json").json["items"]) == 7
    again = out(shell, root, "--yes", *flags)
    assert (again.code, again.json["counts"]["already"]) == (0, 7)
    assert {state for state, _ in offs(again.json).values()} == {"out", "by_hand"}


def test_a_place_that_cannot_be_written_is_said_and_stays_as_it_was(
    shell: Shell, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fchown

    def full(descriptor: int, *owner: int) -> None:
        if "cron.d" in str(Path(f"/proc/self/fd/{descriptor}").readlink()):
            raise PermissionError(1, "Operation not permitted")
        real(descriptor, *owner)

    monkeypatch.setattr("os.fchown", full)
    said = out(shell, root, "--yes")
    item = next(item for item in said.json["items"] if item["name"] == "report")
    assert (said.code, item["state"], item["taken_out"]["state"], item["taken_out"]["why"]) == (
        1, "imported", "failed", "Operation not permitted")
    assert (root / "etc/cron.d/report").read_bytes() == FILES["/etc/cron.d/report"]
    assert offs(said.json)["/etc/crontab:3"] == ("out", "imported")


def test_a_job_that_did_not_come_over_is_not_taken_out(shell: Shell, root: Path) -> None:
    shell.write("tidy.yaml", "name: other\ntarget: noop\n")
    (root / "etc/cron.d/report").write_text("*/10 * * * * ana /srv/report\n@reboot ana /srv/report\n")
    said = out(shell, root, "--yes", "--only", "report").json
    assert list(offs(said)) == ["/etc/cron.d/report:1"]
    assert (root / "etc/crontab").read_bytes() == CRONTAB


def test_a_crontab_that_is_named_is_changed_where_it_is(shell: Shell, tmp_path: Path) -> None:
    tab = tmp_path / "tab"
    tab.write_text("0 3 * * * /bin/x\n")
    said = shell("import", "crontab", "--file", str(tab), "--disable-source", "--yes", "--json")
    assert (said.code, said.json["items"][0]["taken_out"]["state"]) == (0, "out")
    assert tab.read_text().startswith("#nightporter:")


def test_what_comes_by_standard_input_is_left_to_who_sent_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"@daily /bin/y\n")))
    said = shell("import", "crontab", "--file", "-", "--disable-source", "--yes", "--json").json
    assert said["items"][0]["taken_out"] == {
        "state": "by_hand", "how": "line 1 of standard input becomes a comment", "why": "it came without its file",
        "backup": None}


def test_doctor_names_a_job_that_acts_here_and_is_still_run_there(
    shell: Shell, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> list[tuple[str, str]]:
        items = shell("doctor", "--json").json["items"]
        return [(item["severity"], item["what"]) for item in items if item["code"] == "twin"]

    monkeypatch.setattr("nightporter.exchange.twins.MACHINE", root)
    assert shell("import", "os", "--root", str(root)).code == 0
    assert found() == []
    for name in ("tidy", "dump"):
        assert shell("enable", name).code == 0
    assert found() == [
        ("warning", "tidy acts here, and /etc/crontab:3 still runs it too"),
        ("warning", f"dump acts here, and {ETC}/dump.timer still runs it too")]
    out(shell, root, "--yes")
    (root / WANTS.lstrip("/") / "dump.timer").unlink()
    assert found() == []
