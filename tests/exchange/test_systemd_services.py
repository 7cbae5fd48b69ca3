"""The service that a timer starts: its commands are run as systemd would run them, and what is lost is named."""

from __future__ import annotations

import contextlib
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from units import DOES, house, left, service

from nightporter.errors import BadInput
from nightporter.exchange.exec_line import assignments_of, commands_of


def plain(text: str) -> str:
    return text


def ran(item: Any, **more: str) -> tuple[int, list[str]]:
    """Runs what became of a service, in a bare environment."""
    assert item.state == "imported", item.reason
    command = item.entry.command
    done = subprocess.run(["/bin/sh", "-c", command] if isinstance(command, str) else list(command),
                          env={**item.entry.environment, **more}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/bin/x a  b", ["/bin/x", "a", "b"]), ("/bin/x 'a b' \"c d\"e", ["/bin/x", "a b", "c de"]),
        (r"/bin/x \x41\t\"\u00e9 a\sb \101", ["/bin/x", "A\t\"é", "a b", "A"]), ("/bin/x ''", ["/bin/x", ""]),
        (r"/bin/x a\;b \; \\; \q \0", ["/bin/x", r"a\;b", ";", r"\;", r"\q", r"\0"]),
        ("/bin/x ';' ; ;", ["/bin/x", ";"]),
        ("/bin/x a;b", ["/bin/x", "a;b"]),
        ("x * ~ #no", ["x", "*", "~", "#no"]),
    ],
)
def test_words_are_parted_as_systemd_parts_them(text: str, words: list[str]) -> None:
    (command,) = commands_of(text, plain)
    assert list(command.words) == words


@pytest.mark.parametrize("text", ["", "-", "/bin/x 'a", "/bin/x ; - ; /bin/y", "@/bin/x", "|/bin/x"])
def test_what_systemd_would_not_take_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        commands_of(text, plain)


def test_marks_before_a_command_are_understood() -> None:
    one, two, three = commands_of("-/bin/x a ; @:/bin/y name b ; +!!/bin/z", plain)
    assert (one.forgiven, two.plain, two.own_name, two.words, three.more_rights) == (
        True, True, "name", ("/bin/y", "b"), True)


def test_variables_stand_in_words_of_their_own() -> None:
    assert assignments_of("A=1 'B=two words' \"C=a=b\" D=", plain) == {"A": "1", "B": "two words", "C": "a=b", "D": ""}
    with pytest.raises(BadInput):
        assignments_of("A=1 nonsense", plain)


def test_one_program_is_run_without_a_shell(tmp_path: Path) -> None:
    item = service(tmp_path, "ExecStart=/bin/echo '*' $$HOME 100%% a\\x41 %_ 7%")
    assert item.entry.command == ("/bin/echo", "*", "$HOME", "100%", "aA", "%_", "7%")
    assert ran(item) == (0, ["* $HOME 100% aA %_ 7%"])


SHOW = "/usr/bin/printf '<%%s>\\n'"


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        ("${A} $A '${A}'", ["<one two>", "<one>", "<two>", "<one two>"]),
        ("x${A}y$A $NONE ${NONE} $$A", ["<xone twoy$A>", "<>", "<$A>"]),
        ("$STAR ${STAR} *", ["<*>", "<*>", "<*>"]), ("${QUOTE} `id` $(id) ;", ["<'\">", "<`id`>", "<$(id)>"]),
        ("a\\nb ${A}", ["<a", "b>", "<one two>"]),
    ],
)
def test_variables_are_filled_in_when_it_runs(tmp_path: Path, words: str, printed: list[str]) -> None:
    item = service(tmp_path, f"Type=oneshot\nEnvironment='A=one two' STAR=* QUOTE='\\'\\x22'\nExecStart={SHOW} {words}")
    assert ran(item) == (0, printed)


def test_a_colon_leaves_dollars_alone(tmp_path: Path) -> None:
    assert ran(service(tmp_path, f"Environment=A=1\nExecStart=:{SHOW} $A ${{A}} $$")) == (0, ["<$A>", "<${A}>", "<$$>"])


