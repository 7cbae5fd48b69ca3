"""Why: one plain paragraph about an automation, a run, a line of the ledger, or what was due at an instant."""

from __future__ import annotations

from typing import assert_never

from nightporter.clock import MINUTE, SECOND, Instant
from nightporter.errors import NightporterError, location
from nightporter.ledger import reads
from nightporter.ledger.facts import with_facts
from nightporter.ledger.finding import resolve, resolve_firing, resolve_run
from nightporter.ledger.firings_explained import explain_firing
from nightporter.ledger.lateness import asleep
from nightporter.ledger.lines import AutomationLine, FiringLine, firing_line
from nightporter.ledger.moments import asked_moment, lasting, spoken
from nightporter.ledger.pages import NEWEST
from nightporter.ledger.runs_explained import explain_run, zone_of
from nightporter.ledger.slots_ahead import explain_ahead
from nightporter.ledger.status import CLOCK_BEHIND, clock_behind
from nightporter.ledger.why import Explanation, because, clause, remedy, strange
from nightporter.rules.schedule import next_due, previous_due, slots_between
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.words import Reason


def explain(tx: Tx, subject: str, now: Instant, *, at: Instant | str | None = None) -> Explanation:
    """Why something ran, ran late, ended and was delivered as it was, or did not run.

    `subject` is an automation's name or id, a run's id or a firing's; `at`, with an automation, is the instant asked
    about, past or to come: `07:30` is the last one that has come in its zone. Raises NotFound, BadSchedule.
    """
    return with_facts(tx, _explained(tx, subject, now, at), now)


def _explained(tx: Tx, subject: str, now: Instant, at: Instant | str | None) -> Explanation:
    if subject.startswith("fir_"):
        return explain_firing(tx, _firing(tx, resolve_firing(tx, subject)), now)
    if subject.startswith("run_"):
        return explain_run(tx, resolve_run(tx, subject), now)
    automation_id = resolve(tx, subject)
    if at is None:
        return explain_automation(tx, automation_id, now)
    if isinstance(at, str):
        timezone, text = zone_of(tx, automation_id, ""), at
        at = asked_moment(text, timezone, now)
        line = reads.automation(tx, automation_id)
        if line is not None and at < line.created_at and ":" in text and "-" not in text:
            at = asked_moment(text, timezone, now, ahead=True)  # a time of day that has not come since it exists
    return explain_moment(tx, automation_id, at, now)


def _firing(tx: Tx, firing_id: str) -> FiringLine:
    row = tx.read_firing(firing_id)
    if row is None:  # resolved in this very transaction
        raise AssertionError(firing_id)
    return firing_line(row)


def explain_automation(tx: Tx, automation_id: str, now: Instant) -> Explanation:
    """Whether it acts, why it did or did not run last, and when it will next."""
    line = reads.automation(tx, automation_id)
    if line is None:
        raise AssertionError(automation_id)
    sentences = _standing(tx, line, now)
    last = tx.read_firings_of(automation_id, before=NEWEST, since=Instant(0), verdict="", admitted_too=True, room=1)
    found = explain_firing(tx, firing_line(last[0]), now) if last else None
    sentences.append(f"Last: {found.text}" if found else "Nothing has fired it yet.")
    if line.state == AutomationState.ACTIVE:
        sentences.append(_next(tx, line, now))
    return Explanation(
        "automation", automation_id, line.name, " ".join(sentences), verdict=found.verdict if found else None,
        reason=found.reason if found else None, run_id=found.run_id if found else None,
        firing_id=found.firing_id if found else None,
    )


def _standing(tx: Tx, line: AutomationLine, now: Instant) -> list[str]:
    """What keeps it from acting; nothing when it acts."""
    name, zone = line.name, line.timezone
    if line.state not in set(AutomationState):
        return [f"{name} does nothing: {strange(line.state)}."]
    state = AutomationState(line.state)
    by = f" by {line.state_by}" if line.state_by else ""
    said = f": {line.state_reason}" if line.state_reason else ""
    found: list[str] = []
    if tx.stopped():
        found.append(Reason.STOPPED.sentence)
    if behind := clock_behind(tx, now):
        found.append(CLOCK_BEHIND.format(lasting(behind)))
    match state:
        case AutomationState.ACTIVE:
            pass
        case AutomationState.PROPOSED:
            found.append(f"{name} was proposed{by} and does nothing until `nightporter enable {name}`.")
        case AutomationState.PAUSED:
            until = f" until {spoken(line.state_until, zone)}" if line.state_until is not None else ""
            found.append(f"{name} has been paused{by} since {spoken(line.state_at, zone)}{until}{said}. "
                         f"`nightporter enable {name}` lets it run again.")
        case AutomationState.AUTO_PAUSED:
            found.append(f"{name} was paused by the desk at {spoken(line.state_at, zone)}{said}. "
                         f"`nightporter enable {name}` lets it run again.")
        case AutomationState.CONFIG_ERROR:
            error = line.error or {}
            place = f" at {location(error.get('path') or line.path, error.get('line', 0), error.get('column', 0))}"
            what = error.get("what") or line.state_reason
            found.append(f"{name} cannot run: its definition has an error{place}: {what} - mend it there.")
        case AutomationState.EXPIRED:
            when = spoken(line.expires or line.state_at, zone)
            found.append(f"{name} expired at {when}. {remedy(Reason.EXPIRED, name=name)}")
        case AutomationState.COMPLETED:
            found.append(f"{name} is completed: {line.state_reason or 'its only moment has its outcome'}.")
        case AutomationState.REMOVED:
            found.append(f"{name} was removed{by} at {spoken(line.state_at, zone)}{said}.")
        case _:
            assert_never(state)
    for trigger in line.triggers:
        if trigger.error:
            found.append(f"Its trigger {trigger.name} fires no more: {because(Reason.UNREADABLE, trigger.error)}. "
                         f"{remedy(Reason.UNREADABLE, name=name)}")
    return found


