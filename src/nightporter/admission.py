"""admission: the one door. A firing becomes a queued run, or a verdict with its reason.

    Promise       Each firing leaves exactly one ledger line, in the transaction that does the rest. A crash before
                  the commit leaves nothing; after it, everything. A batch decides what one by one would.
    Takes         Firings from any source, and slots that the clock has settled without a run.
    Leaves        Runs in state `queued`, and a kick; `running` ones where this process's worker took them as offered.
    Picked up by  dispatch, which claims them in the same commit where it has room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from nightporter.clock import SECOND, Instant, rfc3339
from nightporter.errors import NotFound
from nightporter.rules.coalescing import Gathering, key_of, waits_until
from nightporter.rules.gates import (
    ASKS_AGAIN,
    OF_THE_ARRIVAL,
    OF_THE_RUN,
    OF_THE_TRIGGER,
    PAYLOAD_LIMIT,
    Asking,
    Load,
    Objection,
    TriggerFacts,
    caps,
    counted,
    goes_alone,
    judge,
)
from nightporter.rules.zones import month_at
from nightporter.store import Tx
from nightporter.store.tx_admission import Arrival, Gather, NewRun
from nightporter.words import (
    Answer,
    Coalesce,
    Definition,
    Firing,
    FiringId,
    Overlap,
    Reason,
    RunId,
    Settled,
    Sleep,
    Verdict,
    firing_id_for,
    run_id_for,
)

BY_HAND_PRIORITY = 3
USED_UP = "its schedules have started as many runs as they may"
HEAD_OF_TOO_LARGE = 2_000
"""Characters that are kept of what is larger than a firing may carry."""


def admit(tx: Tx, firings: Sequence[Firing | Settled], *, now: Instant) -> list[Answer]:
    """Decide what each firing becomes, in order, and write it down. One answer a firing.

    Raises NotFound, and writes nothing, when a firing names a trigger that is not in the store.
    """
    batch = _Batch(tx, now)
    batch.read(firings)
    answers = [batch.decide(firing) for firing in firings]
    batch.write()
    batch.close()
    return answers


@dataclass(slots=True)
class _Count:
    """What a batch adds to the counters of one trigger."""

    firings: int = 0
    runs: int = 0
    last_verdict: Verdict | None = None
    last_reason: Reason | None = None


@dataclass(slots=True)
class _Batch:
    """The steps of one admission. What was read changes with every verdict, so that the next one sees it."""

    tx: Tx
    now: Instant
    triggers: dict[str, TriggerFacts] = field(default_factory=dict)
    told: dict[tuple[str, str], str | None] = field(default_factory=dict)
    loads: dict[str, Load] = field(default_factory=dict)
    caps: tuple[int, int, int] = (0, 0, 0)
    """How far each number of a load is counted."""
    stopped: bool = False
    objections: dict[str, Objection | None] = field(default_factory=dict)
    """What speaks against all firings of a trigger, of those that were asked."""
    gathering: dict[tuple[str, str], Gathering | None] = field(default_factory=dict)
    """The runs that wait for others like them, by trigger and key, of those that were asked for."""
    used_up: set[str] = field(default_factory=set)
    """Automations whose schedules have started as many runs as they may."""
    nth: Counter[str] = field(default_factory=Counter)
    """Lines of each trigger in this batch."""
    admitted: int = 0
    """Runs of this batch so far."""
    arrivals: list[Arrival] = field(default_factory=list)
    lines: list[tuple[object, ...]] = field(default_factory=list)
    payloads: list[tuple[object, ...]] = field(default_factory=list)
    counts: dict[str, _Count] = field(default_factory=dict)
    gathers: dict[str, Gather] = field(default_factory=dict)
    countings: dict[str, tuple[int, Instant | None]] = field(default_factory=dict)
    """What the thresholds of triggers have counted by now."""
    scheduled: Counter[str] = field(default_factory=Counter)
    """Runs of automations whose schedules may start only so many."""

    # -- read -------------------------------------------------------------------------------------------------

    def read(self, firings: Sequence[Firing | Settled]) -> None:
        """Lock the automations; look up the dedupe keys; read what the gates need, one query for the batch."""
        ids = {f.trigger_id for f in firings}
        self.triggers = self.tx.trigger_facts(ids)
        if unknown := ids - self.triggers.keys():
            raise NotFound(f"no trigger is called {min(unknown)}", next="`nightporter list` shows what there is")
        self.told = self.tx.recall({(f.trigger_id, f.external_id) for f in firings if not _is_drawn(f)})
        self.stopped = self.tx.stopped()
        asking = [self.triggers[f.trigger_id] for f in firings if isinstance(f, Firing)]
        self.caps = caps([t.policy for t in asking if t.kind != "manual"])
        if holding := {t.automation_id for t in asking if t.policy.hold_on_incident}:
            incidents = self.tx.open_incidents(holding)
            self.triggers |= {t.trigger_id: replace(t, open_incident=incidents.get(t.automation_id)) for t in asking}
        if any(self.caps):
            self.loads = self._count({t.automation_id for t in asking})

    def _count(self, automation_ids: set[str]) -> dict[str, Load]:
        queued, going, hour = self.caps
        return self.tx.loads(automation_ids, queued_cap=queued, going_cap=going, hour_cap=hour, now=self.now)

    # -- decide -----------------------------------------------------------------------------------------------

    def decide(self, firing: Firing | Settled) -> Answer:
        trigger = self.triggers[firing.trigger_id]
        nth = trigger.firings + self.nth[firing.trigger_id]
        self.nth[firing.trigger_id] += 1
        firing_id = firing_id_for(firing.trigger_id, firing.external_id, self.now, nth)
        key = (firing.trigger_id, firing.external_id)
        if key in self.told:
            first = self.told[key]
            detail = f"the first telling became {first}" if first else "the first telling became no run"
            return self._line(firing, trigger, firing_id, Verdict.REPEATED, Reason.SUPPRESSED_DUPLICATE, first, detail)
        match firing:
            case Settled():
                self.told[key] = None
                return self._line(firing, trigger, firing_id, firing.verdict, firing.reason, None, firing.detail)
            case Firing():
                return self._judge(firing, trigger, firing_id)
            case _:
                assert_never(firing)

    def _judge(self, firing: Firing, trigger: TriggerFacts, firing_id: FiringId) -> Answer:
        load = self.loads.get(trigger.automation_id, Load())
        asking = Asking(trigger, load, _size(firing), self.stopped)
        if firing.trigger_id not in self.objections:
            self.objections[firing.trigger_id] = judge(asking, self.now, OF_THE_TRIGGER)
        objection = self.objections[firing.trigger_id] or judge(asking, self.now, OF_THE_ARRIVAL)
        coalesce = _coalescing(firing, trigger)
        merge_key = "" if coalesce is None else key_of(coalesce, firing.payload)
        if coalesce is not None and objection is None:
            waiting = self._waiting(trigger, merge_key)
            if waiting is not None and waiting.takes(coalesce):
                return self._merge(firing, trigger, firing_id, coalesce, merge_key, waiting)
        objection = objection or judge(asking, self.now, OF_THE_RUN)
        if trigger.policy.threshold is not None or trigger.policy.max_runs is not None:
            self._count_arrival(trigger, objection)
        key = (firing.trigger_id, firing.external_id)
        if objection is not None:
            if _keeps_key(trigger, objection.reason):
                self.told[key] = None
            return self._line(
                firing, trigger, firing_id, objection.verdict, objection.reason, None, objection.detail
            )
        run_id = run_id_for(firing.trigger_id, firing.external_id, firing.scheduled_for or self.now)
        self.told[key] = run_id
        blocked = "overlap" if goes_alone(asking) else None
        if blocked and trigger.policy.overlap is Overlap.REPLACE:
            blocked = "overlap" if self._supersede(trigger, run_id) else None
            load = self._count({trigger.automation_id})[trigger.automation_id]  # without those it replaced
        if coalesce is not None:
            blocked = blocked or "time"
            until = waits_until(coalesce, self.now, self.now)
            self.gathering[trigger.trigger_id, merge_key] = Gathering(run_id, self.now, until, 0)
            self.gathers[run_id] = Gather(run_id, until, merge_key, 0, None, None)
        self._queue(firing, trigger, firing_id, run_id, blocked)
        if self.loads:  # otherwise no gate of this batch counts anything
            self.loads[trigger.automation_id] = load.with_one_more(
                run_id, manual=trigger.kind == "manual", now=self.now
            )
        return self._line(firing, trigger, firing_id, Verdict.ADMITTED, None, run_id, "")

    def _waiting(self, trigger: TriggerFacts, merge_key: str) -> Gathering | None:
        """The run that waits for others like it, if there is one."""
        key = (trigger.trigger_id, merge_key)
        if key not in self.gathering:
            self.gathering[key] = self.tx.gathering(trigger.automation_id, *key)
        return self.gathering[key]

    def _merge(
        self, firing: Firing, trigger: TriggerFacts, firing_id: FiringId, coalesce: Coalesce, merge_key: str,
        waiting: Gathering,
    ) -> Answer:
        """Fold a firing into the run that waits for it."""
        self.told[firing.trigger_id, firing.external_id] = waiting.run_id
        run = waiting.with_one_more(coalesce, self.now)
        self.gathering[trigger.trigger_id, merge_key] = run
        before = self.gathers.get(run.run_id)
        if coalesce.joins:
            carries, has_payload = None, 1 if _says_something(firing) else before and before.has_payload
        else:
            carries, has_payload = firing_id, int(_says_something(firing))
        self.gathers[run.run_id] = Gather(run.run_id, run.run_after, merge_key, run.merged, carries, has_payload)
        return self._line(firing, trigger, firing_id, Verdict.MERGED, None, run.run_id,
                          f"it waits until {rfc3339(run.run_after)}")

    def _count_arrival(self, trigger: TriggerFacts, objection: Objection | None) -> None:
        """What an arrival adds to the counts that its gates go by. A person's hand adds nothing."""
        reason = None if objection is None else objection.reason
        if trigger.kind == "manual":
            return
        if trigger.policy.threshold is not None and reason in (None, Reason.THRESHOLD, Reason.MAX_RUNS):
            count = counted(trigger, self.now) if reason is Reason.THRESHOLD else (0, None)
            self.countings[trigger.trigger_id] = count
            self.triggers[trigger.trigger_id] = replace(trigger, counted=count[0], counted_at=count[1])
        most = trigger.policy.max_runs
        if most is None or reason not in (None, Reason.MAX_RUNS):
            return
        runs = trigger.counted_runs + (reason is None)
        if reason is None:
            self.scheduled[trigger.automation_id] += 1
            for other in [t for t in self.triggers.values() if t.automation_id == trigger.automation_id]:
                self.triggers[other.trigger_id] = replace(other, counted_runs=runs)
        if runs >= most and trigger.state == "active":
            self.used_up.add(trigger.automation_id)

    def _supersede(self, trigger: TriggerFacts, run_id: RunId) -> bool:
        """Cancel what the new run replaces. True when something is still running that must end first."""
        self.write(offer=False)  # runs of this very batch may be among them
        self.gathering = {}
        going = self.tx.going(trigger.automation_id)
        waiting = [r for r, state, *_ in going if state in ("queued", "held")]
        running = [r for r, state, *_ in going if state not in ("queued", "held")]
        at = self.tx.not_before(waiting, self.now)
        cancelled = self.tx.cancel([(r, Reason.SUPERSEDED, run_id) for r in waiting], now=at)
        was = {r: state for r, state, *_ in going}
        self.tx.write_transitions(
            [(r, seq, was[r], "cancelled", Reason.SUPERSEDED, None, token, attempt, None)
             for r, seq, _, token, attempt in cancelled],
            now=at,
        )
        self._count_replaced(trigger.automation_id, [r for r, *_ in cancelled])
        self.tx.ask_to_cancel([(r, Reason.SUPERSEDED, run_id) for r in running], now=self.now)
        return bool(running)

    def _count_replaced(self, automation_id: str, runs: Sequence[str]) -> None:
        """Runs that end before they began are runs of their month all the same."""
        versions = self.tx.run_versions(runs)
        zones = {
            (automation, version): _zone_of(text)
            for automation, version, _, text in self.tx.definitions(set(versions.values()))
        }
        months = Counter(month_at(self.now, zones.get(key, "UTC")) for key in versions.values())
        self.tx.add_to_month([(automation_id, month, n, 0, 0, 0, n) for month, n in sorted(months.items())])

    # -- what is to be written -----------------------------------------------------------------------------------

    def _queue(
        self, firing: Firing, trigger: TriggerFacts, firing_id: FiringId, run_id: RunId, blocked: str | None
    ) -> None:
        policy = trigger.policy
        priority = BY_HAND_PRIORITY if trigger.kind == "manual" else policy.priority
        # All of a batch are of one instant: who was told first stands a microsecond before who was told next.
        run_after = max(self.now, firing.not_before or self.now)
        rank = run_after + priority * 10 * SECOND + self.admitted
        self.admitted += 1
        run = NewRun(
            run_id, trigger.workspace, trigger.automation_id, trigger.trigger_id, firing_id, trigger.kind,
            trigger.definition_version, policy.runner, blocked or ("time" if run_after > self.now else None), rank,
            priority, policy.attempts, firing.scheduled_for, firing.root, firing.depth, firing.replay_of,
            int(_says_something(firing)), run_after, int(firing.catchup), firing.stale_at,
        )
        self.arrivals.append(
            Arrival(run, trigger.concurrent, policy.cooldown, trigger.state, firing.text, firing.payload)
        )

    def _line(
        self, firing: Firing | Settled, trigger: TriggerFacts, firing_id: FiringId, verdict: Verdict,
        reason: Reason | None, run_id: str | None, detail: str,
    ) -> Answer:
        span: tuple[object, ...] = (None, None, None, None)
        scheduled_for: Instant | None = None
        sender, root, depth = "", None, 0
        if isinstance(firing, Settled) and verdict is Verdict.SKIPPED:
            scheduled_for = firing.slot_from
        elif isinstance(firing, Settled):
            span = (firing.slot_from, firing.slot_to, firing.count, int(firing.exact))
        else:
            scheduled_for, sender, root, depth = firing.scheduled_for, firing.sender, firing.root, firing.depth
            if firing.text or firing.payload is not None or firing.metadata is not None:
                self.payloads.append((firing_id, *_snapshot(firing)))
        keeps = verdict is not Verdict.REPEATED and not _is_drawn(firing) and _keeps_key(trigger, reason)
        self.lines.append((
            firing_id, trigger.workspace, trigger.automation_id, trigger.trigger_id, trigger.kind, firing.external_id,
            firing.external_id if keeps else None, scheduled_for, verdict, reason, detail, run_id, trigger.version,
            *span, sender, trigger.owner, root, depth,
        ))
        count = self.counts.setdefault(trigger.trigger_id, _Count())
        count.firings += 1
        count.runs += verdict is Verdict.ADMITTED
        count.last_verdict, count.last_reason = verdict, reason
        return Answer(verdict, reason, None if run_id is None else RunId(run_id), firing_id, detail)

    def write(self, *, offer: bool = True) -> None:
        """Write what is decided so far. Called at the end, and before a decision that must see it in the store.

        Runs are offered to the worker of this process first: one that it takes begins without having been queued.
        """
        begun = self.tx.offer("queued", self.arrivals, now=self.now) if offer else ()
        self.tx.queue_runs([a.run for a in self.arrivals if a.run.run_id not in begun], now=self.now)
        self.tx.write_firings(self.lines, self.payloads, now=self.now)
        self.tx.count_triggers(
            [(trigger, c.firings, c.runs, c.last_verdict, c.last_reason) for trigger, c in self.counts.items()],
            now=self.now,
        )
        if self.gathers:
            self.tx.gather(list(self.gathers.values()))
        if self.countings:
            self.tx.count_arrivals([(trigger, *count) for trigger, count in self.countings.items()])
        if self.scheduled:
            self.tx.count_scheduled(sorted(self.scheduled.items()), now=self.now)
        if self.arrivals:
            self.tx.kick("queued")
        self.arrivals, self.lines, self.payloads, self.counts = [], [], [], {}
        self.gathers, self.countings, self.scheduled = {}, {}, Counter()

    def close(self) -> None:
        """Complete the automations whose schedules have started as many runs as they may, once nothing of them is due:
        slots that came together with the last have lines of their own."""
        for automation_id in sorted(self.used_up):
            if not self.tx.has_due(automation_id, self.now):
                self.tx.disarm_all(automation_id)
                self.tx.complete({automation_id}, reason=USED_UP, now=self.now)
                self.tx.open_pause(automation_id, Sleep.USED_UP, at=self.now)


