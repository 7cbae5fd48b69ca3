"""What comes: a table of fires with what is on their way, and the same as an iCalendar file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from nightporter.clock import DAY, MINUTE, Instant
from nightporter.errors import BadInput
from nightporter.ledger import automation_detail, resolve
from nightporter.ledger.calendar import ComingFire, calendar, meetings
from nightporter.ledger.lines import AutomationLine
from nightporter.ledger.moments import asked_span, spoken
from nightporter.outside.files import write_durably
from nightporter.rules.clusters import Cluster
from nightporter.surfaces.cli.place import Common, Place, opened

USUAL_COUNT = 5
MOST = 1000
MOST_EVENTS = 10_000
EXPORTED = 30
"""Days that an exported calendar reaches where nothing else is said."""
_LOOKED_AT = 5000
"""Slots among which meetings are looked for here; an audit and the doctor look at more."""
_MARKS = {"gap": "the clock jumps to it", "fold": "the clock shows it twice", "change": "the clock changes that day"}


def next_of_all(
    name: str | None, *, count: int | None, after: Instant | None, until: str | None, days: int | None,
    ical: str | None, common: Common,
) -> None:
    """`next` of one automation, or of all."""
    if until is not None and days is not None:
        raise BadInput("--until and --days say the same", next="leave one of them out")
    with opened(common) as place:
        now = place.clock.now()
        since = now if after is None else after
        end = _end(until, days, since, now, place, EXPORTED if ical is not None else None)
        most = count if count is not None else MOST_EVENTS if ical is not None else MOST if end else USUAL_COUNT
        line: AutomationLine | None = None
        if name is not None:
            line = place.read(lambda tx: automation_detail(tx, resolve(tx, name), now=now, fires=1)).line
        asleep = line is not None and line.state != "active"
        only = "" if line is None else line.id
        fires = () if asleep else place.read(
            lambda tx: calendar(tx, now, automation_id=only, after=after, until=end, count=most))
        met = [] if line is not None or ical is not None else place.read(
            lambda tx: meetings(tx, since, budget=_LOOKED_AT))
    if ical is not None:
        _export(place, fires, ical, now)
    elif place.out.as_json:
        place.out.json({"items": [fire.as_json() for fire in fires], "next_cursor": None,
                        "clusters": [cluster.as_json() for cluster in met]})
    else:
        _show(place, fires, met, line)


def _end(
    until: str | None, days: int | None, since: Instant, now: Instant, place: Place, usual: int | None
) -> Instant | None:
    if until is not None:
        return asked_span(until, place.config.timezone, now, ahead=True)
    if days is not None and days < 1:
        raise BadInput(f"--days {days} shows nothing", next="ask for 1 or more")
    reach = days if days is not None else usual
    return None if reach is None else Instant(since + reach * DAY)


def _show(place: Place, fires: Sequence[ComingFire], met: Sequence[Cluster], line: AutomationLine | None) -> None:
    from nightporter.surfaces.cli.preview import why_nothing

    place.out.table(
        ("when", "automation", "trigger", "note"),
        [(spoken(fire.at, fire.timezone), fire.automation, fire.trigger, _note(fire)) for fire in fires],
        empty="Nothing is armed." if line is None else why_nothing(line),
    )
    for cluster in met:
        place.out.note(f"mind: {cluster}")


def _note(fire: ComingFire) -> str:
    """What is not plain about a fire."""
    said = [f"left out: {fire.excluded}"] if fire.excluded is not None else []
    said += [f"held: {gate.text}" for gate in fire.gates if gate.holds]
    said += [gate.text for gate in fire.gates if not gate.holds and gate.gate in ("max_runs", "threshold")]
    if fire.mark:
        said.append(_MARKS[fire.mark])
    if fire.meets:
        others = len(fire.meets) - 2
        said.append(f"with {', '.join(fire.meets[:2])}" + (f" and {others} more" if others > 0 else ""))
    return "; ".join(said)


def _export(place: Place, fires: Sequence[ComingFire], ical: str, now: Instant) -> None:
    text = as_ical(fires, now)
    if ical == "-":
        sys.stdout.write(text.decode())
        return
    path = Path(ical).expanduser()
    write_durably(path, text)
    if place.out.as_json:
        place.out.json({"file": str(path), "events": len(fires)})
    else:
        place.out.line(f"{len(fires)} fire(s) in {path}")


def as_ical(fires: Sequence[ComingFire], now: Instant) -> bytes:
    """An iCalendar object with an event for each fire, in UTC. The id of an event is that of its slot, so that a
    calendar that reads the file again finds its own events."""
    from icalendar import Calendar, Event  # heavy, and asked for seldom

    from nightporter.clock import moment, rfc3339

    made = Calendar()
    for name, value in (("prodid", "-//nightporter//calendar//EN"), ("version", "2.0"), ("calscale", "GREGORIAN"),
                        ("x-wr-calname", "Nightporter")):
        made.add(name, value)
    for fire in fires:
        event = Event()
        event.add("uid", f"{fire.trigger_id}/{rfc3339(fire.at)}@nightporter".replace("/", "."))
        event.add("dtstamp", moment(Instant(now - now % 1_000_000)))
        event.add("dtstart", moment(Instant(fire.at - fire.at % 1_000_000)))
        event.add("dtend", moment(Instant(fire.at - fire.at % 1_000_000 + MINUTE)))
        event.add("summary", fire.automation)
        event.add("transp", "TRANSPARENT")
        event.add("status", "CANCELLED" if fire.excluded is not None else "CONFIRMED" if fire.runs else "TENTATIVE")
        note = _note(fire)
        event.add("description", f"{fire.trigger}, {spoken(fire.at, fire.timezone)}" + (f". {note}" if note else ""))
        made.add_component(event)
    return bytes(made.to_ical())
