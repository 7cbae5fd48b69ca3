"""Routes: the way of an alert to a receiver that takes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any

from nightporter.clock import HOUR, Instant, micros, rfc3339
from nightporter.rules.ending import lane_of
from nightporter.store import Tx
from nightporter.words import AlertEvent, AlertRoute, Definition, derived_id
from nightporter.words.kept import read_back

ALERT_TO = "alert_to"
"""The setting that names the desk's own routes, as JSON."""
FOLDED_AFTER = 10
"""Alerts that one receiver is sent within an hour; the next says that others are kept back."""

Compose = Callable[[AlertEvent, str], dict[str, Any]]
"""The body of an alert, of what it is and what it says."""


def send(
    tx: Tx, event: AlertEvent, incident_id: str, automation_id: str, definition: Definition, compose: Compose,
    text: str, *, failing: str, now: Instant,
) -> None:
    """Send an alert to the first route whose receiver is not at fault; it knows the others. `failing`: a lane that is
    not told of its own fault."""
    at_fault = tx.lanes_at_fault()
    routes = [route for route in _routes_of(tx, definition) if lane_of(route) != failing]
    routes.sort(key=lambda route: lane_of(route) in at_fault)  # stable: those that work first, in the order they stand
    if not routes:
        return
    first, others = routes[0], routes[1:]
    sent, told = tx.alerts_lately(lane_of(first), since=Instant(now - HOUR), now=now)
    if sent >= FOLDED_AFTER:
        if told:
            return
        event, text = AlertEvent.FOLDED, _folded(Instant(now + HOUR))
    _create(tx, first, others, event, incident_id, automation_id, definition.workspace, definition.name,
            definition.timezone, micros(definition.alerts.cooldown), compose(event, text), now)


def _folded(until: Instant) -> str:
    return (f"More than {FOLDED_AFTER} alerts came within an hour. Until {rfc3339(until)} further ones are kept back, "
            "and the inbox has them: `nightporter incidents` lists what stands.")


def next_route(tx: Tx, delivery_ids: Collection[str], *, now: Instant) -> None:
    """Alerts that could not be delivered take their next route, if there is one and what they say can be read."""
    for _, alert in sorted(tx.alerts(delivery_ids).items()):
        routes = routes_from(alert.next_routes)
        try:
            event, body = AlertEvent(alert.alert), read_back(alert.body)
        except ValueError:
            continue
        if routes:
            _create(tx, routes[0], routes[1:], event, alert.incident_id, alert.automation_id, alert.workspace,
                    alert.automation, alert.timezone, alert.cooldown, body, now)


def _create(
    tx: Tx, route: AlertRoute, others: list[AlertRoute], event: AlertEvent, incident_id: str, automation_id: str,
    workspace: str, automation: str, timezone: str, cooldown: int, body: dict[str, Any],
    now: Instant,
) -> None:
    id = derived_id("del", now, incident_id, event, route.name, str(len(others)))
    tx.create_alert(
        id=id, event_id=f"evt_{id[4:]}", incident_id=incident_id, automation_id=automation_id, workspace=workspace,
        destination=route.name, kind=route.kind, lane=lane_of(route), alert=event, automation=automation,
        timezone=timezone, config=json.dumps(dict(route.config)), body=json.dumps(body, ensure_ascii=False),
        cooldown=cooldown,
        next_routes=routes_text(others), now=now,
    )


def _routes_of(tx: Tx, definition: Definition) -> list[AlertRoute]:
    if definition.alerts.to is not None:
        return list(definition.alerts.to)
    return routes_from(tx.setting(ALERT_TO) or "[]")


def route_by_default(tx: Tx, routes: Collection[AlertRoute]) -> None:
    """Where alerts go whose automation names no place, until a desk says otherwise."""
    if (said := routes_text(routes)) != (tx.setting(ALERT_TO) or "[]"):
        tx.put_setting(ALERT_TO, said)


def routes_text(routes: Collection[AlertRoute]) -> str:
    """Routes as they are stored."""
    return json.dumps([asdict(route) for route in routes], ensure_ascii=False, default=dict)


def routes_from(text: str) -> list[AlertRoute]:
    """The inverse. Nothing where it cannot be read: the inbox has it."""
    try:
        return [AlertRoute(each["name"], each["kind"], each["config"]) for each in read_back(text)]
    except (ValueError, KeyError, TypeError):
        return []
