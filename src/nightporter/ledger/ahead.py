"""What a slot that comes will be asked: the gates that hold it for certain, as far as is known now, and the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant
from nightporter.ledger.lateness import asleep
from nightporter.ledger.moments import lasting, spoken
from nightporter.ledger.pages import plain
from nightporter.rules.quiet import quiet_until
from nightporter.words import Overlap, Policy, Reason, Sleep


@dataclass(frozen=True, slots=True)
class GateAhead:
    """A gate on the way of a slot."""

    gate: str
    """The reason it would give."""
    holds: bool
    """It will object, as things stand; otherwise it will be asked then."""
    text: str

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of an automation beside its policy."""

    state: str
    by: str = ""
    until: Instant | None = None
    why: str = ""
    stopped: bool = False
    runs: int = 0
    """Runs that its schedules have started, as admission counts them."""


def gates_ahead(policy: Policy, standing: Standing, at: Instant, timezone: str) -> tuple[GateAhead, ...]:
    """In the order in which they are asked; those that cannot object are left out."""
    return tuple(
        gate for gate in (*_surely(policy, standing, at, timezone), *_perhaps(policy, standing)) if gate is not None)


def _surely(policy: Policy, standing: Standing, at: Instant, timezone: str) -> list[GateAhead | None]:
    def holds(reason: Reason, text: str) -> GateAhead:
        return GateAhead(str(reason), True, text)

    expires, quiet = policy.expires, quiet_until(policy.quiet_hours, at)
    broken = standing.state == "config_error"
    sleeps = standing.state in ("paused", "auto_paused") and (standing.until is None or at < standing.until)
    by = f" by {standing.by}" if standing.by else ""
    until = f" until {spoken(standing.until, timezone)}" if standing.until is not None else ""
    return [
        holds(Reason.EXPIRED, f"expired at {spoken(Instant(expires), timezone)}")
        if expires is not None and expires <= at else None,
        holds(Reason.CONFIGURATION, asleep(Sleep.CONFIGURATION).replace("could not", "cannot")) if broken else None,
        holds(Reason.PAUSED, f"paused{by}{until}") if sleeps else None,
        holds(Reason.STOPPED, "the whole desk is stopped") if standing.stopped else None,
        None if quiet is None else holds(Reason.QUIET_HOURS, f"quiet hours until {spoken(quiet, timezone)}"),
        holds(Reason.MAX_RUNS, f"all of its {policy.max_runs} runs are used")
        if policy.max_runs is not None and standing.runs >= policy.max_runs else None,
    ]


def _perhaps(policy: Policy, standing: Standing) -> list[GateAhead | None]:
    def asks(reason: Reason, text: str) -> GateAhead:
        return GateAhead(str(reason), False, text)

    threshold, most = policy.threshold, policy.max_runs
    return [
        asks(Reason.INCIDENT_HOLD, "no incident of it is open") if policy.hold_on_incident else None,
        asks(Reason.COOLDOWN, f"{lasting(policy.cooldown)} since its last start") if policy.cooldown else None,
        None if policy.per_hour is None else asks(Reason.HOURLY_CEILING, f"{policy.per_hour} an hour"),
        None if policy.queued is None else asks(Reason.QUEUE_FULL, f"{policy.queued} waiting"),
        asks(Reason.OVERLAP, "the run before it has ended") if policy.overlap is Overlap.SKIP else None,
        None if threshold is None else asks(Reason.THRESHOLD, f"every {threshold.every} arrivals"),
        None if most is None or standing.runs >= most
        else asks(Reason.MAX_RUNS, f"{most - standing.runs} of {most} runs left"),
    ]