def _next(tx: Tx, line: AutomationLine, now: Instant) -> str:
    if line.next_fire_at is None:
        clocks = [t for t in line.triggers if t.schedule is not None]
        if not clocks:
            return "It has no schedule: it runs when a person asks or a program calls it."
        if not any(t.enabled for t in clocks):
            return because(Reason.DISABLED).capitalize() + "."
        return "Its schedule has no slot left."
    when = spoken(line.next_fire_at, line.timezone)
    if line.next_fire_at > now and tx.stopped():
        left = lasting(line.next_fire_at - now)
        return f"Its slot of {when}, in {left}, is answered without a run while the stop lasts."
    if line.next_fire_at > now:
        return f"Next: {when}, in {lasting(line.next_fire_at - now)}."
    if not tx.workers():
        return f"Its slot of {when} has come, and no desk is running to answer it: `nightporter up` starts one."
    return f"Its slot of {when} has come and is about to be answered."


def explain_moment(tx: Tx, automation_id: str, at: Instant, now: Instant) -> Explanation:
    """Why it did or did not run at an instant; one on a whole minute means that minute."""
    high = Instant(at + (MINUTE if at % MINUTE == 0 else SECOND))
    found = tx.read_slot_line(automation_id, at, high) or tx.read_arrival(automation_id, at, high)
    if found is not None:
        return explain_firing(tx, _firing(tx, found), now)
    line = reads.automation(tx, automation_id)
    if line is None:
        raise AssertionError(automation_id)
    if at < line.created_at:
        said = f"{line.name} did not exist at {spoken(at, line.timezone)}: it was created at " \
               f"{spoken(line.created_at, line.timezone)}."
        return Explanation("automation", automation_id, line.name, said)
    ahead = _ahead(tx, line, at, high, now)
    return ahead or Explanation("automation", automation_id, line.name, _no_line(tx, line, at, high, now))


def _ahead(tx: Tx, line: AutomationLine, at: Instant, high: Instant, now: Instant) -> Explanation | None:
    """What will become of the first slot of a span, where one is to come in it."""
    for trigger in line.triggers:
        if trigger.schedule is None or not trigger.enabled or trigger.error:
            continue
        try:
            slot = next_due(trigger.schedule, Instant(max(at - 1, now)))
            if slot is not None and slot < high:
                return explain_ahead(tx, line, trigger, slot, now)
        except (NightporterError, ValueError, ArithmeticError):
            continue  # the sentence about its trigger says that it cannot be read
    return None


def _no_line(tx: Tx, line: AutomationLine, at: Instant, high: Instant, now: Instant) -> str:
    """Why the ledger has nothing about an instant."""
    when, name = spoken(at, line.timezone), line.name
    slots: list[tuple[Instant, Instant | None]] = []
    for trigger in line.triggers:
        if trigger.schedule is not None and trigger.enabled:
            try:
                slots += [(s, trigger.next_fire_at)
                          for s in slots_between(trigger.schedule, Instant(at - 1), Instant(high - 1))]
            except NightporterError:
                return f"{name} has a schedule that cannot be read: {trigger.sentence}."
    if not slots:
        return f"{name} was not due at {when}: {_nearest(line, at)}."
    pause = tx.read_pause(line.id, at, Instant(high - 1))
    if pause is not None:
        until = f" to {spoken(pause[1], line.timezone)}" if pause[1] is not None else ""
        return f"{name} did not run at {when}: from {spoken(pause[0], line.timezone)}{until} {asleep(pause[2])}."
    slot, armed = slots[0]
    if armed is not None and armed <= slot:
        return f"{name} was due at {when} and that is not answered yet. {_next(tx, line, now)}"
    return (f"{name} has no line for {when}: its schedule was another one then, or the line is past its retention "
            f"(the definition last changed at {spoken(line.updated_at, line.timezone)}).")


def _nearest(line: AutomationLine, at: Instant) -> str:
    """The slots around an instant that is none, in words."""
    for trigger in line.triggers:
        if trigger.schedule is None:
            continue
        before, after = previous_due(trigger.schedule, at), next_due(trigger.schedule, at)
        around = [f"the slot before is {spoken(before, trigger.timezone)}"] if before is not None else []
        around += [f"the one after it {spoken(after, trigger.timezone)}"] if after is not None else []
        return f"its schedule is {clause(trigger.sentence)}; {' and '.join(around) or 'it has no slots'}"
    return "it has no schedule"
