"""The facts below an explanation: what the paragraph says in words, in figures and one below the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nightporter.clock import Instant
from nightporter.errors import NotFound
from nightporter.ledger import reads
from nightporter.ledger.details import run_detail
from nightporter.ledger.lines import AutomationLine, FiringLine, firing_line
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.runs_explained import zone_of
from nightporter.ledger.why import Explanation, Fact
from nightporter.store import Tx


def with_facts(tx: Tx, found: Explanation, now: Instant) -> Explanation:
    """The same with the facts of its run, its line or its automation, where it has none yet."""
    if found.facts:
        return found
    facts: list[Fact] = []
    if found.firing_id is not None and (row := tx.read_firing(found.firing_id)) is not None:
        line = firing_line(row)
        facts += _of_line(line, zone_of(tx, line.automation_id, line.trigger_id))
    if found.run_id is not None:
        facts += _of_run(tx, found.run_id)
    if found.kind == "automation":
        automation = reads.automation(tx, found.id)
        facts += [] if automation is None else _of_automation(automation, now)
    return replace(found, facts=tuple(facts))


def _of_line(line: FiringLine, zone: str) -> Iterator[Fact]:
    if line.slots is not None and line.slot_from is not None and line.slot_to is not None and line.slots > 1:
        least = "" if line.slots_exact else "at least "
        yield Fact("slots", f"{least}{line.slots}, {spoken(line.slot_from, zone)} to {spoken(line.slot_to, zone)}")
    elif (slot := line.scheduled_for or line.slot_from) is not None:
        yield Fact("slot", spoken(slot, zone))
    yield Fact("answered" if line.source == "clock" else "arrived", spoken(line.arrived_at, zone))
    yield Fact("verdict", line.verdict + (f", {line.reason}" if line.reason else ""))
    if line.detail:
        yield Fact("figures", line.detail)
    yield Fact("line", line.id)


def _of_run(tx: Tx, run_id: str) -> Iterator[Fact]:
    try:
        detail = run_detail(tx, run_id)
    except NotFound:  # past its retention
        return
    run = detail.line
    zone = zone_of(tx, run.automation_id, f"{run.automation_id}/{run.trigger}")
    yield Fact("run", f"{run.id}, {run.state}" + (f", {run.reason}" if run.reason else ""))
    for name, at in (("admitted", run.queued_at), ("started", run.started_at), ("ended", run.ended_at)):
        if at is not None:
            yield Fact(name, spoken(at, zone))
    if run.late is not None:
        yield Fact("late", lasting(round(run.late * 1e6)))
    yield Fact("attempts", f"{run.attempt} of {run.attempts}")
    if run.exit_code is not None:
        yield Fact("exit code", str(run.exit_code))
    for each in detail.deliveries:
        yield Fact("delivery", f"{each.destination}: {each.state}, {each.tries} tries" + (
            f", {each.error}" if each.error else ""))


def _of_automation(line: AutomationLine, now: Instant) -> Iterator[Fact]:
    until = "" if line.state_until is None else f" until {spoken(line.state_until, line.timezone)}"
    yield Fact("state", f"{line.state} since {spoken(line.state_at, line.timezone)}{until}")
    for trigger in line.triggers:
        if trigger.schedule is not None:
            yield Fact("schedule", f"{trigger.name}: {trigger.sentence}" + ("" if trigger.enabled else " (off)"))
    if line.next_fire_at is not None:
        yield Fact("next", spoken(line.next_fire_at, line.timezone))
    waiting = [f"{n} {word}" for n, word in (
        (line.queued, "queued"), (line.running, "running"), (line.held, "held"), (line.review, "in review")) if n]
    if waiting:
        yield Fact("runs", ", ".join(waiting))
    if line.errors_in_a_row:
        yield Fact("errors in a row", str(line.errors_in_a_row))
