"""What `explain` says of a subject, of a firing, of a run that ended so."""

from __future__ import annotations

from acting import after, begin, finish

from conftest import START
from nightporter.clock import Instant
from nightporter.ledger import explain
from nightporter.ledger.why import Explanation
from nightporter.sources.clock import settle
from nightporter.store import Store
from nightporter.words import (
    Definition,
    Destination,
    Ended,
    Retry,
)
from words import a_clock_trigger, a_definition, an_automation, fire

NOW = START
FILE = Destination("out", "file", {"path": "out.txt"})
ONCE = Retry(attempts=1)


def said(store: Store, subject: str, now: Instant = NOW, *, at: Instant | str | None = None) -> Explanation:
    return store.read(lambda tx: explain(tx, subject, now, at=at))


def fired(store: Store, automation: str, external_id: str = "e1", *, now: Instant = NOW, **rest: object) -> Explanation:
    answer = fire(store, automation, external_id, now=now, **rest)  # type: ignore[arg-type]  # fields of a firing
    return said(store, answer.firing_id, now)


def ran(store: Store, ended: Ended, *, now: Instant = NOW, **rest: object) -> str:
    """A run of one attempt that ended so; its id."""
    automation = an_automation(store, a_definition(retry=ONCE, **rest), now=now)  # type: ignore[arg-type]
    run = fire(store, automation, now=now).run_id
    assert run is not None
    finish(store, begin(store, now)[0], ended, after(now, seconds=3))
    return run


def slot_run(store: Store, definition: Definition, *, answered: Instant) -> tuple[str, str]:
    """The first slot of an automation, answered then; `(automation, run)`."""
    automation = an_automation(store, definition, now=NOW)
    store.write(lambda tx: settle(tx, automation, now=answered))
    return automation, store.read(lambda tx: str(tx.read_latest_run(automation)))


def daily(**rest: object) -> Definition:
    return a_definition(triggers=[a_clock_trigger("0 9 * * *", timezone="Europe/Berlin")], **rest)  # type: ignore[arg-type]
