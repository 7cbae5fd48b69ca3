"""Jobs of `at`: files of a spool, whose names say when and whose text is what the shell is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from nightporter.clock import MINUTE, Instant, instant
from nightporter.exchange.cron_machine import House
from nightporter.exchange.entry import Entry, Leftover, Reading, Source, Timing
from nightporter.exchange.shell_line import SH, label_of
from nightporter.exchange.tree import Tree
from nightporter.ledger.moments import local
from nightporter.outside.asking import Answer

SPOOLS: Final = ("/var/spool/cron/atjobs", "/var/spool/at", "/var/spool/atjobs")
"""Of Debian, Red Hat and SUSE."""
_NAME: Final = re.compile(r"([a-zA-Z=])([0-9a-f]{5})([0-9a-f]{8})")
_WHO: Final = re.compile(r"^# atrun uid=([0-9]{1,10}) gid=([0-9]{1,10})$", re.MULTILINE)
_MAIL: Final = re.compile(r"^# mail\s+(\S+)\s+(-?[0-9]+)$", re.MULTILINE)
_UMASK: Final = re.compile(r"umask ([0-7]{1,4})\n")
_VALUE: Final = r'((?:\\.|"\n"|[^;\\"\n])*)'
_VARIABLE: Final = re.compile(rf"([A-Za-z_][A-Za-z0-9_]*)={_VALUE}; export \1\n")
_FOLDER: Final = re.compile(r'cd ((?:\\.|"\n"|[^ \\"\n])+) \|\| \{\n[^}]*\n\}\n')
_GIVEN: Final = re.compile(r"\$\{SHELL:-/bin/sh\} << '([^'\n]+)'\n(.*)\n\1\n*", re.DOTALL)
_LONGEST: Final = 60_000
_EVER: Final = "365d"
_NO_PROGRAM: Final = 127
"""What env ends with where there is no such program."""


@dataclass(frozen=True, slots=True)
class Body:
    """The script of a job, without what `at` put before it."""

    script: str
    shell: str = SH
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    umask: str = ""
    parted: bool = True
    """Whether what stands before it was understood."""


def made_of(text: str) -> Body:
    """Take a job's file apart. One that looks otherwise than `at` writes it is a script as it is."""
    mask = _UMASK.search(text)
    place = mask.end() if mask else 0
    environment = {}
    while variable := _VARIABLE.match(text, place):
        environment[variable[1]] = _plain(variable[2])
        place = variable.end()
    folder = _FOLDER.match(text, place)
    if mask is None or folder is None:
        return Body(text, parted=False)
    script, shell = text[folder.end():], SH
    if given := _GIVEN.fullmatch(script):  # as Red Hat has it
        script, shell = given[2], environment.get("SHELL") or SH
    return Body(script.strip("\n") + "\n", shell if shell.startswith("/") else SH, environment, _plain(folder[1]),
                mask[1])


def _plain(text: str) -> str:
    return re.sub(r'"\n"|\\(.)', lambda found: found[1] or "\n", text)


def said_of(minute: Instant, text: str) -> str:
    """What a job is known by: when, and what."""
    return f"{minute // MINUTE}\n{text}"


def _first_line(script: str) -> str:
    return next((line.strip()[:200] for line in script.splitlines() if line.strip() and not line.startswith("#")), "")


@dataclass(frozen=True, slots=True)
class Job:
    """One job as the spool, or `atq`, has it."""

    path: str
    number: int
    queue: str
    minute: Instant
    content: bytes | None
    complete: bool = True


def scan_at(tree: Tree, house: House, now: Instant, own: Callable[[], list[Job]]) -> Iterator[Reading]:
    """Every job of the spool. `own` gives the asking user's jobs where the spool cannot be looked into."""
    jobs = list(_spooled(tree))
    for job in jobs or own():
        entry = Entry(Source("at", job.path), job.path, label=f"at-{job.number}", shown=job.path,
                      off=("atrm", str(job.number)))
        yield Reading(job.path, (_entry(entry, job, house, now),))


