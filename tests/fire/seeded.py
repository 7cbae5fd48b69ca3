"""Seeded bugs: mistakes that engines of this kind are known for, made in a desk under fire so that the accounts can be
held to finding them. Each is set over the engine's own functions from here, in the process that is to die."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any


def slot_early() -> None:
    """The slot is moved on in a transaction of its own, before the one that admits its firing."""
    from nightporter.admission import admit
    from nightporter.rules.zones import TZDATA
    from nightporter.sources.plan import Plan
    from nightporter.sources.together import Together

    def written(self: Together, plans: Sequence[Plan], _: object, now: Any) -> list[Any]:
        store = self._store
        moved = store.write(lambda tx: tx.advance([(p.armed, p.next_fire_at) for p in plans], tzdata=TZDATA))
        firings = [firing for p in plans if p.armed.trigger_id in moved for firing in p.firings]
        answers = store.write(lambda tx: admit(tx, firings, now=now))
        return [(list(zip(firings, answers, strict=True)), None)]

    put(Together, "written", written)


def no_fence() -> None:
    """The writes of a run's holder do not ask whether its claim is still the current one, nor whether it is alive."""
    from nightporter.store import Tx

    put(Tx, "has_ended", lambda *_: False)
    for name in ("run_fences", "run_end", "run_retry", "run_hold", "run_release", "run_set_aside"):
        _rewrite(name, r"run\.state = 'running' AND run\.token = r\.token", "true")
    _rewrite("run_fences", r"run\.token, run\.seq", "r.token, run.seq")
    _rewrite("run_fence", r"run\.token = \S+ AND run\.state = 'running'", "true")


def answered_early() -> None:
    """The writer answers its callers before the commit."""
    from nightporter.store.writer import Writer

    together, ride, answer = Writer._commit_together, Writer._ride, Writer._answer
    told: set[int] = set()

    def commit_together(self: Any, jobs: Any, *, riders: bool = True) -> bool:
        self._early = jobs
        return together(self, jobs, riders=riders)

    def riding(self: Any, tx: Any, riders: Any) -> Any:
        for rider, result in ride(self, tx, riders):
            rider.done(result)
        answer(self, self._early, tx.kicks)
        told.update(map(id, self._early))
        return []

    def answered(self: Any, jobs: Any, kicks: Any) -> None:
        answer(self, [job for job in jobs if id(job) not in told], kicks)
        told.difference_update(map(id, jobs))

    put(Writer, "_commit_together", commit_together)
    put(Writer, "_ride", riding)
    put(Writer, "_answer", answered)


def lost_savepoint() -> None:
    """The writer takes a failed write for undone to its savepoint, and does not look whether a full disk took the whole
    transaction with it."""
    import apsw

    from nightporter.store.sqlite import SqliteTransactions

    back, commit = SqliteTransactions.rollback_to, SqliteTransactions.commit

    def forgiving(original: Callable[[Any], None]) -> Callable[[Any], None]:
        def wrapped(self: Any) -> None:
            with contextlib.suppress(apsw.SQLError):  # no such savepoint, no transaction is active
                original(self)

        return wrapped

    put(SqliteTransactions, "alive", lambda _: True)
    put(SqliteTransactions, "rollback_to", forgiving(back))
    put(SqliteTransactions, "commit", forgiving(commit))


def late_row() -> None:
    """Delivery takes what is new from above the last id that it saw, and its cursor is stored: what was numbered
    earlier and committed later is never sent."""
    from nightporter.store import Tx

    seen = "coalesce((SELECT value FROM setting WHERE key = 'delivery_seen'), '')"
    for name in ("delivery_candidates", "delivery_candidates_beside"):
        _rewrite(name, r"state = 'pending'", f"state = 'pending' AND (tries > 0 OR id > {seen})")
    send = Tx.send

    def sending(self: Any, delivery_ids: Sequence[str], **named: Any) -> Any:
        sent = send(self, delivery_ids, **named)
        if sent:
            self.put_setting("delivery_seen", max([self.setting("delivery_seen") or "", *delivery_ids]))
        return sent

    put(Tx, "send", sending)


def orphans() -> None:
    """Nobody ends the process groups of a dead desk: the guard is told of none, and the sweep looks for none."""
    from nightporter import sweep
    from nightporter.outside.guard import Guard

    put(Guard, "watch", lambda *_: None)
    put(sweep, "end_children", lambda *_, **__: 0)


BUGS = {
    "slot-early": slot_early, "no-fence": no_fence, "answered-early": answered_early,
    "lost-savepoint": lost_savepoint, "late-row": late_row, "orphans": orphans,
}
"""Each bug by its name."""
SQLITE_ONLY = frozenset({"lost-savepoint"})
"""After an error PostgreSQL takes nothing but a rollback: it cannot be overlooked there."""


def plant(name: str) -> None:
    BUGS[name]()


def put(owner: Any, name: str, value: object) -> None:
    if not hasattr(owner, name):
        raise AttributeError(f"{owner} has no {name}: the seeded bug no longer fits the engine")
    setattr(owner, name, value)


def _rewrite(name: str, what: str, becomes: str) -> None:
    from nightporter.store.named import queries

    for known in (queries("sqlite"), queries("postgres")):
        query = known[name]
        if not re.search(what, query.sql):
            raise ValueError(f"{name} has no {what!r}: the seeded bug no longer fits the engine")
        known[name] = replace(query, sql=re.sub(what, becomes, query.sql), body=re.sub(what, becomes, query.body))
