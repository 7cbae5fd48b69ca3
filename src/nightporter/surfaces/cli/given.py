"""Given: what a command reads from a file or from standard input, and no more of it than anybody would write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from nightporter.errors import BadInput

MOST: Final = 4_000_000
"""Bytes."""


def given(path: str, what: str) -> bytes:
    """The content of a file or a pipe, or of standard input for `-`. `what` it is, in words. Raises BadInput when it
    cannot be read, and for what has no end."""
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MOST + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(MOST + 1)
    except (OSError, ValueError) as error:  # a path with a zero in it is none
        why = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{what} {path} cannot be read", why=why, next="check the path") from error
    if len(content) > MOST:
        raise BadInput(f"{what} {path} is too large", why=f"{MOST // 1_000_000} MB are the most that is read",
                       next="check the path")
    return content


def given_text(path: str, what: str) -> str:
    """The same as text. Raises BadInput, also where it is none."""
    try:
        return given(path, what).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{what} {path} cannot be read", why=str(error), next="save it as UTF-8") from error
