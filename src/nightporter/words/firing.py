"""Firing: one arrival, the same shape whatever the source."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NewType

from nightporter.clock import Instant
from nightporter.words.automation import TriggerId
from nightporter.words.reason import Reason, Verdict

FiringId = NewType("FiringId", str)
RunId = NewType("RunId", str)


@dataclass(frozen=True, slots=True)
class Firing:
    """What a source hands to admission. `external_id` is never empty: drawn at the door where the sender names none."""

    trigger_id: TriggerId
    external_id: str
    scheduled_for: Instant | None = None
    """The slot of a clock firing; None for what merely arrived."""
    text: str = ""
    payload: str | None = None
    """JSON text; None where there is none."""
    sender: str = ""
    metadata: str | None = None
    """JSON text: what the source adds, such as the headers of a webhook. The sources there are add nothing."""
    root: RunId | None = None
    """The run that caused it all, where a run did; none does before chains exist."""
    depth: int = 0
    """How many runs lie between the two; kept, and limited once chains exist."""
    replay_of: RunId | None = None
    """The run this firing asks to do again."""
    catchup: bool = False
    """It makes up for a slot that was missed."""
    not_before: Instant | None = None
    """Its run is not begun before; None: at once."""
    stale_at: Instant | None = None
    """A run of it that has not begun by then is not begun any more; None: whenever."""
    drawn: bool = False
    """The sender named no external id and the door drew one: nobody can tell it twice, so it is not remembered."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A verdict the clock already reached about slots it answers without a run: missed, collapsed, paused, left out."""

    trigger_id: TriggerId
    external_id: str
    verdict: Verdict
    reason: Reason
    slot_from: Instant
    slot_to: Instant
    count: int
    exact: bool = True
    """False: `count` is a lower bound, because the enumeration was cut."""
    detail: str = ""
    """As of an answer: the day or the window that left them out."""
    card: bool = False
    """A person decides whether it runs after all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What admission made of one firing."""

    verdict: Verdict
    reason: Reason | None
    run_id: RunId | None
    """The run it became; for a repeat, the run the first telling became, if it became one."""
    firing_id: FiringId
    detail: str = ""
    """The figures behind the reason: "the ceiling is 5; the next is free at ..."."""


def _stamp(prefix: str, at: Instant, *parts: str) -> str:
    # 11 hex digits of milliseconds sort by time until the year 2527 and are kind to the index.
    digest = blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
    return f"{prefix}_{at // 1000:011x}{digest}"


def run_id_for(trigger: TriggerId, external_id: str, first_seen: Instant) -> RunId:
    """Derived, never drawn: the same telling always names the same run. `first_seen` is its slot or arrival."""
    return RunId(_stamp("run", first_seen, trigger, external_id))


def firing_id_for(trigger: TriggerId, external_id: str, arrived: Instant, nth: int = 0) -> FiringId:
    """As `run_id_for`, and of the arrival too, so that repeats differ; `nth` tells apart those of one instant."""
    return FiringId(_stamp("fir", arrived, trigger, external_id, str(arrived), str(nth)))


def derived_id(prefix: str, at: Instant, *parts: str) -> str:
    """Any other id: a time prefix and a hash of what makes it the one it is."""
    return _stamp(prefix, at, *parts)
