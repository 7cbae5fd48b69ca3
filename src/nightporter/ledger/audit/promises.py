"""What one clock trigger promised: its schedules, the spans in which each owed its slots, and the lines that answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nightporter.clock import Instant
from nightporter.errors import NightporterError
from nightporter.ledger.audit.check import FOREVER, Row, Terms
from nightporter.rules.schedule import next_due
from nightporter.store import Tx
from nightporter.store.tx_clock import schedule_from
from nightporter.words import Schedule, Verdict

PAGE = 500
LINES_AT_ONCE = 100_000
"""Lines that are held in memory, as far as the triggers' own counts tell."""
MOST_SPANS = 10_000


@dataclass(frozen=True, slots=True)
class Version:
    """A schedule, and the span after `since` and until `until` in which its slots were owed."""

    number: int
    schedule: Schedule
    tzdata: str
    since: Instant
    until: Instant | None


@dataclass(frozen=True, slots=True)
class Line:
    """A line that answers the slots from `first` to `last`."""

    id: str
    version: int
    wide: bool
    """It answers several at once, and says how many."""
    first: Instant
    last: Instant
    slots: int
    exact: bool
    verdict: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Promise:
    """A trigger that has, or had, a schedule."""

    trigger_id: str
    versions: tuple[Version, ...]
    """Those that can be read, oldest first."""
    next_fire_at: Instant | None
    tzdata: str
    """Of the armed slot."""
    acts: bool
    """It is on, in the loop, and its automation is active."""
    owed_until: Instant | None
    """No slot after it is owed yet, or any more; None: none at all."""
    firings: int

    @property
    def in_force(self) -> Version | None:
        return next((v for v in self.versions if v.until is None), None)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some triggers and their lines within a span of time. Large triggers come alone, span after span."""

    promises: Sequence[Promise]
    lines: dict[str, list[Line]]
    since: int
    until: int
    first: bool
    """The first span of these triggers."""
    last: bool


def batches(tx: Tx, terms: Terms, *, stride: int) -> Iterator[Batch]:
    """Every `stride`-th trigger with its lines, a bounded number of lines at a time."""
    for promises in _pages(tx, terms, stride):
        waiting: list[Promise] = []
        for promise in promises:
            if promise.firings > LINES_AT_ONCE:
                yield from _spans(tx, terms, promise)
                continue
            waiting.append(promise)
            if sum(p.firings for p in waiting) > LINES_AT_ONCE:
                yield _batch(tx, waiting)
                waiting = []
        if waiting:
            yield _batch(tx, waiting)


def _pages(tx: Tx, terms: Terms, stride: int) -> Iterator[list[Promise]]:
    after, passed = "", terms.now // 60_000_000 % stride  # each audit begins elsewhere, so that in time all have a turn
    while rows := tx.clock_triggers(after=after, room=PAGE):
        after = rows[-1][0]
        chosen = [row for n, row in enumerate(rows, passed) if n % stride == 0]
        passed += len(rows)
        versions: dict[str, list[Version]] = defaultdict(list)
        for trigger, number, schedule, tzdata, since, until in tx.clock_versions([row[0] for row in chosen]):
            read = _readable(schedule)
            if read is not None:
                versions[trigger].append(Version(number, read, tzdata, since, until))
        asleep = tx.open_pauses({row[1] for row in chosen})
        yield [_promise(row, versions[row[0]], asleep.get(row[1]), terms) for row in chosen]


def _promise(row: Row, versions: Iterable[Version], asleep_since: Instant | None, terms: Terms) -> Promise:
    trigger, _, enabled, removed_at, error, next_fire_at, tzdata, _, firings, state, state_at = row
    on = bool(enabled) and removed_at is None and not error
    kept = tuple(v for v in versions if on or v.until is not None)  # what is off owes nothing now
    owed_until: Instant | None = terms.now
    if error:
        owed_until = None  # out of the loop: named in the quarantine, and nobody can say what it owes
    elif asleep_since is not None:
        owed_until = asleep_since
    elif next_fire_at is not None:
        owed_until = Instant(min(terms.now, next_fire_at - 1))
    elif state not in ("active", "completed"):
        owed_until = state_at
    return Promise(trigger, kept, next_fire_at, tzdata, on and state == "active", owed_until, firings)


def _readable(text: str) -> Schedule | None:
    """None: the clock will put it into quarantine when its slot comes."""
    try:
        schedule = schedule_from(text)
        next_due(schedule, Instant(0))
    except (NightporterError, ValueError, TypeError, ArithmeticError):
        return None
    return schedule


def _spans(tx: Tx, terms: Terms, promise: Promise) -> Iterator[Batch]:
    low = max([terms.ledger_pruned_before, *(v.since for v in promise.versions[:1])])
    n = min(promise.firings // LINES_AT_ONCE + 1, MOST_SPANS)  # the count may be anything
    edges = [-FOREVER, *(low + (terms.now - low) * i // n for i in range(1, n)), FOREVER]
    for since, until in pairwise(edges):
        yield _batch(tx, [promise], since, until)


def _batch(tx: Tx, promises: Sequence[Promise], since: int = -FOREVER, until: int = FOREVER) -> Batch:
    lines: dict[str, list[Line]] = defaultdict(list)
    for trigger, id, version, verdict, first, last, slots, exact, reason in tx.clock_lines(
        [p.trigger_id for p in promises], since=since, until=until
    ):
        wide = verdict == Verdict.COLLAPSED
        lines[trigger].append(Line(id, version, wide, first, last, slots or 0, exact != 0, verdict, reason))
    return Batch(promises, lines, since, until, since == -FOREVER, until == FOREVER)
