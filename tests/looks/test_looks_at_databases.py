"""Queries that look, into a real SQLite file and a real PostgreSQL server. They read, and cannot do anything else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import apsw
import psycopg
import pytest
from asking import ask

from nightporter.errors import BadInput
from nightporter.looks.sql import Sql, check
from nightporter.words import ErrorClass, Seen, Sight

SHORT = timedelta(milliseconds=300)
Shop = Callable[[str], list[tuple[object, ...]]]
MADE = ("CREATE TABLE orders (id INTEGER, what TEXT, open INTEGER)",
        "INSERT INTO orders VALUES (1, 'tea', 1), (2, 'ink', 0), (3, 'ham', 1)")


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A shop's database, on each of the two."""
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_url"))
        with psycopg.connect(url, autocommit=True) as server:
            for statement in MADE:
                server.execute(statement.encode())
        return url
    path = str(tmp_path / "shop.db")
    with closing(apsw.Connection(path)) as file:
        for statement in MADE:
            file.execute(statement)
    return path


def orders(where: str) -> list[int]:
    if where.startswith("postgres"):
        with psycopg.connect(where) as server:
            return [row[0] for row in server.execute(b"SELECT id FROM orders ORDER BY id").fetchall()]
    with closing(apsw.Connection(where)) as file:
        return [row[0] for row in file.execute("SELECT id FROM orders ORDER BY id")]


async def look(where: str, query: str, limit: timedelta = timedelta(seconds=20)) -> Seen:
    # Not through `check`: the server of these tests may well have a password in its address.
    return await ask(Sql(limit), {"query": query, "store": where})


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT count(*) FROM orders WHERE open = 1", "2"), ("SELECT sum(id) FROM orders;", "6"),
        ("SELECT id, what FROM orders WHERE open = 1 ORDER BY id -- the open ones",
         '{"id": 1, "what": "tea"}\n{"id": 3, "what": "ham"}'),
        ("WITH o AS (SELECT * FROM orders) SELECT what FROM o WHERE id = 2", '{"what": "ink"}'),
    ],
)
async def test_a_count_above_none_and_rows_are_something(where: str, query: str, text: str) -> None:
    seen = await look(where, query)
    assert (seen.sight, seen.text) == (Sight.SOMETHING, text)


@pytest.mark.parametrize(
    "query", ["SELECT count(*) FROM orders WHERE id > 99", "SELECT id, what FROM orders WHERE id > 99",
              "SELECT max(id) FROM orders WHERE id > 99"],
)
async def test_a_count_of_none_and_no_rows_are_nothing(where: str, query: str) -> None:
    assert (await look(where, query)).sight is Sight.NOTHING


async def test_of_many_rows_some_are_told(where: str) -> None:
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT i, i AS j FROM n"
    lines = (await look(where, many)).text.splitlines()
    assert (len(lines), lines[-1]) == (101, "[cut here: more than 100 rows]")


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM orders", "DELETE FROM orders RETURNING id", "INSERT INTO orders VALUES (4, 'x', 1)",
        "UPDATE orders SET open = 0", "DROP TABLE orders", "SELECT 1; DELETE FROM orders",
        "SELECT 1) AS a; DELETE FROM orders; SELECT * FROM (SELECT 1", "COMMIT; DELETE FROM orders",
        "SET default_transaction_read_only = off; DELETE FROM orders", "PRAGMA writable_schema = 1",
        "WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d", "ATTACH 'other.db' AS other", "VACUUM",
        "CREATE TABLE more (id INTEGER)", "BEGIN", "EXPLAIN DELETE FROM orders",
    ],
)
async def test_what_would_do_more_than_read_is_refused_and_has_done_nothing(where: str, query: str) -> None:
    seen = await look(where, query)
    assert (seen.sight, seen.text) == (Sight.FAILED, "")
    assert seen.error_class in (ErrorClass.PERMISSION, ErrorClass.CONFIGURATION)
    assert orders(where) == [1, 2, 3]


@pytest.mark.parametrize("query", ["SELECT nothing FROM orders", "SELECT * FROM missing", "this is no query", ";", "'"])
async def test_a_query_that_cannot_be_answered_is_a_look_that_failed(where: str, query: str) -> None:
    seen = await look(where, query)
    assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)


async def test_a_query_without_end_is_ended(where: str) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    seen = await look(where, endless, SHORT)
    assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.TIMEOUT)
    assert seen.error == "the query took longer than 0.3 s"


async def test_a_huge_value_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with closing(apsw.Connection(path)) as file:
        file.execute(MADE[0])
    assert (await look(path, "SELECT hex(zeroblob(500000000))")).sight is Sight.FAILED


async def test_a_database_that_is_not_there_is_a_look_that_failed_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "gone.db"
    seen = await look(str(path), "SELECT 1")
    assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)
    assert not path.exists()
    (tmp_path / "text.db").write_text("this is no database " * 100)
    assert (await look(str(tmp_path / "text.db"), "SELECT * FROM t")).sight is Sight.FAILED
    away = await look("postgresql://nobody@127.0.0.1:1/none", "SELECT 1")
    assert (away.sight, away.error_class) == (Sight.FAILED, ErrorClass.TRANSIENT)


async def test_a_database_is_named_by_a_reference_that_is_looked_up_each_time(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = check({"query": "SELECT count(*) FROM orders", "store": "env:SHOP_URL"})
    assert config["store"] == "env:SHOP_URL"
    gone = await ask(Sql(), config)
    assert (gone.sight, gone.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)
    monkeypatch.setenv("SHOP_URL", where)
    assert (await ask(Sql(), config)).text == "3"


@pytest.mark.parametrize(
    ("store", "what"),
    [("postgresql://ana:hush@host/shop", "has a password in it"), ("postgres://host/shop?password=hush", "password"),
     ("mysql://host/shop", "cannot be mysql://"), ("env:not a name", "secret"), ("", "no text")],
)
def test_what_names_no_database_that_can_be_asked_is_refused(store: str, what: str) -> None:
    with pytest.raises(BadInput, match=what) as caught:
        check({"query": "SELECT 1", "store": store})
    assert "hush" not in str(caught.value)
