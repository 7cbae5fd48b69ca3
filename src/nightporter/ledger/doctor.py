"""What is wrong with this desk, why, and what to do: the ledger's part and the machine's. Reads only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from nightporter.clock import MINUTE, Instant
from nightporter.errors import location
from nightporter.ledger.calendar import meetings
from nightporter.ledger.home import Finding, Home, home_findings
from nightporter.ledger.lines import AutomationLine
from nightporter.ledger.machine import copy_findings
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.needs import environment_of, needs
from nightporter.ledger.plans import plan_findings
from nightporter.ledger.reads import automations, refused_files
from nightporter.ledger.status import (
    DeskWord,
    WorkerLine,
    clock_behind,
    desk_looks,
    desk_word,
    evaluated_at,
    stop_of,
    troubles,
    worker_lines,
)
from nightporter.ledger.strange import strange_rows
from nightporter.ledger.tasks import OF_ALERTS, Kind, tasks
from nightporter.store import Tx
from nightporter.words import Definition
from nightporter.words.kept import read_back

NAMED = 20
"""Rows of one kind that are named one by one."""
QUEUED_LONG = 10 * MINUTE
OVERDUE = MINUTE
_DEFINITIONS = 10_000


@dataclass(frozen=True, slots=True)
class Checkup:
    """What a look at everything found."""

    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    """What was looked at."""

    @property
    def healthy(self) -> bool:
        """Nothing that a person has to do something about."""
        return not any(f.severity in ("error", "warning") for f in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "healthy": self.healthy, "items": [f.as_json() for f in self.findings], "checked": list(self.checked),
            "next_cursor": None,
        }


Check = Callable[[Tx, tuple[WorkerLine, ...], Instant], Iterator[Finding]]


def doctor(tx: Tx, now: Instant, *, home: Home | None = None, host: str = "", mounts: str | None = None) -> Checkup:
    """Look at everything. `home` and `host` are this machine's; without a home its folders are not looked at."""
    workers = worker_lines(tx, host)
    found = [finding for check in CHECKS.values() for finding in check(tx, workers, now)]
    checked = list(CHECKS)
    if home is not None:
        found += home_findings(home, mounts=mounts)
        if home.store is not None:
            found += copy_findings(home.store, now)
        checked.append("folders")
    order = {"error": 0, "warning": 1, "note": 2}
    return Checkup(tuple(sorted(found, key=lambda f: order[f.severity])), tuple(checked))


