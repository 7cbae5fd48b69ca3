"""What goes wrong in a store: a write fails in its savepoint, a commit is lost before or after it, the disk is full at
some statement, the server is gone. One trouble at a time, and each strikes once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from nightporter import admission
from nightporter.clock import Instant
from nightporter.dispatch import Claimed
from nightporter.errors import StoreError
from nightporter.operations import missed, sleep, work
from nightporter.sources import clock
from nightporter.store import Store, Tx
from nightporter.store.sql_port import Row
from nightporter.store.tx import Taker
from nightporter.store.upshot import Unwritten, Upshot, Written
from nightporter.words import Answer, Firing, Settled, Verdict

T = TypeVar("T")

Kind = Literal["refused", "full", "gone", "lost before", "lost after"]
Admitted = tuple[Instant, Firing | Settled, Answer, int, Sequence[Claimed]]
"""When, what, what it became, how many of its batch had become runs before it, and what was taken with the batch."""


@dataclass
class Trouble:
    """`at`: the statement it strikes at, where it strikes at one."""

    kind: Kind
    at: int = 0
    struck: bool = False


TROUBLES: tuple[tuple[Kind, int] | None, ...] = (
    *[None] * 12, ("refused", 2), ("refused", 5), ("full", 1), ("full", 4), ("full", 9), ("gone", 3),
    ("lost before", 0), ("lost after", 0), ("lost after", 0),
)



class _Sql:
    """The named queries of a transaction that one trouble waits in."""

    def __init__(self, inner: Any, trouble: Trouble, strike: Callable[[Any], None]) -> None:
        self._inner, self._trouble, self._strike, self._left = inner, trouble, strike, trouble.at
        self._connection = inner._connection

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0 and not self._trouble.struck:
            self._trouble.struck = True
            self._strike(self._connection)

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        self._count()
        return list(self._inner.all(name, **parameters))

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        self._count()
        found: Row | None = self._inner.one(name, **parameters)
        return found

    def run(self, name: str, /, **parameters: Any) -> int:
        self._count()
        return int(self._inner.run(name, **parameters))

    def each(self, name: str, /, rows: Sequence[Row], **parameters: Any) -> list[Row]:
        if rows:
            self._count()
        return list(self._inner.each(name, rows, **parameters))


@dataclass
class IllTransactions:
    """A dialect's transactions, with a trouble in them now and then."""

    inner: Any
    trouble: Trouble | None = None

    def begin(self) -> Tx:
        tx: Tx = self.inner.begin()
        if self.trouble is not None and self.trouble.at and not self.trouble.struck:
            strike = _STRIKES[tx.dialect, self.trouble.kind]
            return Tx(_Sql(tx.sql, self.trouble, strike), tx.dialect)
        return tx

    def commit(self) -> None:
        trouble = self.trouble
        if trouble is None or trouble.at or trouble.struck:
            self.inner.commit()
            return
        trouble.struck = True
        plain = getattr(self.inner, "_inner", self.inner)  # a store in memory: whoever rolls back lets go of its turn
        plain.commit() if trouble.kind == "lost after" else plain.rollback()
        raise StoreError("the commit got no answer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _sqlite_refuses(connection: Any) -> None:
    import apsw

    raise apsw.ConstraintError("a row that cannot be")


def _sqlite_is_full(connection: Any) -> None:
    import apsw

    connection.execute("ROLLBACK")  # as SQLite does
    raise apsw.FullError("no space is left")


def _postgres_refuses(connection: Any) -> None:
    connection.execute("SELECT 1 / 0")


def _postgres_is_full(connection: Any) -> None:
    import psycopg

    with contextlib.suppress(psycopg.Error):
        connection.execute("SELECT 1 / 0")  # the transaction is in error, as after any statement that failed
    raise psycopg.errors.DiskFull("no space is left")


def _postgres_is_gone(connection: Any) -> None:
    connection.close()
    connection.execute("SELECT 1")


_STRIKES: dict[tuple[str, str], Callable[[Any], None]] = {
    ("sqlite", "refused"): _sqlite_refuses, ("sqlite", "full"): _sqlite_is_full, ("sqlite", "gone"): _sqlite_is_full,
    ("postgres", "refused"): _postgres_refuses, ("postgres", "full"): _postgres_is_full,
    ("postgres", "gone"): _postgres_is_gone,
}


@dataclass
class Done:
    """A write that stands: what its function gave, and what it admitted."""

    result: Any
    admitted: list[Admitted]
    of: str = ""
    """The first automation that it locked by itself."""


@dataclass
class Watched:
    """A store as the stages see it. What stands is noted, whether its caller was told or not."""

    store: Store
    done: list[Done] = field(default_factory=list)
    taker: Taker | None = None
    """Who is offered what is admitted, as the flight of a desk is."""
    _noted: list[Admitted] = field(default_factory=list)
    _taken: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dialect = self.store.dialect
        self.writer = self
        self.ill = IllTransactions(self.store.writer._transactions)
        self.store.writer._transactions = self.ill

    @property
    def commit_seconds(self) -> float:
        return self.store.writer.commit_seconds

    def write(self, write: Callable[[Tx], T], *, patient: bool = False) -> T:
        """`patient`: no caller of these waits for another."""
        held: list[Done] = []

        def watched(tx: Tx) -> T:
            held.clear()
            self._noted = []
            locked: list[str] = []
            if self.taker is not None:
                tx.takers = {"queued": self.taker}
            self._taken = tx.taken
            lock = tx.lock_automation

            def lock_and_note(automation_id: str) -> Any:
                locked.append(automation_id)
                return lock(automation_id)

            tx.lock_automation = lock_and_note  # type: ignore[method-assign]
            result = write(tx)
            held.append(Done(result, self._noted, *locked[:1]))
            return result

        lost = self.ill.trouble is not None and self.ill.trouble.kind == "lost after"
        was_struck = self.ill.trouble is not None and self.ill.trouble.struck
        try:
            result = self.store.write(watched)
        except Exception:
            if lost and not was_struck and self.ill.trouble is not None and self.ill.trouble.struck:
                self.done += held  # it stands, and its caller was not told
            raise
        self.done += held
        return result

    def post(
        self, write: Callable[[Tx], T], answer: Callable[[Upshot[T]], None],
        doubted: Callable[[T], None] = lambda _: None, *, patient: bool = False,
    ) -> None:
        """As the writer has it."""
        try:
            result = self.write(write)
        except Exception as error:
            answer(Unwritten(error))
        else:
            answer(Written(result))

    def read(self, look: Callable[[Tx], T]) -> T:
        return self.store.read(look)

    def note(self, now: Instant, firings: Sequence[Firing | Settled], answers: Sequence[Answer]) -> None:
        runs = 0
        begun = self._taken.pop("queued", [])
        for firing, answer in zip(firings, answers, strict=True):
            self._noted.append((now, firing, answer, runs, ()))
            runs += answer.verdict is Verdict.ADMITTED
        if firings:
            self._noted[-1] = (*self._noted[-1][:4], begun)


_watching: list[Watched] = []


def admit(tx: Tx, firings: Sequence[Firing | Settled], *, now: Instant) -> list[Answer]:
    """`admission.admit`, overheard."""
    answers = admission.admit(tx, firings, now=now)
    for one in _watching:
        one.note(now, firings, answers)
    return answers


@contextlib.contextmanager
def overheard(watched: Watched) -> Iterator[None]:
    """Every admission, whoever asks for it, is noted."""
    places = (clock, missed, sleep, work)
    _watching.append(watched)
    for place in places:
        place.admit = admit  # type: ignore[attr-defined]  # by name, as they import it
    try:
        yield
    finally:
        _watching.remove(watched)
        for place in places:
            place.admit = admission.admit  # type: ignore[attr-defined]
