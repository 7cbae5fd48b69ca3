"""The `[Service]` that a timer starts: its commands as one target, and what of it has no place here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from nightporter.errors import BadInput, BadSchedule
from nightporter.exchange.entry import Leftover
from nightporter.exchange.exec_line import Command, assignments_of, commands_of
from nightporter.exchange.people import Person
from nightporter.exchange.shell_line import SH
from nightporter.exchange.unit_file import Settings, span_of
from nightporter.rules.durations import format_duration

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What systemd gives a service that says nothing of it."""
_LONGEST: Final = 60_000
_STEPS: Final = ("ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost")
_QUIET: Final = re.compile(
    "|".join(_STEPS) + "|Type|Environment|EnvironmentFile|WorkingDirectory|User|TimeoutStartSec|TimeoutSec|"
    "RuntimeMaxSec|Standard(?:Output|Error)|Syslog.*|LogLevelMax|TimeoutStopSec|RestartSec|KillMode|KillSignal|"
    "ExecReload|GuessMainPID|SendSIGKILL|NotifyAccess"
)
"""Settings that are carried, or of which nothing is missed."""
_NAMED: Final = {
    "Restart": "a second try is `retry`, which imported jobs have none of",
    "RemainAfterExit": "under systemd it is started once only, until it is stopped by hand; here at each of its times",
    "ExecStop": "what ends a service is not run", "ExecStopPost": "what cleans up after it is not run",
    "SuccessExitStatus": "only an exit code of zero is a success here",
    "DynamicUser": "it runs as whoever runs the desk", "Group": "it runs with the group of whoever runs the desk",
    "PassEnvironment": "variables of the manager are not known here", "StandardInput": "it reads nothing",
    "UnsetEnvironment": "its environment is bare but for what is said",
}


@dataclass(slots=True)
class Work:
    """What a service does."""

    user: str = ""
    command: str | tuple[str, ...] = ""
    shown: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    cwd: str = ""
    timeout: str = "none"
    carried: list[str] = field(default_factory=list)
    leftovers: list[Leftover] = field(default_factory=list)

    def leave(self, what: str, why: str) -> None:
        self.leftovers.append(Leftover(what, why))


def work_of(
    unit: Settings, fill: Callable[[str], str], manager: Person, *, is_system: bool,
    home_of: Callable[[str], Person | None],
) -> Work:
    """Commands, environment and folder of a service. Raises BadInput where it cannot be done here."""
    kind = unit.last("Service", "Type", "simple").lower()
    if not unit.all("Service", "ExecStart"):
        raise BadInput("it has no ExecStart", next="name a command there")
    if kind in ("forking", "dbus"):
        raise BadInput(f"it is of Type={kind}", why="it goes on after its command has ended, and a run ends with it",
                       next="let the command stay in the foreground")
    made = Work()
    steps = [(step, command) for step in _STEPS for text in unit.all("Service", step)
             for command in commands_of(text, fill)]
    if kind != "oneshot" and sum(step == "ExecStart" for step, _ in steps) > 1:
        raise BadInput("it has several commands", why="systemd takes that for Type=oneshot alone",
                       next="correct it there")
    person = _person(unit, fill, made, manager, is_system, home_of)
    made.environment = _environment(unit, fill, made, person)
    files = [_environment_file(text, fill) for text in unit.all("Service", "EnvironmentFile")]
    made.command = _as_one(steps, files)
    if sum(map(len, [made.command] if isinstance(made.command, str) else made.command)) > _LONGEST:
        raise BadInput(f"its commands are longer than {_LONGEST} characters", next="put them into a file")
    made.shown = " ; ".join(text for step in _STEPS for text in unit.all("Service", step))[:1000]
    made.cwd = _folder(unit, fill, made, person, "/" if is_system else person.home)
    made.timeout = _timeout(unit, made, kind)
    _say(unit, made, kind, steps, files)
    return made


def _person(
    unit: Settings, fill: Callable[[str], str], made: Work, manager: Person, is_system: bool,
    home_of: Callable[[str], Person | None],
) -> Person:
    written = fill(unit.last("Service", "User"))
    name = written or manager.name
    person = (home_of(name) or Person(name, "")) if written else manager
    made.user = person.name
    if written or not is_system:
        made.environment = {"LOGNAME": person.name, "USER": person.name} if person.name else {}
        if person.home:
            made.environment["HOME"] = person.home
        elif written:
            made.leave("its HOME", f"the home of {person.name} is not known here")
    return person


def _environment(unit: Settings, fill: Callable[[str], str], made: Work, person: Person) -> dict[str, str]:
    found = {"PATH": PATH, **made.environment}
    for text in unit.all("Service", "Environment"):
        try:
            said = assignments_of(text, fill)
        except BadInput as error:
            made.leave(f"Environment={text[:60]}", ": ".join(part for part in (error.what, error.why) if part))
            continue
        found |= said
        made.carried += [name for name in said if name not in made.carried]
    if "PATH" not in made.carried:
        made.carried.insert(0, "systemd's own PATH")
    return found


