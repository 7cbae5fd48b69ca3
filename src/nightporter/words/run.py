"""Run: one piece of work. Here is what a runner takes and what it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from nightporter.clock import Instant, rfc3339
from nightporter.words.automation import AutomationId, TriggerId
from nightporter.words.firing import RunId
from nightporter.words.reason import Reason


class Outcome(StrEnum):
    """What a run amounted to; `deliver: on` chooses by it."""

    REPORT = "report"
    """Text, and nothing done to the world that we know of."""
    ACTION = "action"
    """It touched the world: an effect is done."""
    NOOP = "noop"
    """Nothing to say; nothing is delivered."""
    NEEDS_YOU = "needs_you"
    """It cannot go on without a person."""
    FAILED = "failed"
    """It did not end well: the run failed or timed out."""


class Ending(StrEnum):
    """How an attempt ended, as the runner saw it."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    HOLD = "hold"
    """The provider asked us to come back: no failure, no attempt used."""


class ErrorClass(StrEnum):
    """What kind of error; `rules.retry` decides by it and nothing else does."""

    TRANSIENT = "transient"
    """The network, a 5xx, a 408, a 429: the same call may work later."""
    NONZERO_EXIT = "nonzero_exit"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    CONFIGURATION = "configuration"
    PERMISSION = "permission"
    RESOURCE = "resource"
    """Killed by the kernel (137 without our doing): tried again like a transient one."""
    WORKER_LOST = "worker_lost"


@dataclass(frozen=True, slots=True)
class Work:
    """What a runner takes: everything it may know of the run."""

    run_id: RunId
    token: int
    """The claim it runs under; every write is fenced with it."""
    attempt: int
    automation_id: AutomationId
    automation: str
    """The automation's name."""
    workspace: str
    trigger_id: TriggerId
    source: str
    """The trigger's kind."""
    kind: str
    """The target's kind: which runner."""
    config: Mapping[str, Any]
    text: str = ""
    payload: Any = None
    """The parsed JSON of the firing."""
    scheduled_for: Instant | None = None
    started_at: Instant | None = None
    timeout: timedelta | None = None
    output_limit: int = 1_000_000
    look: str | None = None
    """What its look found to do, perhaps an empty text; None where it had none, or none was asked."""
    scratch: Path | None = None
    """A folder of this run's own, there before the start and removed some time after the end."""

    @property
    def environment(self) -> dict[str, str]:
        """What a child process is told, beside its scrubbed environment."""
        facts = {
            "NIGHTPORTER_AUTOMATION": self.automation,
            "NIGHTPORTER_RUN_ID": self.run_id,
            "NIGHTPORTER_TRIGGER": self.trigger_id.rpartition("/")[2],
            "NIGHTPORTER_ATTEMPT": str(self.attempt),
        }
        if self.scheduled_for is not None:
            facts["NIGHTPORTER_SCHEDULED_FOR"] = rfc3339(self.scheduled_for) or ""
        if self.look is not None:
            facts["NIGHTPORTER_LOOK"] = self.look
        return facts


@dataclass(frozen=True, slots=True)
class Ended:
    """What a runner leaves. Runners do not raise for what went wrong with the work: they say it here."""

    ending: Ending
    text: str = ""
    """The report; empty means there was nothing to say."""
    data: Any = None
    """A JSON value beside the text, if the target gave one."""
    error: str = ""
    """One line a person can act on."""
    error_class: ErrorClass | None = None
    reason: Reason | None = None
    """None: derived from the error class."""
    exit_code: int | None = None
    retry_after: timedelta | None = None
    outcome: Outcome | None = None
    """Set by targets that declare one; None: report, or noop where the text is empty."""
    log: str = ""
    """What it printed beside its report (stderr), cut to the output limit."""

    @staticmethod
    def ok(text: str = "", *, data: Any = None, log: str = "", exit_code: int | None = None) -> Ended:
        return Ended(Ending.OK, text=text, data=data, log=log, exit_code=exit_code)

    @staticmethod
    def failed(error_class: ErrorClass, error: str, *, text: str = "", log: str = "",
               exit_code: int | None = None, retry_after: timedelta | None = None) -> Ended:
        return Ended(Ending.ERROR, text=text, error=error, error_class=error_class, log=log,
                     exit_code=exit_code, retry_after=retry_after)

    @staticmethod
    def timed_out(error: str, *, text: str = "", log: str = "") -> Ended:
        return Ended(Ending.TIMEOUT, text=text, error=error, error_class=ErrorClass.TIMEOUT, log=log)

    @staticmethod
    def cancelled(error: str = "", *, text: str = "", log: str = "") -> Ended:
        return Ended(Ending.CANCELLED, text=text, error=error, log=log)


class Desk(Protocol):
    """What a runner may ask of the desk while it works. Each call is durable when it returns."""

    async def child_started(self, work: Work, group: int, started: int) -> None:
        """Write down a child's process group and the kernel's start time of its leader, before it is let go.

        Raises LostClaim when the claim is no longer ours: the child must not be let go.
        """

    async def effect_intended(self, work: Work, name: str, key: str) -> str | None:
        """Write the intent of an effect. Returns the permalink (perhaps empty) when it is done already: do not
        repeat it. Raises LostClaim; raises MayHaveHappened when an earlier attempt left an intent without a done: let
        it through, and a person is asked."""

    async def effect_done(self, work: Work, key: str, permalink: str = "") -> None:
        """Write that the effect happened. Raises LostClaim."""


class Runner(Protocol):
    """What executes a target of one kind.

    Two more attributes, where it has them, act: `launches` (a bool) says that it starts a child, which it writes down
    by `Desk.child_started` before it lets it go; `serves(automation's name, config)` says whether this process can
    execute such a target, and what it cannot stays queued for one that can.
    """

    kind: str
    opaque: bool
    """True: the desk cannot see what it does, so a started attempt counts as having acted."""

    async def run(self, work: Work, desk: Desk) -> Ended:
        """Execute one attempt. Cancelling the task must end the work itself, child processes included, before the
        CancelledError leaves, or `Ended.cancelled` is returned with what it has said by then. The timeout is the
        runner's to enforce when it has a process to kill; dispatch cancels the task a moment later in any case."""


class QuickRunner(Protocol):
    """A runner that neither waits nor does I/O: dispatch calls it in place, without a task."""

    kind: str
    opaque: bool

    def run_now(self, work: Work) -> Ended: ...

