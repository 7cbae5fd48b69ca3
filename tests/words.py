"""Builders in the words of the domain: what a test says when it says nothing special."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from nightporter.admission import admit
from nightporter.clock import Instant, micros
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import TZDATA
from nightporter.store import Store, Tx
from nightporter.store.tx_clock import schedule_text
from nightporter.words import (
    Answer,
    AutomationId,
    Definition,
    Destination,
    Firing,
    Missed,
    Overlap,
    Target,
    TriggerId,
    TriggerSpec,
    policy_of,
)
from nightporter.words.bounds import Bounds

_numbers = itertools.count(1)


def a_definition(
    name: str = "brief", *, runner: str = "echo", config: Mapping[str, Any] | None = None,
    triggers: Sequence[TriggerSpec] = (), deliver: Sequence[Destination] = (), **rest: Any,
) -> Definition:
    """A definition with its defaults; `rest` are fields of `Definition` (limits, retry, cooldown, ...)."""
    return Definition(
        name=name, target=Target(runner, dict(config or {})), triggers=tuple(triggers), deliver=tuple(deliver), **rest
    )


def a_clock_trigger(
    expression: str = "0 9 * * *", *, kind: str = "cron", timezone: str = "UTC", name: str = "clock",
    anchor: Instant | None = None, overlap: Overlap | None = None, enabled: bool = True,
    missed: Missed | None = None, bounds: Bounds | None = None,
) -> TriggerSpec:
    """A trigger of the clock: daily at nine unless it says otherwise."""
    asked: Any = kind  # tests name bad kinds too
    schedule = parse(asked, expression, timezone, anchor=anchor, bounds=bounds)
    return TriggerSpec(name, "clock", schedule, enabled=enabled, overlap=overlap, missed=missed)


def an_automation(
    store: Store, definition: Definition | None = None, *, now: Instant, state: str = "active", **rest: Any
) -> AutomationId:
    """Store an automation: itself, its first version, its triggers, `manual` and `call`; clock triggers are armed.

    `rest` goes to `a_definition` where no definition is given.
    """
    wanted = definition or a_definition(**rest)
    return store.write(lambda tx: insert_automation(tx, wanted, now=now, state=state))


def insert_automation(tx: Tx, definition: Definition, *, now: Instant, state: str = "active") -> AutomationId:
    """The same, inside a transaction."""
    automation = AutomationId(f"aut_{definition.workspace}_{definition.name}")
    text = definition.as_json()
    digest = sha256(text.encode()).hexdigest()[:32]
    tx.insert_automation(
        id=automation, workspace=definition.workspace, owner=definition.owner, name=definition.name, state=state,
        state_reason="", by="test", now=now, truth="store", path="", error="", version=1, definition_hash=digest,
        concurrent=definition.limits.concurrent, cooldown=micros(definition.cooldown), expires=definition.expires,
    )
    tx.insert_version(automation, 1, text, digest, by="test", now=now)
    listed = {t.name for t in definition.triggers}
    always = [TriggerSpec(name, name) for name in ("manual", "call") if name not in listed]
    for spec in (*definition.triggers, *always):
        slot = next_due(spec.schedule, now) if spec.schedule is not None and spec.enabled else None
        tx.insert_trigger(
            id=trigger_of(automation, spec.name), automation_id=automation, name=spec.name, kind=spec.kind,
            enabled=int(spec.enabled), policy=policy_of(definition, spec).as_json(), version=1, now=now,
            schedule=None if spec.schedule is None else schedule_text(spec.schedule),
            next_fire_at=slot, tzdata=TZDATA if slot is not None else "",
        )
        if spec.schedule is not None:
            tx.open_version(trigger_of(automation, spec.name), 1, spec.schedule, tzdata=TZDATA, at=now)
    return automation


def trigger_of(automation: str, name: str = "call") -> TriggerId:
    """The id of one of an automation's triggers."""
    return TriggerId(f"{automation}/{name}")


def a_firing(automation: str, external_id: str = "", *, trigger: str = "call", **rest: Any) -> Firing:
    """One arrival at a trigger; without an external id it gets one of its own."""
    return Firing(trigger_of(automation, trigger), external_id or f"e-{next(_numbers)}", **rest)


def fire(
    store: Store, automation: str, external_id: str = "", *, now: Instant, trigger: str = "call", **rest: Any
) -> Answer:
    """One arrival, admitted."""
    firing = a_firing(automation, external_id, trigger=trigger, **rest)
    return store.write(lambda tx: admit(tx, [firing], now=now))[0]


def rows(store: Store, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
    """What stands in the store, asked in plain SQL (`?` for each parameter); or what a test damages there."""
    if store.dialect == "sqlite":
        if sql.startswith("SELECT"):
            return store.read(lambda tx: list(tx.sql._connection.execute(sql, parameters)))  # type: ignore[attr-defined]
        import apsw

        connection = apsw.Connection(store.path)  # type: ignore[attr-defined]  # the dialect says which store it is
        try:
            return list(connection.execute(sql, parameters))
        finally:
            connection.close()
    statement = sql.replace("?", "%s").encode()
    if sql.startswith("SELECT"):
        return store.read(lambda tx: tx.sql._connection.execute(statement, parameters).fetchall())  # type: ignore[attr-defined]
    import psycopg

    with psycopg.connect(store.url, autocommit=True) as postgres:  # type: ignore[attr-defined]  # as above
        postgres.execute(statement, parameters)
        return []


def an_incident(store: Store, automation: str, *, state: str = "open", kind: str = "execution") -> None:
    """It has an incident."""
    rows(store, "INSERT INTO incident (id, workspace, automation_id, kind, route, signature, state, count, first_at, "
         "last_at, subject, error) VALUES ('inc_1', 'default', ?, ?, 'route', 'boom', ?, 1, 0, 0, 'run_1', 'boom')",
         automation, kind, state)


# -- what became of it, as facts to assert ------------------------------------------------------------------------


def states(store: Store, automation: str = "") -> list[str]:
    """The states of an automation's runs, or of all runs, in the order in which they were admitted."""
    found = rows(store, "SELECT state, automation_id FROM run ORDER BY queued_at, id")
    return [state for state, of in found if automation in ("", of)]


def run_row(store: Store, run: str | None, *columns: str) -> tuple[Any, ...]:
    """Columns of one run."""
    [found] = rows(store, f"SELECT {', '.join(columns)} FROM run WHERE id = ?", run)
    return found


def steps(store: Store, run: str | None) -> list[str]:
    """The states a run went through, as its transitions tell them."""
    return [to for (to,) in rows(store, "SELECT to_state FROM transition WHERE run_id = ? ORDER BY seq", run)]
