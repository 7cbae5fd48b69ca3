"""gates: the reasons not to start work, in the order they are asked.

Final and cheap first, temporary and costly last: the first objection is the one a person reads, so it should be
the one that helps most. A manual firing is a person's own decision and passes the gates in SPARED_BY_HAND; it uses
none of the budgets that it passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nightporter.clock import HOUR, SECOND, Instant, micros, rfc3339
from nightporter.rules.quiet import quiet_until
from nightporter.words import Overlap, Policy, Reason, Verdict

PAYLOAD_LIMIT = 262_144
"""Bytes of text and payload that one firing may carry."""


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """What the gates need of a trigger and its automation, as they stand in the transaction."""

    trigger_id: str
    automation_id: str
    kind: str
    enabled: bool
    removed: bool
    policy: Policy
    version: int
    """Of the schedule."""
    workspace: str
    owner: str
    state: str
    state_reason: str
    definition_version: int
    last_started_at: Instant | None
    firings: int
    """Lines so far."""
    concurrent: int | None
    """Runs of the automation at once: no gate, but who claims has to know it."""
    counted: int = 0
    """Arrivals since its threshold last let one through."""
    counted_at: Instant | None = None
    """When the first of those came."""
    counted_runs: int = 0
    """Runs that the automation's schedules have started, where their number is limited."""
    unreadable: str = ""
    """Why its policy cannot be read; then `policy` says nothing."""
    open_incident: str | None = None
    """One of the automation's, where the policy asks."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much of an automation is under way; each number stops at the cap it was asked with."""

    queued: int = 0
    """Waiting runs that no person's hand made."""
    going: int = 0
    admitted_in_hour: int = 0
    standing: str | None = None
    """One of the unfinished runs, a running one first."""
    oldest_in_hour: Instant | None = None
    """Admission of the oldest run that still counts against the hourly ceiling."""

    def with_one_more(self, run: str, *, manual: bool, now: Instant) -> Load:
        """The load after admitting a run."""
        return Load(
            queued=self.queued + (not manual), going=self.going + 1,
            admitted_in_hour=self.admitted_in_hour + (not manual), standing=self.standing or run,
            oldest_in_hour=self.oldest_in_hour if manual or self.oldest_in_hour is not None else now,
        )


@dataclass(frozen=True, slots=True)
class Asking:
    """One firing at the gates."""

    trigger: TriggerFacts
    load: Load
    size: int
    """Bytes of its text and payload."""
    stopped: bool
    """A person stopped the whole desk."""


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a firing does not become a run."""

    reason: Reason
    detail: str = ""
    verdict: Verdict = Verdict.SKIPPED


Gate = Callable[[Asking, Instant], Objection | None]


def not_deleted(asking: Asking, now: Instant) -> Objection | None:
    """The trigger or its automation was removed."""
    if asking.trigger.removed or asking.trigger.state == "removed":
        return Objection(Reason.DELETED)
    return None


def enabled(asking: Asking, now: Instant) -> Objection | None:
    """The definition switches the trigger off."""
    return None if asking.trigger.enabled else Objection(Reason.DISABLED)


def not_expired(asking: Asking, now: Instant) -> Objection | None:
    """The automation's expiry has passed."""
    expires = asking.trigger.policy.expires
    if expires is not None and expires <= now:
        return Objection(Reason.EXPIRED, f"it expired at {rfc3339(Instant(expires))}")
    return None


def readable(asking: Asking, now: Instant) -> Objection | None:
    """The definition file cannot be read, or what is stored of it: what was good before does not fire."""
    if asking.trigger.unreadable:
        return Objection(Reason.UNREADABLE, asking.trigger.unreadable)
    if asking.trigger.state == "config_error":
        return Objection(Reason.CONFIGURATION, asking.trigger.state_reason)
    return None


def accepted(asking: Asking, now: Instant) -> Objection | None:
    """The automation is a proposal."""
    if asking.trigger.state == "proposed":  # a proposal is inert: no hand runs it before a person accepted it
        return Objection(Reason.PAUSED, asking.trigger.state_reason or "it is a proposal that nobody has accepted")
    return None


def not_paused(asking: Asking, now: Instant) -> Objection | None:
    """A person or the desk paused the automation."""
    if asking.trigger.state in ("paused", "auto_paused"):
        return Objection(Reason.PAUSED, asking.trigger.state_reason)
    return None


def not_stopped(asking: Asking, now: Instant) -> Objection | None:
    """A person stopped everything."""
    return Objection(Reason.STOPPED) if asking.stopped else None


def without_incident(asking: Asking, now: Instant) -> Objection | None:
    """The automation has an open incident, and is to start nothing meanwhile."""
    incident = asking.trigger.open_incident
    if incident is None or not asking.trigger.policy.hold_on_incident:
        return None
    return Objection(Reason.INCIDENT_HOLD, incident)


def payload_fits(asking: Asking, now: Instant) -> Objection | None:
    """Text and payload are larger than the desk carries."""
    if asking.size > PAYLOAD_LIMIT:
        return Objection(
            Reason.PAYLOAD_TOO_LARGE, f"{asking.size} bytes; the limit is {PAYLOAD_LIMIT}", Verdict.REFUSED
        )
    return None