def _keeps_key(trigger: TriggerFacts, reason: Reason | None) -> bool:
    """Whether the line of a first telling stands for its external id from now on."""
    return trigger.kind == "clock" or reason not in ASKS_AGAIN


def _zone_of(definition: str) -> str:
    try:
        return Definition.from_json(definition).timezone
    except (ValueError, KeyError, TypeError):  # unreadable: its month is counted in UTC, as for any other run
        return "UTC"


def _snapshot(firing: Firing) -> tuple[str, str | None, str | None]:
    """`(text, payload, metadata)` as the line keeps them, whatever became of it: whole, or the head of what is larger
    than the desk carries."""
    if _size(firing) <= PAYLOAD_LIMIT:
        return firing.text, firing.payload, firing.metadata
    carried = "\n".join(part for part in (firing.text, firing.payload) if part)
    return carried[:HEAD_OF_TOO_LARGE], None, firing.metadata


def _says_something(firing: Firing) -> bool:
    return bool(firing.text or firing.payload is not None)


def _coalescing(firing: Firing, trigger: TriggerFacts) -> Coalesce | None:
    """How it is folded together with others like it. A person who says nothing beside "now" means now."""
    coalesce = trigger.policy.coalesce
    if coalesce is None or (trigger.kind == "manual" and not _says_something(firing)):
        return None
    return coalesce


def _size(firing: Firing) -> int:
    return _bytes(firing.text) + _bytes(firing.payload or "")


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _is_drawn(firing: Firing | Settled) -> bool:
    return isinstance(firing, Firing) and firing.drawn