def asked_for(tree: Tree, ask: Callable[[list[str]], Answer]) -> list[Job]:
    """One's own jobs, as the programs of at show them."""
    listed = ask(["env", "LC_ALL=C", "TZ=UTC", "atq"])
    found: list[Job] = []
    if listed.code:
        if listed.code != _NO_PROGRAM:
            tree.pass_by("atq", " ".join(listed.err.split())[:200] or f"it ended with exit code {listed.code}")
        return found
    for line in listed.out.decode("utf-8", "replace").splitlines():
        number, _, rest = line.partition("\t")
        words = rest.split()
        if not number.isdigit() or len(words) < 6:
            continue
        try:
            when = datetime.strptime(" ".join(words[:5]), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        except ValueError:
            continue
        shown = ask(["at", "-c", number])
        found.append(Job(f"job {number} of at", int(number), words[5], instant(when),
                         None if shown.code else shown.out))
    return found


def _spooled(tree: Tree) -> Iterator[Job]:
    met: set[str] = set()
    for folder in SPOOLS:
        for name in tree.names(folder):
            match, path = _NAME.fullmatch(name), f"{folder}/{name}"
            if match is None or name in met or not tree.is_file(path):
                continue
            met.add(name)
            yield Job(path, int(match[2], 16), match[1], Instant(int(match[3], 16) * MINUTE), tree.read(path),
                      tree.is_executable(path))


def _entry(entry: Entry, job: Job, house: House, now: Instant) -> Entry:
    if job.content is None:
        return entry.refuse("it cannot be read")
    text = job.content.decode("utf-8", "replace")
    who, mail = _WHO.search(text), _MAIL.search(text)
    person = next((each for each in house.people.values() if who and str(each.uid) == who[1]), None)
    user = person.name if person else f"uid {who[1]}" if who else ""
    body = made_of(text)
    entry = replace(entry, user=user, text=said_of(job.minute, text), shown=_first_line(body.script) or entry.shown,
                    label=label_of(_first_line(body.script)) or entry.label)
    queue = job.queue
    if queue == "=":
        return entry.skip("it is running")
    if queue == "b" or queue.isupper():
        return entry.refuse("it is a job of batch, which waits until the machine has little to do: that is no clock "
                            "time")
    if not job.complete:
        return entry.skip("it is not marked as complete, so it is not run there either")
    if who is None:
        return entry.refuse("it does not say whose it is, so atd would not run it")
    if "�" in text or "\0" in text:
        return entry.refuse("it has a NUL or bytes that are not UTF-8, which a definition cannot keep")
    if len(text) > _LONGEST:
        return entry.refuse(f"it is longer than {_LONGEST} characters")
    when = local(job.minute, house.timezone) or ""
    if job.minute <= now:
        return entry.refuse(f"its time, {when}, has passed, and atd has not run it")
    leftovers: list[Leftover] = []
    keys: dict[str, Any] = {"retry": "none", "limits": {"timeout": "none"}}
    carried: list[str] = []
    if body.parted:
        carried = [f"its {len(body.environment)} variables", "the folder it was given in", f"umask {body.umask}"]
    else:
        leftovers.append(Leftover("variables and folder", "they stand in its script, in a form that is not known here, "
                                  "and are run with it"))
    if mail and mail[2] == "-1":
        keys["deliver"] = "none"
        carried.append("no mail as no delivery")
    elif mail:
        leftovers.append(Leftover(f"the mail to {mail[1][:80]}", "results by mail come with a later release; the inbox "
                                  "has them"))
    if queue != "a":
        leftovers.append(Leftover(f"the queue {queue}", "there it runs with less priority"))
    return replace(
        entry, timings=(Timing("at", when, house.timezone, {"missed": {"policy": "run_once", "within": _EVER}}),),
        command=(body.shell, "-c", f"umask {body.umask}\n{body.script}" if body.parted else body.script),
        environment=body.environment, cwd=body.folder, keys=keys,
        carried=(*carried, "a missed time is made up for, as atd does"), leftovers=tuple(leftovers),
    )
