"""What is drawn: an automation as somebody may wish for it, and how an attempt may end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st
from night import DESTINATIONS, RUNNERS

from nightporter.clock import MINUTE, SECOND, Instant, rfc3339
from nightporter.words import (
    Definition,
    Destination,
    Ended,
    Ending,
    ErrorClass,
    Failures,
    Limits,
    Missed,
    MissedPolicy,
    Outcome,
    Overlap,
    QuietHours,
    Reason,
    Retry,
    Threshold,
    TriggerSpec,
)
from words import a_clock_trigger, a_definition

__all__ = ["DESTINATIONS", "ENDINGS", "RUNNERS", "SCHEDULES", "WISHES", "Plan", "Wish", "definition_of", "fixed"]

Plan = tuple[str, str, str]
"""Kind, expression and zone of a schedule."""

ROME, NEW_YORK = "Europe/Rome", "America/New_York"
SCHEDULES: tuple[Plan | int | None, ...] = (
    None, ("every", "45s", "UTC"), ("every", "7m", "UTC"), ("every", "2h", ROME), ("cron", "*/20 * * * *", "UTC"),
    ("cron", "0 */6 * * *", ROME), ("cron", "30 2 * * *", ROME), ("cron", "15 1,3 * * *", NEW_YORK),
    ("cron", "0 9 * * mon-fri", NEW_YORK), 3 * MINUTE, 90 * MINUTE, -MINUTE,
)
"""A number is a one-shot so far ahead."""

SENT_TO = {
    "hook": Destination("hook", "webhook", {"url": "https://one.example/in"}),
    "pager": Destination("pager", "pager", {}),
    "quiet": Destination("quiet", "webhook", {"url": "https://two.example/in"}, frozenset({"failed"}), True),
    "inbox": Destination("inbox", "announce"),
    "kept": Destination("kept", "silent", {}, frozenset({"report", "failed"})),
    "nowhere": Destination("nowhere", "none"),
}


@dataclass(frozen=True)
class Wish:
    """All that may be chosen of an automation; its name, and with it its workspace, is chosen beside."""

    runner: str = "echo"
    schedule: Plan | int | None = None
    clock_on: bool = True
    hook_on: bool = True
    clock: Overlap | None = None
    hook: Overlap | None = None
    per_hour: int | None = None
    queued: int | None = None
    concurrent: int | None = None
    cooldown: int = 0
    attempts: int = 3
    retry_on: frozenset[str] = frozenset({"transient"})
    idempotent: bool = False
    on_crash: str | None = None
    expires: int | None = None
    """Seconds from when it is written."""
    deliver: frozenset[str] = frozenset()
    priority: int = 50
    missed: tuple[str, int | None] | None = None
    """The policy of missed slots, and how many seconds it reaches back."""
    nth: tuple[int, int | None] | None = None
    """Only every so many arrivals make a run, and within how many seconds they count together."""
    quiet: int | None = None
    """From which hour on nothing starts by itself, for `QUIET` hours."""


QUIET = 4
OVERLAPS = st.sampled_from([None, Overlap.SKIP, Overlap.QUEUE, Overlap.QUEUE, Overlap.PARALLEL, Overlap.REPLACE])
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "runner": st.sampled_from(["echo", "python", "script", "function", "function"]),
    "schedule": st.sampled_from(SCHEDULES),
    "clock_on": st.sampled_from([*[True] * 7, False]),
    "hook_on": st.sampled_from([*[True] * 9, False]),
    "clock": OVERLAPS,
    "hook": OVERLAPS,
    "per_hour": st.sampled_from([None, None, None, None, 1, 4]),
    "queued": st.sampled_from([None, None, None, 100, 1, 2, 0]),
    "concurrent": st.sampled_from([None, None, 1, 2]),
    "cooldown": st.sampled_from([0, 0, 0, 0, 0, 60, 900]),
    "attempts": st.sampled_from([1, 2, 3]),
    "retry_on": st.sampled_from([frozenset({"transient"}), frozenset({"transient", "nonzero_exit", "exception"}),
                                 frozenset()]),
    "idempotent": st.sampled_from([False, False, True]),
    "on_crash": st.sampled_from([None, None, "retry", "review"]),
    "expires": st.sampled_from([*[None] * 8, 600, 86_400]),
    "deliver": st.sampled_from([frozenset(), *map(frozenset, (
        {"hook"}, {"pager"}, {"hook", "inbox"}, {"hook", "pager", "quiet"}, {"inbox", "kept", "nowhere"}))]),
    "priority": st.sampled_from([50, 50, 5, 90]),
    "missed": st.sampled_from([
        None, None, None, ("run_once", None), ("run_once", 1800), ("skip", None), ("review", None), ("review", 7200),
        ("run_all", None), ("run_all", 600)]),
    "nth": st.sampled_from([*[None] * 6, (2, None), (3, None), (2, 60), (3, 3600)]),
    "quiet": st.sampled_from([*[None] * 6, 0, 6, 22]),
}
assert set(PARTS) == {f.name for f in fields(Wish)}


WISHES: st.SearchStrategy[Wish] = st.builds(Wish, **PARTS)


def fixed(wish: Wish, now: Instant) -> Wish:
    """The wish with its instants: what was so far ahead is at a time."""
    changes: dict[str, Any] = {}
    if wish.schedule is None and (wish.clock is not None or not wish.clock_on):
        changes.update(clock=None, clock_on=True)  # of a trigger that is not there
    contradict = wish.missed is not None and wish.missed[0] == "run_all" and wish.clock in (
        Overlap.SKIP, Overlap.REPLACE)
    if wish.schedule is None or contradict:
        changes["missed"] = None
    if isinstance(wish.schedule, int):
        changes["schedule"] = ("at", rfc3339(Instant((now + wish.schedule) // SECOND * SECOND)), "UTC")
    if wish.expires is not None and wish.expires < 10**12:
        changes["expires"] = now + wish.expires * SECOND
    return Wish(**{**{f.name: getattr(wish, f.name) for f in fields(Wish)}, **changes}) if changes else wish


@lru_cache(maxsize=4096)
def definition_of(name: str, wish: Wish) -> Definition:
    """What is written for a wish whose instants are fixed."""
    nth = None if wish.nth is None else Threshold(
        wish.nth[0], None if wish.nth[1] is None else timedelta(seconds=wish.nth[1]))
    triggers = [TriggerSpec("hook", "call", overlap=wish.hook, enabled=wish.hook_on, threshold=nth)]
    if wish.schedule is not None:
        kind, expression, zone = wish.schedule  # type: ignore[misc]  # fixed: it is a plan
        triggers.append(replace(a_clock_trigger(
            expression, kind=kind, timezone=zone, overlap=wish.clock, enabled=wish.clock_on,
            missed=None if wish.missed is None else Missed(
                MissedPolicy(wish.missed[0]), None if wish.missed[1] is None else timedelta(seconds=wish.missed[1]))),
            threshold=nth))
    return a_definition(
        name, runner=wish.runner, triggers=triggers, deliver=[SENT_TO[d] for d in sorted(wish.deliver)],
        limits=Limits(per_hour=wish.per_hour, queued=wish.queued, concurrent=wish.concurrent, timeout=None),
        retry=Retry(attempts=wish.attempts, on=wish.retry_on), cooldown=timedelta(seconds=wish.cooldown),
        idempotent=wish.idempotent, on_crash=wish.on_crash, priority=wish.priority,
        expires=None if wish.expires is None else Instant(wish.expires), workspace=workspace_of(name),
        quiet_hours=None if wish.quiet is None else QuietHours(
            (f"{wish.quiet:02}:00-{(wish.quiet + QUIET) % 24:02}:00",)),
        failures=Failures(pause_after=None, pause_after_schedule_errors=None),
    )


def workspace_of(name: str) -> str:
    return "yard" if name == "cellar" else "default"


SOON = timedelta(seconds=90)
ENDINGS: dict[str, Callable[[], Ended]] = {
    "words": lambda: Ended.ok("three things to know"),
    "data": lambda: Ended.ok(data={"things": 3}),
    "nothing": lambda: Ended.ok(""),
    "needs you": lambda: Ended(Ending.OK, text="which one?", outcome=Outcome.NEEDS_YOU),
    "says it failed": lambda: Ended(Ending.OK, text="no", outcome=Outcome.FAILED),
    "transient": lambda: Ended.failed(ErrorClass.TRANSIENT, "503"),
    "transient, later": lambda: Ended.failed(ErrorClass.TRANSIENT, "429", retry_after=SOON),
    "nonzero": lambda: Ended.failed(ErrorClass.NONZERO_EXIT, "exit 3", exit_code=3),
    "exception": lambda: Ended.failed(ErrorClass.EXCEPTION, "KeyError"),
    "configuration": lambda: Ended.failed(ErrorClass.CONFIGURATION, "no such file"),
    "timeout": lambda: Ended.timed_out("too long"),
    "cancelled": lambda: Ended.cancelled("cancelled by ann"),
    "hold": lambda: Ended(Ending.HOLD, error="come back"),
    "hold, soon": lambda: Ended(Ending.HOLD, error="come back", retry_after=SOON),
    "shut down": lambda: Ended(Ending.CANCELLED, reason=Reason.SHUTDOWN),
    "not started": lambda: Ended(Ending.CANCELLED, reason=Reason.NOT_STARTED, error="no folder"),
    "may have acted": lambda: Ended(Ending.ERROR, reason=Reason.MAY_HAVE_ACTED, error="it may have happened"),
}
