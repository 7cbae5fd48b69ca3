"""Named queries: one name on both databases, headers that are the state machines, statements that prepare."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import apsw
import psycopg
import pytest

import nightporter.store
from nightporter.clock import Instant
from nightporter.states import AUTOMATION_TRANSITIONS, DELIVERY_TRANSITIONS, TRANSITIONS, RunState
from nightporter.store import Store, open_store
from nightporter.store.named import Query, for_postgres, migrations, queries
from nightporter.store.sqlite_file import connect
from nightporter.store.sqlite_sql import CHUNKS
from nightporter.words import Reason

SOURCE = Path(nightporter.store.__file__).parent
SHARED = queries("sqlite")

MACHINES: dict[str, set[tuple[str, str]]] = {
    "run": {(state, to) for (state, _), to in TRANSITIONS.items()},
    "delivery": {(state, to) for (state, _), to in DELIVERY_TRANSITIONS.items()},
    "automation": {(state, to) for (state, _), to in AUTOMATION_TRANSITIONS.items()},
}


def changes(header: str) -> set[tuple[str, str]]:
    """`a | b -> c | d` as pairs."""
    before, after = (side.split("|") for side in header.split("->"))
    return {(a.strip(), b.strip()) for a, b in product(before, after)}


def machine_of(query: Query) -> str:
    return query.name.split("_", 1)[0]


def test_both_databases_offer_the_same_names_and_the_same_changes() -> None:
    sqlite, postgres = queries("sqlite"), queries("postgres")
    assert set(sqlite) == set(postgres)
    assert {n: q.change for n, q in sqlite.items()} == {n: q.change for n, q in postgres.items()}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_headers_of_a_machines_queries_are_its_table_exactly(machine: str) -> None:
    written: set[tuple[str, str]] = set()
    for query in SHARED.values():
        if query.change and machine_of(query) == machine:
            written |= changes(query.change)
    assert written == MACHINES[machine]


def test_every_header_with_an_arrow_belongs_to_a_machine() -> None:
    assert {machine_of(q) for q in SHARED.values() if q.change} == set(MACHINES)


@pytest.mark.parametrize("query", [q for q in SHARED.values() if not q.change], ids=lambda q: q.name)
def test_a_query_without_an_arrow_changes_no_state(query: Query) -> None:
    for table in ("run", "delivery", "automation"):
        updated = re.search(rf"UPDATE {table}\b\s+SET(?P<columns>.*?)(WHERE|FROM|$)", query.sql, re.DOTALL)
        assert updated is None or not re.search(r"(?:^|,)\s*state\s*=", updated["columns"])


@pytest.mark.parametrize("query", [q for q in SHARED.values() if q.change], ids=lambda q: q.name)
def test_a_change_of_state_is_a_compare_and_set_on_the_states_of_its_header(query: Query) -> None:
    before = {a for a, _ in changes(query.change)}
    condition = query.sql[query.sql.rindex("WHERE") if "NOT EXISTS" not in query.sql else query.sql.index("WHERE") :]
    named = set(re.findall(r"'([a-z_]+)'", condition))
    if "<>" in condition:
        assert named == {to for _, to in changes(query.change)}  # everything but the end itself
    else:
        assert before <= named


WAYS_OUT = [q for q in SHARED.values() if machine_of(q) == "run" and q.change.startswith("running")]


@pytest.mark.parametrize("query", WAYS_OUT, ids=lambda q: q.name)
def test_every_way_out_of_running_is_fenced_by_the_claim(query: Query) -> None:
    assert "run.token = r.token" in query.sql


def test_every_query_prepares_on_sqlite(tmp_path: Path) -> None:
    open_store(str(tmp_path / "ledger.db"), now=0).close()
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    refused = {}
    for name, query in queries("sqlite").items():
        try:
            connection.execute(f"EXPLAIN {query.sql}", [None] * 40 if query.columns else None)
        except apsw.BindingsError:
            pass  # it was prepared; only its values are missing
        except apsw.Error as error:
            refused[name] = str(error)
    connection.close()
    assert refused == {}


BATCHES = [q for q in SHARED.values() if q.columns]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path = str(tmp_path_factory.mktemp("empty") / "ledger.db")
    open_store(path, now=0).close()
    with contextlib.closing(connect(path, patience=1.0)) as connection:
        yield connection


@pytest.mark.parametrize("query", BATCHES, ids=lambda q: q.name)
def test_a_batch_walks_through_no_table_whatever_its_rows_have_in_common(query: Query, empty: apsw.Connection) -> None:
    n, others = CHUNKS[0], range(1, len(query.columns))

    def plan(same: Sequence[int]) -> list[str]:
        values = n * (len(query.columns) - len(same)) + len(query.parameters) + len(same)
        sql = f"EXPLAIN QUERY PLAN {query.for_rows(n, same)}"
        return [step for *_, step in empty.execute(sql, [None] * values) if not step.startswith(f"SCAN {n}-ROW")]

    of_its_own = {step.split(maxsplit=1)[1] for step in plan(()) if step.startswith(("CO-ROUTINE", "MATERIALIZE"))}
    assert {step.split(maxsplit=1)[1] for step in plan(()) if step.startswith("SCAN")} <= of_its_own
    for same in [*([i] for i in others), others]:
        assert plan(same) == plan(()), same


def on_postgresql(query: Query) -> set[str]:
    """Its statements: for many rows, for one, and where only a key differs from row to row."""
    return {query.sql} | {query.for_arrays(range(first, len(query.columns))) for first in (0, 1) if query.columns}


def test_every_query_prepares_on_postgresql(migrated_postgres_url: str) -> None:
    refused = {}
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        for name, text in [(n, text) for n, query in queries("postgres").items() for text in on_postgresql(query)]:
            numbers: dict[str, int] = {}
            sql = re.sub(r"%\((\w+)\)s", lambda m: f"${numbers.setdefault(m[1], len(numbers) + 1)}", text)  # noqa: B023
            try:
                connection.execute(f"PREPARE statement AS {sql.replace('%%', '%')}".encode())
                connection.execute("DEALLOCATE statement")
            except psycopg.Error as error:
                refused[name] = str(error)
    assert refused == {}


def test_every_query_is_used_and_every_name_that_is_used_exists() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    used = set(re.findall(r"sql\.(?:all|one|run|each)\(\s*\"([a-z_]+)\"", source))
    written = set(re.findall(r"\"([a-z_]+)\"", source)) & set(SHARED)
    assert used <= set(SHARED)
    assert set(SHARED) - written == set()


def test_rows_are_locked_on_postgresql_only() -> None:
    locked = [n for n, q in queries("postgres").items() if "FOR UPDATE" in q.sql]
    assert locked
    assert not [n for n, q in queries("sqlite").items() if "FOR UPDATE" in q.sql or "@" in q.sql]
    assert not [n for n, q in queries("postgres").items() if "@" in q.sql]


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_migration_reads_the_same_on_postgresql_but_for_types_and_table_options() -> None:
    assert for_postgres("CREATE TABLE a (n INTEGER) STRICT, WITHOUT ROWID;\nCREATE TABLE b (n INTEGER) STRICT;") == (
        "CREATE TABLE a (n BIGINT);\nCREATE TABLE b (n BIGINT);"
    )


def test_both_databases_have_the_same_tables_columns_and_indexes(
    tmp_path: Path, migrated_postgres_url: str
) -> None:
    open_store(str(tmp_path / "ledger.db"), now=0).close()
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    sqlite = set(connection.execute(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"))
    sqlite_indexes = set(connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"))
    connection.close()
    with psycopg.connect(migrated_postgres_url) as postgres:
        columns = postgres.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'").fetchall()
        indexes = postgres.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey'").fetchall()
    assert sqlite == set(columns)
    assert sqlite_indexes == set(indexes)


def test_rows_reach_a_query_with_more_than_one_of_them(store: Store) -> None:
    many = [(f"inb_{n}", "default", "", None, None, "result", f"title {n}", "x") for n in range(700)]
    store.write(lambda tx: tx.write_inbox(many, now=Instant(1)))
    assert len(store.read(lambda tx: tx.unread(1000))) == 700


@pytest.mark.parametrize("count", [1, 2, 700])
def test_what_all_rows_say_is_kept_of_each_be_it_a_text_a_number_or_nothing(store: Store, count: int) -> None:
    runs = [f"run_{n}" for n in range(count)]
    said = ("running", RunState.FAILED, Reason.OVERLAP, 'a "quoted" \\ worker, NULL', 2**62, 3, None)
    store.write(lambda tx: tx.write_transitions([(run, 7, *said) for run in runs], now=Instant(1)))
    kept = store.read(lambda tx: [tx.read_transitions(run) for run in (runs[0], runs[-1])])
    assert kept == [[(7, *said[:3], 1, *said[3:])]] * 2
