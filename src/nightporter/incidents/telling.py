"""Telling: what an alert says. Composed here, of what is in the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant, rfc3339
from nightporter.incidents.routes import send
from nightporter.store import Tx
from nightporter.words import AlertEvent, Definition, IncidentKind, derived_id


@dataclass(frozen=True, slots=True)
class About:
    """The incident that is told of."""

    incident_id: str
    kind: IncidentKind
    route: str
    automation_id: str
    count: int
    first_at: Instant
    last_at: Instant
    error: str
    subject: str


def tell(
    tx: Tx, event: AlertEvent, about: About, definition: Definition, *, now: Instant, in_the_inbox: bool,
    only_there: bool,
) -> None:
    """Alert of an incident that began, or goes on; by a message in the inbox too, where there is none yet."""
    text = _text(about, definition.name)
    if not in_the_inbox:  # one message as long as it stands, however often it is told of
        tx.gather_inbox([(
            derived_id("inb", about.first_at, about.incident_id, "incident"), definition.workspace, definition.owner,
            about.automation_id, None, "incident", _title(about, definition.name), text,
        )], now=now)
    if not only_there:
        _send(tx, event, about, definition, text, now)


def tell_paused(tx: Tx, about: About, definition: Definition, why: str, *, now: Instant) -> None:
    """Alert that the desk paused an automation; the cooldown has no say in it."""
    text = (
        f"{why}. The last error: {_short(about.error)}\n"
        f"Nothing of it fires until `nightporter enable {definition.name}`; its next success or failure counts from "
        f"there. `nightporter explain {definition.name}` says more."
    )
    _to_the_inbox(tx, "auto_paused", about, definition, f"{definition.name} was paused by the desk", text, now)
    _send(tx, AlertEvent.PAUSED, about, definition, text, now)


def tell_over(tx: Tx, about: About, definition: Definition, *, now: Instant) -> None:
    """Say that it is over."""
    who = f"The receiver {about.route}" if about.kind is IncidentKind.DELIVERY else definition.name
    text = (f"{who} works again. It had failed {_times(about.count)}, from {rfc3339(about.first_at)} "
            f"to {rfc3339(about.last_at)}.")
    _to_the_inbox(tx, "recovered", about, definition, f"{who} works again", text, now)
    _send(tx, AlertEvent.RECOVERED, about, definition, text, now)


def _send(
    tx: Tx, event: AlertEvent, about: About, definition: Definition, text: str, now: Instant
) -> None:
    def body(event: AlertEvent, text: str) -> dict[str, Any]:
        return {
            "type": f"incident.{event}",
            "timestamp": rfc3339(now),
            "data": {
                "incident": about.incident_id, "kind": str(about.kind), "route": about.route,
                "automation": definition.name, "automation_id": about.automation_id, "subject": about.subject,
                "count": about.count, "first_at": rfc3339(about.first_at), "last_at": rfc3339(about.last_at),
                "error": about.error, "text": text,
            },
        }

    failing = about.route if about.kind is IncidentKind.DELIVERY else ""
    send(tx, event, about.incident_id, about.automation_id, definition, body, text, failing=failing, now=now)


def _title(about: About, name: str) -> str:
    if about.kind is IncidentKind.DELIVERY:
        return f"{about.route} takes no results"
    return f"{name}: a schedule cannot be made sense of"


def _text(about: About, name: str) -> str:
    since = f"{_times(about.count)} since {rfc3339(about.first_at)}"
    known = f"`nightporter incidents ack {about.incident_id}` keeps further alerts back."
    match about.kind:
        case IncidentKind.EXECUTION:
            return (f"{name} has failed {since}. The last error: {_short(about.error)}\n"
                    f"`nightporter explain {about.subject}` says more; `nightporter replay {about.subject}` runs it "
                    f"again; {known}")
        case IncidentKind.SCHEDULE:
            return (f"The schedule {about.subject} could not be made sense of, {since}: {_short(about.error)}\n"
                    f"Nothing of it fires. Mend the definition of {name}; {known}")
        case IncidentKind.DELIVERY:
            return (f"Results for {about.route} could not be delivered, {since}. The last error: "
                    f"{_short(about.error)}\nThe work is done and kept: `nightporter deliveries --state given_up` "
                    f"lists it, `nightporter deliver RUN` sends one again; {known}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _short(error: str) -> str:
    return " ".join(error.split())[:300] or "it said nothing"


def _to_the_inbox(
    tx: Tx, kind: str, about: About, definition: Definition, title: str, text: str, now: Instant
) -> None:
    tx.write_inbox([(
        derived_id("inb", now, about.incident_id, kind, str(about.count)), definition.workspace, definition.owner,
        about.automation_id, None, kind, title, text,
    )], now=now)
