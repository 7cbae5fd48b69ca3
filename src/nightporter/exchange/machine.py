"""A scan: what the schedulers of a machine, or of a copy of one, have to do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nightporter.clock import Instant
from nightporter.errors import BadInput, BadSchedule
from nightporter.exchange.at_spool import asked_for, scan_at
from nightporter.exchange.cron_machine import House, scan_cron
from nightporter.exchange.crontab import Tab, parse_crontab
from nightporter.exchange.entry import Reading, Unread
from nightporter.exchange.people import parse_people
from nightporter.exchange.systemd_machine import scan_systemd
from nightporter.exchange.tree import Tree
from nightporter.outside.asking import Answer, answer_of
from nightporter.rules import zones

KINDS: Final = ("crontab", "systemd", "at")
Ask = Callable[[list[str]], Answer]


@dataclass(frozen=True, slots=True)
class Found:
    """What a scan found, and what it could not look into."""

    readings: tuple[Reading, ...]
    unread: tuple[Unread, ...]
    timezone: str


def scan(
    root: Path, kinds: Collection[str] = KINDS, *, me: str, otherwise: str, now: Instant, ask: Ask = answer_of
) -> Found:
    """Read what there is below `root`. `me`: whose own jobs are asked for by command, on this machine only;
    `otherwise`: the zone of a machine that does not say its own. Raises BadInput where the root is no folder."""
    if not root.is_dir():
        raise BadInput(f"{root} is no folder", next="name the root of a machine, such as /")
    tree = Tree(root.resolve())
    timezone = _zone(tree, otherwise)
    house = House(timezone, parse_people(tree.read("/etc/passwd") or b""), me if tree.is_machine else "")
    readings: list[Reading] = []
    if "crontab" in kinds:
        readings += scan_cron(tree, house, lambda: _own_crontab(tree, ask))
    if "systemd" in kinds:
        readings += scan_systemd(tree, house, now)
    if "at" in kinds:
        readings += scan_at(tree, house, now, lambda: asked_for(tree, ask) if tree.is_machine else [])
    return Found(tuple(readings), tuple(tree.unread), timezone)


def tab_of_file(content: bytes, path: str, *, user: str, root: Path, otherwise: str) -> Found:
    """One crontab, whose it is; without a `user` each of its lines names one."""
    tree = Tree(root.resolve())
    timezone = _zone(tree, otherwise)
    people = parse_people(tree.read("/etc/passwd") or b"")
    return Found((parse_crontab(content, Tab(path, timezone, user, people)),), tuple(tree.unread), timezone)


def _own_crontab(tree: Tree, ask: Ask) -> bytes | None:
    answer = ask(["crontab", "-l"])
    if answer.missing:
        return None
    if answer.code:
        said = " ".join(answer.err.split())[:200]
        if "no crontab" not in said:
            tree.pass_by("crontab -l", said or f"it ended with exit code {answer.code}")
        return None
    return answer.out


def _zone(tree: Tree, otherwise: str) -> str:
    """The zone that the machine's clock shows."""
    link = tree.link_of("/etc/localtime") or ""
    written = (tree.read("/etc/timezone") or b"").decode("utf-8", "replace").strip()
    for name in (link.partition("/zoneinfo/")[2].removeprefix("posix/"), written, otherwise):
        try:
            zones.zone(name)
        except BadSchedule:
            continue
        return name
    return "UTC"
