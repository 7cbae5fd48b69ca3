"""The writer on both databases: what was answered is there, and what failed is undone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from faults import post
from turns import held

from nightporter.errors import StoreError
from nightporter.store import Store, Tx


def put(key: str, value: str) -> Callable[[Tx], None]:
    return lambda tx: tx.put_setting(key, value)


def settings(store: Store, *keys: str) -> list[str | None]:
    return store.read(lambda tx: [tx.setting(key) for key in keys])


def test_what_was_answered_is_in_the_store(store: Store) -> None:
    store.write(put("a", "1"))
    assert settings(store, "a") == ["1"]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
def test_what_a_bad_function_wrote_is_undone_and_its_neighbours_stand(store: Store, place: int) -> None:
    def bad(tx: Tx) -> None:
        tx.put_setting("b", "half")
        raise ValueError

    works = [put("a", "1"), put("c", "3")]
    works.insert(place, bad)
    with held(store.writer):
        posted = [post(store.writer, work) for work in works]
    assert isinstance(posted.pop(place).exception(10), ValueError)
    for one in posted:
        one.result(10)
    assert settings(store, "a", "b", "c") == ["1", None, "3"]


def test_a_statement_that_the_database_refuses_costs_only_its_function(store: Store) -> None:
    def twice(tx: Tx) -> None:
        tx.put_setting("b", "half")
        for _ in range(2):
            tx.join("wrk_1", role="desk", host="here", pid=1, lock_path="", now=cast(Any, 0))

    with held(store.writer):
        one, two = post(store.writer, put("a", "1")), post(store.writer, twice)
        three = post(store.writer, put("c", "3"))
    one.result(10)
    three.result(10)
    assert isinstance(two.exception(10), StoreError)
    assert settings(store, "a", "b", "c") == ["1", None, "3"]
    assert store.read(lambda tx: tx.workers()) == []


def test_a_riders_writes_are_in_the_commit_it_rode_in(store: Store) -> None:
    seen: list[list[str | None]] = []
    store.writer.ride("queued", put("rider", "here"), lambda _: seen.append(settings(store, "a", "rider")))

    def kick(tx: Tx) -> None:
        tx.put_setting("a", "1")
        tx.kick("queued")

    store.write(kick)
    assert seen == [["1", "here"]]


def test_a_riders_fault_is_undone_and_nobody_elses(store: Store) -> None:
    def bad(tx: Tx) -> None:
        tx.put_setting("rider", "half")
        raise ValueError

    store.writer.ride("queued", bad, lambda _: None)

    def kick(tx: Tx) -> None:
        tx.put_setting("a", "1")
        tx.kick("queued")

    store.write(kick)
    assert settings(store, "a", "rider") == ["1", None]
