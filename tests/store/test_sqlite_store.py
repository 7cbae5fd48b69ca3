"""The SQLite store: what it refuses and how it says so, what a reader sees, and what a full disk costs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from night import Night
from turns import held

from nightporter.clock import Instant, Kick, ManualClock
from nightporter.errors import BadInput, Conflict, StoreCorrupt, StoreError, StoreLocked, StoreRefused, StoreUnwritable
from nightporter.sources.clock import ClockSource
from nightporter.store import Store, Tx, open_store
from nightporter.store.named import migrations
from nightporter.store.sqlite import SqliteStore, SqliteTransactions
from nightporter.store.upshot import Unwritten, Upshot, Written
from nightporter.words import Ended, Ending, Limits
from words import a_clock_trigger, an_automation

NOW = Instant(1_774_598_400_000_000)
NEWEST = str(migrations()[-1][0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path, now=NOW, patience=0.05)
    yield store
    store.close()


def connection_of(tx: Tx) -> apsw.Connection:
    return tx.sql._connection  # type: ignore[attr-defined,no-any-return]  # SQLite's


# -- what it promises -----------------------------------------------------------------------------------------------


def test_a_new_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    open_store(str(tmp_path / "home" / "ledger.db"), now=NOW).close()
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "home" / "ledger.db").stat().st_mode & 0o777 == 0o600


def test_a_commit_is_on_the_disk_before_it_is_told(ledger: SqliteStore) -> None:
    asked = ledger.write(lambda tx: [
        next(iter(connection_of(tx).execute(f"PRAGMA {name}")))[0] for name in ("journal_mode", "synchronous")
    ])
    assert asked == ["wal", 2]


def test_an_address_that_is_no_store_is_refused_with_what_would_be_one() -> None:
    with pytest.raises(BadInput, match="no store is called 'mysql'") as refused:
        open_store("mysql://localhost/desk", now=NOW)
    assert "postgresql://" in refused.value.next


def test_the_statements_of_a_runs_way_are_prepared_once_whatever_they_are_handed(ledger: SqliteStore) -> None:
    asked: list[int] = []

    def allow(*what: Any) -> int:  # SQLite asks this for each thing it does when it prepares a statement
        asked.append(what[0])
        return apsw.SQLITE_OK

    ledger.write(lambda tx: connection_of(tx).set_authorizer(allow))
    clock = ManualClock(NOW)
    night, source = Night(ledger, clock), ClockSource(ledger, clock, Kick())
    an_automation(ledger, now=NOW, triggers=[a_clock_trigger("1s", kind="every")], limits=Limits(per_hour=9, queued=9))
    for turn in range(5):
        night.sleep(seconds=1)
        source.tick()
        [_] = night.run_all(Ended(Ending.OK))
        if turn == 1:
            assert asked, "each was prepared"
            asked.clear()
    assert asked == []


# -- readers --------------------------------------------------------------------------------------------------------


def test_a_reader_sees_one_moment_whatever_is_written_meanwhile(store: Store) -> None:
    store.write(lambda tx: tx.put_setting("a", "before"))

    def look(tx: Tx) -> tuple[str | None, str | None]:
        first = tx.setting("a")
        store.write(lambda other: other.put_setting("a", "after"))
        return first, tx.setting("a")

    assert store.read(look) == ("before", "before")
    assert store.read(lambda tx: tx.setting("a")) == "after"


def test_reading_changes_nothing(store: Store) -> None:
    with pytest.raises(StoreError):
        store.read(lambda tx: tx.put_setting("a", "1"))
    assert store.read(lambda tx: tx.setting("a")) is None


def test_readers_do_not_wait_for_the_writer(store: Store) -> None:
    with held(store.writer):
        assert store.read(lambda tx: tx.setting("schema_version")) == NEWEST


def test_many_readers_at_once_each_get_an_answer(store: Store) -> None:
    answers: list[str | None] = []
    gate = threading.Barrier(12)

    def read() -> None:
        gate.wait(20)
        answers.append(store.read(lambda tx: tx.setting("schema_version")))

    threads = [threading.Thread(target=read) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == [NEWEST] * 12


def test_a_reader_that_raises_leaves_its_connection_fit_for_the_next(store: Store) -> None:
    for _ in range(12):  # more than a pool of connections holds
        with pytest.raises(ZeroDivisionError):
            store.read(lambda tx: 1 // 0)
    assert store.read(lambda tx: tx.setting("schema_version")) == NEWEST


# -- what other processes do ----------------------------------------------------------------------------------------


def test_a_ledger_that_somebody_holds_too_long_says_so(ledger: SqliteStore, path: Path) -> None:
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreLocked) as refused:
            ledger.write(lambda tx: tx.put_setting("a", "1"))
        other.execute("ROLLBACK")
    assert "another process" in refused.value.what
    assert refused.value.next
    ledger.write(lambda tx: tx.put_setting("a", "2"))
    assert ledger.read(lambda tx: tx.setting("a")) == "2"


def test_a_lock_that_is_let_go_in_time_is_only_waited_for(path: Path) -> None:
    with closing(SqliteStore(path, now=NOW, patience=30)) as ledger, closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        told: Future[object] = Future()
        ledger.writer.post(
            lambda tx: tx.put_setting("a", "1"),
            told.set_result,
        )
        assert not told.done()
        other.execute("ROLLBACK")
        assert told.result(20) == Written(None)
        assert ledger.read(lambda tx: tx.setting("a")) == "1"


@pytest.mark.parametrize("whose", ["ours", "another process's"])
def test_every_commit_is_noticed(ledger: SqliteStore, path: Path, whose: str) -> None:
    ledger.changed()
    assert not ledger.changed()
    with closing(SqliteStore(path, now=NOW)) as other:
        (ledger if whose == "ours" else other).write(lambda tx: tx.put_setting("a", "1"))
    assert ledger.changed()
    assert not ledger.changed()


def test_where_a_store_was_deleted_under_it_nobody_makes_another_by_looking(ledger: SqliteStore, path: Path) -> None:
    ledger.write(lambda tx: tx.put_setting("a", "1"))
    path.unlink()
    for look in (lambda: ledger.read(lambda tx: tx.setting("a")), ledger.changed, ledger.tend):
        with pytest.raises(StoreUnwritable):
            look()
    assert not path.exists()


def test_a_look_for_another_processs_commits_that_fails_is_an_ill_store_and_the_next_begins_anew(
    ledger: SqliteStore
) -> None:
    ledger.changed()
    assert ledger._data_version is not None
    ledger._data_version[0].close()
    with pytest.raises(StoreError):
        ledger.changed()
    assert ledger.changed(), "something may have been written meanwhile"
    assert not ledger.changed()


def test_a_look_for_another_processs_commits_in_a_file_that_was_spoilt_says_so(
    ledger: SqliteStore, tmp_path: Path
) -> None:
    ledger.path = str(tmp_path / "spoilt.db")
    Path(ledger.path).write_bytes(b"no ledger" * 1000)
    with pytest.raises(StoreCorrupt):
        ledger.changed()


# -- faults of the disk ---------------------------------------------------------------------------------------------


def test_a_full_disk_answers_nobody_wrongly(ledger: SqliteStore) -> None:
    def bound(tx: Tx) -> None:
        connection = connection_of(tx)
        pages = next(iter(connection.execute("PRAGMA page_count")))[0]
        connection.execute(f"PRAGMA max_page_count={pages + 30}")

    runs: list[str] = []
    told: dict[str, Future[None]] = {name: Future() for name in ("first", "huge", "last")}

    def put(name: str, size: int) -> None:
        def work(tx: Tx) -> None:
            runs.append(name)
            tx.put_setting(name, "x" * size)

        def answer(upshot: Upshot[None]) -> None:
            # Whoever is told that it is written can read it.
            seen = ledger.read(lambda tx: tx.setting(name))
            assert (seen is not None) == isinstance(upshot, Written)
            told[name].set_exception(upshot.error) if isinstance(upshot, Unwritten) else told[name].set_result(None)

        ledger.writer.post(work, answer)

    ledger.write(bound)
    with held(ledger.writer):
        put("first", 10)
        put("huge", 1_000_000)
        put("last", 10)
    told["first"].result(20)
    told["last"].result(20)
    refused = told["huge"].exception(20)
    assert isinstance(refused, StoreUnwritable)
    assert "full" in refused.what
    assert runs == ["first", "huge", "first", "huge", "last"], "the first was undone with the huge one, and ran again"


def test_a_full_disk_waits_for_no_reader(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "ledger.db", now=NOW, patience=60)) as ledger:
        [pages] = ledger.write(lambda tx: [row[0] for row in connection_of(tx).execute("PRAGMA page_count")])
        ledger.write(lambda tx: connection_of(tx).execute(f"PRAGMA max_page_count={pages}") and None)
        ledger.write(lambda tx: tx.put_setting("a", "x"))  # it is in the log, and a reader needs it there
        inside, go = threading.Event(), threading.Event()

        def looks_for_long(tx: Tx) -> None:
            tx.setting("a")
            inside.set()
            go.wait(60)

        reader = threading.Thread(target=ledger.read, args=(looks_for_long,))
        reader.start()
        assert inside.wait(10)
        told: list[Future[None]] = [Future() for _ in range(5)]
        for future in told:
            ledger.writer.post(lambda tx: tx.put_setting("a", "x" * 1_000_000), answering(future))
        try:
            assert all(isinstance(future.exception(10), StoreUnwritable) for future in told)
        finally:
            go.set()
            reader.join()


def answering(future: Future[Any]) -> Callable[[Upshot[Any]], None]:
    def answer(upshot: Upshot[Any]) -> None:
        if isinstance(upshot, Unwritten):
            future.set_exception(upshot.error)
        else:
            future.set_result(upshot.result)
    return answer


def test_who_is_undone_holds_no_lock_until_the_next_has_its_turn(ledger: SqliteStore, path: Path) -> None:
    transactions = SqliteTransactions(str(path), patience=1)
    with closing(transactions), closing(apsw.Connection(str(path))) as other:
        tx = transactions.begin()
        transactions.savepoint()
        tx.put_setting("refused", "x")
        transactions.rollback_to()
        other.execute("BEGIN IMMEDIATE")  # at once: it has no patience
        other.execute("ROLLBACK")
        assert (transactions.alive(), transactions.wrote()) == (True, False)
        transactions.savepoint()
        tx.put_setting("next", "x")
        transactions.release()
        transactions.commit()
        assert transactions.wrote()
    assert ledger.read(lambda tx: (tx.setting("refused"), tx.setting("next"))) == (None, "x")


def test_a_transaction_in_which_all_was_undone_ends_without_a_commit(path: Path, ledger: SqliteStore) -> None:
    transactions = SqliteTransactions(str(path), patience=1)
    with closing(transactions):
        tx = transactions.begin()
        transactions.savepoint()
        tx.put_setting("refused", "x")
        transactions.rollback_to()
        transactions.commit()
        assert not transactions.wrote()
        transactions.begin()
        transactions.rollback()
    assert ledger.read(lambda tx: tx.setting("refused")) is None


def test_where_the_store_cannot_be_begun_for_one_the_others_do_not_wait_each_for_themselves(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(SqliteStore(path, now=NOW, patience=0.3)) as ours:
        tries: list[float] = []
        transactions: Any = ours.writer._transactions
        begin = transactions._begin

        def locked() -> None:
            tries.append(1)
            if len(tries) > 1:
                raise apsw.BusyError("somebody has it")
            begin()

        transactions._begin = locked
        told = [Future[None]() for _ in range(20)]

        def refused(tx: Tx) -> None:
            raise Conflict("no")

        with held(ours.writer):
            tries.clear()
            for future in told:
                ours.writer.post(refused, answering(future))
        assert all(isinstance(future.exception(10), (Conflict, StoreLocked)) for future in told)
        assert len(tries) <= 4


def test_when_there_is_room_again_writing_goes_on(ledger: SqliteStore) -> None:
    def bound(pages: int) -> None:
        ledger.write(lambda tx: connection_of(tx).execute(f"PRAGMA max_page_count={pages}") and None)

    bound(1)
    with pytest.raises(StoreUnwritable, match="full"):
        ledger.write(lambda tx: tx.put_setting("a", "x" * 1_000_000))
    bound(1_000_000)
    ledger.write(lambda tx: tx.put_setting("a", "x" * 1_000_000))
    assert len(ledger.read(lambda tx: tx.setting("a")) or "") == 1_000_000


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Root may write everything, so it steps down for a moment; anybody else is bound by the file's rights."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_ledger_that_may_not_be_written_is_read_and_says_whose_fault_it_is(open_folder: Path) -> None:
    path = open_folder / "ledger.db"
    open_store(str(path), now=NOW).close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    try:
        with as_somebody_else(), contextlib.closing(open_store(str(path), now=NOW)) as store:
            assert store.read(lambda tx: tx.setting("schema_version"))
            with pytest.raises(StoreUnwritable) as refused:
                store.write(lambda tx: tx.put_setting("k", "v"))
            assert store.read_only is refused.value
    finally:
        open_folder.chmod(0o755)
    assert "owner and the rights" in refused.value.next


def test_a_folder_that_may_not_be_written_is_named(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with as_somebody_else(), pytest.raises(StoreUnwritable) as refused:
        open_store(str(open_folder / "home" / "ledger.db"), now=NOW)
    assert str(open_folder / "home" / "ledger.db") in refused.value.what
    assert refused.value.why == "Permission denied"


@pytest.mark.parametrize("content", [b"this is no database, and long enough to be looked at" * 20, b"\0" * 4096])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        open_store(str(path), now=NOW)
    assert path.read_bytes() == content
    assert sorted(p.name for p in path.parent.iterdir()) == ["ledger.db"]


def test_a_damaged_ledger_says_so_and_is_not_overwritten(path: Path) -> None:
    open_store(str(path), now=NOW).close()
    whole = path.read_bytes()
    damaged = whole[:4096] + b"\xff" * (len(whole) - 4096)
    path.write_bytes(damaged)
    with pytest.raises(StoreCorrupt) as refused, closing(SqliteStore(path, now=NOW)) as store:
        store.write(lambda tx: tx.put_setting("a", "1"))
    assert "backup" in refused.value.next
    assert path.read_bytes() == damaged


def test_an_empty_file_is_a_ledger_that_lost_everything(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreCorrupt, match="is empty") as refused:
        open_store(str(path), now=NOW)
    assert "remove the empty file" in refused.value.next
    assert path.stat().st_size == 0
    path.unlink()
    open_store(str(path), now=NOW).close()


def test_a_ledger_that_somebody_died_over_making_is_made_anew(path: Path) -> None:
    path.with_name(f"{path.name}.making").write_bytes(b"half of one")
    path.with_name(f"{path.name}.making-wal").write_bytes(b"and its log")
    open_store(str(path), now=NOW).close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_what_the_store_cannot_take_is_told_apart_from_a_store_that_is_ill(store: Store) -> None:
    def twice(tx: Tx) -> None:
        for _ in range(2):
            tx.join("wrk_1", role="desk", host="here", pid=1, lock_path="", now=NOW)

    with pytest.raises(StoreRefused):
        store.write(twice)


@pytest.mark.parametrize("content", [b"no database" * 500, None], ids=["garbage", "another program's"])
def test_a_store_that_could_not_be_opened_leaves_no_handle_behind(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ledger.db"
    if content is None:
        with closing(apsw.Connection(str(path))) as other:
            other.execute("CREATE TABLE cookie (name TEXT)")
    else:
        path.write_bytes(content)
    before = sorted(p.name for p in Path("/proc/self/fd").iterdir())
    for _ in range(3):
        with pytest.raises(StoreCorrupt):
            open_store(str(path), now=NOW, kick_folder=tmp_path / "kicks")
    assert sorted(p.name for p in Path("/proc/self/fd").iterdir()) == before


# -- copies ---------------------------------------------------------------------------------------------------------


def test_a_backup_is_a_whole_ledger_of_its_own(ledger: SqliteStore, tmp_path: Path) -> None:
    ledger.write(lambda tx: tx.put_setting("a", "1"))
    copy = tmp_path / "copy.db"
    ledger.backup(copy)
    ledger.write(lambda tx: tx.put_setting("a", "2"))
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(SqliteStore(copy, now=NOW)) as restored:
        assert restored.read(lambda tx: tx.setting("a")) == "1"


def test_a_backup_may_be_taken_while_others_write(ledger: SqliteStore, tmp_path: Path) -> None:
    ledger.write(lambda tx: tx.put_setting("a", "1"))
    with held(ledger.writer):
        ledger.backup(tmp_path / "copy.db")
    with closing(SqliteStore(tmp_path / "copy.db", now=NOW)) as restored:
        assert restored.read(lambda tx: tx.setting("a")) == "1"


def test_a_backup_that_cannot_be_written_says_so(ledger: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreUnwritable):
        ledger.backup(tmp_path / "no such folder" / "copy.db")


# -- in memory ------------------------------------------------------------------------------------------------------


def test_a_ledger_in_memory_is_a_real_one() -> None:
    store = open_store(":memory:", now=NOW)
    store.write(lambda tx: tx.put_setting("a", "1"))
    assert store.read(lambda tx: tx.setting("a")) == "1"
    store.write(lambda tx: tx.join("wrk_1", role="desk", host="here", pid=1, lock_path="", now=NOW))
    with pytest.raises(StoreRefused):
        store.write(lambda tx: tx.join("wrk_1", role="desk", host="here", pid=1, lock_path="", now=NOW))
    with pytest.raises(ZeroDivisionError):
        store.write(lambda tx: 1 // 0)
    store.write(lambda tx: tx.put_setting("a", "2"))
    assert store.read(lambda tx: tx.setting("a")) == "2"
    assert not store.changed()
    store.close()


def test_what_is_read_from_a_ledger_in_memory_is_not_kept_either() -> None:
    store = open_store(":memory:", now=NOW)
    store.read(lambda tx: tx.put_setting("a", "1"))
    assert store.read(lambda tx: tx.setting("a")) is None
    store.close()


# -- a process that dies --------------------------------------------------------------------------------------------

DIES = """
import os, sys
from nightporter.store import open_store
store = open_store(sys.argv[1], now=0)
store.write(lambda tx: tx.put_setting("a", "told"))
print("told", flush=True)
store.writer.post(lambda tx: (tx.put_setting("b", "half"), os.kill(os.getpid(), 9)), lambda *_: None)
store.write(lambda tx: None)
"""


def test_a_process_that_is_killed_loses_nothing_it_was_told_of_and_leaves_nothing_half(path: Path) -> None:
    died = subprocess.run([sys.executable, "-c", DIES, str(path)], capture_output=True, text=True, timeout=60)
    assert died.returncode == -9
    assert died.stdout == "told\n"
    with closing(SqliteStore(path, now=NOW)) as store:
        assert store.read(lambda tx: (tx.setting("a"), tx.setting("b"))) == ("told", None)


def test_rows_of_any_number_and_any_text_come_back_as_they_were(store: Store) -> None:
    texts = ["plain", "", "two\nlines", "quote ' \" \\", "ünï¢ode ☃ 🌙", "[1, null]", "{}", "x" * 5000]
    for count in (1, 7, 8, 9, 49, 50, 51, 107):
        rows: list[tuple[Any, ...]] = [(f"{count}-{n}", texts[n % len(texts)], None, None) for n in range(count)]
        store.write(lambda tx, rows=rows: tx.write_firings([], rows, now=NOW))  # type: ignore[misc]  # bound per turn
        found = store.read(lambda tx, rows=rows: tx.payloads([r[0] for r in rows]))  # type: ignore[misc]
        assert found == {r[0]: (r[1], None) for r in rows}


@pytest.mark.parametrize("same", [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("count", [49, 50, 59, 107])
def test_what_all_rows_have_in_common_is_written_to_each(
    ledger: SqliteStore, count: int, same: tuple[int, ...]
) -> None:
    # One value differs in the middle only: the first and the last are not asked alone.
    common = ("", "a text", '{"a": 1}', None)
    rows = [
        (f"{n}", *(common[i] if i in same or n != count // 2 else "another" for i in (1, 2, 3))) for n in range(count)
    ]
    ledger.write(lambda tx: tx.write_firings([], rows, now=NOW))
    with closing(apsw.Connection(ledger.path)) as connection:
        assert sorted(connection.execute("SELECT * FROM firing_payload")) == sorted(rows)


def test_a_disk_that_the_log_itself_filled_is_written_again_once_it_can_be_folded_back(tmp_path: Path) -> None:
    # The log is held open by a reader and grows; then the file may grow no further, which is a full disk.
    store = SqliteStore(tmp_path / "desk.sqlite", now=0)
    path = tmp_path / "desk.sqlite"
    try:
        for n in range(50):
            store.write(lambda tx, n=n: tx.put_setting(f"k{n % 5}", "x" * 2000))  # type: ignore[misc]  # bound per turn
        log = path.with_name("desk.sqlite-wal")
        assert log.stat().st_size > 50_000
        transactions = store.writer._transactions
        assert isinstance(transactions.translate(apsw.FullError("full")), StoreUnwritable)
        store.write(lambda tx: tx.put_setting("k", "v"))
        assert log.stat().st_size < 10_000
        assert store.read(lambda tx: tx.setting("k4")) == "x" * 2000
    finally:
        store.close()


def test_what_is_written_after_the_store_undid_a_transaction_by_itself_is_not_kept(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "ledger.db", now=NOW)) as store:

        def hears_nothing(tx: Tx) -> None:
            tx.put_setting("before", "x")
            connection = tx.sql._connection  # type: ignore[attr-defined]
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages}")
            with contextlib.suppress(apsw.FullError):
                tx.put_setting("large", "x" * 10_000_000)
            connection.execute("PRAGMA max_page_count = 1000000000")
            tx.put_setting("after", "x")

        with pytest.raises(StoreError, match="failed a statement"):
            store.write(hears_nothing)
        kept = store.read(lambda tx: [tx.setting(key) for key in ("before", "large", "after")])
        assert kept == [None] * 3
        store.write(lambda tx: tx.put_setting("later", "x"))
        assert store.read(lambda tx: tx.setting("later")) == "x"


@pytest.mark.parametrize("at", [0, 1])
def test_a_function_that_does_not_say_that_the_store_undid_all_dooms_nobody_beside_it(tmp_path: Path, at: int) -> None:
    with closing(SqliteStore(tmp_path / "ledger.db", now=NOW)) as store:

        def says_nothing(tx: Tx) -> None:
            connection_of(tx).execute("ROLLBACK")

        def counts(tx: Tx) -> None:
            tx.put_setting("count", str(int(tx.setting("count") or 0) + 1))

        told = [Future[None]() for _ in range(3)]
        with held(store.writer):
            for i, future in enumerate(told):
                store.writer.post(says_nothing if i == at else counts, answering(future))
        errors = [future.exception(10) for future in told]
        assert [type(error) for error in errors] == [StoreError if i == at else type(None) for i in range(3)]
        assert store.read(lambda tx: tx.setting("count")) == "2"
