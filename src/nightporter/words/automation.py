"""Automation and trigger: what is to be done, and the standing instructions that start it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NewType

from nightporter.clock import Instant, micros
from nightporter.words.bounds import Bounds
from nightporter.words.failures import Alerts, Failures
from nightporter.words.guards import Coalesce, QuietHours, Threshold
from nightporter.words.kept import read_back
from nightporter.words.looks import Look
from nightporter.words.missed import Missed, MissedPolicy
from nightporter.words.sparse import left_out, sparse, sparse_of

AutomationId = NewType("AutomationId", str)
TriggerId = NewType("TriggerId", str)
"""`automation id/name`; the name is the kind unless the definition gives another."""


class Overlap(StrEnum):
    """What a firing does while another run of the automation is going."""

    SKIP = "skip"
    QUEUE = "queue"
    PARALLEL = "parallel"
    REPLACE = "replace"


class Sleep(StrEnum):
    """Why an automation sleeps, as it is written of its pause."""

    PAUSED = "paused"
    """A person or the desk stopped it, or nobody has accepted it yet."""
    AUTO_PAUSED = "auto_paused"
    """The desk stopped it, after repeated errors."""
    EXPIRED = "expired"
    """It is past its expiry."""
    CONFIGURATION = "configuration"
    """Its definition cannot be read."""
    VANISHED = "vanished"
    """The file or the function that it was made by is gone; it wakes when that is back."""
    USED_UP = "max_runs"
    """Its schedules have started as many runs as they may; it is completed."""


SourceOfTruth = Literal["file", "store", "code"]
ScheduleKind = Literal["cron", "every", "at", "rrule"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When: what was written, in which zone. `rules.schedule.parse` checks it and is how one is made."""

    kind: ScheduleKind
    expression: str
    """As written: `0 9 * * mon-fri`, `15m`, `2026-11-03T09:00`, `FREQ=WEEKLY;BYDAY=MO`."""
    timezone: str
    """An IANA name."""
    anchor: Instant | None = None
    """`every`: the instant its grid is counted from. `rrule`: its DTSTART."""
    bounds: Bounds | None = field(default=None, metadata=sparse(Bounds.of))
    """None: it goes on for ever, and leaves nothing out."""
    offset: int = field(default=0, metadata=sparse(int))
    """Microseconds by which each of its slots is later than it is written; see `rules.stagger`."""


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """One entry of `triggers:`."""

    name: str
    kind: str
    """`clock`, `manual` or `call`."""
    schedule: Schedule | None = None
    """Clock triggers only. An `every` or `rrule` without an anchor is anchored where it is stored."""
    enabled: bool = True
    overlap: Overlap | None = None
    """None takes the kind's default: skip for clock, parallel for arrivals that cannot come again."""
    look: Look | None = field(default=None, metadata=sparse(Look.read))
    """What its runs look at first; None: what the automation says."""
    missed: Missed | None = field(default=None, metadata=sparse(Missed.read))
    """Clock triggers only. None takes the schedule's default, see `rules.missed`."""
    quiet_hours: QuietHours | None = field(default=None, metadata=sparse(QuietHours.read))
    """None takes those of the automation."""
    threshold: Threshold | None = field(default=None, metadata=sparse(Threshold.read))
    coalesce: Coalesce | None = field(default=None, metadata=sparse(Coalesce.read))
    """`call` only; of `manual` too where it joins: slots do not come in bursts."""
    stagger: timedelta | None = field(default=None, metadata=sparse(lambda seconds: timedelta(seconds=seconds)))
    """Schedules only: each slot is later, always by the same, and by less than this."""
    exact: bool = field(default=False, metadata=sparse())
    """It is never staggered."""


