"""The command of a foreign job: what it is given to read, what runs it, and what it may be called."""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath
from typing import Final

SH: Final = "/bin/sh"
_ENDS: Final = (".sh", ".bash", ".py", ".pl", ".php", ".rb", ".js", ".cron")
_BEFORE: Final = frozenset({
    "sudo", "nice", "ionice", "nohup", "env", "exec", "time", "command", "setsid", "chronic", "flock", "timeout",
    "sh", "bash", "dash", "zsh", "ksh", "python", "python2", "python3", "perl", "php", "ruby", "node", "java",
})
"""Programs whose first plain argument says more of a job than they do."""
_WITH_A_WORD: Final = frozenset({"flock", "timeout"})
_GUARD: Final = re.compile(
    r"^\s*(?:cd\s+\S+\s*(?:&&|;)|(?:test|\[)\s[^;&|]*?(?:&&|\|\|)|command\s+-v\s[^;&|]*?&&|[{(]|umask\s+\S+\s*;)\s*"
)
_ASSIGNED: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_END: Final = "END_OF_INPUT"


def take_apart(command: str) -> tuple[str, str | None]:
    """A crontab's command -> what the shell gets, and what it reads; None where there is no `%`.

    The first `%` ends the command, those behind it end a line; `\\%` is a `%`.
    """
    before: list[str] = []
    place = 0
    while place < len(command):
        letter = command[place]
        if letter == "\\" and place + 1 < len(command):
            before.append("%" if command[place + 1] == "%" else command[place: place + 2])
            place += 2
        elif letter == "%":
            return "".join(before), _input(command[place + 1:])
        else:
            before.append(letter)
            place += 1
    return "".join(before), None


def _input(text: str) -> str:
    """What cron writes to the command: its last line ends as the others do."""
    read = re.sub(r"\\%|%", lambda found: "%" if found.group() == r"\%" else "\n", text)
    return read if not read or read.endswith("\n") else read + "\n"


def to_run(command: str, shell: str = SH, given: str | None = None) -> str | tuple[str, ...]:
    """What a `script` target runs so that `shell` has the command, with `given` on its standard input."""
    if given is None:
        # A text that begins with a path would be taken for a program of its own, without the shell.
        by_shell = shell == SH and re.match(r"\s*[A-Za-z0-9_\[({]", command) is not None
        return command if by_shell else (shell, "-c", command)
    end = _END
    while f"\n{end}\n" in f"\n{given}":
        end += "_"
    rest = command if shell == SH else f"exec {shlex.quote(shell)} -c {shlex.quote(command)}"
    return (SH, "-c", f"exec <<'{end}'\n{given}{end}\n{rest}")


def label_of(command: str) -> str:
    """The program that a command is about: `backup` for `cd /srv && nice ./backup.sh --all`."""
    text = command
    for _ in range(8):
        shorter = _GUARD.sub("", text, count=1)
        if shorter == text:
            break
        text = shorter
    try:
        words = shlex.split(re.split(r"[;&|<>]", text, maxsplit=1)[0])
    except ValueError:  # a quote without its end
        words = text.split()
    found, passed = "", ""
    for word in words:
        if passed in _WITH_A_WORD and not word.startswith("-"):
            passed = ""
        elif word == "-m" and found.startswith("python"):
            continue
        elif not word.startswith("-") and not word.isdigit() and not _ASSIGNED.fullmatch(word):
            found = PurePosixPath(word).name or found
            if found not in _BEFORE:
                break
            passed = found
    for end in _ENDS:
        found = found.removesuffix(end) or found
    return found[:40]
