"""Recording: a fault becomes an incident, or one more of the incident that stands; and an incident comes to its end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from nightporter.clock import Instant, micros
from nightporter.incidents.telling import About, tell, tell_over
from nightporter.rules.faults import signature
from nightporter.store import Tx
from nightporter.store.tx_incidents import Over, Standing
from nightporter.words import AlertEvent, Definition, IncidentKind, IncidentState, Target, derived_id

ERROR_KEPT = 1_000
"""Characters of the latest error that an incident keeps."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that went wrong for good."""

    kind: IncidentKind
    route: str
    """Where: the automation and why it failed, the trigger, or the receiver's lane."""
    error: str
    subject: str
    """The run, the trigger, or the delivery."""
    automation_id: str
    in_a_row: int = 1
    in_the_inbox: bool = False
    """There is a message about it there already."""
    quiet: bool = False
    """It is an alert's own: that raises none, and only the inbox tells of it."""


def happened(tx: Tx, faults: Sequence[Fault], *, now: Instant) -> dict[str, Standing]:
    """Write faults down, and tell of those that are due to be told. By subject, the incident it is one of."""
    groups: dict[tuple[str, str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.kind, fault.route, signature(fault.error)), []).append(fault)
    definitions = in_force(tx, {fault.automation_id for fault in faults})
    latest = {key: some[-1] for key, some in sorted(groups.items())}
    found = {
        (one.kind, one.route, one.signature): one
        for one in tx.reopen_incidents([
            (*key, last.automation_id, last.subject, last.error[:ERROR_KEPT], len(groups[key]),
             now - micros(definitions[last.automation_id].alerts.cooldown))
            for key, last in latest.items()
        ], now=now)
    }
    found |= {
        (one.kind, one.route, one.signature): one
        for one in tx.write_incidents([
            (derived_id("inc", now, *key), definitions[last.automation_id].workspace, last.automation_id, *key,
             len(groups[key]), last.subject, last.error[:ERROR_KEPT])
            for key, last in latest.items() if key not in found
        ], now=now)
    }
    for key, fault in latest.items():
        _tell_if_due(tx, found[key], fault, definitions[fault.automation_id], now)
    return {fault.subject: found[key] for key, some in groups.items() for fault in some}


def _tell_if_due(tx: Tx, standing: Standing, fault: Fault, definition: Definition, now: Instant) -> None:
    alerts = definition.alerts
    if standing.state != IncidentState.OPEN or fault.in_a_row < alerts.after:
        return
    cooldown = micros(alerts.cooldown)
    if standing.notified_at is not None and now - standing.notified_at < cooldown:
        return
    tx.notified([standing.id], now=now)
    tell(
        tx, AlertEvent.OPENED if standing.notified_at is None else AlertEvent.CONTINUED,
        About(standing.id, fault.kind, fault.route, fault.automation_id, standing.times, standing.first_at, now,
              fault.error[:ERROR_KEPT], fault.subject),
        definition, now=now, in_the_inbox=fault.in_the_inbox, only_there=fault.quiet,
    )


def over(tx: Tx, automation_ids: Collection[str], kind: IncidentKind, *, now: Instant, by: str = "desk") -> None:
    """What stands of these automations is over; whoever was told of it is told that, once."""
    _told(tx, tx.incidents_over([(id, kind, by) for id in sorted(automation_ids)], now=now), now)


def route_over(tx: Tx, kind: IncidentKind, route: str, *, now: Instant, by: str = "desk") -> None:
    """The same of a route."""
    _told(tx, tx.routes_over([(kind, route, by)], now=now), now)


def lanes_work(tx: Tx, lanes: Iterable[str], *, now: Instant) -> list[str]:
    """These receivers took something: what stands of them is over. Those of them that were at fault."""
    wanted = sorted(set(lanes))
    if not wanted or not tx.any_lane_at_fault():
        return []
    ended = tx.routes_over([(IncidentKind.DELIVERY, lane, "desk") for lane in wanted], now=now)
    _told(tx, ended, now)
    return sorted({one.route for one in ended})


def message_of(incident_id: str) -> str:
    """The message in the inbox that gathers the results an incident has cost."""
    return incident_id.replace("inc_", "inb_", 1)


def _told(tx: Tx, ended: Sequence[Over], now: Instant) -> None:
    """One notice for all that came to its end of one automation, or of one receiver."""
    untold = [one for one in ended if one.notified_at is not None and (one.told_at or 0) < one.notified_at]
    tx.told_over([one.id for one in untold], now=now)
    together: dict[tuple[str, str], list[Over]] = {}
    for one in untold:
        where = one.route if one.kind == IncidentKind.DELIVERY else ""
        together.setdefault((one.automation_id, where), []).append(one)
    definitions = in_force(tx, {automation_id for automation_id, _ in together})
    for (automation_id, _), some in sorted(together.items()):
        last = max(some, key=lambda one: one.last_at)
        tell_over(
            tx,
            About(last.id, IncidentKind(last.kind), last.route, automation_id, sum(one.times for one in some),
                  min(one.first_at for one in some), last.last_at, last.error, last.subject),
            definitions[automation_id], now=now,
        )


def in_force(tx: Tx, automation_ids: Collection[str]) -> dict[str, Definition]:
    """The definitions in force; one that cannot be read alerts as if it said nothing of it."""
    texts = tx.definitions_in_force_of(automation_ids)
    return {id: _readable(id, texts.get(id, "")) for id in automation_ids}


def _readable(automation_id: str, text: str) -> Definition:
    try:
        return Definition.from_json(text)
    except ValueError:
        return Definition(name=automation_id, target=Target("noop"))
