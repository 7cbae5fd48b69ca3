"""faults: when two errors are the same fault. Values in, values out."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 200
"""Characters of a signature."""
_READ: Final = 2_000
"""Characters of an error that are read: it may be the whole of what a program printed."""

# In this order: what is longer and more particular first. Each is replaced by what it is.
_CHANGING: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), put) for pattern, put in (
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
        (r"\b[a-z]{2,5}_[0-9a-f]{8,}[0-9a-z_]*\b", "<id>"),
        (r"\d{4}-\d\d-\d\d(?:[t ]\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?(?:\s?z|\s?utc|[+-]\d\d:?\d\d)?)?", "<time>"),
        (r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b", "<time>"),
        (r"\b0x[0-9a-f]+\b", "<n>"),
        (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{6,}\b", "<id>"),
        (r"(?:/[^\s/'\"<>:;,()]*){2,}", ""),  # a path: its last part is kept, see `_last_part`
        (r"\d+(?:[.,:]\d+)*", "<n>"),
    )
)


def signature(error: str) -> str:
    """An error without what changes from time to time: numbers, times, ids and the folders of paths. Two errors with
    the same signature are the same fault."""
    text = " ".join(error[:_READ].lower().split())
    for pattern, put in _CHANGING:
        text = pattern.sub(put or _last_part, text)
    return " ".join(text.split())[:LONGEST].rstrip()


def _last_part(path: re.Match[str]) -> str:
    """Of a path, its last part: folders may be made anew for each run."""
    return "/" + path[0].rstrip("/").rpartition("/")[2]
