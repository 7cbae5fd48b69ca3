"""A line of a crontab becomes the job that cron has of it, or says why not; one bad line costs that line."""

from __future__ import annotations

import subprocess

import pytest
from machines import job, planned, tab

from nightporter.exchange.shell_line import label_of, take_apart, to_run

USUAL = """\
# m h  dom mon dow   command
PATH=/usr/local/bin:/usr/bin:/bin

# Nightly backup of the photos
0 3 * * *\t/usr/local/bin/backup.sh --all
*/5 8-18 * * mon-fri   cd /srv/app && ./check.py >/dev/null 2>&1
  @daily    find /tmp -name 'x%' -delete
"""


def test_a_usual_crontab_is_taken_whole() -> None:
    reading = tab(USUAL)
    assert (reading.lines, reading.variables, reading.comments, len(reading.entries)) == (7, 1, 3, 3)
    backup, check, tidy = reading.entries
    assert [(e.source.line, e.timings[0].expression, e.label) for e in reading.entries] == [
        (5, "0 3 * * *", "backup"), (6, "*/5 8-18 * * mon-fri", "check"), (7, "@daily", "find")]
    assert backup.about == "Nightly backup of the photos"
    assert check.command == "cd /srv/app && ./check.py >/dev/null 2>&1"
    assert check.environment["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert tidy.shown == "find /tmp -name 'x%' -delete"


def test_what_cron_does_and_we_would_not_is_written_out() -> None:
    (item,) = planned(tab("0 3 * * * /bin/true\n")).items
    definition = item.definition
    assert definition is not None
    assert (definition.limits.timeout, definition.limits.concurrent, definition.retry.attempts) == (None, None, 1)
    (trigger, _) = definition.triggers
    assert (trigger.overlap, trigger.missed and trigger.missed.policy) == ("parallel", "skip")
    assert (definition.timezone, definition.owner, definition.target.config["cwd"]) == (
        "Europe/Berlin", "ana", "/home/ana")
    assert definition.target.config["env"] == {
        "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "HOME": "/home/ana", "LOGNAME": "ana", "USER": "ana"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@reboot /bin/x", "it runs when the machine starts"),
        ("@Daily /bin/x", "cron does not know @Daily"),
        ("@every 5m /bin/x", "cron does not know @every"),
        ("0 3 * *", "it is neither a variable nor five fields and a command"),
        ("0 3 * * *", "it has times and no command"),
        ("0 3 * * * %only input", "it has times and no command"),
        ("61 3 * * * /bin/x", "cron does not take '61' for a minute"),
        ("0 3 * * 8 /bin/x", "cron does not take '8' for a weekday"),
        ("5/10 * * * * /bin/x", "a step stands behind * or a range"),
        ("0 22-4 * * * /bin/x", "the range runs backwards"),
        ("*/0 * * * * /bin/x", "its step is nothing"),
        ("0~30 * * * * /bin/x", "a moment that cron draws by lot"),
        ("0 3 L * * /bin/x", "cron does not take 'L' for a day of month"),
        ("0 3 ? * * /bin/x", "cron does not take '?' for a day of month"),
        ("0 3 * * fri#2 /bin/x", "cron does not take 'fri#2' for a weekday"),
        ("0 3 31 2 * /bin/x", "never matches"),
        ("0 3 * foo * /bin/x", "cron does not take 'foo' for a month"),
        ("hello world", "it is neither a variable nor five fields and a command"),
        ("0 3 * * * " + "x" * 10_001, "longer than"),
    ],
)
def test_a_line_that_cron_would_not_run_is_refused_and_stops_no_other(line: str, why: str) -> None:
    reading = tab(f"{line}\n0 4 * * * /bin/good\n")
    bad, good = planned(reading).items
    assert (bad.state, good.state) == ("refused", "imported")
    assert why in bad.reason


@pytest.mark.parametrize("line", ["0 3 31 1-11 * /bin/x", "0 3 29 2 * /bin/x", "0 3 * JAN-mar Sun /bin/x",
                                  "00 03 01 * 7 /bin/x", "*/90 * * * * /bin/x", "0-59/70 1,2,3-5/2 * * * /bin/x"])
def test_a_line_that_cron_runs_is_taken(line: str) -> None:
    assert [item.reason for item in planned(tab(line + "\n")).items] == [""]


@pytest.mark.parametrize(
    ("expression", "mind"),
    [
        ("0 3 1 * mon", "the days of either"),
        ("0 3 1-7 * */7", "the days that are in both"),
        ("*/90 3 * * *", "the step of the minute is as long as its range"),
        ("0 3 31 * *", "no day 31"),
        ("0 3 * * mon", ""),
    ],
)
def test_what_surprises_in_cron_is_said(expression: str, mind: str) -> None:
    warning = job(f"{expression} /bin/x\n").timings[0].warning
    assert mind in warning
    assert bool(mind) == bool(warning)


def test_a_system_crontab_names_the_user_of_each_line() -> None:
    ana, daily, unknown, broken = tab(
        "0 3 * * * ana /bin/x\n@daily root /bin/y z\n0 3 * * * ghost /bin/x\n0 3 * * * ana\n", user="").entries
    assert [(e.user, e.shown, e.cwd) for e in (ana, daily)] == [
        ("ana", "/bin/x", "/home/ana"), ("root", "/bin/y z", "/root")]
    assert (unknown.cwd, "HOME" in unknown.environment) == ("", False)
    assert "the home of ghost is not known here" in unknown.leftovers[0].why
    assert broken.refused == "nothing stands behind the user ana"


