"""Tasks: what of the desk's work is not as it should be, by kind, each with what a person can do about it.

An audit asks whether the record contradicts itself; this asks whether the work gets on. What a pause, a ceiling or a
person's decision holds back is no finding; nor is what waits while no desk runs, which `doctor` says by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from nightporter.clock import MINUTE, Instant, micros, rfc3339
from nightporter.ledger.audit.arming import CHECKS as ARMING
from nightporter.ledger.audit.check import Check, Terms
from nightporter.ledger.audit.course import CHECKS as COURSE
from nightporter.ledger.audit.slots import CHECKS as SLOTS
from nightporter.ledger.moments import lasting
from nightporter.ledger.pages import plain
from nightporter.ledger.status import worker_lines
from nightporter.outside.groups import living
from nightporter.store import Tx
from nightporter.words import Definition

NAMED = 20
"""Of one kind, items that are named one by one."""
QUEUED_LONG = 10 * MINUTE
RUNNING_LONG = 30 * MINUTE
"""For a run without a timeout; one that has a timeout may use it."""
SLACK = MINUTE
"""How long a sweep may take to see to it."""
_PAGE = 500


class Kind(StrEnum):
    """What is wrong with a task."""

    STALE_QUEUED = "stale_queued"
    """It could have been claimed for more than ten minutes."""
    STALE_RUNNING = "stale_running"
    """It runs beyond its timeout; or, without one, for more than half an hour."""
    LOST = "lost"
    """Its worker is gone, and nobody has decided what becomes of it."""
    DELIVERY_FAILED = "delivery_failed"
    """Its result did not arrive, or may not have."""
    MISSING_CLEANUP = "missing_cleanup"
    """Something was left behind that should be gone."""
    INCONSISTENT_TIMESTAMPS = "inconsistent_timestamps"
    """Its instants contradict one another."""
    SLOT_IN_THE_PAST = "slot_in_the_past"
    """A slot has come, a desk is there, and it has no answer."""
    DUPLICATE_SLOT = "duplicate_slot"
    """A slot has two lines, or two runs."""


NEXT = {
    Kind.STALE_QUEUED: "nightporter explain {subject}; nightporter status says who is there to take it",
    Kind.STALE_RUNNING: "nightporter logs {subject}; nightporter cancel {subject} ends it",
    Kind.LOST: "nightporter review {subject} retry runs it again, nightporter review {subject} dismiss closes it",
    Kind.DELIVERY_FAILED: "nightporter deliver {subject} sends it again; the work is not repeated",
    Kind.MISSING_CLEANUP: "nightporter up takes it away; if a desk runs, see its log",
    Kind.INCONSISTENT_TIMESTAMPS: "nightporter doctor looks at the clock; docs/audit.md says what each check means",
    Kind.SLOT_IN_THE_PAST: "restart the desk, and see its log",
    Kind.DUPLICATE_SLOT: "keep the store and report it: this must not happen",
}
"""What to do, by kind."""
OF_ALERTS = "nightporter inbox has a copy of what it says"
"""What to do about an alert that did not arrive: none is sent again."""


@dataclass(frozen=True, slots=True)
class Task:
    """One thing that is not as it should be."""

    kind: Kind
    subject: str
    """The run, trigger, worker or line that it is about."""
    automation: str
    since: Instant | None
    what: str
    next: str

    def as_json(self) -> dict[str, Any]:
        return {**plain(self), "since": rfc3339(self.since)}


@dataclass(frozen=True, slots=True)
class Tasks:
    """Those of one kind: how many there are, and the first of them."""

    kind: Kind
    count: int
    items: tuple[Task, ...]

    def as_json(self) -> dict[str, Any]:
        return {"kind": str(self.kind), "count": self.count, "items": [item.as_json() for item in self.items]}


def tasks(tx: Tx, now: Instant, *, host: str = "", whole: bool = True, room: int = NAMED) -> tuple[Tasks, ...]:
    """All kinds in their order, those without a finding too. Reads only.

    `host` is this machine's name, by which dead workers and living children are told. `whole`: also what takes long
    to find, and does not change by itself.
    """
    looks = {**_LOOKS, **(_LONG_LOOKS if whole else {})}
    present = _Present.at(tx, host, now)
    return tuple(looks[kind](tx, present, room) for kind in Kind if kind in looks)


@dataclass(frozen=True, slots=True)
class _Present:
    """Who is there."""

    now: Instant
    host: str
    since: Instant | None
    """Since when somebody has been there to claim; None when nobody is, or the desk is stopped."""
    desk_since: Instant | None
    """Since when a desk has been there to answer slots."""
    dead: tuple[str, ...]
    """Workers whose lock is free, and that nobody has buried yet."""

    @staticmethod
    def at(tx: Tx, host: str, now: Instant) -> _Present:
        lines = worker_lines(tx, host)
        there = [w for w in lines if w.alive is not False and w.role in ("desk", "worker")]
        desks = [w.started_at for w in there if w.role == "desk"]
        return _Present(
            now, host, None if tx.stopped() or not there else min(w.started_at for w in there),
            min(desks) if desks else None, tuple(w.id for w in lines if w.alive is False),
        )

    def ago(self, span: int) -> Instant:
        return Instant(self.now - span)


def _task(kind: Kind, subject: str, automation: str | None, since: Instant | None, what: str) -> Task:
    return Task(kind, subject, automation or "", since, what, NEXT[kind].format(subject=subject))


def _queued(tx: Tx, present: _Present, room: int) -> Tasks:
    kind = Kind.STALE_QUEUED
    if present.since is None or present.since > present.ago(QUEUED_LONG):
        return Tasks(kind, 0, ())
    count, rows = tx.tasks_found("task_queued", before=present.ago(QUEUED_LONG), room=room)
    return Tasks(kind, count, tuple(
        _task(kind, run, name, since, f"{run} of {name} could have been claimed for {lasting(present.now - since)}, "
                                      f"and no worker has taken it (it needs a {runner} runner)")
        for run, name, since, runner in rows
    ))


def _running(tx: Tx, present: _Present, room: int) -> Tasks:
    kind, after, found = Kind.STALE_RUNNING, "", list[Task]()
    while rows := tx.running_long(started_before=present.ago(SLACK), after=after, room=_PAGE):
        texts = tx.audited_definitions({(automation, version) for _, automation, version, _ in rows})
        for run, automation, version, began in rows:
            name, timeout = _name_and_timeout(texts.get((automation, version)), automation)
            lasted = present.now - began
            if lasted > (RUNNING_LONG if timeout is None else timeout + SLACK):
                beyond = "and has no timeout" if timeout is None else f"beyond its timeout of {lasting(timeout)}"
                found.append(_task(kind, run, name, began, f"{run} of {name} has been running for {lasting(lasted)}, "
                                                           f"{beyond}"))
        after = rows[-1][0]
    found.sort(key=lambda task: task.since or 0)
    return Tasks(kind, len(found), tuple(found[:room]))


def _name_and_timeout(text: str | None, automation: str) -> tuple[str, int | None]:
    try:
        definition = Definition.from_json(text or "")
    except ValueError:  # unreadable: its own finding says so
        return automation, None
    limit = definition.limits.timeout
    return definition.name, None if limit is None else micros(limit)


def _lost(tx: Tx, present: _Present, room: int) -> Tasks:
    kind = Kind.LOST
    count, rows = tx.tasks_found("task_lost", before=present.ago(SLACK), room=room)
    said = {
        "review": "may have acted, and waits for a person to decide", "lost": "is lost, and nothing became of it yet",
    }
    found = [
        _task(kind, run, name, since, f"{run} of {name} {said.get(state, 'runs under a worker that has ended')}")
        for run, name, since, state in rows
    ]
    for worker in present.dead:
        for held in tx.held_by(worker, room):
            count += 1
            found.append(_task(kind, held.run_id, held.automation_id, None,
                               f"{held.run_id} was running when its worker died, and no desk has taken it back yet"))
    return Tasks(kind, count, tuple(found[:room]))


def _deliveries(tx: Tx, present: _Present, room: int) -> Tasks:
    kind = Kind.DELIVERY_FAILED
    count, rows = tx.tasks_found("task_delivery_failed", before=present.now, room=room)
    found = []
    for run, name, ended, destination, state, error, alert in rows:
        what = f"the alert about {run}" if alert else f"the result of {run}"
        word = "was not" if state == "given_up" else "may not have been"
        task = _task(kind, run, name, ended, f"{what} ({name}) {word} delivered to {destination}"
                                             + (f": {error}" if error else ""))
        found.append(replace(task, next=OF_ALERTS) if alert else task)
    return Tasks(kind, count, tuple(found))


def _cleanup(tx: Tx, present: _Present, room: int) -> Tasks:
    kind = Kind.MISSING_CLEANUP
    if present.since is None:  # the next boot sees to it
        return Tasks(kind, 0, ())
    count, rows = tx.tasks_found("task_cleanup", before=present.ago(2 * SLACK), room=room)
    return Tasks(kind, count, tuple(
        _task(kind, worker, "", ended,
              f"{worker} {'left' if how == 'stopped' else 'died'} {lasting(present.now - ended)} ago and still holds "
              f"{runs} run(s) and {sending} deliveries")
        for worker, ended, how, runs, sending in rows
    ))


def _overdue(tx: Tx, present: _Present, room: int) -> Tasks:
    kind = Kind.SLOT_IN_THE_PAST
    if present.desk_since is None or present.desk_since > present.ago(SLACK):
        return Tasks(kind, 0, ())
    count, rows = tx.tasks_found("task_overdue", before=present.ago(SLACK), room=room)
    return Tasks(kind, count, tuple(
        _task(kind, trigger, name, slot, f"{name} was due {lasting(present.now - slot)} ago, and that is not answered")
        for trigger, name, slot in rows
    ))


def _cleanup_and_children(tx: Tx, present: _Present, room: int) -> Tasks:
    """As `_cleanup`, and the processes of runs that have ended, where they ran on this machine."""
    found = _cleanup(tx, present, room)
    rows = tx.children_left(present.host, before=present.ago(SLACK), room=_PAGE) if present.host else []
    more = [
        _task(found.kind, run, "", ended, f"{run} has ended, and {len(pids)} process(es) of it still run: "
                                          f"{', '.join(str(pid) for pid in pids[:5])}")
        for run, group, birth, ended in rows if (pids := living(group, birth))
    ]
    return Tasks(found.kind, found.count + len(more), (*found.items, *more)[:room])


def _contradicted(kind: Kind, checks: Sequence[Check]) -> Callable[[Tx, _Present, int], Tasks]:
    """What some checks of the audit find, as tasks."""

    def look(tx: Tx, present: _Present, room: int) -> Tasks:
        terms = Terms.read(tx, now=present.now, boot_at=None)
        results = [check.result(tx, terms) for check in checks]
        said = [example for result in results for example in result.examples]
        return Tasks(kind, sum(result.violations for result in results), tuple(
            _task(kind, example.split(maxsplit=1)[0].rstrip(":,"), "", None, example) for example in said[:room]
        ))

    return look


def _checks(*ids: str) -> list[Check]:
    return [check for check in (*SLOTS, *ARMING, *COURSE) if check.id in ids]


Look = Callable[[Tx, _Present, int], Tasks]

_LOOKS: dict[Kind, Look] = {
    Kind.STALE_QUEUED: _queued, Kind.STALE_RUNNING: _running, Kind.LOST: _lost, Kind.DELIVERY_FAILED: _deliveries,
    Kind.MISSING_CLEANUP: _cleanup, Kind.SLOT_IN_THE_PAST: _overdue,
}
_LONG_LOOKS: dict[Kind, Look] = {
    Kind.MISSING_CLEANUP: _cleanup_and_children,
    Kind.INCONSISTENT_TIMESTAMPS: _contradicted(Kind.INCONSISTENT_TIMESTAMPS, _checks("I-19", "I-20", "I-21", "I-26",
                                                                                      "I-27")),
    Kind.DUPLICATE_SLOT: _contradicted(Kind.DUPLICATE_SLOT, _checks("I-01", "I-02", "I-09")),
}
