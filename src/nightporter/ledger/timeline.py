"""A run from when it was due to where its result went, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from nightporter.clock import Instant
from nightporter.ledger.lines import DeliveryLine, RunLine, reason_sentence
from nightporter.ledger.moments import lasting, seconds
from nightporter.ledger.pages import plain
from nightporter.states import RunState


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of a run's state."""

    seq: int
    from_state: str | None
    to_state: str
    reason: str | None
    at: Instant
    worker: str | None
    token: int | None
    attempt: int
    error_class: str | None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Effect:
    """An externally visible act of a run: intended, then done."""

    key: str
    name: str
    state: str
    attempt: int
    token: int
    intended_at: Instant
    done_at: Instant | None
    permalink: str

    @property
    def marks_a_start(self) -> bool:
        """The desk's own mark of an attempt whose acts nobody sees; a person's effect may be called `started` too."""
        return self.name == "started" and self.key == f"started:{self.token}"

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Try:
    """One try of a delivery."""

    delivery_id: str
    n: int
    at: Instant
    result: str
    status: int | None
    error: str

    def as_json(self) -> dict[str, Any]:
        return plain(self)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a timeline."""

    at: Instant
    what: str
    """due | admitted | started | again | held | released | lost | review | ended | effect | try | delivered |
    not_delivered"""
    text: str
    after: float
    """Seconds since the run was due, or admitted where it had no slot."""
    attempt: int | None = None
    worker: str | None = None

    def as_json(self) -> dict[str, Any]:
        return plain(self)


def timeline(
    run: RunLine, transitions: Iterable[Transition], effects: Iterable[Effect], deliveries: Sequence[DeliveryLine],
    tries: Iterable[Try],
) -> tuple[Step, ...]:
    """The steps in the order in which they happened."""
    due = run.queued_at if run.scheduled_for is None else run.scheduled_for
    found: list[tuple[Instant, str, str, int | None, str | None]] = []
    if run.scheduled_for is not None:
        found.append((run.scheduled_for, "due", "its slot", None, None))
    since = "it was admitted" if run.scheduled_for is None else "it was due"
    found += [(t.at, *_changed(t, due, since), t.attempt or None, t.worker) for t in transitions]
    for effect in effects:
        if not effect.marks_a_start:
            known = "done" if effect.done_at is not None else "intended, and not known to be done"
            text = f"{effect.name} {known} {effect.permalink}".strip()
            found.append((effect.done_at or effect.intended_at, "effect", text, effect.attempt, None))
    names = {d.id: d.destination for d in deliveries}
    for one in tries:
        status = f" ({one.status})" if one.status else ""
        text = f"{names.get(one.delivery_id, one.delivery_id)}: {one.result}{status} {one.error}".strip()
        found.append((one.at, "try", text, one.n, None))
    for d in deliveries:
        if d.ended_at is not None:
            good = d.state in ("delivered", "unverified")
            said = " ".join(filter(None, (f"{d.destination}: {_words(d.state)}", d.evidence, d.error)))
            found.append((d.ended_at, "delivered" if good else "not_delivered", said, None, None))
    found.sort(key=lambda step: step[0])
    return tuple(
        Step(at, what, text, seconds(at - due) or 0.0, attempt, worker) for at, what, text, attempt, worker in found
    )


def _changed(t: Transition, due: Instant, since: str) -> tuple[str, str]:
    why = reason_sentence(t.reason)
    if t.to_state not in set(RunState):
        return t.to_state, "a state that this program does not know"
    state = RunState(t.to_state)
    match state:
        case RunState.QUEUED if t.from_state is None:
            return "admitted", "it became a run"
        case RunState.QUEUED if t.reason == "shutdown":
            return "released", "given back, the attempt uncounted: the desk was shut down"
        case RunState.QUEUED if t.reason == "not_started" and t.error_class is None:
            return "released", f"given back, the attempt uncounted. {why}"
        case RunState.QUEUED:
            return "again", f"queued again. {why}".strip()
        case RunState.RUNNING:
            return "started", f"claimed and started, {lasting(t.at - due)} after {since}"
        case RunState.WAITING:
            return "review", "waits for an answer"
        case RunState.HELD:
            return "held", why
        case RunState.LOST:
            return "lost", why
        case RunState.REVIEW:
            return "review", f"set aside for a person. {why}".strip()
        case (RunState.SUCCEEDED | RunState.FAILED | RunState.TIMED_OUT | RunState.CANCELLED | RunState.SKIPPED):
            return "ended", f"{_words(t.to_state)}{': ' + why if why else ''}"
        case _:
            assert_never(state)


def _words(state: str) -> str:
    return state.replace("_", " ")