@dataclass(frozen=True, slots=True)
class Target:
    """What runs: a runner's kind and its config."""

    kind: str
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a result goes. `on` lists the outcomes that are carried there."""

    name: str
    """Unique within the automation."""
    kind: str
    config: Mapping[str, Any] = field(default_factory=dict)
    on: frozenset[str] = frozenset({"report", "action", "needs_you", "failed"})
    best_effort: bool = False
    """Give up without a notice."""
    quiet_hours: QuietHours | None = field(default=None, metadata=sparse(QuietHours.read))
    """What it is sent then waits until they end."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of an automation; None means none."""

    per_hour: int | None = 120
    queued: int | None = 100
    concurrent: int | None = 4
    timeout: timedelta | None = timedelta(minutes=5)
    output: int = 1_000_000
    """Bytes of output kept; what is beyond is cut and said so."""
    max_runs: int | None = field(default=None, metadata=sparse())
    """Runs that its schedules start in all; then it is completed."""


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed attempt is tried again."""

    attempts: int = 3
    delays: tuple[timedelta, ...] = (timedelta(seconds=30), timedelta(seconds=60), timedelta(minutes=5))
    """Before attempt 2, 3, ...; the last one repeats."""
    on: frozenset[str] = frozenset({"transient"})
    """`transient` always makes sense; `nonzero_exit` and `exception` must be declared."""


@dataclass(frozen=True, slots=True)
class Definition:
    """What a person wrote, complete with its defaults. Frozen; an edit is a new version."""

    name: str
    target: Target
    triggers: tuple[TriggerSpec, ...] = ()
    """Clock triggers and named others; `manual` and `call` always exist and need not be listed."""
    timezone: str = "UTC"
    description: str = ""
    owner: str = ""
    workspace: str = "default"
    limits: Limits = Limits()
    retry: Retry = Retry()
    cooldown: timedelta = timedelta(0)
    priority: int = 50
    idempotent: bool = False
    """Repeating an attempt that may have acted is safe."""
    on_crash: Literal["retry", "review"] | None = None
    """None: retry where nothing can have happened or `idempotent` is declared, review otherwise."""
    expires: Instant | None = None
    deliver: tuple[Destination, ...] = ()
    failures: Failures = field(default=Failures(), metadata=sparse(Failures.read))
    alerts: Alerts = field(default=Alerts(), metadata=sparse(Alerts.read))
    look: Look | None = field(default=None, metadata=sparse(Look.read))
    """What its runs look at first, whichever trigger started them."""
    lasts: timedelta | None = field(default=None, metadata=sparse(lambda seconds: timedelta(seconds=seconds)))
    """How long it acts since it was last renewed; it has no `expires` beside it."""
    quiet_hours: QuietHours | None = field(default=None, metadata=sparse(QuietHours.read))
    hold_on_incident: bool = field(default=False, metadata=sparse())
    """Nothing starts by itself while it has an open incident."""

    def look_of(self, trigger: str) -> Look | None:
        """What a run looks at first that the trigger of that name started."""
        for spec in self.triggers:
            if spec.look is not None and spec.name == trigger:
                return spec.look
        return self.look

    def as_json(self) -> str:
        """Canonical JSON, stable enough to hash; durations in seconds, instants in microseconds."""
        return json.dumps(plain(self), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    @lru_cache(maxsize=4096)
    def from_json(text: str) -> Definition:
        """The inverse of `as_json`. Raises ValueError when it is not one."""
        try:
            return Definition._of(read_back(text))
        except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"it is no definition: {type(error).__name__}: {error}") from error

    @staticmethod
    def _of(raw: Any) -> Definition:
        retry = raw["retry"]
        return Definition(
            **{key: raw[key] for key in ("name", "timezone", "description", "owner", "workspace", "priority",
                                         "idempotent", "on_crash")},
            target=Target(raw["target"]["kind"], raw["target"]["config"]),
            triggers=tuple(
                TriggerSpec(
                    name=t["name"], kind=t["kind"], enabled=t["enabled"],
                    overlap=Overlap(t["overlap"]) if t["overlap"] else None,
                    schedule=_schedule(**t["schedule"]) if t["schedule"] else None,
                    **sparse_of(TriggerSpec, t),
                )
                for t in raw["triggers"]
            ),
            limits=_limits(**raw["limits"]),
            retry=_retry(retry["attempts"], tuple(retry["delays"]), frozenset(retry["on"])),
            cooldown=timedelta(seconds=raw["cooldown"]),
            expires=None if raw["expires"] is None else Instant(raw["expires"]),
            deliver=tuple(
                Destination(d["name"], d["kind"], d["config"], frozenset(d["on"]), d["best_effort"],
                            **sparse_of(Destination, d))
                for d in raw["deliver"]
            ),
            **sparse_of(Definition, raw),
        )


# What many definitions say alike is made once.


def _schedule(bounds: Any = None, offset: int = 0, **others: Any) -> Schedule:
    found = _plain_schedule(**others)
    found = found if bounds is None else replace(found, bounds=Bounds.of(bounds))
    return replace(found, offset=offset) if offset else found


@lru_cache(maxsize=1024, typed=True)
def _plain_schedule(kind: ScheduleKind, expression: str, timezone: str, anchor: Instant | None) -> Schedule:
    return Schedule(kind, expression, timezone, anchor)


@lru_cache(maxsize=256, typed=True)
def _limits(*, timeout: float | None, **others: Any) -> Limits:
    return Limits(timeout=None if timeout is None else timedelta(seconds=timeout), **others)


@lru_cache(maxsize=256, typed=True)
def _retry(attempts: int, delays: tuple[float, ...], on: frozenset[str]) -> Retry:
    return Retry(attempts, tuple(timedelta(seconds=s) for s in delays), on)


def plain(value: Any) -> Any:
    """A value of these words as plain JSON."""
    if isinstance(value, timedelta):
        return micros(value) / 1_000_000
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {
            each.name: plain(held) for each in fields(value)
            if not left_out(each, held := getattr(value, each.name))
        }
    return value


@dataclass(frozen=True, slots=True)
class Policy:
    """What admission needs of a definition, resolved for one trigger and stored beside it as JSON."""

    overlap: Overlap
    per_hour: int | None
    queued: int | None
    cooldown: int
    """Microseconds; 0 is none."""
    expires: int | None
    priority: int
    attempts: int
    runner: str
    # Further fields are sparse: `name: kind = field(default=..., metadata=sparse(...))`.
    missed: Missed | None = field(default=None, metadata=sparse(Missed.read))
    """Of slots that passed; None takes the schedule's default."""
    quiet_hours: QuietHours | None = field(default=None, metadata=sparse(QuietHours.read))
    threshold: Threshold | None = field(default=None, metadata=sparse(Threshold.read))
    coalesce: Coalesce | None = field(default=None, metadata=sparse(Coalesce.read))
    max_runs: int | None = field(default=None, metadata=sparse())
    hold_on_incident: bool = field(default=False, metadata=sparse())

    def as_json(self) -> str:
        first = [getattr(self, each.name) for each in fields(self) if not each.metadata.get("sparse")]
        further = {
            each.name: plain(held) for each in fields(self)
            if each.metadata.get("sparse") and not left_out(each, held := getattr(self, each.name))
        }
        return json.dumps([*first, further] if further else first, separators=(",", ":"))

    @staticmethod
    @lru_cache(maxsize=4096)
    def from_json(text: str) -> Policy:
        """The inverse of `as_json`. Raises ValueError when it is not one."""
        try:
            overlap, *rest = read_back(text)
            further = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            found = Policy(Overlap(overlap), *rest, **sparse_of(Policy, further))
        except (TypeError, KeyError) as error:
            raise ValueError(f"it is no policy: {error}") from error
        if not all(isinstance(value, int) for value in (found.cooldown, found.priority, found.attempts)):
            raise ValueError("it is no policy: its numbers are none")
        if not all(value is None or isinstance(value, int) for value in (found.per_hour, found.queued, found.expires)):
            raise ValueError("it is no policy: its limits are none")
        return found


