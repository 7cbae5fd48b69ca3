"""The users of a machine, as its `/etc/passwd` lists them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    """One user."""

    name: str
    home: str
    uid: int = -1


def parse_people(content: bytes) -> dict[str, Person]:
    """By name; lines that are none are passed over."""
    found: dict[str, Person] = {}
    for line in content.decode("utf-8", "replace").splitlines():
        parts = line.split(":")
        if len(parts) >= 7 and parts[0] and not parts[0].startswith("#"):
            uid = int(parts[2]) if parts[2].isascii() and parts[2].isdigit() and len(parts[2]) < 12 else -1
            found.setdefault(parts[0], Person(parts[0], parts[5], uid))
    return found
