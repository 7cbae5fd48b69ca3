"""Tampering: statements that somebody writes into a clean store, each a violation of one promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from builders import Night

from nightporter.clock import HOUR, MINUTE

Statement = tuple[Any, ...]


def first(table: str, where: str) -> str:
    return f"SELECT min(id) FROM {table} WHERE {where}"


@dataclass(frozen=True)
class Plant:
    """Statements that somebody tampers with, and what an audit finds then."""

    id: str
    said: str
    statements: Callable[[Night], list[Statement]]
    count: int = 1
    also: dict[str, int] = field(default_factory=dict)
    """What cannot but break with it."""
    later: int = 0
    """Microseconds that have passed when the audit looks."""
    booted: bool = False


def run(key: str, assignments: str, *values: object) -> Callable[[Night], list[Statement]]:
    """A run's row is changed."""
    return lambda night: [(f"UPDATE run SET {assignments} WHERE id = ?", *values, night.runs[key])]


def trigger(key: str, assignments: str, *values: object) -> Callable[[Night], list[Statement]]:
    """The row of an automation's trigger is changed; `key` is `automation/trigger`."""
    name, _, spec = key.partition("/")
    return lambda night: [(f"UPDATE trigger SET {assignments} WHERE id = ?", *values, f"{night.runs[name]}/{spec}")]


def automation(key: str, assignments: str, *values: object) -> Callable[[Night], list[Statement]]:
    return lambda night: [(f"UPDATE automation SET {assignments} WHERE id = ?", *values, night.runs[key])]


def step(key: str, seq: int, assignments: str, *values: object) -> Callable[[Night], list[Statement]]:
    """A line of a run's log is changed."""
    return lambda night: [
        (f"UPDATE transition SET {assignments} WHERE run_id = ? AND seq = ?", *values, night.runs[key], seq)
    ]


def line(where: str, assignments: str, *values: object) -> Callable[[Night], list[Statement]]:
    """The first ledger line of which `where` is true is changed."""
    return lambda night: [(f"UPDATE firing SET {assignments} WHERE id = ({first('firing', where)})", *values)]


def plain(*statements: Statement) -> Callable[[Night], list[Statement]]:
    return lambda night: list(statements)


def together(*several: Callable[[Night], list[Statement]]) -> Callable[[Night], list[Statement]]:
    return lambda night: [statement for one in several for statement in one(night)]


OF_BRIEF = "trigger_id = (SELECT t.id FROM trigger t JOIN automation a ON a.id = t.automation_id " \
    "WHERE a.name = 'brief' AND t.name = 'clock')"
SKIPPED = f"{OF_BRIEF} AND verdict = 'skipped'"
MISSED = f"{OF_BRIEF} AND verdict = 'collapsed' AND reason = 'missed_policy'"
PAUSED = f"{OF_BRIEF} AND reason = 'paused'"
LINE = "id, workspace, automation_id, trigger_id, source, external_id, dedupe_key, scheduled_for, arrived_at, " \
    "verdict, reason, detail, run_id, version, sender, owner, depth"
DELIVERY = "id, run_id, automation_id, workspace, destination, kind, lane, state, best_effort, event_id, created_at, " \
    "ended_at, evidence"


QUIETLY = "kind = 'silent'"
TWICE = first("delivery", "tries = 2")
"""A delivery that was tried twice, and delivered then."""
AT_ONCE = first("delivery", "tries = 1 AND evidence = '200 OK'")


def another_line(shift: int) -> list[Statement]:
    """A line beside a skipped one, for a slot so much later."""
    columns = LINE.replace("id, workspace", "'fir_planted', workspace", 1).replace(
        "external_id, dedupe_key, scheduled_for", f"'planted', 'planted', scheduled_for + {shift}").replace(
        "arrived_at", f"arrived_at + {shift}")
    return [
        (f"INSERT INTO firing ({LINE}) SELECT {columns} FROM firing WHERE id = ({first('firing', SKIPPED)})",),
        ("UPDATE trigger SET firings = firings + 1 "
         "WHERE id = (SELECT trigger_id FROM firing WHERE id = 'fir_planted')",),
    ]


