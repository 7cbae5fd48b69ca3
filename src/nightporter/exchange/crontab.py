"""Crontabs: text in, jobs out. One bad line costs that line.

A variable acts on the lines below it. `CRON_TZ` and `RANDOM_DELAY` are cronie's; Debian's cron hands them to the
command like any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from nightporter.errors import BadSchedule, NightporterError
from nightporter.exchange.cron_fields import expression_of, macro_of, warning_of
from nightporter.exchange.entry import Entry, Leftover, Reading, Source, Timing
from nightporter.exchange.people import Person
from nightporter.exchange.shell_line import SH, label_of, take_apart, to_run
from nightporter.exchange.spreading import random_delay
from nightporter.rules import zones

PATH: Final = "/usr/bin:/bin"
"""What cron gives a job that says nothing of it."""
_VARIABLE: Final = re.compile(r"""\s*(?:"([^"=]*)"|'([^'=]*)'|([^\s=#"'][^\s=]*))\s*=\s*(.*?)\s*""", re.DOTALL)
_QUOTED: Final = re.compile(r"""(["'])(.*)\1""", re.DOTALL)
_MAIL: Final = frozenset({"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
_OWN: Final = frozenset({*_MAIL, "CRON_TZ", "RANDOM_DELAY"})
"""Variables that are meant for cron; commands are spared them."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST: Final = 10_000
TAKEN_OUT: Final = "#nightporter:"
"""What a line begins with that was a job and was brought over."""
KEYS: Final[Mapping[str, Any]] = {
    "overlap": "parallel", "retry": "none", "limits": {"timeout": "none", "concurrent": "none"}, "missed": "skip",
}
"""What cron does and we would do otherwise: it starts a job beside one that still runs, never ends one, never tries
again, and never makes up for a time that passed."""


@dataclass(frozen=True, slots=True)
class Tab:
    """What is known of a crontab as a whole."""

    path: str
    timezone: str
    """Of the machine."""
    user: str = ""
    """Whose it is; empty where each line names its user, as in `/etc/crontab`."""
    people: Mapping[str, Person] | None = None
    """None: nothing is known of the machine's users."""


def parse_crontab(content: bytes, tab: Tab) -> Reading:
    """The jobs of a crontab, in its order. Never raises, whatever stands in it."""
    lines = content.split(b"\n")
    unended = lines[-1] != b""
    if not unended:
        lines.pop()
    variables: dict[str, str] = {}
    entries: list[Entry] = []
    counted = {"variables": 0, "comments": 0}
    about: list[str] = []
    for number, raw in enumerate(lines, 1):
        text = raw.decode("utf-8", "surrogateescape").removesuffix("\r")
        stripped = text.strip(" \t")
        if not stripped or stripped.startswith("#"):
            counted["comments"] += 1
            told = stripped and not stripped.startswith(TAKEN_OUT)
            about = [*about, stripped.lstrip("# \t")] if told else []
            continue
        found = variable_of(text)
        if found is not None:
            variables[found[0]] = found[1]
            counted["variables"] += 1
            about = []
            continue
        entry = _entry(stripped, Source("crontab", tab.path, number), variables, tab)
        if about:
            entry = replace(entry, about=_sentence(about))
            about = []
        if raw.endswith(b"\r"):
            entry = _leave(entry, "a carriage return at its end", "it is left out: cron would hand it to the command")
        if unended and number == len(lines):
            entry = _leave(entry, "a last line without its end",
                           "cron does not run such a line; here it is taken as if it were whole")
        entries.append(entry)
    return Reading(tab.path, tuple(entries), lines=len(lines), **counted)


def variable_of(line: str) -> tuple[str, str] | None:
    """Name and value where a line sets a variable."""
    match = _VARIABLE.fullmatch(line)
    if match is None:
        return None
    value = match[4]
    if value[:1] in ("'", '"'):
        quoted = _QUOTED.fullmatch(value)
        if quoted is None or quoted[1] in quoted[2]:
            return None
        value = quoted[2]
    return match[1] or match[2] or match[3] or "", value


def _entry(line: str, source: Source, variables: Mapping[str, str], tab: Tab) -> Entry:
    bare = Entry(source, _legible(line), user=tab.user)
    leftovers: list[Leftover] = []
    if len(line) > _LONGEST:
        return bare.refuse(f"the line is longer than {_LONGEST} characters")
    if line.startswith("-") and len(line) > 1 and not line[1].isspace():
        line = line[1:]
        leftovers.append(Leftover("- before the line", "it keeps cron's log silent; the ledger has every run"))
    try:
        expression, rest = _when(line)
    except BadSchedule as error:
        return bare.refuse(_said(error))
    user = tab.user
    if not user:
        user, rest = _first(rest)
        if not user or not rest:
            return bare.refuse("it names no user and command behind its times" if not user
                               else f"nothing stands behind the user {_legible(user)}")
    if not rest.strip():
        return bare.refuse("it has times and no command")
    bare = replace(bare, user=_legible(user), label=label_of(_legible(rest)), shown=_legible(rest))
    if _legible(line) != line:
        return bare.refuse("it has bytes that are not UTF-8, which a definition cannot keep")
    if "\0" in line:
        return bare.refuse("it has a NUL in it")
    return _made(bare, expression, rest, leftovers, variables, tab)


def _made(
    entry: Entry, expression: str, text: str, leftovers: list[Leftover], variables: Mapping[str, str], tab: Tab
) -> Entry:
    zone = variables.get("CRON_TZ", tab.timezone)
    try:
        zones.zone(zone)
    except BadSchedule as error:
        return entry.refuse(f"CRON_TZ: {_said(error)}")
    command, given = take_apart(text)
    if not command.strip():
        return entry.refuse("it has times and no command")
    carried = ["PATH" if "PATH" in variables else "cron's own PATH"]
    if "CRON_TZ" in variables:
        carried.append(f"CRON_TZ={zone}")
        leftovers.append(Leftover("another reading of CRON_TZ", "it is cronie's; Debian's cron keeps to the machine's "
                                  f"zone ({tab.timezone}) and does not heed it"))
    if given is not None:
        carried.append("% as line ends on its standard input")
    shell = variables.get("SHELL", SH)
    if not shell.startswith("/"):
        return entry.refuse(f"SHELL={_legible(shell)} is no absolute path")
    home = _home(entry.user, variables, tab, leftovers)
    environment = _environment(entry.user, home, variables, carried, leftovers)
    if any(_legible(value) != value or "\0" in value for value in (*environment.values(), shell)):
        return entry.refuse("a variable above it has bytes that are not UTF-8, which a definition cannot keep")
    keys = dict(KEYS)
    _mail(entry.user, variables, keys, carried, leftovers)
    options = _delay(variables, carried, leftovers)
    return replace(
        entry,
        timings=(Timing("cron", expression, zone, options, warning_of(expression)),),
        command=to_run(command, shell, given), environment=environment, cwd=home, keys=keys,
        carried=tuple(carried), leftovers=tuple(leftovers),
    )


def _when(line: str) -> tuple[str, str]:
    """The expression, and what stands behind it. Raises BadSchedule."""
    if line.startswith("@"):
        word, rest = _first(line)
        return macro_of(word), rest
    parts = line.split(None, 5)
    if len(parts) < 5:
        raise BadSchedule("it is neither a variable nor five fields and a command")
    expression = expression_of(parts[:5])
    return expression, parts[5] if len(parts) > 5 else ""


def _first(text: str) -> tuple[str, str]:
    """The first word, and the rest."""
    word, *rest = text.split(None, 1) or ("",)
    return word, "".join(rest)


def _home(user: str, variables: Mapping[str, str], tab: Tab, leftovers: list[Leftover]) -> str:
    if variables.get("HOME", "").startswith("/"):
        return variables["HOME"]
    person = (tab.people or {}).get(user)
    if person is None or not person.home.startswith("/"):
        leftovers.append(Leftover("the folder it works in", f"the home of {user or 'its user'} is not known here; it "
                                  "works in the run's scratch folder"))
        return ""
    return person.home


def _environment(
    user: str, home: str, variables: Mapping[str, str], carried: list[str], leftovers: list[Leftover]
) -> dict[str, str]:
    environment = {"PATH": PATH, "SHELL": SH, **({"HOME": home} if home else {})}
    for name, value in variables.items():
        if name in _OWN:
            continue
        if not _NAME.fullmatch(name):
            leftovers.append(Leftover(f"the variable {_legible(name)[:60]}", "no command can be given such a name"))
            continue
        environment[name] = value
        if name not in ("PATH", "LOGNAME"):
            carried.append(name)
    if user:
        environment["LOGNAME"] = user
        environment.setdefault("USER", user)
    return environment


def _mail(
    user: str, variables: Mapping[str, str], keys: dict[str, Any], carried: list[str], leftovers: list[Leftover]
) -> None:
    to = variables.get("MAILTO")
    if to == "":
        keys["deliver"] = "none"
        carried.append("MAILTO=\"\" as no delivery")
    elif to is not None:
        leftovers.append(Leftover(f"MAILTO={_legible(to)[:120]}", "results by mail come with a later release; the "
                                  "inbox has them"))
    for name in sorted(_MAIL - {"MAILTO"} & variables.keys()):
        if to != "":
            leftovers.append(Leftover(f"{name}={_legible(variables[name])[:120]}", "it is about the mail"))


def _delay(
    variables: Mapping[str, str], carried: list[str], leftovers: list[Leftover]
) -> dict[str, Any]:
    """The options that make a random delay of cronie's a stagger."""
    options = random_delay(variables.get("RANDOM_DELAY", "0"), leftovers)
    if options:
        carried.append("RANDOM_DELAY as stagger")
        leftovers.append(Leftover("another reading of RANDOM_DELAY", "it is cronie's; Debian's cron does not heed it"))
    return options


def _leave(entry: Entry, what: str, why: str) -> Entry:
    if entry.refused:
        return entry
    return replace(entry, leftovers=(*entry.leftovers, Leftover(what, why)))


def _sentence(lines: list[str]) -> str:
    """The comment right above a job."""
    text = _legible(" ".join(line for line in lines if any(letter.isalpha() for letter in line)))
    return " ".join(text.split())[:300]


def _legible(text: str) -> str:
    """The text with what was not UTF-8 made visible."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _said(error: NightporterError) -> str:
    return _legible(": ".join(part for part in (error.what, error.why) if part))
