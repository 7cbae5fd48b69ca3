"""Ending: what became of an attempt, written in one transaction with everything that follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from nightporter.air import Form, Key
from nightporter.clock import Instant, rfc3339
from nightporter.dispatch.at_hand import Runners
from nightporter.dispatch.behind import release_behind
from nightporter.dispatch.claimed import Claimed, started_key
from nightporter.dispatch.looking import Glance, keep
from nightporter.dispatch.traces import announce_reviews, read_traces
from nightporter.incidents import Concluded, account_for
from nightporter.rules.ending import (
    Next,
    Traces,
    after_attempt,
    after_no_start,
    after_shutdown,
    asked_to_end,
    destinations_for,
    for_a_person,
    lane_of,
)
from nightporter.rules.quiet import held_until
from nightporter.rules.zones import month_at
from nightporter.states import ENDED, RunEvent, RunState
from nightporter.store import Tx
from nightporter.store.tx_dispatch import Fence, Health
from nightporter.store.tx_incidents import Standing
from nightporter.words import Definition, Ended, Ending, ErrorClass, Outcome, Reason, RunId, Target, derived_id

INBOX_TEXT = 20_000
"""Characters of a result that its inbox message carries; the run keeps the whole."""

FOLDED_TEXT = 2_000
"""The same of a result that shares a message with others."""

Fences = Mapping[tuple[str, int], Fence]
"""By claim `(run, token)`, of those that are current."""

Result = Next | None
"""What became of the run; None: the claim was no longer current, and nothing was written."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that has ended, on its way into the ledger."""

    claimed: Claimed
    ended: Ended
    form: Form = Form.WHOLE
    glance: Glance | None = None
    """What its look saw, where it was asked."""

    @property
    def key(self) -> Key:
        return self.claimed.key


Won = Sequence[tuple[Attempt, Next]]
"""Attempts whose claims are current, and what becomes of the runs."""


def end(tx: Tx, attempts: Sequence[Attempt], runners: Runners, *, now: Instant) -> list[Result]:
    """Write how attempts ended: the run, its transition, output, deliveries, rollups and a dead letter's notice;
    then let go what waited behind them. Fenced: a lost claim writes nothing."""
    tx.lock_automations({a.claimed.work.automation_id for a in attempts})
    keys = [a.key for a in attempts]
    fences = tx.fences(keys)
    current = [a for a, key in zip(attempts, keys, strict=True) if key in fences]
    won = list(zip(current, _decide(tx, current, fences, runners, now), strict=True))
    for at, some in _by_instant(tx, won, fences, now).items():
        _leave(tx, some, fences, at, now)
        conclude(tx, _finals(some), now=now, ended_at=at)
    _write_what_it_left(tx, won, now)
    announce_reviews(tx, [
        (a.claimed.work.run_id, a.claimed.work.automation_id, a.claimed.work.workspace, a.claimed.work.automation,
         a.claimed.definition.owner if a.claimed.definition else "", n.error)
        for a, n in won if n.state is RunState.REVIEW
    ], now=now)
    release_behind(tx, {a.claimed.work.automation_id for a, _ in won}, now=now)
    nexts = {a.key: n for a, n in won}
    return [nexts.get(key) for key in keys]


def _finals(won: Won) -> list[Final]:
    return [
        Final(a.claimed.work.run_id, a.claimed.work.automation_id, a.claimed.work.workspace, a.claimed.work.automation,
              n.state, n.outcome, n.reason, n.error, n.dead, a.claimed.definition,
              a.ended.text[:INBOX_TEXT], a.claimed.work.source)
        for a, n in won if n.state in ENDED
    ]


