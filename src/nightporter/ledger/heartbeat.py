"""What the desk says of itself once a day: composed by code from the record, and said whether all is well or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nightporter import logs
from nightporter.clock import DAY, MINUTE, Instant, rfc3339
from nightporter.ledger.audit import audit
from nightporter.ledger.lines import reason_sentence
from nightporter.ledger.moments import lasting, local, spoken
from nightporter.ledger.status import stop_of
from nightporter.ledger.tasks import tasks
from nightporter.ledger.why import clause
from nightporter.store import Tx
from nightporter.store.tx_clock import schedule_from

log = logs.get(__name__)

LATE = 5 * MINUTE
FIRES = 5
_AUDITED = 200
"""Triggers whose slots are enumerated each day; another part of them each day."""
_GOOD = ("succeeded", "skipped")


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One day's word."""

    slot: Instant
    said_at: Instant
    title: str
    text: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        """As it is carried to destinations."""
        return {"type": "nightporter.heartbeat", "timestamp": rfc3339(self.said_at),
                "data": {**self.data, "title": self.title, "text": self.text}}


def heartbeat(
    tx: Tx, slot: Instant, since: Instant, now: Instant, *, timezone: str, host: str = "", days_missed: int = 0
) -> Heartbeat:
    """The word about the time after `since` and until now; `slot` is when it was due. A part that cannot be told says
    so, and the others are said."""
    known = _Known(tx, since, now, timezone, host)
    lines = [line for part in _PARTS for line in _told(part, known)]
    late = now - slot
    if late > LATE:
        were = "was" if days_missed == 1 else "were"
        gone = f" {days_missed} before it {were} not said at all." if days_missed else ""
        lines.insert(0, f"This was due at {spoken(slot, timezone)} and is {lasting(late)} late: no desk was there to "
                        f"say it.{gone}")
        known.data |= {"late": late / 1_000_000, "not_said": days_missed}
    title = "All is well" if not known.wrong else f"Wants a look: {', '.join(known.wrong)}"
    data = {"slot": rfc3339(slot), "since": rfc3339(since), "well": not known.wrong, "wrong": known.wrong, **known.data}
    counted = f"{known.ran} ran, {known.not_run} did not"
    return Heartbeat(slot, now, f"{title}. {counted}.", "\n".join(lines) + "\n", data)


@dataclass(slots=True)
class _Known:
    """What is known so far."""

    tx: Tx
    since: Instant
    now: Instant
    timezone: str
    host: str
    ran: int = 0
    not_run: int = 0
    wrong: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)


Part = Callable[[_Known], Iterator[str]]


def _told(part: Part, known: _Known) -> list[str]:
    name = part.__name__.strip("_").replace("_", " ")
    try:
        return list(part(known))
    except Exception as error:  # whatever it is: silence would be taken for a desk that is gone
        log.exception("heartbeat.part_failed", part=name)
        known.wrong.append(f"{name} cannot be told")
        return [f"What there is to say of {name} cannot be told: {' '.join(str(error).split())[:200]}"]


def _automations(known: _Known) -> Iterator[str]:
    states = known.tx.read_automation_states()
    known.data["automations"] = states
    stop = stop_of(known.tx)
    if stop is not None:
        known.wrong.append("the desk is stopped")
        yield f"The whole desk is stopped by {stop.by or 'somebody'}. {stop.reason}".rstrip()
    for state, said in (("auto_paused", "paused by the desk"), ("config_error", "with a definition that has an error")):
        if states.get(state):
            known.wrong.append(f"{states[state]} {said}")
    told = ", ".join(f"{n} {state.replace('_', ' ')}" for state, n in states.items())
    yield f"Automations: {told or 'none'}."


def _runs(known: _Known) -> Iterator[str]:
    ends = known.tx.read_ends(known.since, known.now)
    known.ran = sum(ends.values())
    known.data["ran"] = ends
    failed = ends.get("failed", 0) + ends.get("timed_out", 0)
    if failed:
        known.wrong.append(f"{failed} failed")
    told = ", ".join(f"{n} {_ENDED.get(state, state.replace('_', ' '))}" for state, n in ends.items())
    yield f"Ran since {spoken(known.since, known.timezone)}: {known.ran}" + (f" ({told})." if told else ".")