REPEATING_KINDS = frozenset({"clock"})
"""Kinds that come again by themselves: they skip while a run is going. Others cannot come again."""


def policy_of(definition: Definition, trigger: TriggerSpec) -> Policy:
    """The admission policy of one trigger of a definition."""
    default = Overlap.SKIP if trigger.kind in REPEATING_KINDS else Overlap.PARALLEL
    if trigger.missed is not None and trigger.missed.policy is MissedPolicy.RUN_ALL:
        default = Overlap.QUEUE  # otherwise the first would keep the others out
    return Policy(
        overlap=trigger.overlap or default,
        per_hour=definition.limits.per_hour,
        queued=definition.limits.queued,
        cooldown=micros(definition.cooldown),
        expires=definition.expires,
        priority=definition.priority,
        attempts=definition.retry.attempts,
        runner=definition.target.kind,
        missed=trigger.missed,
        quiet_hours=_in_force(trigger.quiet_hours or definition.quiet_hours),
        threshold=trigger.threshold,
        coalesce=trigger.coalesce,
        max_runs=definition.limits.max_runs if trigger.kind == "clock" else None,
        hold_on_incident=definition.hold_on_incident,
    )


def _in_force(quiet: QuietHours | None) -> QuietHours | None:
    return quiet if quiet is not None and quiet.spans else None
