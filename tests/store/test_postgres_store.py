"""The PostgreSQL store: a server that went away and came back, and desks on several machines."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from turns import held

from nightporter.clock import Instant
from nightporter.errors import BadInput, StoreEntangled, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.store import Tx, open_store
from nightporter.store.named import migrations
from nightporter.store.postgres import PostgresStore, PostgresTransactions, translate
from nightporter.store.postgres_link import Link
from nightporter.store.upshot import Upshot, Written

NOW = Instant(1_774_598_400_000_000)
NEWEST = str(migrations()[-1][0])


@pytest.fixture
def ledger(migrated_postgres_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(migrated_postgres_url, now=NOW, patience=10)
    yield store
    store.close()


def hang_up(ledger: PostgresStore) -> int:
    """End every connection to the ledger's database, as a server that restarts does, and see them gone; how many."""
    with psycopg.connect(ledger.url, autocommit=True) as admin:
        return len(admin.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall())


def test_writing_goes_on_after_the_server_hung_up(ledger: PostgresStore) -> None:
    ledger.write(lambda tx: tx.put_setting("a", "1"))
    assert hang_up(ledger) > 0
    ledger.write(lambda tx: tx.put_setting("a", "2"))
    assert ledger.read(lambda tx: tx.setting("a")) == "2"


def test_reading_goes_on_after_the_server_hung_up(ledger: PostgresStore) -> None:
    ledger.read(lambda tx: tx.setting("a"))
    assert hang_up(ledger) > 0
    assert ledger.read(lambda tx: tx.setting("schema_version")) == NEWEST


def test_a_write_that_was_cut_off_is_told_as_a_fault_and_left_nothing(ledger: PostgresStore) -> None:
    def cut_off(tx: Tx) -> None:
        tx.put_setting("a", "half")
        hang_up(ledger)
        tx.put_setting("b", "half")

    with pytest.raises(StoreError) as refused:
        ledger.write(cut_off)
    assert not isinstance(refused.value, StoreRefused), "the store was ill, not what was to be written"
    ledger.write(lambda tx: tx.put_setting("c", "whole"))
    assert ledger.read(lambda tx: [tx.setting(key) for key in "abc"]) == [None, None, "whole"]


Cut = Callable[[psycopg.Connection[Any]], None]


def cut_off_at_its_commit(ledger: PostgresStore, cut: Cut) -> None:
    """The next COMMIT of the writer gets no answer: the connection is lost while `cut` does with it what it does."""
    transactions = ledger.writer._transactions
    assert isinstance(transactions, PostgresTransactions)
    connection = transactions._connection
    execute = connection.execute

    def without_answer(query: Any, *of: Any, **more: Any) -> Any:
        if query != "COMMIT":
            return execute(query, *of, **more)
        cut(connection)
        return execute("SELECT 1")  # and finds the connection lost

    connection.execute = without_answer  # type: ignore[method-assign]


def lose(connection: psycopg.Connection[Any]) -> None:
    """The line is dead, as it is after the other end of a network went away; the server is not told."""
    socket.socket(fileno=os.dup(connection.fileno())).shutdown(socket.SHUT_RDWR)


def committed_and_lost(connection: psycopg.Connection[Any]) -> None:
    connection.cursor().execute("COMMIT")
    lose(connection)


def test_a_commit_whose_answer_was_lost_is_told_as_what_it_was(ledger: PostgresStore) -> None:
    def put(tx: Tx) -> str:
        tx.put_setting("a", "1")
        return "told"

    cut_off_at_its_commit(ledger, committed_and_lost)
    assert ledger.write(put) == "told"
    assert ledger.read(lambda tx: tx.setting("a")) == "1"
    ledger.write(lambda tx: tx.put_setting("a", "2"))


def test_a_commit_that_never_arrived_is_told_as_a_fault_and_left_nothing(ledger: PostgresStore) -> None:
    cut_off_at_its_commit(ledger, lose)
    with pytest.raises(StoreError, match="cannot be reached"):
        ledger.write(lambda tx: tx.put_setting("a", "1"))
    assert ledger.read(lambda tx: tx.setting("a")) is None
    ledger.write(lambda tx: tx.put_setting("a", "2"))


def test_a_transaction_that_stands_in_the_server_after_its_line_was_lost_is_ended(ledger: PostgresStore) -> None:
    kept: list[int] = []

    def go_on_without_us(connection: psycopg.Connection[Any]) -> None:
        kept.append(os.dup(connection.fileno()))  # the server sees a client that merely says nothing
        with Path(os.devnull).open("r+b") as nothing:
            os.dup2(nothing.fileno(), connection.fileno())

    cut_off_at_its_commit(ledger, go_on_without_us)
    with pytest.raises(StoreError, match="cannot be reached"):
        ledger.write(lambda tx: tx.put_setting("a", "1"))
    assert ledger.read(lambda tx: tx.setting("a")) is None
    os.close(kept[0])


def test_a_commit_of_which_nothing_can_be_learnt_says_so(ledger: PostgresStore) -> None:
    cut_off_at_its_commit(ledger, committed_and_lost)
    transactions = ledger.writer._transactions
    assert isinstance(transactions, PostgresTransactions)
    nowhere = Link("postgresql://127.0.0.1:1/nowhere?connect_timeout=2", silence=1)
    transactions._patience, transactions._link = 0.0, nowhere
    with pytest.raises(StoreError, match="nobody knows whether it had"):
        ledger.write(lambda tx: tx.put_setting("a", "1"))