def another_run_of_a_slot(night: Night) -> list[Statement]:
    """A second line for a slot that became a run, and its run."""
    ran = f"{OF_BRIEF} AND verdict = 'admitted'"
    columns = LINE.replace("id, workspace", "'fir_planted', workspace", 1).replace(
        "external_id, dedupe_key", "'planted', 'planted'").replace("run_id", "'run_planted'")
    return [
        (f"INSERT INTO firing ({LINE}) SELECT {columns} FROM firing WHERE id = ({first('firing', ran)})",),
        ("INSERT INTO run (id, workspace, automation_id, trigger_id, firing_id, source, version, runner, state, rank, "
         "run_after, priority, attempts, scheduled_for, queued_at, ended_at, reason, seq) "
         "SELECT 'run_planted', workspace, automation_id, trigger_id, 'fir_planted', source, version, runner, "
         "'cancelled', rank, run_after, priority, attempts, scheduled_for, queued_at, queued_at, 'superseded', 2 "
         f"FROM run WHERE firing_id = ({first('firing', ran)})",),
        ("INSERT INTO transition (run_id, seq, from_state, to_state, at, attempt) "
         "SELECT id, 1, NULL, 'queued', queued_at, 0 FROM run WHERE id = 'run_planted'",),
        ("INSERT INTO transition (run_id, seq, from_state, to_state, at, attempt) "
         "SELECT id, 2, 'queued', 'cancelled', queued_at, 0 FROM run WHERE id = 'run_planted'",),
        ("UPDATE trigger SET firings = firings + 1, runs = runs + 1 WHERE id = "
         "(SELECT trigger_id FROM run WHERE id = 'run_planted')",),
    ]


def another_delivery(destination: str) -> list[Statement]:
    columns = DELIVERY.replace("id, run_id", "'del_planted', run_id", 1).replace("destination", f"'{destination}'")
    return [(f"INSERT INTO delivery ({DELIVERY}) SELECT {columns} FROM delivery "
             f"WHERE id = ({first('delivery', QUIETLY)})",)]


def a_run_from_before_its_slot(night: Night) -> list[Statement]:
    """A run of the clock that was queued, started and logged ten minutes too early."""
    one = f"({first('run', f'{OF_BRIEF} AND ended_at - queued_at < {MINUTE}')})"
    return [
        (f"UPDATE transition SET at = at - {10 * MINUTE} WHERE run_id = {one} AND seq <= 2",),
        (f"UPDATE run SET queued_at = queued_at - {10 * MINUTE}, started_at = started_at - {10 * MINUTE}, "
         f"attempt_at = attempt_at - {10 * MINUTE} WHERE id = {one}",),
    ]


def an_end_after_the_end(night: Night) -> list[Statement]:
    told = night.runs["told"]
    return [
        ("INSERT INTO transition (run_id, seq, from_state, to_state, at, attempt) "
         "SELECT run_id, seq + 1, to_state, to_state, at, attempt FROM transition WHERE run_id = ? AND seq = 3", told),
        ("UPDATE run SET seq = 4 WHERE id = ?", told),
    ]


def a_hold_that_ran_on(night: Night) -> list[Statement]:
    """held -> running, with no queue between."""
    resumed = night.runs["resumed"]
    return [
        ("DELETE FROM transition WHERE run_id = ? AND seq = 4", resumed),
        ("UPDATE transition SET seq = 4, from_state = 'held' WHERE run_id = ? AND seq = 5", resumed),
        ("UPDATE transition SET seq = 5 WHERE run_id = ? AND seq = 6", resumed),
        ("UPDATE run SET seq = 5 WHERE id = ?", resumed),
    ]


def a_run_left_lost(night: Night) -> list[Statement]:
    lonely = night.runs["lonely"]
    return [
        ("INSERT INTO transition (run_id, seq, from_state, to_state, at, worker, token, attempt) "
         "SELECT run_id, 3, 'running', 'lost', at + 1, worker, token, attempt FROM transition "
         "WHERE run_id = ? AND seq = 2", lonely),
        ("UPDATE run SET state = 'lost', seq = 3 WHERE id = ?", lonely),
    ]


