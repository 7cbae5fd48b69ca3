"""`failures:` and `alerts:`: when errors in a row pause an automation, and where a person is told of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from nightporter.definitions import grammar
from nightporter.definitions.carrying import Checks, checked
from nightporter.definitions.entry import entry_of
from nightporter.definitions.policy import duration_of
from nightporter.definitions.triggers import name_of
from nightporter.definitions.written import (
    Entries,
    Items,
    Value,
    bad,
    entries_of,
    is_none,
    plain,
    whole_number_of,
    wrong_type,
)
from nightporter.words import AlertRoute, Alerts, Failures

MOST_IN_A_ROW: Final = 1000
_KEPT: Final = ("announce", "silent", "none")


def failures_of(value: Value) -> Failures:
    """After how many errors in a row the desk pauses the automation; those not named keep their defaults."""
    entries = entries_of("failures", value)
    grammar.check_keys(entries, grammar.FAILURES, "in `failures`", {})
    chosen = {
        key: None if is_none(said) else whole_number_of(key, said, least=1, most=MOST_IN_A_ROW)
        for key, said in entries.values.items()
    }
    return Failures(**chosen)


def alerts_of(value: Value, checks: Checks) -> Alerts:
    """Where a person is told of failures; `none` leaves it to the inbox."""
    if is_none(value):
        return Alerts(to=())
    if not isinstance(value, Entries):
        raise wrong_type("alerts", value, "a map, or none", next="write `alerts: {to: {file: alerts.md}}`")
    grammar.check_keys(value, grammar.ALERTS, "in `alerts`", {})
    chosen: dict[str, Any] = {}
    if (to := value.get("to")) is not None:
        chosen["to"] = _routes(to, checks)
    if (after := value.get("after")) is not None:
        chosen["after"] = whole_number_of("after", after, least=1, most=MOST_IN_A_ROW)
    if (cooldown := value.get("cooldown")) is not None:
        chosen["cooldown"] = timedelta(0) if is_none(cooldown) else duration_of("cooldown", cooldown)
    return Alerts(**chosen)


def _routes(value: Value, checks: Checks) -> tuple[AlertRoute, ...]:
    items = value.items if isinstance(value, Items) else (value,)
    if not items:
        raise wrong_type("to", value, "at least one destination", next="write `alerts: none` for the inbox alone")
    routes = [_route(item, checks) for item in items]
    for n, item in enumerate(items):
        if routes[n].name in {other.name for other in routes[:n]}:
            raise bad(item.place, f"two destinations have the name `{routes[n].name}`",
                      why="without a name it is the kind", next="give this one a name: `name: second`")
    return tuple(routes)


def _route(item: Value, checks: Checks) -> AlertRoute:
    kinds = tuple(kind for kind in checks.destinations if kind not in _KEPT)
    entry = entry_of("alerts", item, kinds, grammar.NOT_YET_DESTINATIONS)
    own = grammar.DESTINATION_KEYS.get(entry.kind)
    if own is not None:
        grammar.check_keys(entry.options, ("name", *own), f"in `{entry.kind}`", {})
    name = entry.options.get("name")
    config = {key: plain(said) for key, said in entry.options.without("name").values.items()}
    return AlertRoute(
        entry.kind if name is None else name_of(name), entry.kind,
        checked(checks.destinations[entry.kind], config, None, entry.place, entry.options.keys),
    )
