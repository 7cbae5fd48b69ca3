"""`next`: when an automation fires, or any schedule would. A schedule is asked about without a store."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from nightporter.clock import Instant, SystemClock, rfc3339
from nightporter.errors import BadInput, BadSchedule, NotFound, location
from nightporter.rules.schedule import next_due, parse
from nightporter.surfaces.cli.place import USUAL, Common
from nightporter.words.automation import ScheduleKind

if TYPE_CHECKING:
    from nightporter.ledger.lines import AutomationLine

_LONG_AGO = Instant(-62_000_000_000 * 1_000_000)
MOST = 1000


def next_(
    name: Annotated[str | None, Parameter(
        help='An automation, or a schedule in words: "weekdays at 07:30"; without one, all automations.'
    )] = None, *,
    schedule: Annotated[str | None, Parameter(
        help='Any schedule, as `when:` in a file: "0 9 * * mon-fri", "daily".'
    )] = None,
    every: Annotated[str | None, Parameter(help="An interval: 15m.")] = None,
    at: Annotated[str | None, Parameter(help="An instant: 2026-11-03T09:00.")] = None,
    rrule: Annotated[str | None, Parameter(
        help='A recurrence rule: "FREQ=MONTHLY;BYDAY=2TU"; --anchor is where it starts.')] = None,
    timezone: Annotated[str | None, Parameter(help="An IANA zone; by default this desk's.")] = None,
    anchor: Annotated[str | None, Parameter(help="The instant that intervals and rules are counted from.")] = None,
    after: Annotated[str | None, Parameter(help="Fires strictly after this instant; by default now.")] = None,
    count: Annotated[int | None, Parameter(
        name=["--count", "-n"], help="How many; 5 where no other bound is given.")] = None,
    everything: Annotated[bool, Parameter(name="--all", help="Of all automations, as without a name.")] = False,
    until: Annotated[str | None, Parameter(help="Up to then: 2h, 07:30, or 2026-11-03T09:00.")] = None,
    days: Annotated[int | None, Parameter(help="So many days ahead.")] = None,
    ical: Annotated[str | None, Parameter(
        help="Write an iCalendar file instead; - is standard output. 30 days where no other bound is given.")] = None,
    common: Common = USUAL,
) -> None:
    """When an automation fires next; without a name, what comes of all of them, in order, with what is left out or
    held, changes of the clock, and who is due in the same minute. With words, --schedule, --every, --at or --rrule:
    when that schedule would, without a store, and what may not be meant so; then --json answers `{"fires": [...],
    "sentence": ...}`, else `{"items": [...], "next_cursor": null, "clusters": [...]}`. One word is an automation where
    there is one of that name."""
    if count is not None and not 1 <= count <= MOST:
        raise BadInput(f"-n {count} cannot be shown", next=f"ask for 1 to {MOST}")
    if everything and name is not None:
        raise BadInput(f"--all is of all automations, and {name} is one", next="leave one of them out")
    kinds: tuple[tuple[ScheduleKind, str | None], ...] = (
        ("cron", schedule), ("every", every), ("at", at), ("rrule", rrule))
    given = [(kind, words) for kind, words in kinds if words is not None]
    of_a_schedule = timezone is not None or anchor is not None
    notes: tuple[str, ...] = ()
    if name is not None and not given and (of_a_schedule or _are_words(name)):
        if not _are_words(name):
            notes = (f"{name} is read as a schedule here; an automation of that name has a zone of its own",)
        given, name = [("cron", name)], None
    if len(given) > 1:
        raise BadInput("one schedule at a time", next="leave all but one of --schedule, --every, --at and --rrule out")
    if not given:
        if of_a_schedule:
            raise BadInput("--timezone and --anchor belong to a schedule",
                           next="add --schedule, --every, --at or --rrule, or leave them out")
        from nightporter.surfaces.cli.calendar import next_of_all

        since = None if after is None else _instant(after, common.settings().timezone)
        try:
            next_of_all(name, count=count, after=since, until=until, days=days, ical=ical, common=common)
            return
        except NotFound:
            if name is None or not _is_a_schedule(name, common.settings().timezone):
                raise
            given, name = [("cron", name)], None
    if everything or ical is not None or until is not None or days is not None:
        raise BadInput("--all, --until, --days and --ical are about automations", next="leave the schedule out")
    if name is not None:
        raise BadInput("an automation has its own schedule", next=f"leave {name} or the schedule out")
    zone = common.settings().timezone if timezone is None else timezone
    kind, words = given[0]
    _of_schedule(kind, words, zone, anchor, after, 5 if count is None else count, common, notes)


def _are_words(text: str) -> bool:
    """Whether a text can be no automation's name or id."""
    return bool(re.search(r"[\s*@:,/]", text))


def _is_a_schedule(word: str, zone: str) -> bool:
    from nightporter.rules.plain import read_words

    try:
        read_words(word, zone, now=SystemClock().now())
    except BadSchedule:
        return False
    return True


def _of_schedule(
    kind: ScheduleKind, words: str, zone: str, anchor: str | None, after: str | None, count: int,
    common: Common, notes: tuple[str, ...],
) -> None:
    from nightporter.ledger.moments import spoken
    from nightporter.rules.plain import Understood, read_words
    from nightporter.rules.traps import traps
    from nightporter.surfaces.cli.echo import echo_of, head

    counted_from = None if anchor is None else _instant(anchor, zone)
    now = SystemClock().now()
    since = now if after is None else _instant(after, zone)
    if kind == "cron":
        found = read_words(words, zone, now=since)
        if counted_from is not None:
            schedule = parse(found.schedule.kind, found.schedule.expression, found.schedule.timezone,
                             anchor=counted_from, bounds=found.schedule.bounds)
            found = replace(found, schedule=schedule)
    else:
        found = Understood(parse(kind, words, zone, anchor=counted_from))
    schedule, notes = found.schedule, (*notes, *found.notes)
    echo = echo_of(schedule, since, count)
    warned = traps(schedule, since, desk_zone=common.settings().timezone)
    out = common.out()
    if out.as_json:
        out.json({
            **echo.as_json(), "notes": list(notes), "warnings": [trap.text for trap in warned],
        })
        return
    head(out, schedule)
    for fire in echo.fires:
        out.line(f"  {spoken(fire, schedule.timezone)}  {rfc3339(fire)}")
    if len(echo.fires) < count:
        out.line("  and never again" if echo.fires else "  never")
    for note in notes:
        out.note(f"note: {note}")
    for trap in warned:
        out.note(f"mind: {trap.text}")


def _instant(text: str, zone: str) -> Instant:
    found = next_due(parse("at", text, zone), _LONG_AGO)
    if found is None:
        raise BadSchedule(f"{text!r} is out of reach", next="write an instant like 2026-11-03T09:00Z")
    return found


def why_nothing(line: AutomationLine) -> str:
    """Why an automation has no next fire."""
    if line.error is not None:
        error = line.error
        where = location(error["path"], error["line"], error["column"])
        return f"Nothing is armed: its definition has an error. {where}: {error['what']}"
    if line.state != "active":
        return f"Nothing is armed: {line.name} is {line.state.replace('_', ' ')}. {line.state_reason}".rstrip()
    clocks = [trigger for trigger in line.triggers if trigger.schedule is not None]
    if not clocks:
        return "Nothing is armed: it has no schedule, and runs when a person asks or a program calls it."
    if not any(trigger.enabled for trigger in clocks):
        return "Nothing is armed: its schedule is switched off (`enabled: false`)."
    return "Nothing is armed: its schedule has no fire after that."