@pytest.mark.parametrize(
    ("says", "code", "printed"),
    [
        ("ExecStart=/bin/echo a\nExecStart=/bin/echo b ; /bin/echo c", 0, "abc"),
        ("ExecStart=/bin/echo a\nExecStart=/bin/false\nExecStart=/bin/echo b", 1, "a"),
        ("ExecStart=-/bin/false\nExecStart=/bin/echo b", 0, "b"),
        ("ExecStart=/bin/echo b\nExecStartPre=/bin/echo a\nExecStartPost=/bin/echo c", 0, "abc"),
        ("ExecStart=/bin/echo b\nExecStartPre=/bin/sh -c 'exit 7'", 7, ""),
        ("ExecStart=/bin/echo b\nExecCondition=/bin/false", 0, ""),
        ("ExecStart=/bin/echo b\nExecCondition=/bin/sh -c 'exit 255'", 255, ""),
        ("ExecStart=/bin/echo b\nExecCondition=/bin/true", 0, "b"),
        ("ExecStart=/bin/echo no\nExecStart=\nExecStart=/bin/echo yes", 0, "yes"),
    ],
)
def test_commands_follow_one_another_until_one_fails(tmp_path: Path, says: str, code: int, printed: str) -> None:
    assert ran(service(tmp_path, f"Type=oneshot\n{says}")) == (code, [printed] if printed == "yes" else list(printed))


def test_a_file_of_variables_is_read_when_it_runs_and_nothing_in_it_is_run(tmp_path: Path) -> None:
    file = tmp_path / "it's variables"
    says = f"Type=oneshot\nEnvironment=A=0 line=kept\nEnvironmentFile={file}\nExecStart={SHOW} ${{A}} ${{B}} ${{line}}"
    item = service(tmp_path, says)
    assert ran(item)[0] == 1
    file.write_text(f"# A=9\n\n;x\nA=one two  \nB=\"$(touch {tmp_path}/ran)\"\nno 'line\n1=2\nA-B=3\nC='x'")
    assert ran(item) == (0, ["<one two>", f"<$(touch {tmp_path}/ran)>", "<kept>"])
    assert not (tmp_path / "ran").exists()
    assert f"{file}, read at each run" in item.entry.carried
    assert all("one two" not in str(part) for part in item.entry.command)


def test_a_file_of_variables_may_be_missing_where_that_is_said(tmp_path: Path) -> None:
    assert ran(service(tmp_path, f"EnvironmentFile=-{tmp_path}/no\nExecStart={SHOW} a")) == (0, ["<a>"])


def test_user_folder_and_environment_come_over(tmp_path: Path) -> None:
    item = service(tmp_path, "User=ana\nWorkingDirectory=~\nEnvironment=LANG=C\nExecStart=/bin/x")
    assert item.definition is not None
    config = item.definition.target.config
    assert (item.definition.owner, config["cwd"], config["env"]) == ("ana", "/home/ana", {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C", "HOME": "/home/ana",
        "LOGNAME": "ana", "USER": "ana"})


@pytest.mark.parametrize(
    ("says", "seconds"),
    [("Type=oneshot", None), ("Type=oneshot\nTimeoutStartSec=1h 30min", 5400),
     ("Type=oneshot\nTimeoutSec=90", 90), ("Type=oneshot\nTimeoutStartSec=infinity", None),
     ("TimeoutStartSec=10", None), ("RuntimeMaxSec=5min", 300), ("RuntimeMaxSec=nonsense", None)],
)
def test_the_end_of_time_is_what_ends_it_there(tmp_path: Path, says: str, seconds: float | None) -> None:
    item = service(tmp_path, f"{says}\nExecStart=/bin/x")
    assert item.definition is not None
    timeout = item.definition.limits.timeout
    assert (timeout and timeout.total_seconds()) == seconds


