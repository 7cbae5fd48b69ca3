"""The enumeration: every slot that was owed, compared with every line that answers one. The strongest check there is.

Each version of a schedule owes its slots after `valid_from`, up to and including `valid_to`; the one in force owes
them up to now, short of the armed slot. What retention may have deleted is not asked for, nor what a pause that is
still open will answer with one line when it ends.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from nightporter.clock import DAY, Instant, rfc3339
from nightporter.ledger.audit.check import Tally, Terms
from nightporter.ledger.audit.promises import Batch, Line, Promise, Version, batches
from nightporter.ledger.audit.report import CheckResult
from nightporter.rules.exclusions import excluded, next_running
from nightporter.rules.schedule import count_between, next_due, slots_between
from nightporter.rules.zones import TZDATA
from nightporter.store import Tx
from nightporter.words import Reason, Verdict

MOST_MISSING = 10_000
"""Slots of one version that are counted as silent at most."""

_OFFSET = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{0,2})$", re.IGNORECASE)


class Enumeration:
    """One walk over the triggers of the clock."""

    def __init__(self, tx: Tx, terms: Terms, *, sample: int | None) -> None:
        """`sample`: how many triggers are looked at, at most; each audit begins elsewhere. None: all."""
        self._tx = tx
        self._terms = terms
        self._stride = 1 if sample is None else max(1, -(-tx.clock_count() // max(sample, 1)))
        self._silent, self._phantom, self._counts = Tally(), Tally(), Tally()
        self._unarmed, self._misarmed, self._left_out = Tally(), Tally(), Tally()
        self._triggers = self._slots = self._lines = 0
        self._answered: Instant | None = None
        """The latest slot of the trigger at hand that has its answer."""

    def results(self) -> list[CheckResult]:
        for batch in batches(self._tx, self._terms, stride=self._stride):
            for promise in batch.promises:
                self._compare(promise, batch.lines.get(promise.trigger_id, []), batch)
        return [
            self._silent.result("I-03", "no slot is silent: each one owed has its line"),
            self._phantom.result("I-04", "no line answers a slot that its schedule does not have"),
            self._counts.result("I-10b", "a line for several slots counts them rightly"),
            self._unarmed.result("I-14", "what acts and has a slot to come is armed"),
            self._misarmed.result("I-18", "the armed slot is the next of its schedule"),
            self._left_out.result("N-23", "what a schedule leaves out runs nothing, and nothing else is left out"),
        ]

    @property
    def counts(self) -> dict[str, int]:
        """How much was gone through."""
        return {"triggers": self._triggers, "slots": self._slots, "lines": self._lines}

    def _compare(self, promise: Promise, lines: Sequence[Line], batch: Batch) -> None:
        if batch.first:
            self._triggers += 1
            self._answered = None
        self._lines += len(lines)
        alone: dict[Instant, list[Line]] = defaultdict(list)
        for line in lines:
            self._answered = Instant(max(self._answered or 0, line.last))
            self._exclude(promise, line)
            if line.wide:
                if line.first > batch.since:  # a range that began before was counted with the span it began in
                    self._count(promise, line)
            else:
                alone[line.first].append(line)
        ranges = sorted((line.first, line.last) for line in lines if line.wide)
        unanswered = {
            version.number: self._unanswered(promise, version, alone, ranges, batch) for version in promise.versions
        }
        self._strays(promise, alone, unanswered)
        for number, slots in unanswered.items():
            for slot in slots:
                if _in_doubt(promise, number, slot):
                    continue
                self._silent.add(f"{promise.trigger_id} owed the slot {rfc3339(slot)} under version {number}; "
                                 "no line answers it")
        if batch.last:
            self._arming(promise)

    def _unanswered(
        self, promise: Promise, version: Version, alone: dict[Instant, list[Line]],
        ranges: Sequence[tuple[Instant, Instant]], batch: Batch,
    ) -> list[Instant]:
        """The slots that a version owed and nobody answered; those answered alone are taken out of `alone`."""
        if promise.owed_until is None:
            return []
        low = max(version.since, self._terms.ledger_pruned_before, batch.since)
        high = min(promise.owed_until, batch.until, *([] if version.until is None else [version.until]))
        missing = []
        at = 0
        for slot in slots_between(version.schedule, Instant(low), Instant(high)):
            self._slots += 1
            if alone.pop(slot, None):
                continue
            while at < len(ranges) and ranges[at][1] < slot:
                at += 1
            if at == len(ranges) or slot < ranges[at][0]:
                missing.append(slot)
                if len(missing) == MOST_MISSING:  # where it begins is no instant that anybody wrote
                    break
        return missing

    def _strays(
        self, promise: Promise, alone: dict[Instant, list[Line]], unanswered: dict[int, list[Instant]]
    ) -> None:
        """Lines whose slot was not among those owed: older than what is asked for, or of no schedule at all."""
        versions = {version.number: version for version in promise.versions}
        for slot in sorted(alone):
            for line in alone[slot]:
                version = versions.get(line.version)
                if version is None or next_due(version.schedule, Instant(slot - 1)) == slot:
                    continue
                if _may_have_moved(version) and (
                    _take_near(unanswered.get(version.number, []), slot) or _is_near(version, slot)
                ):
                    continue
                self._phantom.add(f"{line.id} answers the slot {rfc3339(slot)} of {promise.trigger_id}, which version "
                                  f"{line.version} of its schedule does not have")

    def _count(self, promise: Promise, line: Line) -> None:
        version = next((v for v in promise.versions if v.number == line.version), None)
        if version is None or line.slots < 1 or _may_have_moved(version):
            return
        cap = line.slots + 1 if line.exact else line.slots
        count, exact = count_between(version.schedule, Instant(line.first - 1), line.last, cap=cap)
        if (count, exact) != (line.slots, True) if line.exact else count < line.slots:
            says = f"{line.slots}" if line.exact else f"at least {line.slots}"
            self._counts.add(f"{line.id} says {says} slots of {promise.trigger_id} from {rfc3339(line.first)} to "
                             f"{rfc3339(line.last)}; there are {count}" + ("" if exact else " or more"))

    def _exclude(self, promise: Promise, line: Line) -> None:
        version = next((v for v in promise.versions if v.number == line.version), None)
        if version is None or _may_have_moved(version):
            return
        if line.reason == Reason.EXCLUDED:
            running = next_running(version.schedule, Instant(line.first - 1))
            if running is not None and running <= line.last:
                self._left_out.add(f"{line.id} leaves {rfc3339(running)} of {promise.trigger_id} out, "
                                   "which its schedule does not")
        elif line.verdict == Verdict.ADMITTED and (why := excluded(version.schedule, line.first)):
            self._left_out.add(f"{line.id} admits the slot {rfc3339(line.first)} of {promise.trigger_id}, which its "
                               f"schedule leaves out: {why}")

    def _arming(self, promise: Promise) -> None:
        version, armed, now = promise.in_force, promise.next_fire_at, self._terms.now
        if version is None or not promise.acts:
            return
        if armed is None:
            coming = next_due(version.schedule, now)
            if coming is not None:
                self._unarmed.add(f"{promise.trigger_id} has a slot to come at {rfc3339(coming)} and is not armed")
            return
        if promise.tzdata != TZDATA or (version.schedule.kind == "at" and self._answered is not None):
            return  # not yet recomputed with our zones; or I-16's business
        if next_due(version.schedule, Instant(armed - 1)) != armed:
            self._misarmed.add(f"{promise.trigger_id} is armed for {rfc3339(armed)}, which its schedule does not have")
            return
        expected = next_due(version.schedule, Instant(max(now, version.since, self._answered or 0)))
        if expected is not None and _in_doubt(promise, version.number, expected):
            expected = next_due(version.schedule, expected)  # that one had its answer before the zone's rules changed
        if armed > now and expected is not None and armed > expected:
            self._misarmed.add(f"{promise.trigger_id} is armed for {rfc3339(armed)}, beyond its next slot "
                               f"{rfc3339(expected)}")


def _may_have_moved(version: Version) -> bool:
    """Whether its slots were computed with other zone data than ours, and depend on them."""
    schedule = version.schedule
    if version.tzdata == TZDATA or schedule.timezone == "UTC":
        return False
    if schedule.bounds is not None and schedule.bounds.seasons:
        return True
    return schedule.kind != "every" and (schedule.kind != "at" or _OFFSET.search(schedule.expression) is None)


def _in_doubt(promise: Promise, number: int, slot: Instant) -> bool:
    """Whether nobody can tell that a version owed the slot: where it begins or ends, other zone data than ours decided
    which of the occurrences around were its own."""
    at = next(i for i, version in enumerate(promise.versions) if version.number == number)
    version, before = promise.versions[at], promise.versions[at - 1] if at else None
    moved = _may_have_moved(version)
    if moved and version.until is not None and version.until - slot < DAY:
        return True
    return (moved or (before is not None and _may_have_moved(before))) and slot - version.since <= DAY


def _is_near(version: Version, slot: Instant) -> bool:
    """Whether the schedule has a slot within a day, whichever version it belongs to by our zone data."""
    near = next_due(version.schedule, Instant(slot - DAY - 1))
    return near is not None and near <= slot + DAY


def _take_near(slots: list[Instant], slot: Instant) -> bool:
    """Take the slot nearest to this one out, if there is one within a day: where a zone changed its rules, the slot
    that was answered stands for the one that we compute."""
    near = min(slots, key=lambda s: abs(s - slot), default=None)
    if near is None or abs(near - slot) > DAY:
        return False
    slots.remove(near)
    return True
