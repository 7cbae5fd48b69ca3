"""Everything that cron does on a machine: crontabs of users and of the system, and the folders of scripts it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nightporter.exchange.anacrontab import anacron_jobs
from nightporter.exchange.crontab import Tab, parse_crontab
from nightporter.exchange.entry import Entry, Leftover, Reading, Source
from nightporter.exchange.people import Person
from nightporter.exchange.shell_line import to_run
from nightporter.exchange.tree import Tree

SPOOLS: Final = ("/var/spool/cron/crontabs", "/var/spool/cron", "/var/spool/cron/tabs")
"""Of Debian, Red Hat and SUSE."""
FOLDERS: Final = ("/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly")
_RUN_PARTS: Final = re.compile(r"\brun-parts\s+(?:--?\S+\s+)*(/[^\s;&|})]+)")
_DEBIAN: Final = re.compile(r"[A-Za-z0-9_-]+")
_LEFT_BY_EDITORS: Final = (".rpmsave", ".rpmorig", ".rpmnew", ".swp", ",v", "~", ".dpkg-old", ".dpkg-dist", ".dpkg-new")


@dataclass(frozen=True, slots=True)
class House:
    """What is known of the machine."""

    timezone: str
    people: Mapping[str, Person]
    me: str
    """Who asks."""


def scan_cron(tree: Tree, house: House, own: Callable[[], bytes | None]) -> Iterator[Reading]:
    """Every crontab that can be read, then the folders. `own` gives the asking user's crontab where the files of users
    cannot be looked into."""
    yield from _users(tree, house, own)
    tabs = list(_system(tree, house))
    anacron = anacron_jobs(tree.read("/etc/anacrontab"), house.timezone, house.people, debian=_is_debian(tree))
    scripts = dict(_scripts(tree, [entry for tab in tabs for entry in tab.entries], list(anacron.entries)))
    for tab in [*tabs, anacron]:
        if tab.lines:
            yield replace(tab, entries=tuple(_pass_over(entry, scripts) for entry in tab.entries))
    yield from (reading for reading in scripts.values() if reading.entries)


def _users(tree: Tree, house: House, own: Callable[[], bytes | None]) -> Iterator[Reading]:
    met: set[str] = set()
    for folder in SPOOLS:
        if folder != SPOOLS[0] and tree.locate(folder) is None:
            continue
        for name in tree.names(folder):
            path = f"{folder}/{name}"
            place = tree.locate(path)
            if name.startswith((".", "tmp.")) or name in met or place is None or place.is_dir():
                continue
            content = tree.read(path)
            if content is not None:
                met.add(name)
                yield parse_crontab(content, Tab(path, house.timezone, name, house.people))
    if house.me and house.me not in met and (content := own()) is not None:
        yield parse_crontab(content, Tab(f"crontab of {house.me}", house.timezone, house.me, house.people))


def _system(tree: Tree, house: House) -> Iterator[Reading]:
    if (content := tree.read("/etc/crontab")) is not None:
        yield parse_crontab(content, Tab("/etc/crontab", house.timezone, people=house.people))
    for name in tree.names("/etc/cron.d"):
        path = f"/etc/cron.d/{name}"
        if name.startswith(".") or not tree.is_file(path):
            continue
        if why := _not_taken(tree, name):
            tree.pass_by(path, why)
        elif (content := tree.read(path)) is not None:
            reading = parse_crontab(content, Tab(path, house.timezone, people=house.people))
            if len(reading.entries) == 1:  # the file is called after what it does
                reading = replace(reading, entries=(replace(reading.entries[0], label=name),))
            yield reading


def _is_debian(tree: Tree) -> bool:
    return tree.is_file("/etc/debian_version")


def _not_taken(tree: Tree, name: str) -> str:
    """Why cron does not read a file of this name in one of its folders; empty where it does."""
    if _is_debian(tree):
        return "" if _DEBIAN.fullmatch(name) else "cron reads no name with other signs than letters, digits, _ and -"
    return "cron does not read what editors and packages leave behind" if name.endswith(_LEFT_BY_EDITORS) else ""


def _folder_of(entry: Entry) -> str:
    """The folder whose scripts a line runs; empty where it runs something else."""
    match = _RUN_PARTS.search(entry.shown)
    return match[1].rstrip("/") if match else ""


def _scripts(tree: Tree, tabs: list[Entry], anacron: list[Entry]) -> Iterator[tuple[str, Reading]]:
    by_anacron = tree.is_file("/usr/sbin/anacron") or not tree.is_file("/etc/crontab")
    for folder in FOLDERS:
        said = [entry for entry in tabs if _folder_of(entry) == folder and not entry.refused]
        spoken = [entry for entry in anacron if _folder_of(entry) == folder and not entry.refused]
        leave = [entry for entry in said if not (by_anacron and spoken and "anacron" in entry.shown)]
        running = spoken[:1] if by_anacron and spoken else (leave or spoken)[:1]
        entries = []
        for name in tree.names(folder):
            if not name.startswith(".") and tree.is_file(f"{folder}/{name}"):
                entries.append(_script(tree, folder, name, running[0] if running else None))
        yield folder, Reading(folder, tuple(entries))


def _script(tree: Tree, folder: str, name: str, line: Entry | None) -> Entry:
    path = f"{folder}/{name}"
    period = folder.rpartition(".")[2]
    entry = Entry(Source("run-parts", path), path, user="root", label=f"{name}-{period}", shown=path)
    if why := _not_taken(tree, name):
        return entry.skip(why.replace("reads", "runs").replace("read", "run"))
    if name == "0anacron":
        return entry.skip("it starts anacron, whose jobs are listed one by one")
    if not tree.is_executable(path):
        return entry.skip("it is not executable, so it is not run there either")
    if line is None:
        return entry.refuse(f"no line of a crontab says when {folder} is run")
    return replace(
        line, source=entry.source, text=path, user=line.user, label=entry.label, shown=path, about="",
        command=to_run(path), cwd="/" if re.search(r"\bcd\s+/(?:\s|$|&|;)", line.shown) else line.cwd,
        leftovers=(*line.leftovers, Leftover("one script after another",
                                             f"{line.source.where} runs those of {folder} in turn; here each starts at "
                                             "its time")),
    )


_STARTS_ANACRON: Final = re.compile(r"\banacron\s+(?:start\b|-[a-z]*s)")


def _pass_over(entry: Entry, scripts: Mapping[str, Reading]) -> Entry:
    """A line that only starts what is listed itself."""
    if _STARTS_ANACRON.search(entry.shown) and not entry.refused:
        return entry.skip("it starts anacron, whose jobs are listed one by one")
    folder = _folder_of(entry)
    if folder not in scripts or entry.refused:
        return entry
    count = len(scripts[folder].entries)
    return entry.skip(f"the scripts that it runs are listed one by one ({count} in {folder})")