def end_alone(tx: Tx, attempts: Sequence[Attempt], *, now: Instant) -> list[Result]:
    """Write that attempts ended and nothing that follows from it, because that cannot be written: no output, delivery
    or rollup. Such a run has failed, is a dead letter, and is named in the quarantine with its error."""
    tx.lock_automations({a.claimed.work.automation_id for a in attempts})
    fences = tx.fences([a.key for a in attempts])
    won = [
        (a, Next(RunEvent.FAIL, RunState.FAILED, Reason.UNREADABLE, Outcome.FAILED, ErrorClass.CONFIGURATION,
                 a.ended.error, dead=True))
        for a in attempts if a.key in fences
    ]
    for at, some in _by_instant(tx, won, fences, now).items():
        _leave(tx, some, fences, at, now)
    for a, n in won:
        tx.quarantine_run(a.claimed.work.run_id, n.error, now=now)
    tx.write_inbox([_dead_letter(Final(
        a.claimed.work.run_id, a.claimed.work.automation_id, a.claimed.work.workspace, a.claimed.work.automation,
        n.state, n.outcome, n.reason, n.error, n.dead, None), None, now) for a, n in won], now=now)
    release_behind(tx, {a.claimed.work.automation_id for a, _ in won}, now=now)
    nexts = {a.key: n for a, n in won}
    return [nexts.get(a.key) for a in attempts]


def _decide(tx: Tx, attempts: Sequence[Attempt], fences: Fences, runners: Runners, now: Instant) -> list[Next]:
    acting = [a.claimed.work for a in attempts if a.claimed.work.kind not in _NEVER_ACT]
    traces = read_traces(tx, [(w.run_id, w.token, w.kind) for w in acting], runners) if acting else {}
    nothing = Traces()
    nexts = []
    for a in attempts:
        work, definition = a.claimed.work, a.claimed.definition or _UNREADABLE
        left = traces.get(work.run_id, nothing)
        given_back = work.token - work.attempt  # each claim raises the token, and an attempt given back is not counted
        if a.ended.reason is Reason.SHUTDOWN:
            became = after_shutdown(definition, left)
        elif a.ended.reason is Reason.NOT_STARTED and a.ended.ending is Ending.CANCELLED:
            became = after_no_start(a.ended.error, given_back=given_back, now=now)
        elif a.ended.reason is Reason.MAY_HAVE_ACTED:
            became = for_a_person(a.ended.error)
        else:
            became = after_attempt(
                a.ended, run_id=work.run_id, attempt=work.attempt, attempts=a.claimed.attempts, definition=definition,
                interactive=work.source == "manual", effects_done=left.effects_done, now=now, given_back=given_back,
            )
        cancel_reason = fences[a.key].cancel_reason
        nexts.append(asked_to_end(became, Reason(cancel_reason)) if cancel_reason else became)
    return nexts


_NEVER_ACT = frozenset({"noop", "echo"})
_UNREADABLE = Definition(name="unreadable", target=Target("noop"))
"""Stands in for a definition that cannot be read: its run failed, and nothing is tried again."""


def _by_instant(tx: Tx, won: Won, fences: Fences, now: Instant) -> dict[Instant, Won]:
    """By when they end: now, and where the clock was set back meanwhile, no earlier than what is written of a run."""
    latest = tx.latest([a.claimed.work.run_id for a, _ in won if a.claimed.work.kind not in _NEVER_ACT])
    if all(fences[a.key].began_at <= now for a, _ in won) and max(latest.values(), default=now) <= now:
        return {now: won} if won else {}
    found: dict[Instant, list[tuple[Attempt, Next]]] = {}
    for a, n in won:
        at = max(now, fences[a.key].began_at, latest.get(a.claimed.work.run_id, now))
        found.setdefault(at, []).append((a, n))
    return dict(found)


