"""Timers of systemd on a machine in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from machines import machine, scanned

from nightporter.exchange import Item

ETC = "/etc/systemd/system"
LIB = "/usr/lib/systemd/system"
WANTS = f"{ETC}/timers.target.wants"
DOES = "[Service]\nType=oneshot\nExecStart=/bin/x\n"
DAILY = "[Timer]\nOnCalendar=daily\n"


def house(
    tmp_path: Path, files: Mapping[str, str | bytes], enabled: tuple[str, ...] = ("a.timer",),
    links: Mapping[str, str] | None = None,
) -> dict[str, Item]:
    """What an import of a machine with these units would do, by the names of its timers. A path without a folder is
    in /etc."""
    placed = {path if path.startswith("/") else f"{ETC}/{path}": text for path, text in files.items()}
    wanted = {f"{WANTS}/{name}": f"../{name}" for name in enabled}
    root = machine(tmp_path, placed, links={**wanted, **(links or {})})
    return {Path(item.entry.source.path).name: item for item in scanned(root, "systemd").items}


def timer(tmp_path: Path, says: str, service: str = DOES, **more: str | bytes) -> Item:
    """The item of one enabled timer with these lines in its [Timer]."""
    return house(tmp_path, {"a.timer": f"[Timer]\n{says}\n", "a.service": service, **more})["a.timer"]


def service(tmp_path: Path, says: str, **more: str | bytes) -> Item:
    """The item of one daily timer with these lines in the [Service] that it starts."""
    return timer(tmp_path, "OnCalendar=daily", f"[Service]\n{says}\n", **more)


def left(item: Item) -> dict[str, str]:
    """What does not come over of a job, but for the user, who is another."""
    return {each.what: each.why for each in item.entry.leftovers if each.what != "the user root"}