def cooled_down(asking: Asking, now: Instant) -> Objection | None:
    """The last attempt started, or the next is about to start, less than the cooldown away."""
    cooldown = asking.trigger.policy.cooldown
    if not cooldown:
        return None
    last = asking.trigger.last_started_at
    if last is not None and now - last < cooldown:
        return Objection(
            Reason.COOLDOWN,
            f"the cooldown is {cooldown / SECOND:g} s; the last attempt started at {rfc3339(last)}, "
            f"free again at {rfc3339(Instant(last + cooldown))}",
        )
    if asking.load.queued:  # admitted and about to start: it will count from then
        return Objection(Reason.COOLDOWN, f"{asking.load.standing} is about to start")
    return None


def under_hourly_ceiling(asking: Asking, now: Instant) -> Objection | None:
    """The hour before now has as many runs as an hour may have."""
    ceiling = asking.trigger.policy.per_hour
    if ceiling is None or asking.load.admitted_in_hour < ceiling:
        return None
    oldest = asking.load.oldest_in_hour
    free = f"; free again at {rfc3339(Instant(oldest + HOUR))}" if oldest is not None else ""
    return Objection(Reason.HOURLY_CEILING, f"the ceiling is {ceiling} an hour{free}")


def line_has_room(asking: Asking, now: Instant) -> Objection | None:
    """As many runs wait as may."""
    limit = asking.trigger.policy.queued
    if limit is None or asking.load.queued < limit:
        return None
    return Objection(Reason.QUEUE_FULL, f"the limit is {limit} waiting")


def not_overlapping(asking: Asking, now: Instant) -> Objection | None:
    """A run is going, and the policy is to skip."""
    if asking.trigger.policy.overlap is Overlap.SKIP and asking.load.going:
        return Objection(Reason.OVERLAP, f"{asking.load.standing} had not ended")
    return None


def not_quiet(asking: Asking, now: Instant) -> Objection | None:
    """It is a quiet hour."""
    until = quiet_until(asking.trigger.policy.quiet_hours, now)
    return None if until is None else Objection(Reason.QUIET_HOURS, f"until {rfc3339(until)}")


def counted(trigger: TriggerFacts, now: Instant) -> tuple[int, Instant]:
    """`(how many arrivals count together with one of now, when the first of them came)`."""
    threshold, first = trigger.policy.threshold, trigger.counted_at
    if threshold is None or first is None or not trigger.counted:
        return 1, now
    if threshold.within is not None and now - first > micros(threshold.within):
        return 1, now
    return trigger.counted + 1, first


def enough_came(asking: Asking, now: Instant) -> Objection | None:
    """Only every so many arrivals make a run."""
    threshold = asking.trigger.policy.threshold
    if threshold is None:
        return None
    nth, first = counted(asking.trigger, now)
    if nth >= threshold.every:
        return None
    within = "" if threshold.within is None else \
        f"; they count until {rfc3339(Instant(first + micros(threshold.within)))}"
    return Objection(Reason.THRESHOLD, f"{nth} of {threshold.every}{within}")


def has_runs_left(asking: Asking, now: Instant) -> Objection | None:
    """The automation's schedules have started as many runs as they may."""
    most = asking.trigger.policy.max_runs
    if most is None or asking.trigger.counted_runs < most:
        return None
    return Objection(Reason.MAX_RUNS, f"the limit is {most}")


OF_THE_TRIGGER: tuple[Gate, ...] = (
    not_deleted, enabled, not_expired, readable, accepted, not_paused, not_stopped, without_incident,
)
"""They say the same of all its firings in a batch."""
OF_THE_ARRIVAL: tuple[Gate, ...] = (payload_fits,)
"""What passes these too may be folded into a run that waits for others like it."""
OF_THE_RUN: tuple[Gate, ...] = (
    cooled_down, under_hourly_ceiling, line_has_room, not_overlapping, not_quiet, enough_came, has_runs_left,
)
"""Whether it becomes a run of its own."""
GATES = (*OF_THE_TRIGGER, *OF_THE_ARRIVAL, *OF_THE_RUN)
SPARED_BY_HAND: frozenset[Gate] = frozenset({not_paused, without_incident, *OF_THE_RUN})
ASKS_AGAIN = frozenset({Reason.HOURLY_CEILING, Reason.QUEUE_FULL, Reason.QUIET_HOURS})
"""The sender may try again later, so these verdicts do not keep the dedupe key (a clock's always do)."""


def judge(asking: Asking, now: Instant, gates: tuple[Gate, ...] = GATES) -> Objection | None:
    """The first gate that objects, or None. Pure: same values, same answer."""
    by_hand = asking.trigger.kind == "manual"
    for gate in gates:
        if by_hand and gate in SPARED_BY_HAND:
            continue
        if objection := gate(asking, now):
            return objection
    return None


def goes_alone(asking: Asking) -> bool:
    """Whether the run it becomes has to wait for those that are going."""
    return (
        asking.trigger.kind != "manual"
        and asking.trigger.policy.overlap in (Overlap.QUEUE, Overlap.REPLACE)
        and asking.load.going > 0
    )


def caps(policies: list[Policy]) -> tuple[int, int, int]:
    """How far each number of a Load must be counted for these policies: `(queued, going, in the hour)`.

    0 is not at all.
    """
    queued = max((p.queued for p in policies if p.queued is not None), default=0)
    going = int(any(p.overlap is not Overlap.PARALLEL for p in policies))
    hour = max((p.per_hour for p in policies if p.per_hour is not None), default=0)
    if any(p.cooldown for p in policies):
        queued, going = max(queued, 1), 1
    return queued, going, hour
