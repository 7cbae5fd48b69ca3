"""Nights at the desk: as many as are asked for, from a seed."""

from __future__ import annotations

import contextlib
import itertools
import resource
from collections.abc import Iterator
from typing import Any

from databases import Databases

from model.machine import LedgerMachine
from model.nights import run_nights
from model.seeded import SEEDED, found_after
from nightporter.clock import Instant
from nightporter.store import Store, open_store
from soak.order import Order

EXAMPLES = {"sqlite": 10_000, "postgres": 1_000}
_numbers = itertools.count()


class SqliteMachine(LedgerMachine):
    """Each night in a store of its own, in memory."""

    def a_store(self, start: Instant) -> Store:
        return open_store(":memory:", now=start)


def postgres_machine(url: str) -> type[LedgerMachine]:
    """All nights in one database, which is emptied after each."""
    store = open_store(url, now=0, patience=5.0)

    class PostgresMachine(LedgerMachine):
        def a_store(self, start: Instant) -> Store:
            _emptied(store)
            return store

        def leave_store(self, _: Store) -> None:
            pass

    PostgresMachine.close = store.close
    return PostgresMachine


def _emptied(store: Store) -> None:
    def empty(tx: Any) -> None:
        connection = tx.sql._connection
        tables = connection.execute(
            "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables WHERE schemaname = current_schema() "
            "AND tablename <> 'setting'").fetchone()[0]
        connection.execute(f"TRUNCATE {tables}; DELETE FROM setting WHERE key <> 'schema_version'")

    store.write(empty)


@contextlib.contextmanager
def a_machine(kind: str, databases: Databases) -> Iterator[type[LedgerMachine]]:
    if kind == "sqlite":
        yield SqliteMachine
        return
    name = f"model_{databases.worker}_{next(_numbers)}"
    machine = postgres_machine(databases.create(name, migrated=True))
    try:
        yield machine
    finally:
        machine.close()  # type: ignore[attr-defined]
        databases.drop(name)


def soak(order: Order) -> list[str]:
    """Nights, each a random one, against a plain account, and the bugs that they have to find. A round is one night; on
    PostgreSQL, which is slower, a tenth of those asked for."""
    found = _bites(order) if "sqlite" in order.stores else []
    with order.postgres() as databases:
        for kind in order.stores:
            asked = EXAMPLES[kind] if not order.rounds else order.rounds if kind == "sqlite" else order.rounds // 10
            with a_machine(kind, databases) as machine:
                found += _nights(order, kind, machine, max(asked, 1))
    return found


def _nights(order: Order, kind: str, machine: type[LedgerMachine], asked: int) -> list[str]:
    begun = _processor()
    found = []
    try:
        run_nights(machine, examples=asked, from_seed=order.seed)
    except Exception as error:
        notes = "\n".join(getattr(error, "__notes__", []))
        (order.folder / f"{kind}.txt").write_text(f"{error!r}\n{notes}\n")
        found.append(f"{kind}: {error}, see {kind}.txt")
    took = _processor() - begun
    print(f"{kind}: {machine.examples} nights, {machine.tally['steps']} steps, {took:.0f} s of a processor", flush=True)
    for thing, times in sorted(machine.tally.items()):
        print(f"{times:9,d}  {thing}", flush=True)
    order.publish({"nights": machine.examples, "seconds": round(took, 1), **machine.tally}, kind)
    return found


def _bites(order: Order) -> list[str]:
    """Each bug that is put in is found."""
    missed, nights = [], {}
    for name in SEEDED:
        try:
            nights[name], said = found_after(name, SqliteMachine, from_seed=order.seed)
        except Exception as error:
            missed.append(f"the nights went wrong where a bug was to be found: {name}: {error!r}")
            print(f"put in: {name}: WENT WRONG: {error!r}"[:200], flush=True)
            continue
        print(f"put in: {name}: " + (f"found in night {nights[name]}: {said}" if said else "NOT FOUND"), flush=True)
        if not said:
            missed.append(f"a bug that was put in was not found: {name}")
    order.publish({"found in night": nights}, "seeded")
    return missed


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
