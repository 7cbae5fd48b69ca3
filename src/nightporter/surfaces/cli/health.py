"""How the desk is: status, doctor, audit."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, assert_never

from cyclopts import Parameter

from nightporter.clock import SECOND, Instant
from nightporter.definitions import scan
from nightporter.engine.places import definitions_of
from nightporter.errors import BadInput, location
from nightporter.ledger import Finding, Home
from nightporter.ledger import status as status_of
from nightporter.ledger.doctor import Checkup
from nightporter.ledger.doctor import doctor as look_at
from nightporter.ledger.machine import settings_findings, zone_findings
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.status import CLOCK_BEHIND, DeskWord, Status, troubles
from nightporter.surfaces.cli.place import USUAL, Common, Place, opened, person

UNHEALTHY = 1


def status(*, common: Common = USUAL) -> int:
    """Who is alive and leads, when what is due was last looked at, what waits, what runs, what wants a person. Exit
    code 0 while a desk looks at what is due and can write; 1 while none does: gone, stopped, draining or frozen."""
    with opened(common) as place:
        found = place.read(lambda tx: status_of(tx, place.clock.now(), host=socket.gethostname()))
    if place.out.as_json:
        place.out.json(found.as_json())
    else:
        _show(place, found)
    return 0 if found.healthy else UNHEALTHY


def _show(place: Place, s: Status) -> None:
    zone = place.config.timezone
    if place.store.read_only is not None:
        place.out.line(f"{place.store.read_only.what[:1].upper()}{place.store.read_only.what[1:]}: this is read only.")
    place.out.line(_in_a_sentence(s))
    if s.clock_behind:
        place.out.line(CLOCK_BEHIND.format(lasting(round(s.clock_behind * SECOND))))
    waiting = ", ".join(f"{w.runs} for {_FOR.get(w.on, w.on)} (oldest {w.oldest:.0f} s)" for w in s.waiting)
    next_fire = "" if s.next_fire_at is None else f", next {spoken(s.next_fire_at, zone)}"
    seen = "" if s.due_evaluated_ago is None else f"{_span(s.due_evaluated_ago)} ago"
    behind = f", {_span(s.due_behind)} behind" if s.due_behind > BEHIND else ""
    place.out.facts([
        ("processes", "\n".join(f"{w.role} {w.pid} on {w.host}{', leads' * (w.id == s.leader)}"
                                f"{', draining' * (w.draining_at is not None)}{_LIVES[w.alive]}"
                                for w in s.workers)),
        ("due looked at", (seen or "never") + behind),
        ("automations", ", ".join(f"{n} {state}" for state, n in s.automations.items()) or "none"),
        ("triggers armed", f"{s.armed}{next_fire}"),
        ("queued", f"{s.queued}" + (f": {waiting}" if waiting else "")),
        ("running", f"{s.running}" + (f" (longest {s.longest_running:.0f} s)" if s.longest_running else "")),
        ("set aside", ", ".join(
            f"{n} {word}" for n, word in ((s.held, "held"), (s.lost, "lost"), (s.review, "in review")) if n
        )),
        ("deliveries", f"{s.deliveries_pending} waiting, {s.deliveries_sending} under way, "
                       f"{s.deliveries_failed} failed"),
        ("incidents", ", ".join(f"{n} {state}" for state, n in s.incidents.items())),
        ("missed", f"{s.missed_cards} wait for your decision" if s.missed_cards else ""),
        ("clock", "\n".join(f"{_GAPS.get(gap.kind, gap.kind)} from {spoken(gap.since, zone)} to "
                            f"{spoken(gap.until, zone)}" for gap in s.gaps)),
        ("coming", "\n".join(f"{spoken(each.at, zone)}  {each.automation}" for each in s.coming)),
        ("dead letters", f"{s.dead_letters}"), ("inbox", f"{s.inbox_unread} unread"),
        ("store", f"{s.store}, schema {s.schema_version}"),
    ])


BEHIND = 5.0
"""Seconds that a slot may wait for its answer without being mentioned."""
_GAPS = {"down": "no desk was there", "sleep": "the machine slept", "step_forward": "the clock was set forward",
         "step_back": "the clock was set back", "restored": "the store is one of an earlier time"}


def _span(seconds: float) -> str:
    return lasting(round(seconds * 1e6))


def _in_a_sentence(s: Status) -> str:
    match s.desk:
        case DeskWord.STOPPED:
            stopped = s.stopped
            by, why = (stopped.by, stopped.reason) if stopped is not None else ("", "")
            return f"Stopped by {by or 'somebody'}. {why}".rstrip()
        case DeskWord.CANNOT_WRITE:
            ill = troubles(s.workers)[0]
            return f"A {ill.role} is running and cannot write: {ill.trouble}. Nothing starts until it can."
        case DeskWord.RUNNING:
            return "A desk is running." if not s.standby else f"A desk is running, {s.standby} standing by."
        case DeskWord.DRAINING:
            return f"The desk is stopping: it takes nothing more, and {s.running} run(s) may end first."
        case DeskWord.FROZEN:
            since = "ever" if s.due_evaluated_ago is None else f"for {_span(s.due_evaluated_ago)}"
            return f"A desk is alive and has not looked at what is due {since}: see its log, and start it again."
        case DeskWord.GONE:
            return "No desk is running: nightporter up starts one."
        case _:
            assert_never(s.desk)


_FOR = {"claim": "a worker", "time": "their time", "overlap": "the run before them", "concurrency": "a free place",
        "paused": "their automation"}
_LIVES = {True: "", False: " (died)", None: " (by its own word)"}


def doctor(*, common: Common = USUAL) -> int:
    """What is wrong here, why, and what to do, as a command where one mends it. Changes nothing. Exit code 1 when there
    is an error or a warning; notes are for knowing. What secrets are set is seen in the environment of the desk that
    runs here, else in that of this command."""
    config = common.settings()
    folders = [config.outputs, definitions_of(config)]
    home = Home(config.state, folders, None if "://" in config.store else Path(config.store))
    with opened(common) as place:
        now = place.clock.now()
        found = place.read(lambda tx: look_at(tx, now, home=home, host=socket.gethostname()))
        found = Checkup((*_unwritable(place, found), *found.findings, *_files(place, now, found), *zone_findings(),
                         *_twins(place, now), *settings_findings(config)),
                        (*found.checked, "files", "zones", "old schedulers", "settings"))
    if place.out.as_json:
        place.out.json(found.as_json())
        return 0 if found.healthy else UNHEALTHY
    if found.healthy:
        place.out.line(f"Nothing to do. Looked at: {', '.join(found.checked)}.")
    for finding in found.findings:
        place.out.line(f"{finding.severity:<8} {finding.what}")
        for name, text in (("why", finding.why), ("next", finding.next)):
            if text:
                place.out.line(f"         {name}: {text}")
    return 0 if found.healthy else UNHEALTHY


def _unwritable(place: Place, found: Checkup) -> list[Finding]:
    """That this command could open the store only to read it, where nothing else has said so."""
    why = place.store.read_only
    if why is None or any(finding.code in ("read_only", "disk_full") for finding in found.findings):
        return []
    return [Finding("read_only", "error", why.what, why.why, why.next, place.config.store)]


def _twins(place: Place, now: Instant) -> list[Finding]:
    """Jobs that were brought over and act, and that their old scheduler still runs."""
    from nightporter.exchange import scan as scan_machine
    from nightporter.exchange import twins

    return twins.twins(place.read(twins.acting), lambda: scan_machine(
        twins.MACHINE, me=person(), otherwise=place.config.timezone, now=now))


def _files(place: Place, now: Instant, found: Checkup) -> list[Finding]:
    """Definition files with errors that no desk has read yet."""
    config, owners = place.config, place.read(lambda tx: tx.owners_of_names())
    known = {finding.subject for finding in found.findings if finding.code in ("config_error", "refused_file")}
    try:
        files = scan(definitions_of(config), default_timezone=config.timezone, now=now, owners=owners)
    except BadInput as error:
        return [Finding("definitions_unreadable", "error", error.what, error.why, error.next)]
    return [
        Finding("config_error", "error",
                f"{location(str(file.path), file.error.line, file.error.column)}: {file.error.what}",
                file.error.why, file.error.next, str(file.path))
        for file in files if file.error is not None and not {file.name, str(file.path)} & known
    ]


def audit(
    *, sample: Annotated[int | None, Parameter(help="Look at so many triggers' slots at most.")] = None,
    common: Common = USUAL,
) -> int:
    """Check the record against what it promises: every slot has one answer, nothing is lost or doubled. Then the work:
    what is stale, lost, not delivered or left behind, by kind, with what to do. Changes nothing, and may run beside a
    desk. Exit code 1 when something contradicts, or some work is not as it should be."""
    from nightporter.ledger.audit import audit as check
    from nightporter.ledger.calendar import meetings
    from nightporter.ledger.tasks import tasks

    if sample is not None and sample < 1:
        raise BadInput(f"--sample {sample} looks at nothing", next="write a number, or leave it out")
    host = socket.gethostname()
    with opened(common) as place:
        now = place.clock.now()
        report, work, met = place.read(lambda tx: (
            check(tx, now=now, sample=sample), tasks(tx, now, host=host), meetings(tx, now)))
    well = report.clean and not any(some.count for some in work)
    if place.out.as_json:
        place.out.json({**report.as_json(), "well": well, "tasks": [some.as_json() for some in work],
                        "clusters": [cluster.as_json() for cluster in met]})
        return 0 if well else UNHEALTHY
    for finding in report.findings:
        place.out.line(f"{finding.id}  {finding.title}: {finding.violations} violation(s)")
        for example in finding.examples:
            place.out.line(f"      {example}")
    for some in work:
        if some.count:
            place.out.line(f"{some.kind}: {some.count}")
        for item in some.items:
            place.out.line(f"      {item.what}")
            place.out.line(f"      next: {item.next}")
        if some.count > len(some.items):
            place.out.line(f"      and {some.count - len(some.items)} more")
    for cluster in met:
        place.out.line(f"mind: {cluster}")
    counted = ", ".join(f"{n} {what}" for what, n in report.counts.items())
    place.out.line(f"{'Clean' if report.clean else 'Not clean'}: {len(report.checks)} checks"
                   + (f", {counted}" if counted else ""))
    if any(some.count for some in work):
        place.out.line(f"Work: {', '.join(f'{some.count} {some.kind}' for some in work if some.count)}")
    return 0 if well else UNHEALTHY