_ENDED = {"skipped": "with nothing to say"}


def _what_did_not_run(known: _Known) -> Iterator[str]:
    rows = [row for row in known.tx.read_not_run(known.since, known.now) if row[0] != "repeated"]
    known.not_run = sum(slots for *_, slots in rows)
    missed = sum(slots for verdict, reason, _, slots in rows if verdict == "missed" or reason == "missed_policy")
    known.data["not_run"] = [{"verdict": v, "reason": r or None, "count": slots} for v, r, _, slots in rows]
    known.data["missed"] = missed
    if missed:
        known.wrong.append(f"{missed} missed")
    yield f"Did not run: {known.not_run}" + ("." if not rows else ":")
    for verdict, reason, _, slots in rows:
        yield f"  {slots} {verdict}: {clause(reason_sentence(reason)) or 'for no reason that is known'}"


def _what_waits(known: _Known) -> Iterator[str]:
    tx = known.tx
    aside = tx.read_set_aside()
    stuck, given_up = tx.read_stuck(known.since, known.now)
    dead = tx.read_dead_count()
    known.data |= {"review": aside.get("review", 0), "dead_letters": dead, "deliveries_stuck": stuck,
                   "deliveries_failed": given_up}
    for n, what in ((aside.get("review", 0), "run(s) wait for your review"),
                    (stuck, "deliveries were tried in vain and are tried again"),
                    (given_up, "deliveries did not arrive")):
        if n:
            known.wrong.append(f"{n} {what}")
            yield f"{n} {what}."
    incidents = tx.read_incidents_open()
    cards, _ = tx.read_cards_pending()
    known.data |= {"incidents": incidents, "missed_cards": cards}
    if incidents:
        told = ", ".join(f"{n} {state}" for state, n in incidents.items())
        known.wrong.append(f"incidents: {told}")
        yield f"Incidents: {told}."
    if cards:
        known.wrong.append(f"{cards} missed slot(s) wait for your decision")
        yield f"{cards} missed slot(s) wait for your decision."
    if dead:
        yield f"{dead} dead letter(s): nightporter dead lists them."


def _the_audit(known: _Known) -> Iterator[str]:
    found = [some for some in tasks(known.tx, known.now, host=known.host) if some.count]
    report = audit(known.tx, now=known.now, sample=_AUDITED)
    contradictions = sum(check.violations for check in report.findings)
    known.data["audit"] = {"contradictions": contradictions, "tasks": {str(some.kind): some.count for some in found}}
    if contradictions:
        known.wrong.append(f"the audit found {contradictions} contradiction(s)")
        yield f"The audit found {contradictions} contradiction(s) in the record: nightporter audit names them."
    if found:
        said = ", ".join(f"{some.count} {str(some.kind).replace('_', ' ')}" for some in found)
        known.wrong.append(said)
        yield f"Work that does not get on: {said}. nightporter audit says what to do."
    if not contradictions and not found:
        yield "The audit found nothing."


def _what_comes(known: _Known) -> Iterator[str]:
    rows = [row for row in known.tx.read_coming(FIRES) if row[2] <= known.now + DAY]
    coming = [(name, trigger, at, _zone_of(schedule)) for name, trigger, at, schedule in rows]
    known.data["next"] = [
        {"automation": name, "trigger": trigger, "at": rfc3339(at), "local": local(at, zone), "timezone": zone}
        for name, trigger, at, zone in coming
    ]
    yield "Next: " + ("; ".join(f"{name} {spoken(at, zone)}" for name, _, at, zone in coming) or "nothing within a day")


def _zone_of(schedule: str | None) -> str:
    try:
        return schedule_from(schedule or "").timezone
    except Exception:  # one bad row: doctor names it
        return "UTC"


_PARTS: list[Part] = [_automations, _runs, _what_did_not_run, _what_waits, _the_audit, _what_comes]
"""In the order in which they are said. Another part of the account is another function here."""
