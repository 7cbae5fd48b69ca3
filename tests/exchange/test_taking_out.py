"""Commands that take a job out on the machine itself, as it answers; nothing is taken for done that is not seen so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from machines import NOW, PEOPLE, at, machine, planned, scanned, tab
from units import ETC

from nightporter.clock import MINUTE
from nightporter.exchange import Item, Places, Tree, plan
from nightporter.exchange.at_spool import Job, scan_at
from nightporter.exchange.cron_machine import House
from nightporter.exchange.taking_out import commented
from nightporter.outside.asking import Answer

JOB = "#!/bin/sh\n# atrun uid=1000 gid=1000\numask 22\ncd / || {\n exit 1\n}\ndate\n"
NAME = f"a0001f{at('2026-12-05T09:00') // MINUTE:08x}"


class Machine:
    """Answers as programs would; what was asked is kept."""

    def __init__(self, answers: dict[str, Answer] | None = None, crontab: bytes = b"") -> None:
        self.answers = answers or {}
        self.crontab = crontab
        self.deaf = False
        self.asked: list[str] = []
        self.removes: Path | None = None
        self.forgets = ""

    def __call__(self, argv: list[str], given: bytes = b"") -> Answer:
        said = " ".join(argv)
        self.asked.append(said)
        if said == "crontab -l":
            return Answer(0, self.crontab)
        if said == "crontab -" and not self.deaf:
            self.crontab = given
        if argv[0] == "atrm" and self.removes is not None:
            self.removes.unlink()
        if argv[0] == "atrm" and self.forgets:
            self.answers[self.forgets] = Answer(1)
        return next((answer for key, answer in self.answers.items() if key in said), Answer(0))


def here(root: Path, asked: Machine, me: str = "ana") -> Places:
    return Places(Tree(root), asked, root / "copies", me, here=True)


def only(root: Path) -> Item:
    (item,) = (each for each in scanned(root).items if each.state == "imported")
    return replace(item, automation_id="aut_1")


def timer(tmp_path: Path, folder: str = ETC) -> tuple[Path, Item]:
    root = machine(tmp_path, {f"{folder}/a.timer": "[Timer]\nOnCalendar=daily\n",
                              f"{folder}/a.service": "[Service]\nExecStart=/bin/x\n"},
                   links={f"{folder}/timers.target.wants/a.timer": "../a.timer"})
    return root, only(root)


INACTIVE = {"is-active": Answer(3), "is-enabled": Answer(1, b"disabled\n")}


@pytest.mark.parametrize(
    ("answers", "state", "why"),
    [
        (INACTIVE, "out", ""),
        ({"disable": Answer(1, err="Access denied\n")}, "failed", "Access denied"),
        ({"disable": Answer(127, err="systemctl is not there", missing=True)}, "failed", "systemctl is not there"),
        ({**INACTIVE, "is-enabled": Answer(0, b"enabled\n")}, "failed",
         "it is enabled still, by its package: systemctl mask a.timer"),
        ({"is-active": Answer(0), "is-enabled": Answer(1, b"disabled\n")}, "failed", "it is still active"),
    ],
)
def test_a_timer_is_disabled_and_looked_at_again(
    tmp_path: Path, answers: dict[str, Answer], state: str, why: str
) -> None:
    root, item = timer(tmp_path)
    asked = Machine(answers)
    off = here(root, asked).take_out(item)
    assert (off.state, off.how, off.why) == (state, "systemctl disable --now a.timer", why)
    assert asked.asked[0] == "systemctl --no-ask-password disable --now a.timer"


def test_a_timer_that_was_made_for_once_is_kept_before_it_is_stopped(tmp_path: Path) -> None:
    root, item = timer(tmp_path, "/run/systemd/transient")
    asked = Machine(INACTIVE)
    off = here(root, asked).take_out(item)
    assert (off.state, asked.asked[0]) == ("out", "systemctl --no-ask-password stop a.timer")
    assert Path(off.backup).read_text() == "[Timer]\nOnCalendar=daily\n"


def test_a_timer_whose_name_looks_like_an_option_is_none(tmp_path: Path) -> None:
    root = machine(tmp_path, {f"{ETC}/--now.timer": "[Timer]\nOnCalendar=daily\n",
                              f"{ETC}/--now.service": "[Service]\nExecStart=/bin/x\n"},
                   links={f"{ETC}/timers.target.wants/--now.timer": "../--now.timer"})
    asked = Machine(INACTIVE)
    assert here(root, asked).take_out(only(root)).state == "out"
    assert [each.split("systemctl ")[1] for each in asked.asked] == [
        "--no-ask-password disable --now -- --now.timer", "is-enabled -- --now.timer",
        "is-active --quiet -- --now.timer"]


@pytest.mark.parametrize(("me", "state"), [("ana", "out"), ("root", "by_hand")])
def test_a_users_timer_is_for_that_user_to_disable(tmp_path: Path, me: str, state: str) -> None:
    root, item = timer(tmp_path, "/home/ana/.config/systemd/user")
    asked = Machine(INACTIVE)
    off = here(root, asked, me).take_out(item)
    assert (off.state, bool(asked.asked)) == (state, state == "out")
    assert off.how == "systemctl --user disable --now a.timer"


def test_a_job_of_at_is_removed_once_its_file_is_kept(tmp_path: Path) -> None:
    root = machine(tmp_path, {f"/var/spool/cron/atjobs/{NAME}+x": JOB})
    asked = Machine()
    asked.removes = root / "var/spool/cron/atjobs" / NAME
    off = here(root, asked).take_out(only(root))
    assert (off.state, asked.asked, Path(off.backup).read_text()) == ("out", ["atrm 31"], JOB)


def test_a_job_of_at_whose_number_is_another_jobs_now_is_left_alone(tmp_path: Path) -> None:
    root = machine(tmp_path, {f"/var/spool/cron/atjobs/{NAME}+x": JOB})
    item, asked = only(root), Machine()
    (root / "var/spool/cron/atjobs" / NAME).write_text(JOB + "other\n")
    assert (here(root, asked).take_out(item).state, asked.asked) == ("failed", [])


def test_a_job_of_at_that_stays_is_not_taken_for_gone(tmp_path: Path) -> None:
    root = machine(tmp_path, {f"/var/spool/cron/atjobs/{NAME}+x": JOB})
    off = here(root, Machine()).take_out(only(root))
    assert (off.state, off.why) == ("failed", "it is there still")


def test_ones_own_job_of_at_is_looked_for_by_its_program(tmp_path: Path) -> None:
    house = House("UTC", PEOPLE, "ana")
    jobs = [Job("job 31 of at", 31, "a", at("2026-12-05T09:00"), JOB.encode())]
    (item,) = planned(*scan_at(Tree(machine(tmp_path, {})), house, NOW, lambda: jobs)).items
    item = replace(item, automation_id="aut_1")
    stays, goes = Machine({"at -c": Answer(0, JOB.encode())}), Machine({"at -c": Answer(0, JOB.encode())})
    goes.forgets = "at -c"
    assert [(here(tmp_path, each).take_out(item).state, each.asked) for each in (stays, goes)] == [
        (state, ["at -c 31", "atrm 31", "at -c 31"]) for state in ("failed", "out")]


MINE = b"A=1\n0 3 * * * /bin/x\n\xff\xfe odd\r\n"


def own(content: bytes) -> Item:
    reading = tab(content, path="crontab of ana")
    items = plan([reading], present={}, taken=(), me="ana", now=at("2026-12-01T12:00")).items
    return replace(next(item for item in items if item.state == "imported"), automation_id="aut_1")


@pytest.mark.parametrize("deaf", [False, True])
def test_ones_own_crontab_is_changed_by_its_command_and_looked_at_again(tmp_path: Path, deaf: bool) -> None:
    asked, item = Machine(crontab=MINE), own(MINE)
    asked.deaf = deaf
    off = here(tmp_path, asked).take_out(item)
    assert (off.state, Path(off.backup).read_bytes()) == ("failed" if deaf else "out", MINE)
    assert asked.crontab == (MINE if deaf else MINE.replace(b"0 3", f"#nightporter:{item.mark}: 0 3".encode()))


@pytest.mark.parametrize(
    ("now", "line"),
    [
        (MINE, 2), (b"# new\n" + MINE, 3), (MINE + b"0 3 * * * /bin/x\n", 2), (b"0 4 * * * /bin/x\n", None),
        (b"", None),
        (b"0 3 * * * /bin/x\n# other\n0 3 * * * /bin/x\n", None), (b"A=1\n  0 3 * * * /bin/x  \r\n", 2),
    ],
)
def test_the_line_is_found_where_it_is_now_or_left_alone(now: bytes, line: int | None) -> None:
    item = own(MINE)
    changed = commented(now, item)
    if line is None:
        assert changed is None
        return
    assert changed is not None
    before, after = now.split(b"\n"), changed.split(b"\n")
    assert [n for n, pair in enumerate(zip(before, after, strict=True), 1) if pair[0] != pair[1]] == [line]
    assert after[line - 1] == f"#nightporter:{item.mark}: ".encode() + before[line - 1]


def test_what_a_link_in_a_folder_of_scripts_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/etc/crontab": "1 1 * * * root run-parts /etc/cron.daily\n", "/usr/bin/tidy+x": ""},
                   links={"/etc/cron.daily/tidy": "/usr/bin/tidy"})
    off = here(root, Machine()).take_out(only(root))
    assert (off.state, off.how) == ("by_hand", "rm /etc/cron.daily/tidy")
    assert (root / "usr/bin/tidy").stat().st_mode & 0o111


def test_a_path_that_leads_upwards_keeps_its_copy_below_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "tabs"
    folder.mkdir(parents=True)
    (folder / "tab").write_bytes(MINE)
    item = own(MINE)
    path = f"{folder}/../../../../../../../../../..{folder}/tab"
    item = replace(item, entry=replace(item.entry, source=replace(item.entry.source, path=path)))
    off = Places(Tree(Path("/")), Machine(), tmp_path / "copies", "ana", here=False).take_out(item)
    assert off.state == "out"
    assert Path(off.backup).is_relative_to(tmp_path / "copies")
