"""Jobs of at: what their names and their files say, and what becomes of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from machines import NOW, PEOPLE, at, machine, planned, scanned

from nightporter.clock import MINUTE
from nightporter.exchange import Item, Tree, scan
from nightporter.exchange.at_spool import asked_for, made_of, scan_at
from nightporter.exchange.cron_machine import House
from nightporter.outside.asking import Answer

SPOOL = "/var/spool/cron/atjobs"
HEAD = "#!/bin/sh\n# atrun uid=1000 gid=1000\n# mail ana 0\n"
BEFORE = HEAD + ("umask 27\nPATH=/usr/bin:/bin; export PATH\nODD=a\\ b\\;\\ \\$x\"\n\"\\'; export ODD\n"
                 "cd /srv/my\\ data || {\n\t echo 'Execution directory inaccessible' >&2\n\t exit 1\n}\n")
JOB = BEFORE + "/usr/local/bin/report.sh --all\necho $ODD\n\n"


def name(when: str, queue: str = "a", number: int = 0x1F) -> str:
    return f"{queue}{number:05x}{at(when) // MINUTE:08x}"


def items(tmp_path: Path, files: dict[str, str | bytes]) -> dict[str, Item]:
    root = machine(tmp_path, {f"{SPOOL}/{each}" if not each.startswith("/") else each: text
                              for each, text in files.items()})
    return {item.entry.source.path.rpartition("/")[2]: item for item in scanned(root, "at").items}


def only(tmp_path: Path, text: str | bytes = JOB, when: str = "2026-12-05T09:00", queue: str = "a") -> Item:
    (item,) = items(tmp_path, {name(when, queue) + "+x": text}).values()
    return item


def test_a_job_is_a_one_shot_at_the_minute_that_its_name_says(tmp_path: Path) -> None:
    item = only(tmp_path)
    assert (item.state, item.name, item.entry.user, item.entry.off) == ("imported", "report", "ana", ("atrm", "31"))
    ((schedule, fires, _),) = item.schedules(NOW)
    assert (schedule.kind, schedule.timezone, fires) == ("at", "Europe/Berlin", [at("2026-12-05T09:00")])
    made = item.definition
    assert made is not None
    clock = next(trigger for trigger in made.triggers if trigger.schedule)
    assert (clock.missed and (clock.missed.policy, clock.missed.within and clock.missed.within.days),
            made.limits.timeout, made.retry.attempts) == (("run_once", 365), None, 1)


@pytest.mark.parametrize("spool", ["/var/spool/cron/atjobs", "/var/spool/at", "/var/spool/atjobs"])
def test_jobs_are_found_wherever_systems_keep_them(tmp_path: Path, spool: str) -> None:
    found = items(tmp_path, {f"{spool}/{name('2026-12-05T09:00')}+x": JOB, f"{spool}/.SEQ": "1f", f"{spool}/other": ""})
    assert [item.state for item in found.values()] == ["imported"]


def test_variables_folder_and_script_are_taken_apart(tmp_path: Path) -> None:
    entry = only(tmp_path).entry
    assert (entry.environment, entry.cwd, entry.shown) == (
        {"PATH": "/usr/bin:/bin", "ODD": "a b; $x\n'"}, "/srv/my data", "/usr/local/bin/report.sh --all")
    assert entry.command == ("/bin/sh", "-c", "umask 27\n/usr/local/bin/report.sh --all\necho $ODD\n")


def test_what_at_writes_for_another_shell_is_run_by_that_shell() -> None:
    body = made_of(BEFORE.replace("umask 27\n", "umask 27\nSHELL=/bin/bash; export SHELL\n")
                   + "${SHELL:-/bin/sh} << 'marcinDELIMITER5f'\necho a\necho b\n\nmarcinDELIMITER5f\n")
    assert (body.shell, body.script, body.parted) == ("/bin/bash", "echo a\necho b\n", True)


def test_a_job_does_here_what_it_does_there(tmp_path: Path) -> None:
    text = BEFORE.replace("/srv/my\\ data", str(tmp_path)) + 'printf "%s|" "$ODD" "$PWD" "$(umask)"\n'
    entry = only(tmp_path, text).entry
    assert not isinstance(entry.command, str)
    here = subprocess.run(entry.command, env=dict(entry.environment), cwd=entry.cwd, capture_output=True, check=True)
    there = subprocess.run(["/bin/sh"], input=text.encode(), env={}, capture_output=True, check=True)
    assert here.stdout == there.stdout


def test_a_job_in_another_form_is_run_as_it_is_and_that_is_said(tmp_path: Path) -> None:
    entry = only(tmp_path, HEAD + "echo a\n").entry
    assert entry.command == ("/bin/sh", "-c", HEAD + "echo a\n")
    assert entry.leftovers[0].what == "variables and folder"


@pytest.mark.parametrize(
    ("text", "when", "queue", "state", "why"),
    [
        (JOB, "2026-12-05T09:00", "b", "refused", "it is a job of batch"),
        (JOB, "2026-12-05T09:00", "C", "refused", "it is a job of batch"),
        (JOB, "2026-12-01T12:00", "a", "refused", "its time, 2026-12-01T13:00:00+01:00, has passed"),
        (JOB, "2026-12-05T09:00", "=", "skipped", "it is running"),
        ("echo a\n", "2026-12-05T09:00", "a", "refused", "it does not say whose it is"),
        (BEFORE.encode() + b"echo \xff\n", "2026-12-05T09:00", "a", "refused", "not UTF-8"),
        (BEFORE + "echo \0\n", "2026-12-05T09:00", "a", "refused", "NUL"),
        (BEFORE + "#" * 70_000, "2026-12-05T09:00", "a", "refused", "longer than"),
        (b"#" * 1_000_001, "2026-12-05T09:00", "a", "refused", "it cannot be read"),
    ],
)
def test_what_cannot_come_over_is_named(
    tmp_path: Path, text: str | bytes, when: str, queue: str, state: str, why: str
) -> None:
    item = only(tmp_path, text, when, queue)
    assert (item.state, why in item.reason) == (state, True), item.reason


def test_a_job_that_is_still_being_written_is_skipped(tmp_path: Path) -> None:
    (item,) = items(tmp_path, {name("2026-12-05T09:00"): JOB}).values()
    assert (item.state, item.reason) == ("skipped", "it is not marked as complete, so it is not run there either")


@pytest.mark.parametrize(
    ("mail", "deliver", "queue", "named"),
    [("0", "announce", "a", ["the mail to ana"]), ("-1", "none", "a", []),
     ("1", "announce", "f", ["the mail to ana", "the queue f"])],
)
def test_mail_and_queue_are_carried_or_named(
    tmp_path: Path, mail: str, deliver: str, queue: str, named: list[str]
) -> None:
    item = only(tmp_path, JOB.replace("# mail ana 0", f"# mail ana {mail}"), queue=queue)
    assert item.definition is not None
    assert [each.kind for each in item.definition.deliver] == [deliver]
    assert [each.what for each in item.entry.leftovers] == named


def test_a_user_who_is_not_known_is_named_by_number(tmp_path: Path) -> None:
    item = only(tmp_path, JOB.replace("uid=1000", "uid=4711"))
    assert (item.state, item.entry.user, item.entry.leftovers[-1].what) == ("imported", "uid 4711", "the user uid 4711")


def test_a_time_beyond_every_calendar_costs_that_job(tmp_path: Path) -> None:
    found = items(tmp_path, {"a00001ffffffff+x": JOB, name("2026-12-05T09:00") + "+x": JOB})
    assert [item.state for item in found.values()] == ["refused", "imported"]


@pytest.mark.parametrize(
    ("answers", "found", "unread"),
    [
        ({"atq": Answer(0, b"31\tSat Dec  5 09:00:00 2026 a ana\n7\tMon Mar  1 08:00:00 2027 b ana\nodd\n8\tx\n"),
          "at -c": Answer(0, JOB.encode())}, [("job 31 of at", "imported"), ("job 7 of at", "refused")], []),
        ({"atq": Answer(0, b"31\tSat Dec  5 09:00:00 2026 a ana\n"), "at -c": Answer(1)},
         [("job 31 of at", "refused")], []),
        ({"atq": Answer(1, err="You do not have permission to use atq.\n")}, [],
         ["You do not have permission to use atq."]),
        ({"atq": Answer(127, err="env: atq: No such file")}, [], []),
    ],
)
def test_ones_own_jobs_are_asked_for_where_the_spool_may_not_be_looked_into(
    tmp_path: Path, answers: dict[str, Answer], found: list[tuple[str, str]], unread: list[str]
) -> None:
    tree = Tree(machine(tmp_path, {}))
    house = House("Europe/Berlin", PEOPLE, "ana")
    readings = list(scan_at(tree, house, NOW, lambda: asked_for(
        tree, lambda argv: next(answer for key, answer in answers.items() if key in " ".join(argv)))))
    items = planned(*readings).items
    assert [(item.entry.source.where, item.state) for item in items] == found
    assert [each.why for each in tree.unread] == unread
    for item in items:
        if item.state == "imported":
            assert (item.schedules(NOW)[0][1], item.entry.off) == ([at("2026-12-05T09:00")], ("atrm", "31"))


def test_a_copy_of_a_machine_is_asked_for_no_jobs(tmp_path: Path) -> None:
    def ask(argv: list[str]) -> Answer:
        raise AssertionError(argv)

    assert scan(machine(tmp_path, {}), ("at",), me="ana", otherwise="UTC", now=NOW, ask=ask).readings == ()
