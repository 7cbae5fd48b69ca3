"""kept: JSON as it stands in a store, read back. Whatever somebody or something wrote there, it is read or refused."""

from __future__ import annotations

import json
from typing import Any


class Unreadable(Exception):
    """What a row says cannot be made sense of, or is not there any more: that row's matter, and no trouble of the
    store's."""


def read_back(text: str) -> Any:
    """The value of stored JSON. Raises ValueError where it is none, also where it is nested too deep to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