def _environment_file(text: str, fill: Callable[[str], str]) -> tuple[str, bool]:
    """The path, and whether it may be missing."""
    path = fill(text.removeprefix("-"))
    if not path.startswith("/"):
        raise BadInput(f"EnvironmentFile={text[:60]} is no absolute path", next="write it whole")
    if re.search(r"[*?\[]", path):
        raise BadInput(f"EnvironmentFile={text[:60]} is a pattern", why="which files it means is known at each start",
                       next="name the files there")
    return path, text.startswith("-")


def _folder(unit: Settings, fill: Callable[[str], str], made: Work, person: Person, usual: str) -> str:
    written = fill(unit.last("Service", "WorkingDirectory"))
    folder = written.removeprefix("-") or usual
    if folder == "~":
        folder = person.home
    if not folder.startswith("/"):
        made.leave("the folder it works in", "it is not known here; it works in the run's scratch folder")
        return ""
    if written.startswith("-"):
        made.leave("- before WorkingDirectory", "here the folder must be there")
    return folder


def _timeout(unit: Settings, made: Work, kind: str) -> str:
    keys = ("TimeoutStartSec", "TimeoutSec") if kind == "oneshot" else ("RuntimeMaxSec",)
    for key in keys:
        text = unit.last("Service", key)
        if not text:
            continue
        try:
            micros = span_of(text)
            if micros:
                made.carried.append(f"{key} as limits: timeout")
                return format_duration(timedelta(microseconds=micros))
        except (BadSchedule, OverflowError):
            made.leave(f"{key}={text[:60]}", "it is no span of time that can be kept here; there is no end of time")
        return "none"
    return "none"


def _as_one(steps: list[tuple[str, Command]], files: list[tuple[str, bool]]) -> str | tuple[str, ...]:
    """One program, or a text for the shell that does what systemd does with several."""
    if len(steps) == 1 and not files:
        (_, command), = steps
        if not command.has_variables and not command.forgiven:
            return command.words if command.plain else tuple(word.replace("$$", "$") for word in command.words)
    lines = [_READ.format(file=(file := shlex.quote(path)),
                          otherwise=":" if optional else f"echo {file} cannot be read >&2; exit 1")
             for path, optional in files]
    if any(command.splits for _, command in steps):
        lines.append("set -f")
    for step, command in steps:
        said = command.in_shell()
        if step == "ExecCondition" and not command.forgiven:
            lines.append(f"{said} || {{ porter_code=$?; [ $porter_code -lt 128 ] && exit 0; exit $porter_code; }}")
        else:
            lines.append(f"{said} || {':' if command.forgiven else 'exit'}")
    return (SH, "-c", "\n".join(lines))


_READ: Final = """\
if [ -r {file} ]; then
  while IFS= read -r porter_line || [ -n "$porter_line" ]; do
    porter_name=${{porter_line%%=*}} porter_value=${{porter_line#*=}}
    case $porter_line in [A-Za-z_]*=*) ;; *) continue ;; esac
    case $porter_name in *[!A-Za-z0-9_]*) continue ;; esac
    porter_value=${{porter_value%"${{porter_value##*[![:space:]]}}"}}
    case $porter_value in
      \\"*\\"|\\'*\\') porter_value=${{porter_value#?}} porter_value=${{porter_value%?}} ;;
    esac
    export "$porter_name=$porter_value"
  done < {file}
else
  {otherwise}
fi"""
"""Reads a file of variables at each run, as systemd does; nothing that stands in it is ever run."""


def _say(
    unit: Settings, made: Work, kind: str, steps: list[tuple[str, Command]], files: list[tuple[str, bool]]
) -> None:
    for path, _ in files:
        made.carried.append(f"{path}, read at each run")
        made.leave(f"escapes and values over several lines in {path}", "each of its lines is one variable")
    if len(steps) > 1:
        made.carried.append(f"its {len(steps)} commands, one after another")
    for _, command in steps:
        if command.own_name:
            made.leave(f"@ with {command.own_name[:60]}", "a program is called by its own name")
        if command.more_rights:
            made.leave("+ or ! before a command", "it has the rights of whoever runs the desk")
        if command.splits:
            made.leave("quotes within a variable that stands alone", "it is split at blanks")
    if kind.startswith("notify"):
        made.leave(f"Type={kind}", "nobody waits for it to say that it is ready; a run lasts until its program ends")
    others = []
    for key in unit.keys("Service"):
        value = unit.last("Service", key)
        if key in _NAMED and value.lower() not in ("no", "false", "0", "off", "null"):
            made.leave(f"{key}={value[:60]}", _NAMED[key])
        elif key not in _NAMED and not _QUIET.fullmatch(key):
            others.append(key)
    if others:
        made.leave(", ".join(others)[:300], "bounds, rights and surroundings that systemd gives a service; here it "
                   "runs without")