def _leave(tx: Tx, won: Won, fences: Fences, at: Instant, now: Instant) -> None:
    """Take the runs out of `running` at an instant, each by its own transition."""
    ends: list[tuple[object, ...]] = []
    retries: list[tuple[object, ...]] = []
    holds: list[tuple[object, ...]] = []
    releases: list[tuple[object, ...]] = []
    asides: list[tuple[object, ...]] = []
    transitions: list[tuple[object, ...]] = []
    for a, n in won:
        work = a.claimed.work
        run, token = work.run_id, work.token
        seq, cancel_reason, worker, _ = fences[run, token]
        reason = cancel_reason if n.event is RunEvent.CANCEL and cancel_reason else n.reason
        transitions.append((run, seq + 1, "running", n.state, reason, worker, token, work.attempt, n.error_class))
        match n.event:
            case RunEvent.RETRY:
                retries.append((run, token, n.run_after, reason, n.error_class, n.error, a.ended.exit_code))
            case RunEvent.HOLD:
                holds.append((run, token, n.run_after, reason, n.error))
            case RunEvent.RELEASE:
                releases.append((run, token, n.run_after or now, reason, n.error))
            case RunEvent.SET_ASIDE:
                asides.append((run, token, reason, n.error))
            case _:
                ends.append((run, token, n.state, reason, n.outcome, n.error_class, n.error, a.ended.exit_code,
                             at if n.dead else None))
    tx.end(ends, now=at)
    tx.retry(retries)
    tx.hold(holds)
    tx.release(releases, now=now)
    tx.set_aside(asides)
    tx.write_transitions(transitions, now=at)


def _write_what_it_left(tx: Tx, won: Won, now: Instant) -> None:
    tx.write_outputs([
        (a.claimed.work.run_id, a.ended.text, None if a.ended.data is None else json.dumps(a.ended.data), a.ended.log)
        for a, _ in won
        if a.ended.text or a.ended.data is not None or a.ended.log or a.claimed.work.token > 1  # not what came before
    ])
    # A run that is set aside keeps its traces: they are what a person decides by.
    attempts = [a for a, n in won if n.state is not RunState.REVIEW]
    looked = [(a.claimed.work, a.glance, n.state) for a, n in won if a.glance is not None]
    if looked:
        keep(tx, looked, now=now)
    acting = [a.claimed.work for a in attempts if a.claimed.work.kind not in _NEVER_ACT or a.claimed.look is not None]
    tx.forget_children([(work.run_id, work.token) for work in acting])
    tx.started_done([(work.run_id, started_key(work.token)) for work in acting], now=now)


# -- what follows from an ending, whoever ends the run ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Final:
    """A run that has ended for good."""

    run_id: RunId
    automation_id: str
    workspace: str
    automation: str
    state: RunState
    outcome: Outcome | None
    reason: Reason | None
    error: str
    dead: bool
    definition: Definition | None
    text: str = ""
    source: str = ""
    """The kind of trigger it was started by."""


def conclude(tx: Tx, finals: Sequence[Final], *, now: Instant, ended_at: Instant) -> None:
    """Deliveries, dead letters, health, incidents and months of ended runs, in the transaction that ended them.
    `ended_at`: the instant that is written down for it; what is to be done from now on is due now."""
    deliveries: list[tuple[object, ...]] = []
    inbox: list[tuple[object, ...]] = []
    for f in finals:
        for destination in destinations_for(f.definition, f.outcome) if f.definition else []:
            # The run's own time prefix and hash, and the destination's: one delivery a run and destination.
            tail = f"{f.run_id[4:]}{_mark(destination.name)}"
            delivery, event = f"del_{tail}", f"evt_{tail}"
            at_once = destination.kind in ("announce", "silent")
            evidence = ""
            quiet = held_until(destination.quiet_hours, failed=f.outcome is Outcome.FAILED, now=now)
            if destination.kind == "announce" and quiet is not None:
                evidence = tx.fold_inbox((
                    derived_id("inb", quiet, f.automation_id, destination.name), f.workspace, _owner(f),
                    f.automation_id, f.run_id, f"{f.automation}: results of quiet hours",
                    f"{f.outcome}: {_shared(f)}\n"), now=now)
            elif destination.kind == "announce":
                evidence = derived_id("inb", now, f.run_id, destination.name)
                inbox.append((evidence, f.workspace, _owner(f), f.automation_id, f.run_id, "result",
                              f"{f.automation}: {f.outcome}", f.text))
            elif destination.kind == "silent":
                evidence = "kept in the ledger"
            deliveries.append((
                delivery, f.run_id, f.automation_id, f.workspace, destination.name, destination.kind,
                lane_of(destination), "delivered" if at_once else "pending",
                None if at_once or quiet is None else Reason.HELD_QUIET, int(destination.best_effort),
                event, None if at_once else quiet or now, now if at_once else None, evidence,
            ))
    tx.create_deliveries(deliveries, now=now)
    incidents = account_for(tx, [_concluded(f) for f in finals], _roll_up(tx, finals, ended_at), now=now)
    inbox += [_dead_letter(f, incidents.get(f.run_id), now) for f in finals if f.dead]
    tx.write_inbox(inbox, now=now)
    tx.complete({f.automation_id for f in finals if f.definition and _once(f.definition)}, now=now)


