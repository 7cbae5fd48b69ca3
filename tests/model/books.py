"""The ledger compared with the account, row by row, and the ledger's own audit: after every step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from model.account import Account, Run
from model.aftermath import Aftermath
from nightporter.ledger.audit import audit
from nightporter.store import Tx

BACKWARDS = frozenset({"I-13", "I-14", "I-18", "I-36", "I-37", "I-53", "I-54", "I-61", "I-62", "N-15"})
"""Checks that compare runs, slots, pauses and removals with one another by the wall: they may be wrong where it was put
back."""
UNREPAIRED = frozenset({"I-29", "N-14"})
"""Checks of what the next sweep repairs."""


def compare(desk: Aftermath, *, whole: bool = False) -> None:
    """All that stands in the store is what the account says, and the audit is clean. `whole`: every slot is counted."""
    spared = (BACKWARDS if desk.went_back else frozenset()) | (UNREPAIRED if desk.unrepaired else frozenset())

    def look(tx: Tx) -> None:
        _compare(tx, desk.account, exactly=not desk.went_back)
        _audit(tx, desk, spared, whole)

    desk.store.read(look)


def _audit(tx: Tx, desk: Aftermath, spared: Collection[str], whole: bool) -> None:
    report = audit(tx, now=desk.now, enumerate_slots=whole)
    found = [f"{check.id} {check.title}: {check.examples}" for check in report.findings if check.id not in spared]
    assert not found, found


def _compare(tx: Tx, account: Account, *, exactly: bool) -> None:
    """`exactly`: to the instant. Where the wall was put back, what is written of a run waits for it to catch up."""
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return list(tx.sql._connection.execute(sql))  # type: ignore[attr-defined]  # both databases have one

    lines = {row[0]: row[1:] for row in rows(
        "SELECT id, trigger_id, external_id, verdict, reason, run_id, CASE WHEN dedupe_key IS NULL THEN 0 ELSE 1 END, "
        "scheduled_for, slot_from, slot_to, slots FROM firing")}
    same("lines", lines, account.lines)
    same("runs", {row[0]: row[1 : None if exactly else -3] for row in rows(
        "SELECT id, state, attempt, attempts, token, CASE WHEN state = 'running' THEN worker ELSE '' END, outcome, "
        "CASE WHEN dead_at IS NULL THEN 0 ELSE 1 END, cancel_reason, trigger_id, rank, started_at, ended_at FROM run")},
        {r.id: (r.state, r.attempt, r.attempts, r.token, r.worker if r.state == "running" else "", r.outcome,
                int(r.dead), _cancel_of(r), r.trigger.id, r.rank, r.began, r.ended_at)[: None if exactly else -3]
         for r in account.runs.values()})
    stories = defaultdict(list)
    for run, state in rows("SELECT run_id, to_state FROM transition ORDER BY run_id, seq"):
        stories[run].append(state)
    same("stories", {run: story for run, story in stories.items() if run in account.runs},
         {r.id: r.states for r in account.runs.values()})
    same("effects", {(run, key): (state, token) for run, key, state, token in rows(
        "SELECT run_id, key, state, token FROM effect WHERE name <> 'started'")},
        {(r.id, key): effect for r in account.runs.values() for key, effect in r.effects.items()})
    same("deliveries", {row[:2]: row[2:] for row in rows(
        "SELECT run_id, destination, state, tries, token, tries_before, coalesce(next_try_at, 0) "
        "FROM delivery")},
        {(r.id, name): (d.state, d.tries, d.token, d.before, d.due if d.state in ("pending", "sending") else 0)
         for r in account.runs.values() for name, d in r.deliveries.items()})
    told = {(run, kind) for run, kind in rows("SELECT run_id, kind FROM inbox") if run in account.runs}
    together = " ".join(text for (text,) in rows("SELECT text FROM inbox WHERE kind = 'given_up'"))
    told |= {(run, "given_up") for run in account.runs if run in together}
    same("messages", told, {(r.id, kind) for r in account.runs.values() for kind in r.notices})
    _compare_automations(rows, account)
    cards: dict[str, dict[int, str]] = {}
    for trigger, slot, state in rows("SELECT trigger_id, slot, state FROM missed_card"):
        cards.setdefault(trigger, {})[slot] = state
    same("cards", cards, {trigger: of for trigger, of in account.missing.cards.items() if of})
    same("the stop", bool(rows("SELECT 1 FROM setting WHERE key = 'stopped'")), account.stopped)


def _compare_automations(rows: Any, account: Account) -> None:
    same("triggers", {row[0]: row[1:] for row in rows(
        "SELECT id, firings, runs, next_fire_at, enabled, CASE WHEN removed_at IS NULL THEN 0 ELSE 1 END "
        "FROM trigger")},
        {t.id: (t.lines, t.runs, t.armed, int(t.enabled), int(t.removed))
         for a in account.automations.values() for t in a.triggers.values()})
    same("automations", {row[0]: row[1:] for row in rows(
        "SELECT id, state, CASE WHEN state = 'paused' THEN state_until END, version, errors_in_a_row, state_at, "
        "updated_at FROM automation")},
        {a.id: (a.state, a.until if a.state == "paused" else None, a.version, a.errors, a.state_at, a.updated_at)
         for a in account.automations.values()})
    same("months", {a: int(n) for a, n in rows(
        "SELECT automation_id, sum(runs) FROM rollup_month GROUP BY automation_id")},
         {a.id: a.told_of for a in account.automations.values() if a.told_of})
    same("pauses", dict(rows("SELECT automation_id, paused_from FROM pause WHERE paused_to IS NULL")),
         {a.id: a.asleep for a in account.automations.values() if a.asleep is not None})


def _cancel_of(run: Run) -> str | None:
    """Why somebody asked for its end; what waited was ended for that reason."""
    before = run.states[-2] if len(run.states) > 1 else ""
    return run.reason if run.state == "cancelled" and before in ("queued", "held") else run.cancel


def same(what: str, there: Any, expected: Any) -> None:
    """Both are the same; what differs is said."""
    if there == expected:
        return
    if isinstance(there, dict):
        keys = sorted(key for key in there.keys() | expected.keys() if there.get(key) != expected.get(key))
        raise AssertionError(f"{what}: " + "; ".join(
            f"{key} is {there.get(key)}, and should be {expected.get(key)}" for key in keys[:3]))
    raise AssertionError(f"{what}: {there} should be {expected}")
