"""Settings, read once into a frozen Config. Each names who reads it.

Where things live, first that is set: a folder given by a flag or NIGHTPORTER_HOME folds everything into one; else
state goes to $XDG_STATE_HOME/nightporter and results to $XDG_DATA_HOME/nightporter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from nightporter.errors import BadInput


@dataclass(frozen=True, slots=True)
class Config:
    """The desk's settings. `from_environment` is how one is made."""

    state: Path
    """Store, locks, scratch folders. NIGHTPORTER_HOME. Read by engine."""
    outputs: Path
    """Where `file` destinations write relative paths. Read by engine for destinations."""
    store: str
    """A path or postgresql://... NIGHTPORTER_STORE. Read by engine."""
    definitions: str | None = None
    """The folder of definition files, where one is named. NIGHTPORTER_CONFIG. Read by engine for definitions."""
    home: Path | None = None
    """The folder that folds everything into one, where there is one. Read by engine for definitions."""
    timezone: str = "UTC"
    """For definitions that name none: NIGHTPORTER_TIMEZONE, TZ, the machine's. Read by definitions."""
    slots: int = 64
    """Runs in the air at once in this process. NIGHTPORTER_SLOTS. Read by dispatch."""
    delivery_slots: int = 32
    """Deliveries in the air at once in this process. NIGHTPORTER_DELIVERY_SLOTS. Read by delivery."""
    drain: timedelta = timedelta(seconds=30)
    """How long a stopping desk lets runs end by themselves. NIGHTPORTER_DRAIN. Read by engine."""
    beat: timedelta = timedelta(seconds=20)
    """How often a worker renews its lease. NIGHTPORTER_BEAT. Read by engine."""
    lease: timedelta = timedelta(seconds=60)
    """How long a lease may stand still before its worker counts as dead; a quarter of it is what a PostgreSQL server
    may take to answer before it is asked whether it still works. NIGHTPORTER_LEASE. Read by sweep, engine."""
    sweep: timedelta = timedelta(seconds=60)
    """How often the sweep runs. NIGHTPORTER_SWEEP. Read by engine."""
    keep_runs: timedelta = timedelta(days=7)
    """How long ended runs, their deliveries and read messages are kept. NIGHTPORTER_KEEP_RUNS. Read by sweep."""
    keep_ledger: timedelta = timedelta(days=30)
    """How long ledger lines, transitions, dead letters and unread messages are kept; 30 days at the least, and never
    less than `keep_runs`; a dead letter until its message was read. NIGHTPORTER_KEEP_LEDGER. Read by sweep."""
    boot_push: timedelta = timedelta(seconds=60)
    """How much later what is overdue begins, at most, after a restart. NIGHTPORTER_BOOT_PUSH. Read by engine."""
    patience: timedelta = timedelta(seconds=60)
    """How long a write waits for a store that another process holds. NIGHTPORTER_PATIENCE. Read by store."""

    heartbeat: str = "08:00"
    """The time of day, in `timezone`, at which the desk says how it is, well or not; `none`: never.
    NIGHTPORTER_HEARTBEAT. Read by destinations."""
    heartbeat_to: str | None = None
    """Where that goes beside the inbox: addresses of webhooks and paths of files, with commas between.
    NIGHTPORTER_HEARTBEAT_TO. Read by destinations."""
    heartbeat_secret: str | None = None
    """A reference to the secret that signs it, for webhooks. NIGHTPORTER_HEARTBEAT_SECRET. Read by destinations."""
    alert_to: str | None = None
    """Where a desk tells of failures whose automation names no place: as `heartbeat_to`, in the order in which they are
    tried. NIGHTPORTER_ALERT_TO. Read by destinations."""
    alert_secret: str | None = None
    """A reference to the secret that signs it, for webhooks. NIGHTPORTER_ALERT_SECRET. Read by destinations."""
    deadman: str | None = None
    """An address outside that is called (GET) as long as what is due is looked at; its silence is the alarm.
    NIGHTPORTER_DEADMAN. Read by engine."""
    own_hosts: str | None = None
    """Hosts that these addresses may name although they are private, with commas between. NIGHTPORTER_OWN_HOSTS.
    Read by destinations."""

    @staticmethod
    def from_environment(
        environ: Mapping[str, str], *, home: str | None = None, store: str | None = None,
        definitions: str | None = None,
    ) -> Config:
        """Read the settings; arguments stand over the environment. Raises BadInput naming the variable."""
        folded = home or environ.get("NIGHTPORTER_HOME")
        user = Path(environ.get("HOME") or "~").expanduser()
        if folded:
            state = Path(folded).expanduser().absolute()
            outputs = state / "outputs"
        else:
            state = _base(environ, "XDG_STATE_HOME", user / ".local" / "state")
            outputs = _base(environ, "XDG_DATA_HOME", user / ".local" / "share") / "outputs"
        return Config(
            state=state, outputs=outputs, home=state if folded else None,
            store=store or environ.get("NIGHTPORTER_STORE") or str(state / "nightporter.sqlite"),
            definitions=definitions or environ.get("NIGHTPORTER_CONFIG"),
            timezone=environ.get("NIGHTPORTER_TIMEZONE") or _machine_zone(environ),
            **_numbers(environ), **_texts(environ),
        )


VARIABLES = {
    field.name: f"NIGHTPORTER_{field.name.upper()}" for field in fields(Config)
    if field.name not in ("state", "outputs", "home")
} | {"state": "NIGHTPORTER_HOME", "definitions": "NIGHTPORTER_CONFIG"}
"""The environment variable of each setting that has one."""


_TEXTS = (
    "heartbeat", "heartbeat_to", "heartbeat_secret", "alert_to", "alert_secret", "deadman", "own_hosts",
)


def _texts(environ: Mapping[str, str]) -> dict[str, Any]:
    """Settings that are text and come from nowhere else; an empty variable is as good as none."""
    return {name: text for name in _TEXTS if (text := environ.get(f"NIGHTPORTER_{name.upper()}"))}


def _numbers(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(Config):
        text = environ.get(f"NIGHTPORTER_{field.name.upper()}")
        if text is None or field.type not in ("int", "timedelta"):
            continue
        found[field.name] = _whole(field.name, text) if field.type == "int" else _seconds(field.name, text)
    return found


def _whole(name: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise BadInput(f"NIGHTPORTER_{name.upper()} is {text!r}", why="it takes a whole number above 0",
                       next="unset it for the default")
    return int(text)


_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def _seconds(name: str, text: str) -> timedelta:
    number = text.rstrip("mshdw")
    unit = text[len(number):]
    try:
        return timedelta(seconds=float(number) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise BadInput(f"NIGHTPORTER_{name.upper()} is {text!r}", why="it takes a duration with its unit",
                       next="write 30s, 5m, 12h or 7d; unset it for the default") from None


def _base(environ: Mapping[str, str], variable: str, otherwise: Path) -> Path:
    value = environ.get(variable, "")
    # The XDG specification has relative paths ignored.
    return (Path(value) if value.startswith("/") else otherwise) / "nightporter"


def _machine_zone(environ: Mapping[str, str]) -> str:
    zone = environ.get("TZ", "").removeprefix(":")
    if zone and not zone.startswith("/"):
        return zone  # whether there is one of that name is looked at by who uses it
    try:
        target = os.path.realpath(zone or "/etc/localtime")
    except OSError:
        return "UTC"
    return target.partition("/zoneinfo/")[2].removeprefix("posix/") or "UTC"
