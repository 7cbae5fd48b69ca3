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
from nightporter.words import AlertRoute, Schedule

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
    return _places(config, config.heartbeat_to, config.heartbeat_secret)


def alert_routes(config: Config) -> tuple[AlertRoute, ...]:
    """Where alerts go whose automation names no place. Raises BadInput."""
    places = _places(config, config.alert_to, config.alert_secret)
    return tuple(AlertRoute(written, kind, checked) for written, (kind, checked) in places.items())


def _places(config: Config, to: str | None, secret: str | None) -> dict[str, tuple[str, dict[str, Any]]]:
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for one in _listed(to):
        if "://" in one:
            signed = {"secret": secret} if secret else {"unsigned": True}
            found[one] = ("webhook", webhook.check({"url": one, "allow_hosts": hosts(config), **signed}))
        else:
            found[one] = ("file", file.check({"path": one}))
    return found


def check(config: Config) -> None:
    """Look over its settings. Raises BadInput."""
    when(config)
    where(config)
    alert_routes(config)
    check_hosts(hosts(config), "NIGHTPORTER_OWN_HOSTS")
    if config.deadman is not None:
        check_url(config.deadman, "NIGHTPORTER_DEADMAN")


def hosts(config: Config) -> list[str]:
    """Those of the desk's own addresses that may be private."""
    return _listed(config.own_hosts)


def _listed(text: str | None) -> list[str]:
    return [one.strip() for one in (text or "").split(",") if one.strip()]
