"""own: when the desk speaks for itself, and where to, as its settings say."""

from __future__ import annotations

import re
from typing import Any

from nightporter.config import Config
from nightporter.destinations import file, webhook
from nightporter.errors import BadInput
from nightporter.outside.addresses import check_hosts
from nightporter.outside.http import check_url
from nightporter.rules.schedule import parse
from nightporter.words import Schedule

_TIME = re.compile(r"(\d{1,2}):(\d\d)")


def when(config: Config) -> Schedule | None:
    """The slots of the heartbeat; None where it is switched off. Raises BadInput."""
    if config.heartbeat == "none":
        return None
    time = _TIME.fullmatch(config.heartbeat.strip())
    if time is None or int(time[1]) > 23 or int(time[2]) > 59:
        raise BadInput(f"NIGHTPORTER_HEARTBEAT is {config.heartbeat!r}", why="it takes a time of day",
                       next="write it like 08:00, or none for no heartbeat")
    return parse("cron", f"{int(time[2])} {int(time[1])} * * *", config.timezone)


def where(config: Config) -> dict[str, tuple[str, dict[str, Any]]]:
    """`{as it is written: (kind, config)}` of the destinations beside the inbox. Raises BadInput."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for one in _listed(config.heartbeat_to):
        if "://" in one:
            secret = {"secret": config.heartbeat_secret} if config.heartbeat_secret else {"unsigned": True}
            found[one] = ("webhook", webhook.check({"url": one, "allow_hosts": hosts(config), **secret}))
        else:
            found[one] = ("file", file.check({"path": one}))
    return found


def check(config: Config) -> None:
    """Look over its settings. Raises BadInput."""
    when(config)
    where(config)
    check_hosts(hosts(config), "NIGHTPORTER_OWN_HOSTS")
    if config.deadman is not None:
        check_url(config.deadman, "NIGHTPORTER_DEADMAN")


def hosts(config: Config) -> list[str]:
    """Those of the desk's own addresses that may be private."""
    return _listed(config.own_hosts)


def _listed(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]
