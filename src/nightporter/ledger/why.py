"""Reasons in words: the sentence of each, the figures behind it, and what a person can do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_never

from nightporter.clock import Instant
from nightporter.ledger.lines import reason_sentence
from nightporter.ledger.pages import plain
from nightporter.words import Reason


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that is so, with its name."""

    name: str
    value: str

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why, and what it is about."""

    kind: str
    """automation | run | firing"""
    id: str
    automation: str
    text: str
    verdict: str | None = None
    reason: str | None = None
    run_id: str | None = None
    firing_id: str | None = None
    slot: Instant | None = None
    """The slot that has not come yet, where it is about one."""
    facts: tuple[Fact, ...] = ()
    """What the text is made of."""

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def clause(sentence: str) -> str:
    """A sentence as part of another one: small first letter, no full stop."""
    text = sentence.strip().rstrip(".")
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def because(code: str | None, detail: str = "") -> str:
    """A stored reason as a clause, with the figures behind it in brackets."""
    figures = " ".join(detail.split())
    said = clause(reason_sentence(code))
    if not said:
        return figures
    return f"{said} ({figures})" if figures else said


def strange(state: str) -> str:
    """What can be said of something in a state that this program does not have, as a clause."""
    return f"it is in a state that this program does not know, {state!r}; `nightporter doctor` names it"


def remedy(code: str | None, *, name: str, run: str | None = None) -> str:
    """What to do about it, in a sentence; empty where there is nothing to do."""
    try:
        reason = Reason(code or "")
    except ValueError:  # none, or one of another release, whose remedy nobody here knows
        return ""
    match reason:
        case Reason.DISABLED:
            return "`enabled: true` at that trigger in its definition lets it fire."
        case Reason.PAUSED:
            return f"`nightporter enable {name}` lets it run again."
        case Reason.STOPPED:
            return ""  # its sentence says how to lift it
        case Reason.EXPIRED:
            return (f"`nightporter renew {name}` lets it act again where its `expires` is a duration; otherwise a later"
                    " `expires` in its definition does.")
        case Reason.EXCLUDED:
            return f"`nightporter run {name}` runs it all the same; `exclude` in its definition says what is left out."
        case Reason.DELETED:
            return ""
        case Reason.QUEUE_FULL:
            return "`limits: {queued: ...}` sets how many may wait."
        case Reason.OVERLAP:
            return "`overlap: queue` would let it wait its turn instead."
        case Reason.COOLDOWN:
            return f"`nightporter run {name}` is not held back by it."
        case Reason.HOURLY_CEILING:
            return f"`limits: {{per_hour: ...}}` sets it; `nightporter run {name}` is not held back by it."
        case Reason.CONCURRENCY_CEILING:
            return "`limits: {concurrent: ...}` sets how many."
        case Reason.QUIET_HOURS | Reason.THRESHOLD | Reason.INCIDENT_HOLD:
            return f"`nightporter run {name}` is not held back by it."
        case Reason.MAX_RUNS:
            return f"`nightporter enable {name}` begins a new count."
        case Reason.MISSED_POLICY:
            return f"`nightporter run {name}` runs it now; `missed:` in its definition says what others become."
        case Reason.STALE:
            return f"`nightporter run {name}` runs it now; `missed: {{within: ...}}` sets how long it may wait."
        case Reason.SUPPRESSED_DUPLICATE:
            return ""
        case Reason.PAYLOAD_TOO_LARGE:
            return "Send where the data is instead of the data."
        case Reason.UNREADABLE:
            return "`nightporter doctor` names what cannot be read."
        case Reason.NO_OP | Reason.PRECONDITION_UNMET:
            return ""
        case Reason.CHECK_FAILED:
            return f"`nightporter run {name} --dry-run` asks the look alone; `--skip-look` runs it without."
        case Reason.NONZERO_EXIT | Reason.EXCEPTION | Reason.TIMEOUT:
            return f"`nightporter logs {run}` shows what it printed." if run else ""
        case Reason.CONFIGURATION:
            return f"`nightporter show {name}` shows how it is configured."
        case Reason.PERMISSION_DENIED:
            return f"`nightporter show {name}` shows what it may reach."
        case Reason.PROVIDER_UNAVAILABLE:
            return ""
        case Reason.WORKER_LOST | Reason.SHUTDOWN | Reason.NOT_STARTED:
            return ""
        case Reason.MAY_HAVE_ACTED:
            return f"Look whether it happened, then `nightporter review {run} retry` or `dismiss`." if run else ""
        case Reason.CANCELLED_BY | Reason.SUPERSEDED | Reason.DISMISSED:
            return ""
        case Reason.REJECTED_BY_RECEIVER | Reason.GAVE_UP:
            return f"`nightporter deliver {run}` sends it again; the work is not repeated." if run else ""
        case Reason.UNREACHABLE:
            return ""
        case Reason.UNVERIFIED | Reason.HELD_QUIET:
            return ""
        case _:
            assert_never(reason)
