"""A batch decides exactly what one by one would, whatever the policies, whatever is told twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nightporter.admission import admit
from nightporter.clock import SECOND, Instant
from nightporter.store import Store, open_store
from nightporter.words import (
    Answer,
    Coalesce,
    Definition,
    Firing,
    Limits,
    Overlap,
    QuietHours,
    Reason,
    Settled,
    Threshold,
    TriggerSpec,
    Verdict,
)
from words import a_clock_trigger, a_definition, insert_automation, trigger_of

NOW = Instant(1_774_598_400_000_000)
NAMES = ("one", "two", "three")


@dataclass(frozen=True)
class Told:
    """One firing of an example, before it has a trigger id."""

    automation: int
    trigger: str
    external: int
    settled: bool


LIMITS = st.builds(
    Limits, per_hour=st.none() | st.integers(0, 4), queued=st.none() | st.integers(0, 4), concurrent=st.just(None),
    max_runs=st.none() | st.integers(1, 3),
)
COUNTS = st.none() | st.builds(Threshold, st.integers(1, 3), st.sampled_from([None, timedelta(seconds=29)]))
GATHERS = st.none() | st.builds(
    Coalesce, st.sampled_from([timedelta(seconds=20), timedelta(seconds=40)]), st.just(timedelta(seconds=50)),
    st.sampled_from(["", "payload.of"]), st.booleans(),
)
QUIET = st.sampled_from([None, None, QuietHours(("07:00-09:00",)), QuietHours(("07:00-07:59",))])
"""It is eight, and half a minute before that something may have come already."""
DEFINITIONS = st.lists(
    st.tuples(LIMITS, st.sampled_from(Overlap), st.sampled_from(Overlap), st.sampled_from([0, 0, 60]),
              COUNTS, COUNTS, GATHERS, QUIET),
    min_size=len(NAMES), max_size=len(NAMES),
).map(lambda found: [_definition(name, *policy) for name, policy in zip(NAMES, found, strict=True)])
TOLD = st.lists(
    st.builds(
        Told, st.integers(0, len(NAMES) - 1), st.sampled_from(["hook", "clock", "manual", "call"]), st.integers(0, 5),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=14,
)


def _definition(
    name: str, limits: Limits, hook: Overlap, clock: Overlap, cooldown: int, arrivals: Threshold | None,
    slots: Threshold | None, gathers: Coalesce | None, quiet: QuietHours | None,
) -> Definition:
    return a_definition(
        name, limits=limits, cooldown=timedelta(seconds=cooldown), quiet_hours=quiet,
        triggers=[
            TriggerSpec("hook", "call", overlap=hook, threshold=arrivals),
            TriggerSpec("call", "call", overlap=hook, coalesce=gathers),
            replace(a_clock_trigger(overlap=clock), threshold=slots),
        ],
    )


def firing_of(told: Told) -> Firing | Settled:
    trigger = trigger_of(f"aut_default_{NAMES[told.automation]}", told.trigger)
    if told.settled:
        return Settled(trigger, f"e-{told.external}", Verdict.MISSED, Reason.MISSED_POLICY, NOW, NOW, 1)
    payload = f'{{"of": {told.external % 2}}}' if told.external % 3 else None
    return Firing(trigger, f"e-{told.external}", text="x" * told.external, payload=payload)


def a_ledger(definitions: Sequence[Definition], before: Sequence[Told], running: int) -> Store:
    """A ledger with some history: runs that were admitted earlier, the first few of them running."""
    store = open_store(":memory:", now=NOW)
    early = Instant(NOW - 30 * SECOND)

    def fill(tx: Any) -> None:
        for definition in definitions:
            insert_automation(tx, definition, now=early)
        answers = admit(tx, [firing_of(t) for t in before], now=early)
        runs = [a.run_id for a in answers if a.verdict is Verdict.ADMITTED][:running]
        tx.claim(runs, worker="wrk_1", now=early)

    store.write(fill)
    return store


def everything(store: Store) -> dict[str, list[str]]:
    """The whole ledger, but for the words beside a reason: which of several runs they name is anybody's; and for the
    rank, which has a microsecond between those of a batch."""

    def look(tx: Any) -> dict[str, list[str]]:
        found = {}
        for table in ("run", "firing", "transition", "trigger", "firing_payload", "automation", "pause"):
            known = tx.sql._connection.execute(f"SELECT name FROM pragma_table_info('{table}')")
            columns = [name for (name,) in known if name not in ("detail", "rank")]
            wanted = tx.sql._connection.execute(f"SELECT {', '.join(columns)} FROM {table}")
            found[table] = sorted(repr(row) for row in wanted)
        return found

    return store.read(look)


def outline(answers: Sequence[Answer]) -> list[tuple[Any, ...]]:
    return [(a.verdict, a.reason, a.run_id, a.firing_id) for a in answers]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DEFINITIONS, TOLD, st.integers(0, 3), TOLD, st.lists(st.integers(0, 14), max_size=3))
def test_a_batch_decides_what_one_by_one_would(
    definitions: list[Definition], before: list[Told], running: int, told: list[Told], cuts: list[int]
) -> None:
    firings = [firing_of(t) for t in told]
    together, apart, in_pieces = (a_ledger(definitions, before, running) for _ in range(3))
    try:
        at_once = together.write(lambda tx: admit(tx, firings, now=NOW))
        each = [apart.write(lambda tx, f=f: admit(tx, [f], now=NOW))[0] for f in firings]  # type: ignore[misc]
        pieces: list[Answer] = []
        edges = [0, *sorted(c for c in cuts if c < len(firings)), len(firings)]
        for start, stop in pairwise(edges):
            pieces += in_pieces.write(lambda tx, s=start, e=stop: admit(tx, firings[s:e], now=NOW))  # type: ignore[misc]
        assert outline(at_once) == outline(each) == outline(pieces)
        whole = everything(together)
        assert whole == everything(apart)
        assert whole == everything(in_pieces)
    finally:
        for store in (together, apart, in_pieces):
            store.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DEFINITIONS, TOLD, TOLD)
def test_each_firing_leaves_one_line_and_each_telling_one_run(
    definitions: list[Definition], before: list[Told], told: list[Told]
) -> None:
    store = a_ledger(definitions, before, running=1)
    try:
        answers = store.write(lambda tx: admit(tx, [firing_of(t) for t in told], now=NOW))
        assert len(answers) == len(told)
        assert len(everything(store)["firing"]) == len(before) + len(told)
        runs = [a.run_id for a in answers if a.verdict is Verdict.ADMITTED]
        assert len(set(runs)) == len(runs)
        assert len(everything(store)["run"]) >= len(runs)
        for answer in answers:
            assert (answer.verdict in (Verdict.ADMITTED, Verdict.MERGED)) == (answer.reason is None)
    finally:
        store.close()
