"""Destinations: what carries a result to one kind of place. One module per kind, and one line for each below.

Other packages add kinds through the entry point group `nightporter.destinations`: an entry's name is the kind, and it
loads something that, called without arguments, gives a destination; its attribute `check`, where it has one, checks
the config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightporter.clock import Instant
    from nightporter.outside.http import Web
    from nightporter.words import DestinationPort

ENTRY_POINTS = "nightporter.destinations"

Check = Callable[..., dict[str, Any]]
"""`check(config, folder=None)`: the config complete and normalised. Raises BadInput naming the key."""


def registry(
    *, outputs: Path, web: Web, now: Callable[[], Instant], report: Callable[[str], None],
) -> dict[str, DestinationPort]:
    """All destinations by kind, without those that delivery answers itself. `report` is told one line about each
    plug-in that had to be left out."""
    from nightporter.destinations.file import FileDestination
    from nightporter.destinations.kept import KINDS
    from nightporter.destinations.webhook import Webhook
    from nightporter.outside.plugs import plugged

    destinations: dict[str, DestinationPort] = {
        "file": FileDestination(outputs),
        "webhook": Webhook(web, now),
    }
    for kind, make in plugged(ENTRY_POINTS, {*destinations, *KINDS}, report).items():
        try:
            destination = make()
            if not callable(getattr(destination, "send", None)):
                raise TypeError("it has no send")
            if not isinstance(getattr(destination, "repeatable", None), bool):
                raise TypeError("it does not say whether it is repeatable")
        except Exception as error:  # A stranger's code: whatever it raises costs that kind and nothing else.
            report(f"the destination {kind!r} of another package is left out: {type(error).__name__}: {error}")
        else:
            destinations[kind] = destination
    return destinations


def checks() -> dict[str, Check]:
    """How the config of each kind is checked, `announce`, `silent` and `none` included."""
    from nightporter.destinations import file, kept, webhook
    from nightporter.outside.plugs import plugged

    known: dict[str, Check] = {
        "file": file.check,
        "webhook": webhook.check,
        **dict.fromkeys(kept.KINDS, kept.check),
    }
    for kind, make in plugged(ENTRY_POINTS, known, lambda _: None).items():
        known[kind] = getattr(make, "check", None) or _unchecked
    return known


def _unchecked(config: object, folder: Path | None = None) -> dict[str, Any]:
    from nightporter.outside.options import mapping

    known = tuple(str(key) for key in config) if isinstance(config, Mapping) else ()
    return mapping(config, "config", known=known)
