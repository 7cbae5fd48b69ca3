"""What the tests of definitions read with: kinds that accept any config, one instant, one file name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nightporter.clock import Instant, instant
from nightporter.definitions import Checks, read
from nightporter.errors import BadDefinition, BadInput
from nightporter.words import Definition

NOW = instant(datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC))
ZONE = "Europe/Lisbon"
PATH = "/desk/automations/morning-brief.md"


def anything(config: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    """A check that refuses only the word `wrong`, and takes `cwd` for a path."""
    for key, value in config.items():
        if value == "wrong":
            raise BadInput(f"`{key}` cannot be that", why="a check says so", next="write something else")
    return {key: str((folder or Path("/here")) / value) if key in ("file", "cwd") else value
            for key, value in config.items()}


CHECKS = Checks(
    targets=dict.fromkeys(("script", "python", "http", "echo", "noop", "function", "lamp"), anything),
    destinations=dict.fromkeys(("file", "webhook", "announce", "silent", "none", "lamp"), anything),
)


def markdown(text: str, *, path: str = PATH, zone: str = ZONE, now: Instant = NOW) -> Definition:
    """Read a whole Markdown file."""
    return read(text, path=path, format="markdown", default_timezone=zone, now=now, checks=CHECKS)


def yaml(text: str, *, path: str = "/desk/automations/morning-brief.yaml", zone: str = ZONE) -> Definition:
    """Read a whole YAML file."""
    return read(text, path=path, format="yaml", default_timezone=zone, now=NOW, checks=CHECKS)


def keys(text: str) -> Definition:
    """Read some keys over a text to answer with; the first key stands in line 2."""
    return markdown(f"---\n{text}\n---\nGood morning.\n")


def refusal(text: str) -> BadDefinition:
    """The error that some keys end in."""
    with pytest.raises(BadDefinition) as caught:
        keys(text)
    assert caught.value.path == PATH
    return caught.value


def place(error: BadDefinition) -> tuple[int, int]:
    """Line and column of an error."""
    return error.line, error.column