def a_run_that_never_ended(night: Night) -> list[Statement]:
    lonely = night.runs["lonely"]
    return [
        (f"UPDATE transition SET at = at - {2 * HOUR} WHERE run_id = ?", lonely),
        (f"UPDATE run SET queued_at = queued_at - {2 * HOUR}, started_at = started_at - {2 * HOUR}, "
         f"attempt_at = attempt_at - {2 * HOUR} WHERE id = ?", lonely),
    ]


def worker_of(key: str, ended_ago: int) -> Callable[[Night], list[Statement]]:
    """The worker of a run that is running ended some time ago."""
    return lambda night: [("UPDATE worker SET ended_at = ?, ended_how = 'dead' WHERE id = "
                           "(SELECT worker FROM run WHERE id = ?)", night.now - ended_ago, night.runs[key])]


def an_end_beyond_the_next_beginning(night: Night) -> list[Statement]:
    """A run under `skip` ended only after the next one was admitted."""
    one = night.runs["single first"]
    return [
        (f"UPDATE transition SET at = at + {30 * MINUTE} WHERE run_id = ? AND seq = 3", one),
        (f"UPDATE run SET ended_at = ended_at + {30 * MINUTE} WHERE id = ?", one),
    ]


def a_start_out_of_turn(night: Night) -> list[Statement]:
    """The older run of a queue, which a person dismissed later, started only then."""
    one = night.runs["dismissed"]
    return [
        ("UPDATE transition SET at = (SELECT ended_at FROM run WHERE id = ?) WHERE run_id = ? AND seq > 1", one, one),
        ("UPDATE run SET started_at = ended_at, attempt_at = ended_at WHERE id = ?", one),
        ("UPDATE effect SET intended_at = (SELECT ended_at FROM run WHERE id = ?) WHERE run_id = ?", one, one),
    ]


def an_open_act_of_a_run_that_went_on(night: Night) -> list[Statement]:
    return [("INSERT INTO effect (run_id, key, name, state, attempt, token, intended_at) "
             "SELECT run_id, 'post-1', 'post', 'intended', attempt, token, at FROM transition "
             "WHERE run_id = ? AND seq = 2", night.runs["repeated"])]


def a_pause_over(key: str) -> Callable[[Night], list[Statement]]:
    return lambda night: [(f"INSERT INTO pause (automation_id, paused_from, paused_to, reason) SELECT automation_id, "
                           f"queued_at - {5 * MINUTE}, queued_at + {5 * MINUTE}, 'paused' FROM run WHERE id = ?",
                           night.runs[key])]


def a_run_without_its_row(night: Night) -> list[Statement]:
    """What is running is deleted, and the mark of retention says that it may be."""
    lonely = night.runs["lonely"]
    return [
        ("DELETE FROM run WHERE id = ?", lonely),
        ("INSERT INTO setting (key, value) VALUES ('pruned_before', ?)", str(night.now)),
    ]


INCIDENT = ("id, workspace, automation_id, kind, route, signature, state, count, first_at, last_at, subject, error")


def two_alerts(night: Night) -> list[Statement]:
    """One incident, of which the same destination is told twice, half an hour apart."""
    alerts = []
    for n in (1, 2):
        alerts += [
            ("INSERT INTO delivery (id, run_id, automation_id, workspace, destination, kind, lane, state, best_effort, "
             "event_id, next_try_at, created_at, alert) SELECT ?, 'inc_x', id, workspace, 'pager', 'webhook', 'pager', "
             "'pending', 0, ?, ?, ?, 'opened' FROM automation WHERE id = ?",
             f"del_alert_{n}", f"evt_alert_{n}", night.now + HOUR, night.now + n * HOUR // 2, night.runs["single"]),
            ("INSERT INTO alert (delivery_id, automation, timezone, config, body, cooldown, next_routes) "
             "VALUES (?, 'single', 'UTC', '{}', '{}', ?, '[]')", f"del_alert_{n}", HOUR),
        ]
    return [
        (f"INSERT INTO incident ({INCIDENT}, resolved_at) SELECT 'inc_x', workspace, id, 'execution', 'here', 'odd', "
         "'resolved', 2, 0, 0, 'run', 'odd', 1 FROM automation WHERE id = ?", night.runs["single"]),
        *alerts,
    ]
