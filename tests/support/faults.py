"""A store that fails where a test says so, and posting to its writer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar, cast

from nightporter.errors import StoreError, StoreUnwritable
from nightporter.store import Tx
from nightporter.store.sql_port import Sql
from nightporter.store.upshot import Upshot, Written
from nightporter.store.writer import Writer

T = TypeVar("T")


class Faults:
    """Transactions that keep a log of what happened to them, and fail where a test says so."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fail: dict[str, int] = {}
        """What is to fail, and how many times more."""
        self.error: type[StoreError] = StoreUnwritable
        self.gone = False

    def _do(self, what: str) -> None:
        self.log.append(what)
        if self.fail.get(what, 0) > 0:
            self.fail[what] -= 1
            raise self.error(f"{what} failed")

    def begin(self) -> Tx:
        self.gone = False
        self._do("begin")
        return Tx(cast(Sql, None), "sqlite")

    def savepoint(self) -> None:
        self._do("savepoint")

    def release(self) -> None:
        self._do("release")

    def rollback_to(self) -> None:
        self._do("rollback_to")

    def commit(self) -> None:
        self._do("commit")

    def rollback(self) -> None:
        self.log.append("rollback")

    def alive(self) -> bool:
        return not self.gone

    def wrote(self) -> bool:
        return True

    def translate(self, error: Exception) -> Exception:
        return error

    def close(self) -> None:
        self.log.append("close")


def post(
    writer: Writer, work: Callable[[Tx], T], log: list[str] | None = None, *, patient: bool = False
) -> Future[T]:
    """Post a write function; the future is settled when it is answered."""
    future: Future[T] = Future()

    def answer(upshot: Upshot[T]) -> None:
        if log is not None:
            log.append("answer")
        if isinstance(upshot, Written):
            future.set_result(upshot.result)
        else:
            future.set_exception(upshot.error)

    writer.post(work, answer, patient=patient)
    return future


def fails(tx: Tx) -> None:
    raise ValueError("this one is bad")
