"""What the desk keeps to itself: `announce` puts a result into the inbox, `silent` and `none` leave it in the ledger.

Delivery answers these three itself, without a destination; here is only what their config may say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightporter.outside.options import mapping

KINDS = ("announce", "silent", "none")


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """They have no keys. Raises BadInput."""
    return mapping(config, "announce, silent or none", known=())
