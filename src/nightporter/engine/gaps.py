"""Gaps: spans in which slots passed that nobody could answer in time, because the machine slept, the desk stood still
or was down, its clock was set, or its store was put back. Written down once each."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from nightporter import logs
from nightporter.clock import SECOND, Clock, Instant, rfc3339
from nightporter.rules.missed import NOT_MISSED
from nightporter.sources.spacing import FREE_AT
from nightporter.store import Tx

log = logs.get(__name__)

STEP: Final = 10 * SECOND
"""A clock that is off by less was corrected, and not set."""
STOOD_STILL: Final = 20 * SECOND
"""Between two looks that are a second apart."""
LEDGER: Final = "ledger"
"""The setting by which a store is known again after it was put back."""


@dataclass(frozen=True, slots=True)
class Gap:
    """One of them; its words are those of the table."""

    kind: str
    begin: Instant
    """What the wall showed before it."""
    end: Instant
    """And after it."""


class ClockWatch:
    """Compares the wall with a clock that never steps, each second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen = self._look()

    def _look(self) -> tuple[Instant, int]:
        return self._clock.now(), self._clock.elapsed()

    def look(self) -> list[Gap]:
        """What has happened to the clock since the last look."""
        (wall, elapsed), self._seen = self._seen, self._look()
        now, passed = self._seen[0], self._seen[1] - elapsed
        due = Instant(wall + passed)
        """What the wall would show had nobody set it."""
        found = []
        if passed > STOOD_STILL:
            found.append(Gap("sleep", wall, due))
        if now - due > STEP:
            found.append(Gap("step_forward", due, now))
        elif due - now > STEP:
            found.append(Gap("step_back", now, due))
        return found


def write_down(tx: Tx, gaps: list[Gap], *, worker: str, now: Instant) -> None:
    """Gaps as rows; a row says from when to when on the wall, whichever way that went. Where somebody set it, whatever
    waits goes on waiting for as long as it was to."""
    for gap in gaps:
        if not tx.write_gap(gap.kind, gap.begin, gap.end, worker=worker):
            continue
        if gap.kind == "step_forward":
            tx.move_waits(gap.end - gap.begin, since=gap.begin, now=now)
        elif gap.kind == "step_back":  # between the step and the look that noticed it lay no more than that
            tx.move_waits(gap.begin - gap.end, since=Instant(gap.begin - STOOD_STILL), now=now)
            if (free := tx.setting_instant(FREE_AT)) is not None and free > gap.end:
                tx.put_setting(FREE_AT, str(free - (gap.end - gap.begin)))


def say(gap: Gap) -> None:
    """Once, for whoever watches."""
    span = {"begin": rfc3339(gap.begin), "end": rfc3339(gap.end)}
    match gap.kind:
        case "step_back":
            log.warning("clock.set_back", **span, next="no slot fires twice; it goes on when the clock has caught up")
        case "restored":
            log.warning("clock.store_was_put_back", **span, next="what may have run before waits: nightporter missed")
        case _:
            log.warning("clock.gap", kind=gap.kind, **span)


class Mark:
    """A file beside the store that says up to when the store was kept: one that knows less was put back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = Instant(0)

    def write(self, ledger: str, at: Instant) -> None:
        """Of the latest instant at which something was committed; an older one changes nothing."""
        if at <= self._written:
            return
        beside = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):  # a full disk is said elsewhere
            beside.write_text(json.dumps({"ledger": ledger, "at": at}), encoding="utf-8")
            beside.replace(self._path)
            self._written = at

    def read(self, ledger: str) -> Instant | None:
        """Up to when this store was kept; None where nothing says so."""
        try:
            said = json.loads(self._path.read_text(encoding="utf-8"))
            return Instant(int(said["at"])) if said["ledger"] == ledger else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


def ledger_of(tx: Tx) -> str:
    """The name by which this store is known; given once."""
    name = tx.setting(LEDGER)
    if name is None:
        name = uuid4().hex
        tx.put_setting(LEDGER, name)
    return name


def since_it_was_kept(high: Instant | None, kept: Instant | None, now: Instant) -> list[Gap]:
    """What lies between the last time that a store was kept and now. `high`: the latest wall clock that it knows of;
    `kept`: what the file beside it says of that."""
    if high is None:
        return []
    found = []
    if kept is not None and kept - high > NOT_MISSED:
        found.append(Gap("restored", high, kept))
    latest = max(high, kept or high)
    if now - latest > NOT_MISSED:
        found.append(Gap("down", latest, now))
    elif latest - now > STEP:
        found.append(Gap("step_back", now, latest))
    return found
