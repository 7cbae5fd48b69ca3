"""Gather: what arrives while the writer is busy is written together, and a bad item stops nobody."""

from __future__ import annotations

import threading

from turns import held

from nightporter.clock import Instant
from nightporter.errors import StoreError, StoreUnwritable
from nightporter.store import Store, Tx
from nightporter.store.gather import Answered, Gather
from nightporter.store.upshot import Written

NOW = Instant(1)


class Told:
    """What a gather answered, and a way to wait for it."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.results: dict[str, str | None] = {}
        self.errors: dict[str, BaseException] = {}
        self._bell = threading.Condition()

    def __call__(self, answered: Answered[str, str]) -> None:
        with self._bell:
            self.calls.append([key for key, _ in answered])
            for key, upshot in answered:
                assert key not in self.results
                assert key not in self.errors
                if isinstance(upshot, Written):
                    self.results[key] = upshot.result
                else:
                    self.errors[key] = upshot.error
            self._bell.notify_all()

    def wait(self, count: int) -> None:
        with self._bell:
            assert self._bell.wait_for(lambda: len(self.results) + len(self.errors) >= count, 20)


def write(tx: Tx, items: list[str]) -> list[str]:
    """An item is a title; an empty one is a fault of its own, and the same title twice is refused by the database."""
    for item in items:
        if not item:
            raise ValueError("an empty title")
        tx.join(item, role="desk", host="", pid=1, lock_path="", now=NOW)
    return [item.upper() for item in items]


def workers(store: Store) -> list[str]:
    return [row[0] for row in store.read(lambda tx: tx.workers())]


def test_an_item_alone_is_written_and_answered(store: Store) -> None:
    told = Told()
    Gather(store.writer, write, told).put("k", "a")
    told.wait(1)
    assert told.results == {"k": "A"}
    assert workers(store) == ["a"]


def test_items_that_arrive_meanwhile_are_one_batch_each_with_its_own_result(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told)
    with held(store.writer):
        for item in "abc":
            gather.put(f"key of {item}", item)
    told.wait(3)
    assert told.calls == [["key of a", "key of b", "key of c"]]
    assert told.results == {"key of a": "A", "key of b": "B", "key of c": "C"}


def test_a_batch_has_a_limit_and_the_rest_comes_next(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told, limit=2)
    with held(store.writer):
        for item in "abcde":
            gather.put(item, item)
    told.wait(5)
    assert told.calls == [["a", "b"], ["c", "d"], ["e"]]


def test_a_bad_item_fails_alone(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told)
    with held(store.writer):
        for item in ("a", "", "c"):
            gather.put(f"<{item}>", item)
    told.wait(3)
    assert told.results == {"<a>": "A", "<c>": "C"}
    assert isinstance(told.errors["<>"], ValueError)
    assert workers(store) == ["a", "c"]


def test_an_item_that_the_database_refuses_fails_alone(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told)
    store.write(lambda tx: tx.join("b", role="desk", host="", pid=1, lock_path="", now=NOW))
    with held(store.writer):
        for item in "abc":
            gather.put(item, item)
    told.wait(3)
    assert told.results == {"a": "A", "c": "C"}
    assert isinstance(told.errors["b"], StoreError)
    assert workers(store) == ["a", "b", "c"]


def test_an_ill_store_is_told_to_all_and_not_tried_item_by_item(store: Store) -> None:
    tries: list[list[str]] = []

    def ill(tx: Tx, items: list[str]) -> list[str]:
        tries.append(list(items))
        raise StoreUnwritable("the disk is full")

    told = Told()
    gather = Gather(store.writer, ill, told)
    with held(store.writer):
        for item in "abc":
            gather.put(item, item)
    told.wait(3)
    assert set(told.errors) == {"a", "b", "c"}
    assert tries == [["a", "b", "c"]]


def test_a_closed_store_answers_what_still_comes(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told)
    store.close()
    gather.put("k", "a")
    told.wait(1)
    assert isinstance(told.errors["k"], StoreError)


def test_closing_writes_what_had_been_put(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told)
    with held(store.writer):
        for item in "abc":
            gather.put(item, item)
    store.close()
    assert told.results == {"a": "A", "b": "B", "c": "C"}


def test_items_from_many_threads_are_each_answered_once(store: Store) -> None:
    told = Told()
    gather = Gather(store.writer, write, told, limit=7)

    def put(prefix: str) -> None:
        for n in range(25):
            gather.put(f"{prefix}-{n}", f"{prefix}-{n}")

    threads = [threading.Thread(target=put, args=(prefix,)) for prefix in "abcd"]
    for thread in threads:
        thread.start()
    told.wait(100)
    assert len(told.results) == 100
    assert len(workers(store)) == 100
