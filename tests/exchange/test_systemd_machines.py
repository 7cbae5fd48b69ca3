"""A scan of a machine's timers: where units lie, what enables them, what drop-ins add; and whose they are."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from machines import machine, scanned
from units import DAILY, DOES, ETC, LIB, WANTS, house, left

from nightporter.exchange import Item
from nightporter.exchange.tree import LARGEST

UNITS = {"a.timer": DAILY, "a.service": DOES}
HOME = "/home/ana/.config/systemd/user"


def why(items: dict[str, Item]) -> dict[str, tuple[str, str]]:
    return {name: (item.state, item.reason) for name, item in items.items()}


@pytest.mark.parametrize("folder", [ETC, LIB, "/run/systemd/system", "/lib/systemd/system",
                                    "/usr/local/lib/systemd/system", "/etc/systemd/system.control"])
def test_units_are_found_wherever_systemd_looks(tmp_path: Path, folder: str) -> None:
    item = house(tmp_path, {f"{folder}/a.timer": DAILY, f"{folder}/a.service": DOES})["a.timer"]
    assert (item.state, item.name, item.entry.source.path) == ("imported", "a", f"{folder}/a.timer")


def test_the_unit_of_the_administrator_goes_before_that_of_the_package(tmp_path: Path) -> None:
    item = house(tmp_path, {**UNITS, f"{LIB}/a.timer": "[Timer]\nOnCalendar=hourly\n",
                            f"{LIB}/a.service": "[Service]\nExecStart=/bin/other\n"})["a.timer"]
    assert (item.entry.timings[0].expression, item.entry.shown) == ("0 0 * * *", "/bin/x")


def test_drop_ins_add_and_take_back_in_the_order_of_their_names(tmp_path: Path) -> None:
    item = house(tmp_path, {
        "a.timer": "[Timer]\nOnCalendar=daily\nAccuracySec=1h\n", "a.service": DOES,
        f"{LIB}/a.timer.d/20-later.conf": "[Timer]\nOnCalendar=Mon 09:00\n",
        "a.timer.d/10-first.conf": "[Timer]\nOnCalendar=\nAccuracySec=\n",
        f"{LIB}/a.timer.d/10-first.conf": "[Timer]\nOnCalendar=hourly\n",
        "a.timer.d/x.txt": "[Timer]\nOnCalendar=hourly\n",
        f"{LIB}/service.d/all.conf": "[Service]\nEnvironment=A=1\n",
        "a.service.d/own.conf": "[Service]\nExecStart=\nExecStart=/bin/y\n",
    }, links={f"{ETC}/a.timer.d/30-no.conf": "/dev/null"})["a.timer"]
    assert [each.expression for each in item.entry.timings] == ["0 9 * * mon"]
    assert (item.entry.shown, item.entry.environment["A"], "AccuracySec=1h" in left(item)) == ("/bin/y", "1", False)


def test_drop_ins_of_a_prefix_and_of_a_template_hold_for_all_of_them(tmp_path: Path) -> None:
    items = house(tmp_path, {
        "dump-@.timer": "", "dump-db@.timer": DAILY, "dump-db@.service": DOES,
        "dump-.timer.d/a.conf": "[Timer]\nPersistent=yes\n", "dump-db@.timer.d/b.conf": "[Timer]\nAccuracySec=1h\n",
        "dump-db@two.timer.d/c.conf": "[Timer]\nWakeSystem=yes\n",
    }, enabled=(), links={f"{WANTS}/dump-db@{each}.timer": "../dump-db@.timer" for each in ("one", "two")})
    assert {name: list(left(item)) for name, item in items.items() if item.state == "imported"} == {
        "dump-db@one.timer": ["AccuracySec=1h"], "dump-db@two.timer": ["AccuracySec=1h", "WakeSystem=yes"]}
    made = items["dump-db@one.timer"].entry.timings[0].options
    assert made["missed"] == {"policy": "run_once", "within": "365d"}


def test_of_drop_ins_with_one_name_the_higher_folder_holds_and_the_type_comes_last(tmp_path: Path) -> None:
    item = house(tmp_path, {
        "a-b.timer": DAILY, "a-b.service": DOES, "a-.timer.d/x.conf": "[Timer]\nWakeSystem=yes\n",
        f"{LIB}/a-b.timer.d/x.conf": "[Timer]\nAccuracySec=1h\n", "timer.d/y.conf": "[Timer]\nOnClockChange=yes\n",
        f"{LIB}/a-b.timer.d/y.conf": "[Timer]\nOnTimezoneChange=yes\n",
    }, enabled=("a-b.timer",))["a-b.timer"]
    assert list(left(item)) == ["WakeSystem=yes", "OnTimezoneChange=yes"]


def test_instances_of_a_template_are_jobs_of_their_own(tmp_path: Path) -> None:
    items = house(tmp_path, {
        "dump@.timer": "[Timer]\nOnCalendar=daily\nUnit=do-%p@%i.service\n", "idle@.timer": DAILY,
        "do-dump@.service": "[Service]\nExecStart=/bin/dump %i %I %n %N %p\n",
    }, enabled=(), links={f"{WANTS}/dump@srv-my\\x2ddata.timer": f"{ETC}/dump@.timer"})
    assert why(items) == {
        "dump@.timer": ("skipped", "it is a template, whose instances are listed one by one"),
        "idle@.timer": ("skipped", "it is a template, and no instance of it is enabled"),
        "dump@srv-my\\x2ddata.timer": ("imported", "")}
    made = items["dump@srv-my\\x2ddata.timer"].entry
    stem = r"do-dump@srv-my\x2ddata"
    assert made.command == ("/bin/dump", r"srv-my\x2ddata", "srv/my-data", f"{stem}.service", stem, "do-dump")
    assert made.off == ("systemctl", "disable", "--now", r"dump@srv-my\x2ddata.timer")


def test_what_does_not_run_there_is_skipped_with_the_reason(tmp_path: Path) -> None:
    files = {"off.timer": DAILY, "off.service": DOES, f"{LIB}/masked.timer": DAILY, f"{LIB}/masked.service": DOES,
             "empty.timer": "", **UNITS}
    items = house(tmp_path, files, links={f"{ETC}/masked.timer": "/dev/null", f"{ETC}/alias.timer": "a.timer"})
    assert why(items) == {
        "a.timer": ("imported", ""), "off.timer": ("skipped", "nothing enables it, so it is not run there either"),
        "masked.timer": ("skipped", "it is masked"), "empty.timer": ("skipped", "it is masked"),
        "alias.timer": ("skipped", "it is another name of a.timer")}


def test_what_can_start_nothing_is_refused_with_the_reason(tmp_path: Path) -> None:
    says = {"gone": "", "away": "Unit=a.target\n", "hidden": "", "odd": "Unit=%b.service\n"}
    files = {f"{name}.timer": DAILY + said for name, said in says.items()}
    files[f"{LIB}/hidden.service"] = DOES
    items = house(tmp_path, files, (*tuple(files)[:4], "lost.timer"), {f"{ETC}/hidden.service": "/dev/null"})
    assert {name: item.reason for name, item in items.items()} == {
        "gone.timer": "it starts gone.service: there is no such service",
        "away.timer": "it starts a.target: that is no service, so it runs no program",
        "hidden.timer": "it starts hidden.service: that service is masked",
        "odd.timer": "%b cannot be filled in here: only that machine's systemd knows what it is",
        "lost.timer": "a link enables it, and there is no such unit"}
    assert {item.state for item in items.values()} == {"refused"}


def test_a_link_of_the_package_enables_unless_the_administrator_took_it_back(tmp_path: Path) -> None:
    links = {f"{LIB}/timers.target.wants/{each}.timer": f"../{each}.timer" for each in ("a", "b")}
    items = house(tmp_path, {f"{LIB}/{each}.{kind}": text for each in "ab"
                             for kind, text in (("timer", DAILY), ("service", DOES))},
                  enabled=(), links={**links, f"{WANTS}/b.timer": "/dev/null"})
    assert {name: item.state for name, item in items.items()} == {"a.timer": "imported", "b.timer": "skipped"}


def test_a_timer_that_was_started_for_once_is_enabled_by_itself(tmp_path: Path) -> None:
    place = "/run/systemd/transient"
    item = house(tmp_path, {f"{place}/run-u1.timer": "[Timer]\nOnCalendar=2027-01-01 09:00\nRemainAfterElapse=no\n",
                            f"{place}/run-u1.service": DOES}, enabled=())["run-u1.timer"]
    assert (item.state, item.entry.off) == ("imported", ("systemctl", "stop", "run-u1.timer"))


def test_timers_of_a_user_are_that_users(tmp_path: Path) -> None:
    root = machine(tmp_path, {
        f"{HOME}/a.timer": DAILY, f"{HOME}/a.service": "[Service]\nExecStart=%h/bin/x %u %U %t %E\n",
        "/etc/systemd/user/shared.service": "[Service]\nExecStart=/bin/shared\n", f"{HOME}/shared.timer": DAILY,
    }, links={f"{HOME}/default.target.wants/{each}.timer": f"../{each}.timer" for each in ("a", "shared")})
    one, two = (item.entry for item in scanned(root, "systemd").items)
    assert (one.user, one.cwd, one.command, one.off) == (
        "ana", "/home/ana", ("/home/ana/bin/x", "ana", "1000", "/run/user/1000", "/home/ana/.config"),
        ("systemctl", "--user", "disable", "--now", "a.timer"))
    assert {key: one.environment[key] for key in ("HOME", "USER")} == {"HOME": "/home/ana", "USER": "ana"}
    assert two.command == ("/bin/shared",)


def test_timers_of_every_user_are_one_job_each_and_say_so(tmp_path: Path) -> None:
    root = machine(tmp_path, {"/usr/lib/systemd/user/a.timer": DAILY, "/usr/lib/systemd/user/a.service": DOES,
                              "/usr/lib/systemd/user/h.timer": DAILY,
                              "/usr/lib/systemd/user/h.service": "[Service]\nExecStart=%h/x\n"},
                   links={f"/etc/systemd/user/timers.target.wants/{each}.timer": f"../{each}.timer" for each in "ah"})
    item, homely = scanned(root, "systemd").items
    assert (item.state, item.entry.user, item.entry.off[1]) == ("imported", "", "--global")
    assert "a run for every user" in left(item)
    assert homely.reason.startswith("%h cannot be filled in here")


def test_machine_and_host_are_filled_in_from_its_files(tmp_path: Path) -> None:
    items = house(tmp_path, {"a.timer": DAILY, "a.service": "[Service]\nExecStart=/bin/x %H %l %m %S %h %u %%\n",
                             "/etc/hostname": "desk.example\n", "/etc/machine-id": "abc\n"})
    assert items["a.timer"].entry.command == (
        "/bin/x", "desk.example", "desk", "abc", "/var/lib", "/root", "root", "%")


def test_the_mark_follows_what_is_done_and_when_and_not_comments(tmp_path: Path) -> None:
    def mark(where: str, timer: str = DAILY, service: str = DOES) -> str:
        return house(tmp_path / where, {"a.timer": timer, "a.service": service})["a.timer"].mark

    same = mark("a")
    assert mark("b", "# a word\n\n" + DAILY, DOES + "# another\n") == same
    assert len({same, mark("c", DAILY + "Persistent=yes\n"), mark("d", service=DOES + "ExecStart=/bin/y\n")}) == 3


def test_what_cannot_be_read_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        **UNITS, "large.timer": b"#" * (LARGEST + 1), "binary.service": DOES,
        "binary.timer": b"[Timer]\nOnCalendar=\xff\0\n" + random.Random(4).randbytes(3000),
        "many.timer": "[Timer]\n" + "OnCalendar=daily\n" * 50_000, "many.service": DOES,
        "nul.timer": DAILY, "nul.service": b"[Service]\nExecStart=/bin/x \xff\n",
        "dropped.timer": DAILY, "dropped.service": DOES, "dropped.service.d/x.conf": b"\0\xff" * 5000,
    }
    names = ("a", "large", "binary", "many", "nul", "dropped", "circle", "away", "pipe")
    items = house(tmp_path, files, tuple(f"{name}.timer" for name in names), {
        f"{ETC}/circle.timer": "circle.timer", f"{ETC}/away.timer": "/srv/away.timer",
        f"{ETC}/round.wants": "round.wants"})
    assert {name: item.state for name, item in items.items() if item.state != "refused"} == {
        "a.timer": "imported", "dropped.timer": "imported"}
    reasons = {name.removesuffix(".timer"): item.reason for name, item in items.items() if item.reason}
    assert reasons["large"] == reasons["circle"] == reasons["away"] == "its file cannot be read"
    assert reasons["many"] == "it has more than 50 times"
    assert "not UTF-8" in reasons["nul"]
    unread = {each.path.rpartition("/")[2]: each.why for each in scanned(tmp_path / "machine", "systemd").unread}
    assert unread == {"large.timer": "it is larger than 1000 KB",
                      "circle.timer": "its links lead in a circle", "round.wants": "its links lead in a circle",
                      "away.timer": "its link leads nowhere"}


def test_a_folder_of_a_user_that_may_not_be_looked_into_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine(tmp_path, {f"{HOME}/a.timer": DAILY})
    real = Path.iterdir

    def closed(self: Path) -> object:
        if self.name == "user" and "home" in self.parts:
            raise PermissionError(13, "Permission denied")
        return real(self)

    monkeypatch.setattr(Path, "iterdir", closed)
    plan = scanned(root, "systemd")
    assert ([(each.path, each.why) for each in plan.unread], plan.items) == ([(HOME, "Permission denied")], ())


def test_a_home_that_may_not_be_entered_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine(tmp_path, {f"{HOME}/a.timer": DAILY, "/run/user/0/x": "",
                              "/root/.config/systemd/user/r.timer": DAILY})
    real = os.access

    def closed(path: Path, mode: int) -> bool:
        return path.name != "ana" and "run" not in path.parts and real(path, mode)

    monkeypatch.setattr("os.access", closed)
    plan = scanned(root, "systemd")
    assert [(each.path, each.why) for each in plan.unread] == [
        ("/run/user/0", "Permission denied"), ("/home/ana", "Permission denied")]
    assert [item.entry.source.path for item in plan.items] == ["/root/.config/systemd/user/r.timer"]