def test_whose_job_it_was_is_told_where_somebody_else_asks() -> None:
    reading = tab("0 3 * * * root /bin/x\n", user="")
    mine, anas = (planned(reading, me=me).items[0].entry.leftovers for me in ("root", "ana"))
    assert mine == ()
    assert (anas[0].what, anas[0].why) == ("the user root", "it runs as whoever runs the desk, ana if you do")


def test_line_ends_of_windows_are_left_out_and_said() -> None:
    reading = tab(b"A=1\r\n# hello\r\n0 3 * * * /bin/x\r\n\r\n")
    (entry,) = reading.entries
    assert (entry.command, entry.environment["A"], reading.comments) == (("/bin/sh", "-c", "/bin/x"), "1", 2)
    assert entry.leftovers[0].what == "a carriage return at its end"


def test_a_last_line_without_its_end_is_taken_and_said() -> None:
    whole, cut = (job(f"0 3 * * * /bin/x{end}").leftovers for end in ("\n", ""))
    assert (whole, [each.what for each in cut]) == ((), ["a last line without its end"])


def test_bytes_that_are_not_utf_8_cost_their_line_only() -> None:
    bad, good = tab(b"# caf\xe9\n0 3 * * * /bin/caf\xe9\n0 4 * * * /bin/x\n").entries
    assert bad.refused == "it has bytes that are not UTF-8, which a definition cannot keep"
    assert (good.refused, good.source.line) == ("", 3)


def test_a_minus_before_a_line_is_taken_off() -> None:
    entry = job("-*/5 * * * * root /bin/x\n", user="")
    assert (entry.timings[0].expression, entry.leftovers[0].what) == ("*/5 * * * *", "- before the line")


@pytest.mark.parametrize(
    ("written", "command", "given"),
    [
        ("mail ana", "mail ana", None),
        (r"date +\%F", "date +%F", None),
        ("mail ana%Hello%World", "mail ana", "Hello\nWorld\n"),
        ("mail ana%Hello%", "mail ana", "Hello\n"),
        ("mail ana%", "mail ana", ""),
        (r"mail ana%100\% sure", "mail ana", "100% sure\n"),
        (r"printf 'a\tb'%x\y", r"printf 'a\tb'", "x\\y\n"),
        ("x\\", "x\\", None),
    ],
)
def test_percent_signs_are_line_ends_of_the_input(written: str, command: str, given: str | None) -> None:
    assert take_apart(written) == (command, given)


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
@pytest.mark.parametrize("given", [None, "", "a b\n'$HOME' `x` \\\n", "END_OF_INPUT\nx\n"])
def test_what_runs_does_in_its_shell_what_cron_does(shell: str, given: str | None) -> None:
    command = f"echo '<'; cat; echo \"> $0\" # {shell}"
    run = to_run(command, shell, given)
    argv = ["/bin/sh", "-c", run] if isinstance(run, str) else list(run)
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert done.stdout == f"<\n{given or ''}> {shell}\n"


@pytest.mark.parametrize("command", ["/usr/bin/x ~/y", "~/bin/x", "./x", "/home/ana/no-first-line.sh"])
def test_a_command_that_begins_with_a_path_is_the_shells_all_the_same(command: str) -> None:
    (item,) = planned(tab(f"0 3 * * * {command}\n")).items
    assert item.definition is not None
    assert item.definition.target.config["command"] == ["/bin/sh", "-c", command]


@pytest.mark.parametrize(
    ("command", "label"),
    [
        ("/usr/local/bin/backup.sh --all", "backup"),
        ("cd /srv && nice -n 10 ./report.py", "report"),
        ("test -x /usr/sbin/x || { cd / && /opt/run.pl; }", "run"),
        ("[ -x /usr/bin/certbot ] && perl -e 'sleep 1' && certbot renew", "sleep 1"),
        ("flock -n /tmp/lock /usr/bin/php /srv/cron.php", "cron"),
        ("A=1 B=2 env C=3 python3 -m reports.daily", "reports.daily"),
        ("timeout 60 curl https://x.example", "curl"),
        ('"unended', "unended"),
        ("", ""),
    ],
)
def test_a_job_is_called_after_what_it_runs(command: str, label: str) -> None:
    assert label_of(command).strip('"') == label


def test_equal_names_are_told_apart_by_their_marks() -> None:
    items = planned(tab("0 3 * * * /bin/x a\n0 4 * * * /bin/x b\n0 4 * * * /bin/x b\n")).items
    assert [item.name for item in items] == ["x", f"x-{items[1].mark[:4]}", f"x-{items[2].mark[:4]}"]
    assert len({item.mark for item in items}) == 3


def test_a_line_that_moves_keeps_its_mark() -> None:
    before = planned(tab("0 3 * * * /bin/x\n")).items[0].mark
    after = planned(tab("# new\n1 1 * * * /bin/new\nA=2\n0 3 * * * /bin/x\n")).items[1].mark
    assert before == after


def test_what_crontab_puts_before_a_file_is_no_description() -> None:
    header = ("# DO NOT EDIT THIS FILE - edit the master and reinstall.\n# (/tmp/tab installed on Tue Dec  1 2026)\n"
              "# (Cron version -- $Id: crontab.c,v 2.13 $)\n")
    assert (job(header + "0 3 * * * /bin/x\n").about, job(header + "# Mine\n0 3 * * * /bin/x\n").about) == ("", "Mine")
