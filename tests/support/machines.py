"""A machine in a folder: its files, as a scan with another root finds them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nightporter.clock import Instant, instant
from nightporter.exchange import Plan, plan, scan
from nightporter.exchange.crontab import Tab, parse_crontab
from nightporter.exchange.entry import Entry, Reading
from nightporter.exchange.people import parse_people

PASSWD = "root:x:0:0:root:/root:/bin/bash\nana:x:1000:1000:Ana:/home/ana:/bin/bash\n"
PEOPLE = parse_people(PASSWD.encode())
ZONE = "Europe/Berlin"


def at(text: str) -> Instant:
    """An instant of a text in UTC."""
    from datetime import UTC, datetime

    return instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


NOW = at("2026-12-01T12:00")


def machine(folder: Path, files: Mapping[str, str | bytes], *, links: Mapping[str, str] | None = None) -> Path:
    """A root with these files; a path that ends in `+x` is executable."""
    root = folder / "machine"
    for path, content in {"/etc/passwd": PASSWD, "/etc/timezone": f"{ZONE}\n", **files}.items():
        place = root / path.removesuffix("+x").lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
        place.chmod(0o755 if path.endswith("+x") else 0o644)
    for path, leads in (links or {}).items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(leads)
    return root


def tab(content: str | bytes, *, user: str = "ana", path: str = "crontab of ana") -> Reading:
    """A crontab, read; without a user it is one of the system's."""
    raw = content if isinstance(content, bytes) else content.encode()
    return parse_crontab(raw, Tab(path, ZONE, user, PEOPLE))


def job(content: str | bytes, *, user: str = "ana") -> Entry:
    """The only job of a crontab."""
    (entry,) = tab(content, user=user).entries
    return entry


def planned(*readings: Reading, me: str = "ana", **more: object) -> Plan:
    """What an import into an empty store would do."""
    return plan(readings, present={}, taken=(), me=me, now=NOW, **more)  # type: ignore[arg-type]


def scanned(root: Path, *kinds: str) -> Plan:
    """What an import of everything below a root would do."""
    found = scan(root, *([kinds] if kinds else []), me="ana", otherwise="UTC", now=NOW)
    return plan(found.readings, unread=found.unread, present={}, taken=(), me="ana", now=NOW)