def _store(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    said = tx.check_store()
    if said != "ok":
        yield Finding("store_damaged", "error", "the store is damaged", said,
                      "keep the file, and restore the latest backup beside it")


def _clock(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    if behind := clock_behind(tx, now):
        yield Finding("clock_behind", "error", f"the clock of this machine is {lasting(behind)} behind",
                      f"the desk has already seen {spoken(Instant(now + behind), 'UTC')}",
                      "set the clock; slots fire when it is right")


def _desk(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    for worker in workers:
        if worker.alive is False:
            yield Finding("dead_worker", "note", f"the {worker.role} of process {worker.pid} died without leaving", "",
                          "the next desk to start, or the sweep, takes back what it held", worker.id)
    for worker in troubles(workers):
        yield Finding("cannot_write", "error",
                      f"the {worker.role} of process {worker.pid} cannot write: {worker.trouble}",
                      "nothing starts, and what ends is kept in its memory",
                      "make room, or see to the store; the desk goes on by itself", worker.id)
    stop = stop_of(tx)
    if stop is not None:
        when = f" at {spoken(stop.at, 'UTC')}" if stop.at is not None else ""
        yield Finding("stopped", "warning", f"the whole desk was stopped by {stop.by or 'somebody'}{when}", stop.reason,
                      "nightporter stop --lift")
    armed, _ = tx.read_armed()
    looks = desk_looks(tx, workers, now)
    word = desk_word(tx, workers, now)
    frozen = word is DeskWord.FROZEN and any(w.role == "desk" and w.alive for w in workers)
    if frozen:
        seen = evaluated_at(tx)
        yield Finding("frozen", "error", "a desk is alive and does not look at what is due",
                      f"it was last looked at {lasting(now - seen)} ago" if seen is not None
                      else "nobody has looked at it yet",
                      "see its log, end it and start it again: nightporter up")
    elif word is DeskWord.DRAINING:
        yield Finding("draining", "note", "the desk is stopping: it takes nothing more, and lets its runs end", "",
                      "nightporter up, once it is gone")
    elif word is DeskWord.RUNNING and tx.leader() is None and looks and _settled(workers, now):
        yield Finding("standby_only", "error", "desks are running, and none of them leads",
                      "what is due is answered by the one that leads",
                      "nightporter status; then start one of them again")
    if armed and not looks and not frozen:
        seen = evaluated_at(tx)
        yield Finding(
            "no_desk", "warning", f"no desk is running, and {armed} trigger(s) are waiting for their time",
            f"what is due was last looked at {lasting(now - seen)} ago" if seen is not None
            else "nobody has looked at what is due yet",
            "nightporter up",
        )
    overdue, earliest = tx.read_overdue(Instant(now - OVERDUE))
    if overdue and earliest is not None:
        yield Finding(
            "slot_in_the_past", "error" if looks else "warning",
            f"{overdue} slot(s) have come and are not answered, the earliest {lasting(now - earliest)} ago",
            "the desk that runs does not answer what is due" if looks else "no desk is running to answer them",
            "restart the desk, and see its log" if looks else "nightporter up",
        )


def _settled(workers: tuple[WorkerLine, ...], now: Instant) -> bool:
    """Whether some desk has been there long enough to have taken the lead."""
    return any(w.role == "desk" and w.alive and now - w.started_at > MINUTE for w in workers)


def _definitions(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    for _, name, path, text, _ in tx.read_broken(NAMED):
        error = _json(text)
        place = location(error.get("path") or path, error.get("line", 0), error.get("column", 0))
        yield Finding(
            "config_error", "error", f"the definition of {name} has an error at {place}: {error.get('what')}",
            str(error.get("why") or ""), str(error.get("next") or "mend the file; it is read again by itself"), name,
        )
    for file in refused_files(tx)[:NAMED]:
        yield Finding("refused_file", "error", f"{file.where}: {file.what}", file.why,
                      file.next or "mend the file; it is read again by itself", file.path)
    for subject, key, error_text, _ in tx.read_quarantine(NAMED):
        yield Finding("quarantined", "error", f"{subject} {key} cannot be read and was taken out of the loop",
                      error_text, "mend its definition: saving it again puts it back", key)
    # What the desk was started with counts, and not what this command was; where it cannot be seen, ours must do.
    there = next((w.pid for w in workers if w.role == "desk" and w.alive), None)
    environment = (None if there is None else environment_of(there)) or os.environ
    ceilings: dict[str, int | None] = {}
    for name, text in tx.read_definitions(_DEFINITIONS):
        try:
            definition = Definition.from_json(text)
        except ValueError as problem:
            yield Finding("unreadable_definition", "error", f"the stored definition of {name} cannot be read",
                          str(problem), "define it again", name)
            continue
        ceilings[name] = definition.limits.per_hour
        yield from needs(definition, environment)
    for cluster in meetings(tx, now)[:NAMED]:
        yield Finding("cluster", "note", str(cluster), f"in the week to come, first at {spoken(cluster.first, 'UTC')}",
                      "nightporter next --all --days 1", ", ".join(cluster.names[:5]))
    for line in _lines(tx):
        yield from plan_findings(line, ceilings.get(line.name), now)


def _lines(tx: Tx) -> Iterator[AutomationLine]:
    cursor: str | None = ""
    while cursor is not None:
        page = automations(tx, cursor=cursor, limit=500)
        yield from page.items
        cursor = page.next_cursor


def _runs(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    for run, name, blocked, queued_at in tx.read_queued_long(Instant(now - QUEUED_LONG), NAMED):
        wait = {"overlap": "the run before it is still going", "concurrency": "its ceiling of running runs is reached"}
        yield Finding("stale_queued", "warning", f"{run} of {name} has been queued for {lasting(now - queued_at)}",
                      wait.get(blocked, "no worker has taken it"), f"nightporter explain {run}", run)
    for some in tasks(tx, now, whole=False):
        for task in some.items if some.kind is Kind.STALE_RUNNING else ():
            yield Finding("stale_running", "warning", task.what, "", task.next, task.subject)
    for run, name, _ in tx.read_reviews(NAMED):
        yield Finding("review", "warning", f"{run} of {name} may have acted, and waits for your decision",
                      "its worker went away while it ran", f"nightporter review {run} retry, or dismiss", run)
    unseen, since = tx.read_unread_dead()
    if unseen and since is not None:
        yield Finding("dead_letters", "warning", f"{unseen} dead letter(s) that nobody has seen",
                      f"the oldest is {lasting(now - since)} old", "nightporter inbox, then nightporter dead")


def _rows(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    yield from strange_rows(tx, now, NAMED)


def _deliveries(tx: Tx, workers: tuple[WorkerLine, ...], now: Instant) -> Iterator[Finding]:
    for _, of, name, destination, state, error, _, alert in tx.read_failed_deliveries(NAMED):
        said = "was not delivered" if state == "given_up" else "may not have been delivered"
        if alert:
            yield Finding("delivery_failed", "warning", f"the alert about {of} ({name}) {said} to {destination}", error,
                          f"nightporter incidents show {of}; {OF_ALERTS}", of)
        else:
            yield Finding("delivery_failed", "warning", f"the result of {of} ({name}) {said} to {destination}", error,
                          f"nightporter deliver {of} sends it again; the work is not repeated", of)


def _json(text: str) -> dict[str, Any]:
    try:
        read = read_back(text)
    except ValueError:  # not ours: it is shown as it stands
        read = None
    return read if isinstance(read, dict) else {"what": text}


CHECKS: dict[str, Check] = {
    "store": _store, "clock": _clock, "desk": _desk, "definitions": _definitions, "runs": _runs,
    "deliveries": _deliveries, "rows": _rows,
}
"""What is looked at in the ledger, by name, in the order of the report."""