def test_a_look_that_wrote_nothing_loses_nothing_with_its_commit(ledger: PostgresStore) -> None:
    cut_off_at_its_commit(ledger, lose)
    assert ledger.write(lambda tx: tx.setting("schema_version")) == NEWEST


def test_kicks_go_on_after_the_server_hung_up(ledger: PostgresStore) -> None:
    heard: set[str] = set()
    bell = threading.Condition()

    def hear(topics: frozenset[str]) -> None:
        with bell:
            heard.update(topics)
            bell.notify_all()

    def wait(topic: str) -> None:
        with bell:
            assert bell.wait_for(lambda: topic in heard, 20)

    ledger.kicks.listen(hear, foreign=True)
    wait("due")  # it listens
    heard.clear()
    hang_up(ledger)
    wait("due")  # what the gap may have hidden
    other = PostgresStore(ledger.url, now=NOW)
    other.write(lambda tx: tx.kick("news"))
    wait("news")
    other.close()


def test_two_desks_are_never_taken_for_one_another(ledger: PostgresStore) -> None:
    other = PostgresStore(ledger.url, now=NOW)
    mine, theirs = (store.kicks.sender for store in (ledger, other))  # type: ignore[attr-defined]  # PostgreSQL's
    assert mine != theirs
    assert len(mine) >= 12, "an address in memory is the same in two processes often enough"
    other.close()


def test_rows_are_not_left_locked_behind_a_reader(ledger: PostgresStore) -> None:
    ledger.read(lambda tx: tx.setting("a"))
    with psycopg.connect(ledger.url, autocommit=True) as admin:
        idle = admin.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        ).fetchone()
    assert idle == (0,)


def test_a_backup_is_the_servers_business() -> None:
    with pytest.raises(BadInput, match="PostgreSQL") as refused:
        PostgresStore.backup(object.__new__(PostgresStore), None)  # type: ignore[arg-type]  # it looks at nothing
    assert "pg_dump" in refused.value.next


def test_a_server_that_is_not_there_is_told_as_such() -> None:
    with pytest.raises(StoreError) as refused:
        open_store("postgresql://127.0.0.1:1/nowhere?connect_timeout=2", now=NOW)
    assert "cannot be reached" in refused.value.what


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.errors.DeadlockDetected(), StoreEntangled),
        (psycopg.errors.SerializationFailure(), StoreEntangled), (psycopg.errors.LockNotAvailable(), StoreLocked),
        (psycopg.errors.DiskFull(), StoreUnwritable), (psycopg.errors.ReadOnlySqlTransaction(), StoreUnwritable),
        (psycopg.errors.InsufficientPrivilege(), StoreUnwritable), (psycopg.errors.UniqueViolation(), StoreRefused),
        (psycopg.DataError(), StoreRefused), (psycopg.errors.AdminShutdown(), StoreError),
    ],
    ids=lambda e: getattr(e, "__name__", type(e).__name__),
)
def test_an_error_of_the_driver_has_the_name_that_this_program_gives_it(error: Exception, kind: type[Any]) -> None:
    assert type(translate(error)) is kind


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in company"])
def test_writes_that_wait_for_one_another_are_both_made(ledger: PostgresStore, alone: bool) -> None:
    """Two processes take two locks in opposite orders: the database undoes one of them, and that one is tried again."""
    other = PostgresStore(ledger.url, now=NOW, patience=10)
    both_have_one = threading.Barrier(2)
    turns: list[str] = []

    def crossing(first: str, then: str) -> Callable[[Tx], None]:
        def write(tx: Tx) -> None:
            tx.put_setting(first, "x")
            if first not in turns:
                turns.append(first)
                both_have_one.wait(10)
            tx.put_setting(then, "x")
        return write

    for key in "ab":
        ledger.write(lambda tx, key=key: tx.put_setting(key, ""))  # type: ignore[misc]  # bound
    done: list[Upshot[object]] = []
    stores = ((ledger, "a", "b"), (other, "b", "a"))
    answered = threading.Semaphore(0)

    def answer(upshot: Upshot[object]) -> None:
        done.append(upshot)
        answered.release()

    for store, first, then in stores:
        with contextlib.nullcontext() if alone else held(store.writer):
            if not alone:
                store.writer.post(lambda tx, own=f"of {first}": tx.put_setting(own, "x"), answer)  # type: ignore[misc]
            store.writer.post(crossing(first, then), answer)
    for _ in range(2 if alone else 4):
        assert answered.acquire(timeout=30)
    assert done == [Written(None)] * (2 if alone else 4)
    other.close()


def test_an_error_that_is_not_the_drivers_stays_what_it_is() -> None:
    error = ValueError("mine")
    assert translate(error) is error


def test_a_text_that_the_database_cannot_hold_is_refused_and_the_store_is_well(ledger: PostgresStore) -> None:
    with pytest.raises(StoreRefused):
        ledger.write(lambda tx: tx.put_setting("a", "nul \0 inside"))
    ledger.write(lambda tx: tx.put_setting("a", "1"))
