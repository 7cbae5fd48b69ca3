"""A scan of a machine: users' and the system's crontabs, the folders of scripts, anacron, and what cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from machines import NOW, machine, scanned

from nightporter.errors import BadInput
from nightporter.exchange import scan
from nightporter.exchange.tree import LARGEST
from nightporter.outside.asking import Answer

DEBIAN = """\
SHELL=/bin/sh
17 *\t* * *\troot\tcd / && run-parts --report /etc/cron.hourly
25 6\t* * *\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }
47 6\t* * 7\troot\ttest -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.weekly; }
"""
ANACRON = """\
HOME=/root
START_HOURS_RANGE=3-22
RANDOM_DELAY=45
1\t5\tcron.daily\trun-parts --report /etc/cron.daily
7\t10\tcron.weekly\trun-parts --report /etc/cron.weekly
@monthly 15 mine /usr/local/bin/mine.sh
10 0 odd /bin/odd
nonsense
"""


def states(root: Path) -> dict[str, tuple[str, str]]:
    return {item.entry.source.where: (item.state, item.reason) for item in scanned(root).items}


def test_every_crontab_of_a_machine_is_found(tmp_path: Path) -> None:
    root = machine(tmp_path, {
        "/etc/crontab": "0 1 * * * root /bin/a\n", "/etc/cron.d/b": "0 2 * * * root /bin/b\n",
        "/var/spool/cron/crontabs/ana": "0 3 * * * /bin/c\n", "/var/spool/cron/bob": "0 4 * * * /bin/d\n",
        "/var/spool/cron/tabs/eve": "0 5 * * * /bin/e\n",
    })
    found = [(i.entry.source.where, i.entry.user, i.name) for i in scanned(root).items]
    assert sorted(found) == [
        ("/etc/cron.d/b:1", "root", "b"), ("/etc/crontab:1", "root", "a"), ("/var/spool/cron/bob:1", "bob", "d"),
        ("/var/spool/cron/crontabs/ana:1", "ana", "c"), ("/var/spool/cron/tabs/eve:1", "eve", "e")]


def test_a_file_of_one_job_is_called_after_itself(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/etc/cron.d/php": "9,39 * * * * root [ -x /usr/lib/php/sessionclean ] && x\n",
                              "/etc/cron.d/two": "0 1 * * * root /bin/a\n0 2 * * * root /bin/b\n"})
    assert [item.name for item in scanned(root).items] == ["php", "a", "b"]


def test_scripts_of_a_folder_have_the_time_of_the_line_that_runs_them(tmp_path: Path) -> None:
    root = machine(tmp_path, {
        "/etc/debian_version": "12\n", "/etc/crontab": DEBIAN, "/etc/cron.hourly/tick+x": "",
        "/etc/cron.daily/man-db+x": "", "/etc/cron.daily/plain": "", "/etc/cron.daily/with.dot+x": "",
        "/etc/cron.daily/.placeholder": "",
        "/etc/cron.monthly/never+x": "",
    })
    plan = scanned(root)
    by_path = {item.entry.source.where: item for item in plan.items}
    daily = by_path["/etc/cron.daily/man-db"]
    assert (daily.state, daily.name, daily.entry.timings[0].expression) == ("imported", "man-db-daily", "25 6 * * *")
    assert (daily.entry.cwd, daily.entry.command) == ("/", ("/bin/sh", "-c", "/etc/cron.daily/man-db"))
    assert "/etc/crontab:3 runs those of /etc/cron.daily in turn" in daily.entry.leftovers[0].why
    assert {path: (item.state, item.reason) for path, item in by_path.items() if path != daily.entry.source.where} == {
        "/etc/cron.hourly/tick": ("imported", ""),
        "/etc/crontab:2": ("skipped", "the scripts that it runs are listed one by one (1 in /etc/cron.hourly)"),
        "/etc/crontab:3": ("skipped", "the scripts that it runs are listed one by one (3 in /etc/cron.daily)"),
        "/etc/crontab:4": ("skipped", "the scripts that it runs are listed one by one (0 in /etc/cron.weekly)"),
        "/etc/cron.daily/plain": ("skipped", "it is not executable, so it is not run there either"),
        "/etc/cron.daily/with.dot": (
            "skipped", "cron runs no name with other signs than letters, digits, _ and -"),
        "/etc/cron.monthly/never": ("refused", "no line of a crontab says when /etc/cron.monthly is run"),
    }


def test_where_there_is_anacron_it_says_when(tmp_path: Path) -> None:
    files = {"/etc/debian_version": "12\n", "/etc/crontab": DEBIAN, "/etc/anacrontab": ANACRON,
             "/etc/cron.daily/man-db+x": "", "/etc/cron.weekly/man-db+x": ""}
    without = {i.entry.source.where: i for i in scanned(machine(tmp_path / "a", files)).items}
    with_it = {i.entry.source.where: i
               for i in scanned(machine(tmp_path / "b", {**files, "/usr/sbin/anacron+x": ""})).items}
    for folder, cron, anacron in (("daily", "25 6 * * *", "5 3 * * *"), ("weekly", "47 6 * * 7", "10 3 * * 0")):
        path = f"/etc/cron.{folder}/man-db"
        assert [found[path].entry.timings[0].expression for found in (without, with_it)] == [cron, anacron]
    made = with_it["/etc/cron.weekly/man-db"].definition
    assert made is not None
    missed = made.triggers[0].missed
    assert missed is not None
    assert (missed.policy, missed.within and missed.within.days) == ("run_once", 7)
    assert [each.what for each in with_it["/etc/cron.daily/man-db"].entry.leftovers[:2]] == [
        "days since it last ran", "RANDOM_DELAY=45"]


def test_jobs_of_anacron_have_a_time_of_day(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/etc/anacrontab": ANACRON})
    items = {item.entry.source.line: item for item in scanned(root).items}
    assert [(items[n].state, items[n].entry.timings[0].kind, items[n].entry.timings[0].expression) for n in (6, 7)] == [
        ("imported", "cron", "15 3 1 * *"), ("imported", "every", "10d")]
    assert items[8].reason == "it is neither a variable nor a period, a delay, a name and a command"


def test_lines_that_only_start_anacron_are_skipped(tmp_path: Path) -> None:
    root = machine(tmp_path, {
        "/etc/cron.d/anacron": "30 7-23 * * * root [ -x /etc/init.d/anacron ] && invoke-rc.d anacron start\n",
        "/etc/cron.d/0hourly": "01 * * * * root run-parts /etc/cron.hourly\n", "/etc/cron.hourly/0anacron+x": "",
    })
    assert {reason for _, reason in states(root).values()} == {
        "it starts anacron, whose jobs are listed one by one",
        "the scripts that it runs are listed one by one (1 in /etc/cron.hourly)"}


@pytest.mark.parametrize(("debian", "read"), [(True, ["good"]), (False, ["good", "with.dot"])])
def test_files_that_cron_passes_over_are_named(tmp_path: Path, debian: bool, read: list[str]) -> None:
    files = {f"/etc/cron.d/{name}": "0 1 * * * root /bin/x\n" for name in ("good", "with.dot", "old~", ".hidden")}
    plan = scanned(machine(tmp_path, {**files, **({"/etc/debian_version": "12"} if debian else {})}))
    assert [Path(reading.path).name for reading in plan.readings if reading.lines] == read
    passed = {Path(each.path).name for each in plan.unread}
    assert passed == {"old~", "with.dot"} - set(read)


def test_what_cannot_be_read_is_a_line_with_the_reason(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/etc/cron.d/large": b"#" * (LARGEST + 1), "/etc/crontab": "0 1 * * * root /bin/x\n"},
                   links={"/etc/cron.d/circle": "circle", "/etc/cron.d/out": "../../../../../../etc/hostname"})
    os.mkfifo(root / "etc/cron.d/pipe")
    plan = scanned(root)
    assert {each.path: each.why for each in plan.unread} == {
        "/etc/cron.d/large": "it is larger than 1000 KB", "/etc/cron.d/circle": "its links lead in a circle"}
    assert [item.entry.source.where for item in plan.items] == ["/etc/crontab:1"]


def test_a_folder_that_may_not_be_looked_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, {"/var/spool/cron/crontabs/ana": "0 1 * * * /bin/x\n"})
    real = Path.iterdir

    def closed(self: Path) -> object:
        if self.name == "crontabs":
            raise PermissionError(13, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "iterdir", closed)
    plan = scanned(root)
    assert ([(each.path, each.why) for each in plan.unread], plan.items) == (
        [("/var/spool/cron/crontabs", "Permission denied")], ())


@pytest.mark.parametrize(
    ("answer", "found", "unread"),
    [
        (Answer(0, b"0 3 * * * /bin/mine\n"), ["crontab of somebody:1"], []),
        (Answer(1, err="no crontab for somebody"), [], []),
        (Answer(1, err="You (somebody) are not allowed to use this program"), [],
         ["You (somebody) are not allowed to use this program"]),
        (Answer(127, missing=True), [], []),
    ],
)
def test_ones_own_crontab_is_asked_for_by_its_command(answer: Answer, found: list[str], unread: list[str]) -> None:
    asked: list[list[str]] = []

    def ask(argv: list[str]) -> Answer:
        asked.append(argv)
        return answer

    scan_of_here = scan(Path("/"), ("crontab",), me="somebody", otherwise="UTC", now=NOW, ask=ask)
    assert asked == [["crontab", "-l"]]
    where = [e.source.where for r in scan_of_here.readings for e in r.entries]
    assert [each for each in where if each.startswith("crontab of")] == found
    assert [each.why for each in scan_of_here.unread if each.path == "crontab -l"] == unread


def test_a_copy_of_a_machine_is_asked_nothing(tmp_path: Path) -> None:
    def ask(argv: list[str]) -> Answer:
        raise AssertionError(argv)

    assert scan(machine(tmp_path, {}), ("crontab",), me="ana", otherwise="UTC", now=NOW, ask=ask).readings == ()


@pytest.mark.parametrize(
    ("files", "links", "zone"),
    [
        ({"/etc/timezone": "Asia/Tokyo\n"}, {}, "Asia/Tokyo"),
        ({"/etc/timezone": "Asia/Tokyo\n"}, {"/etc/localtime": "/usr/share/zoneinfo/America/New_York"},
         "America/New_York"),
        ({"/etc/timezone": "nonsense"}, {}, "Africa/Cairo"),
    ],
)
def test_the_zone_is_the_machines_own(tmp_path: Path, files: dict[str, str], links: dict[str, str], zone: str) -> None:
    root = machine(tmp_path, {**files, "/etc/crontab": "0 1 * * * root /bin/x\n"}, links=links)
    found = scan(root, ("crontab",), me="ana", otherwise="Africa/Cairo", now=NOW)
    assert (found.timezone, found.readings[0].entries[0].timings[0].timezone) == (zone, zone)


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is no folder"):
        scan(tmp_path / "nothing", me="ana", otherwise="UTC", now=NOW)
