"""Traces: what the effect log shows of an attempt that was cut short, and the notice when a person must decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nightporter.clock import Instant
from nightporter.dispatch.at_hand import Runners
from nightporter.rules.ending import Traces
from nightporter.store import Tx
from nightporter.words import derived_id


def read_traces(tx: Tx, claims: Sequence[tuple[str, int, str]], runners: Runners) -> Mapping[str, Traces]:
    """Traces by run, for `(run, token, runner's kind)`.

    A runner that launches a child has acted once its child was let go, which is written before; any other opaque
    runner once it was claimed. A kind that nobody here knows is taken for opaque.
    """
    counts = tx.effect_counts([run for run, _, _ in claims])
    let_go = {run for run, _ in tx.let_go([(run, token) for run, token, _ in claims])}
    traces = {}
    for run, _, kind in claims:
        done, still_open, started = counts.get(run, (0, 0, 0))
        runner = runners.get(kind)
        acted = run in let_go or started > 0 or runner is None
        traces[run] = Traces(acted, done, still_open)
    return traces


def announce_reviews(
    tx: Tx, runs: Sequence[tuple[str, str, str, str, str, str]], *, now: Instant
) -> None:
    """Ask a person, once, about runs that were set aside: `(run, automation id, workspace, name, owner, why)`."""
    tx.write_inbox(
        [
            (derived_id("inb", now, run, "review"), workspace, owner, automation_id, run, "review",
             f"{name} may have acted and did not end",
             f"{why}. It is not repeated unasked.\n"
             f"nightporter review {run} retry runs it again; nightporter review {run} dismiss closes it.")
            for run, automation_id, workspace, name, owner, why in runs
        ],
        now=now,
    )