def _shared(f: Final) -> str:
    if len(f.text) <= FOLDED_TEXT:
        return f.text
    return f"{f.text[:FOLDED_TEXT]} ...\nnightporter logs {f.run_id} has the whole."


def _concluded(f: Final) -> Concluded:
    return Concluded(f.run_id, f.automation_id, _is_good(f), _counts(f), str(f.reason or ""), f.error)


def _is_good(f: Final) -> bool:
    return f.state in _GOOD and f.reason is not Reason.STALE


def _counts(f: Final) -> bool:
    # A person who tries something, or decides what becomes of it, sees how it went.
    return f.dead and f.source != "manual"


_GOOD = frozenset({RunState.SUCCEEDED, RunState.SKIPPED})
_BAD = frozenset({RunState.FAILED, RunState.TIMED_OUT})


def _dead_letter(f: Final, incident: Standing | None, now: Instant) -> tuple[object, ...]:
    again = "" if incident is None or incident.times == 1 else (
        f"\nThat makes {incident.times} times since {rfc3339(incident.first_at)}: incident {incident.id}.")
    return (
        derived_id("inb", now, f.run_id, "dead_letter"), f.workspace, _owner(f), f.automation_id, f.run_id,
        "dead_letter", f"{f.automation} {str(f.state).replace('_', ' ')}",
        f"{f.reason.sentence if f.reason else ''} {f.error}\n"
        f"nightporter explain {f.run_id} says more; nightporter replay {f.run_id} runs it again.{again}".strip(),
    )


def _roll_up(tx: Tx, finals: Sequence[Final], now: Instant) -> list[Health]:
    health: dict[str, list[object]] = {}
    months: dict[tuple[str, str], list[int]] = {}
    for f in finals:
        good, bad = _is_good(f), f.state in _BAD
        row = health.setdefault(f.automation_id, [f.automation_id, "", None, None, None, 0, 0, 0])
        row[1], row[2] = f.run_id, f.outcome or str(f.state)
        if good:
            row[3], row[5], row[6] = now, 1, 0
        elif bad:
            row[4] = now
            if _counts(f):
                row[6], row[7] = int(str(row[6])) + 1, 1
        month = months.setdefault(
            (f.automation_id, month_at(now, f.definition.timezone if f.definition else "UTC")), [0] * 5
        )
        month[0] += 1
        month[1] += f.state is RunState.SUCCEEDED
        month[2] += f.state is RunState.SKIPPED
        month[3] += bad
        month[4] += f.state is RunState.CANCELLED
    tx.add_to_month([(*key, *counts) for key, counts in sorted(months.items())])
    return tx.note_health([tuple(row) for _, row in sorted(health.items())])


@lru_cache(maxsize=1024)
def _mark(destination: str) -> str:
    return blake2b(destination.encode(), digest_size=3).hexdigest()


def _owner(final: Final) -> str:
    return final.definition.owner if final.definition else ""


def _once(definition: Definition) -> bool:
    clocks = [t for t in definition.triggers if t.kind == "clock" and t.enabled]
    return bool(clocks) and all(t.schedule is not None and t.schedule.kind == "at" for t in clocks)