def test_without_more_words_it_works_in_the_root_as_root(tmp_path: Path) -> None:
    item = service(tmp_path, "ExecStart=/bin/x")
    assert (item.entry.user, item.entry.cwd, "HOME" in item.entry.environment) == ("root", "/", False)
    assert item.entry.leftovers[-1].what == "the user root"


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("ExecStop=/bin/x", "it has no ExecStart"), ("Type=forking\nExecStart=/bin/x", "Type=forking"),
        ("Type=dbus\nExecStart=/bin/x", "Type=dbus"), ("ExecStart=/bin/x\nExecStart=/bin/y", "several commands"),
        ("ExecStart=/bin/x %b", "%b cannot be filled in"), ("ExecStart=/bin/x %%%v", "%v cannot be filled in"),
        ("ExecStart=/bin/date +%F", "%F cannot be filled in"),
        ("ExecStart=/bin/x 'a", "a quote"), ("ExecStart=/bin/x\nEnvironmentFile=/etc/*.env", "is a pattern"),
        ("ExecStart=/bin/x\nEnvironmentFile=relative", "no absolute path"),
        ("ExecStart=/bin/x " + "a" * 70_000, "longer than"),
    ],
)
def test_what_cannot_be_run_here_is_refused_with_the_reason(tmp_path: Path, says: str, why: str) -> None:
    item = service(tmp_path, says)
    assert (item.state, why in item.reason) == ("refused", True), item.reason


@pytest.mark.parametrize(
    ("says", "what"),
    [
        ("Restart=on-failure", "Restart=on-failure"), ("Restart=no", None), ("Group=www", "Group=www"),
        ("DynamicUser=yes", "DynamicUser=yes"), ("RemainAfterExit=yes", "RemainAfterExit=yes"),
        ("SuccessExitStatus=3", "SuccessExitStatus=3"), ("ExecStopPost=/bin/y", "ExecStopPost=/bin/y"),
        ("ProtectSystem=strict\nNice=5", "ProtectSystem, Nice"), ("Type=notify", "Type=notify"),
        ("StandardOutput=journal\nSyslogIdentifier=x", None), ("WorkingDirectory=-/srv", "- before WorkingDirectory"),
        ("Environment=nonsense", "Environment=nonsense"), ("User=eve", "its HOME"),
        ("PassEnvironment=A", "PassEnvironment=A"),
    ],
)
def test_what_is_lost_is_named(tmp_path: Path, says: str, what: str | None) -> None:
    item = service(tmp_path, f"ExecStart=/bin/x\n{says}")
    found = [each for each in left(item) if not each.startswith("the user")]
    assert (item.state, found) == ("imported", [what] if what else [])


def test_conditions_and_other_units_are_named(tmp_path: Path) -> None:
    files = {"a.timer": "[Unit]\nConditionACPower=true\n[Timer]\nOnCalendar=daily\n",
             "a.service": "[Unit]\nDescription=Tidy  up\nOnFailure=b.service\nAfter=c.target\nAssertPathExists=/x\n"
                          + DOES}
    item = house(tmp_path, files)["a.timer"]
    assert list(left(item)) == ["ConditionACPower=true", "OnFailure=b.service", "AssertPathExists=/x"]
    assert item.definition is not None
    assert item.definition.description.startswith("Tidy up. Imported from /etc/systemd/system/a.timer [import:")


def test_a_run_lasts_and_is_told_as_there(tmp_path: Path) -> None:
    made = service(tmp_path, "ExecStart=/bin/x").definition
    assert made is not None
    clock = next(trigger for trigger in made.triggers if trigger.schedule)
    assert (str(clock.overlap), made.retry.attempts, made.limits.per_hour) == ("skip", 1, None)
    assert [(each.kind, [str(on) for on in each.on]) for each in made.deliver] == [("announce", ["failed"])]


PIECES = ["\\", "'", '"', " ", ";", "$", "{", "}", "A", "=", "x41", "\\U00110000", "@", "-", "%", "é", "\udcff", "0",
          "\\ud800"]


@pytest.mark.parametrize("reader", [lambda text: commands_of(text, plain), lambda text: assignments_of(text, plain)])
def test_no_text_takes_a_reader_aback(reader: Callable[[str], object]) -> None:
    drawn = random.Random(4)
    for _ in range(2000):
        text = "".join(drawn.choice(PIECES) for _ in range(drawn.randint(0, 12)))
        with contextlib.suppress(BadInput):
            reader(text)
