"""What people and programs ask of the desk: automations, arrivals, runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Literal

from model.account import Delivery, Run
from model.desk import Desk, Hearing
from model.standing import Automation, Trigger
from model.trouble import Trouble, admit
from model.wishes import Wish, definition_of, fixed
from nightporter import admission, operations
from nightporter.clock import Instant
from nightporter.errors import Conflict
from nightporter.states import AutomationState
from nightporter.store import Tx
from nightporter.words import Firing, Reason, Settled, TriggerId

A_MOMENT = timedelta(microseconds=10)
"""No two arrivals that are told apart are of one instant."""
PROGRAM = "/programs/night.py"
COMPARED = {
    "run": "id, automation_id, trigger_id, firing_id, source, version, state, reason, blocked, run_after, priority, "
           "attempts, scheduled_for, queued_at, seq, cancel_reason, cancel_by, replay_of, has_payload, ended_at",
    "transition": "*", "firing_payload": "*",
    "firing": "id, trigger_id, external_id, dedupe_key, scheduled_for, arrived_at, verdict, reason, run_id, version",
    "trigger": "id, firings, runs, last_fired_at, last_verdict, last_reason, counted, counted_at",
}


class Asking(Desk):
    """A desk that is asked."""

    # -- automations -----------------------------------------------------------------------------------------

    def define(self, name: str, wish: Wish, trouble: Trouble | None = None, *, proposed: bool = False) -> None:
        wish = fixed(wish, self.now)
        definition = definition_of(name, wish)
        state = AutomationState.PROPOSED if proposed else AutomationState.ACTIVE
        now = self.now
        self.try_("define", lambda: self.store.write(lambda tx: operations.define(
            tx, definition, truth="code", by="ann", path=PROGRAM, now=now, state=state)), trouble)
        if not self.done:
            return
        defined, hearing = self.done[0].result, Hearing(self.done)
        a = self.account.named(name)
        if a is None:
            assert defined.change == "created"
            self._create(defined.automation_id, name, wish, str(state), now)
        else:
            same = a.wish == wish and not (a.state == "paused" and a.why == "vanished")
            assert (defined.automation_id, defined.change) == (a.id, "unchanged" if same else "changed")
            if not same:
                self._change(a, wish, hearing)
        hearing.over()

    def _create(self, automation_id: str, name: str, wish: Wish, state: str, now: int) -> None:
        assert automation_id not in self.account.automations
        a = Automation(automation_id, name, wish, state, now, now)
        self.account.automations[automation_id] = a
        a.take_wish(wish, now, new=True)
        if state == "active":
            self.account.arm(a, now, now)
        else:
            a.fall_asleep("paused", now)

    def _change(self, a: Automation, wish: Wish, hearing: Hearing) -> None:
        now = self.catch_up(a, hearing)
        a.version += a.wish != wish
        a.updated_at = now
        why = self.end_pause(a, now, now, hearing)
        a.take_wish(wish, now)
        state = a.state
        renewed = state == "expired" and (wish.expires is None or wish.expires > now)
        if (state == "paused" and why == "vanished") or renewed:
            a.turns("active", now)
            a.errors = 0
        elif state not in ("active", "completed"):
            assert why is not None
            a.fall_asleep(why, now)
            return
        if self.account.arm(a, now, now) and state == "completed":
            a.turns("active", now)
            a.errors = 0

    def pause(self, a: Automation, until: int | None, trouble: Trouble | None = None) -> None:
        error = self.try_("pause", lambda: self.store.write(lambda tx: operations.pause(
            tx, a.id, by="ann", reason="a holiday", now=self.now,
            until=None if until is None else Instant(until))), trouble)
        if isinstance(error, Conflict):
            self._refused_rightly(a, until)
        if not self.done:
            return
        hearing = Hearing(self.done)
        now = self.catch_up(a, hearing)
        assert a.state == "active"
        assert until is None or until > now
        a.turns("paused", now, until)
        a.fall_asleep("paused", now)
        hearing.over()

    def _refused_rightly(self, a: Automation, until: int | None) -> None:
        now = a.changed_at(self.now)
        state = "active" if a.is_over(now) else a.state
        may_complete = a.clock is not None and a.clock.plan[0] == "at"
        assert state != "active" or may_complete or (until is not None and until <= now), f"{a.id} could be paused"

    def enable(self, a: Automation, trouble: Trouble | None = None) -> None:
        error = self.try_("enable", lambda: self.store.write(lambda tx: operations.enable(
            tx, a.id, by="ann", now=self.now)), trouble)
        now = a.changed_at(self.now)
        may = a.state in ("proposed", "paused", "expired", "completed") and (
            a.wish.expires is None or a.wish.expires > now)
        if isinstance(error, Conflict):
            assert not may, f"{a.id} is {a.state} and could be enabled"
        if not self.done:
            return
        assert may
        hearing = Hearing(self.done)
        self.wake(a, now, hearing)
        hearing.over()

    def remove(self, a: Automation, trouble: Trouble | None = None) -> None:
        self.try_("remove", lambda: self.store.write(lambda tx: operations.remove(
            tx, a.id, by="ann", now=self.now)), trouble)
        if not self.done:
            return
        hearing = Hearing(self.done)
        now = self.catch_up(a, hearing)
        self.end_pause(a, now, now, hearing)
        hearing.over()
        a.turns("removed", now)
        for trigger in a.triggers.values():
            trigger.owed = None
            self.account.missing.dismiss(trigger.id)
        for run in self.account.of(a, "review"):
            self.account.conclude(run, "failed", None, "deleted", now)
        for run in self.account.of(a, "queued", "held"):
            self.account.conclude(run, "cancelled", None, "deleted", now)
        for run in self.account.of(a, "running"):
            run.cancel = run.cancel or "deleted"

    def vanish(self, a: Automation, trouble: Trouble | None = None) -> None:
        self.try_("vanish", lambda: self.store.write(lambda tx: operations.vanish(
            tx, a.id, reason="no longer in the program", now=self.now)), trouble)
        if not self.done:
            return
        hearing = Hearing(self.done)
        now = self.catch_up(a, hearing)
        hearing.over()
        assert self.done[0].result == (a.state == "active")
        if a.state == "active":
            a.turns("paused", now)
            a.fall_asleep("vanished", now)

    def upkeep(self, trouble: Trouble | None = None) -> None:
        """What ends by itself, ends; with a trouble in it, as far as it came."""
        now = self.now
        over = {a.id for a in self.account.automations.values() if a.is_over(now)}
        self.try_("upkeep", lambda: operations.upkeep(self.store, now=self.clock.now), trouble)  # type: ignore[arg-type]
        for each in self.done:
            a, hearing = self.account.automations[each.of], Hearing([each])
            if a.id in over:
                over.discard(a.id)
                assert each.result
                self.wake(a, a.changed_at(now), hearing)
            else:
                assert a.wish.expires is not None
                assert a.wish.expires <= now
                at = self.catch_up(a, hearing)
                assert each.result == (a.state == "active")
                if a.state == "active":
                    a.turns("expired", at)
                    a.fall_asleep("expired", at)
            hearing.over()
        if trouble is None or not trouble.struck:
            assert not over, f"these pauses are over: {over}"
            left = [a.id for a in self.account.automations.values()
                    if a.state == "active" and a.wish.expires is not None and a.wish.expires <= now]
            assert not left, f"these have expired: {left}"

    # -- arrivals ----------------------------------------------------------------------------------------------

    def arrive(self, firings: Sequence[Firing], trouble: Trouble | None = None) -> None:
        """Arrivals that are told together; they become what they would one by one."""
        self.clock.advance(A_MOMENT)
        now = self.now
        compared = len(firings) > 1 and self.store.taker is None
        work = _alike if compared else admit
        self.try_("arrive" if len(firings) == 1 else "batch", lambda: self.store.write(
            lambda tx: work(tx, firings, now=now)), trouble)
        for each in self.done:
            assert [f for _, f, *_ in each.admitted] == list(firings)
            for one in each.admitted:
                self.account.hear(*one)

    def replay(self, run: Run, external: str, trouble: Trouble | None = None) -> None:
        self.clock.advance(A_MOMENT)
        self.try_("replay", lambda: self.store.write(lambda tx: operations.replay(
            tx, run.id, external_id=external, by="ann", now=self.now)), trouble)
        for each in self.done:
            (one,) = each.admitted
            assert isinstance(one[1], Firing)
            assert one[1].replay_of == run.id
            self.account.hear(*one)

    def decide(self, trigger: Trigger, slot: int, run: bool, trouble: Trouble | None = None) -> None:
        """Somebody runs a missed slot late, or dismisses it."""
        self.clock.advance(A_MOMENT)
        state, now = self.account.missing.cards[trigger.id][slot], self.now
        [card] = self.store.read(lambda tx: [row[0] for row in tx.sql._connection.execute(  # type: ignore[attr-defined]
            f"SELECT id FROM missed_card WHERE trigger_id = '{trigger.id}' AND slot = {slot}")])
        error = self.try_("run what was missed" if run else "dismiss what was missed", lambda: self.store.write(
            lambda tx: operations.execute_missed(tx, card, by="ann", now=now) if run
            else operations.dismiss_missed(tx, card, by="ann", now=now)), trouble)
        if isinstance(error, Conflict):
            manual = trigger.automation.triggers["manual"]
            may = not run or self.account.verdict(manual, f"missed-{slot}", 0, now)[0] == "admitted"
            assert state != "pending" or not may, f"{card} was {state}, and nothing stood in its way"
        if not self.done:
            return
        assert state == "pending", f"{card} was {state} and is decided again"
        self.account.missing.cards[trigger.id][slot] = "executed" if run else "dismissed"
        for one in self.done[0].admitted:
            assert isinstance(one[1], Firing)
            assert (one[1].scheduled_for, one[1].trigger_id) == (slot, f"{trigger.automation.id}/manual")
            self.account.hear(*one)

    # -- runs and results ----------------------------------------------------------------------------------------

    def cancel(self, run: Run, trouble: Trouble | None = None) -> None:
        self.try_("cancel", lambda: self.store.write(lambda tx: operations.cancel_runs(
            tx, [run.id], reason=Reason.CANCELLED_BY, by="ann", now=self.now)), trouble)
        if not self.done:
            return
        waits, runs = run.state in ("queued", "held"), run.state == "running" and run.cancel is None
        assert self.done[0].result == (int(waits), int(runs))
        if waits:
            self.account.conclude(run, "cancelled", None, "cancelled_by", self.now)
        elif runs:
            run.cancel = "cancelled_by"

    def review(self, run: Run, decision: Literal["retry", "dismiss"], trouble: Trouble | None = None) -> None:
        error = self.try_(f"review: {decision}", lambda: self.store.write(lambda tx: operations.review(
            tx, run.id, decision, by="ann", now=self.now)), trouble)
        may = run.state == "review" and (decision == "dismiss" or run.automation.state != "removed")
        if isinstance(error, Conflict):
            assert not may
        if not self.done:
            return
        assert may
        if decision == "dismiss":
            self.account.conclude(run, "failed", None, "dismissed", self.now)
            return
        self.requeued(run, self.now)
        run.marks.clear()
        run.effects = {key: (state, token) for key, (state, token) in run.effects.items() if state == "done"}

    def requeued(self, run: Run, now: int) -> None:
        """Back in the queue, with an attempt more where none was left."""
        run.becomes("queued")
        run.cancel = None
        run.ready = 0
        priority = 3 if run.by_hand else run.wish.priority
        run.rank = now + priority * 10_000_000
        run.attempts = max(run.attempts, run.attempt + 1)

    def resend(self, delivery: Delivery, trouble: Trouble | None = None) -> None:
        of = self.delivery_id(delivery)
        error = self.try_("resend", lambda: self.store.write(
            lambda tx: operations.resend(tx, of, now=self.now)), trouble)
        may = delivery.state in ("given_up", "unknown", "unverified") or (
            delivery.state == "pending" and delivery.tries > 0)
        assert not isinstance(error, Conflict) or not may
        if self.done:
            assert may
            delivery.state, delivery.due, delivery.before = "pending", self.now, delivery.tries

    def delivery_id(self, delivery: Delivery) -> str:
        found = self.store.read(lambda tx: [
            row[0] for row in tx.sql._connection.execute("SELECT id, run_id, destination FROM delivery")  # type: ignore[attr-defined]
            if row[1:] == (delivery.run.id, delivery.name)])
        assert found, f"the delivery of {delivery.run.id} to {delivery.name} is not there"
        return str(found[0])

    def stop(self, trouble: Trouble | None = None) -> None:
        self.try_("stop", lambda: self.store.write(
            lambda tx: operations.stop(tx, by="ann", reason="enough", now=self.now)), trouble)
        if self.done:
            self.account.stopped = True
            for run in self.account.in_state("running"):
                run.cancel = run.cancel or "stopped"

    def lift(self, trouble: Trouble | None = None) -> None:
        self.try_("lift", lambda: self.store.write(operations.lift), trouble)
        if self.done:
            self.account.stopped = False


def a_firing(a: Automation, trigger: str, key: int, size: int, number: int) -> Firing:
    """An arrival; the key -1 is one that the sender gave no name."""
    text = "x" * size
    return Firing(TriggerId(f"{a.id}/{trigger}"), f"drawn-{number}" if key < 0 else f"e-{key}", text=text,
                  payload='{"a": 1}' if key % 3 == 1 else None, sender="ann", drawn=key < 0)


def _alike(tx: Tx, firings: Sequence[Firing | Settled], *, now: Instant) -> list[Any]:
    """Admit a batch, after one by one was tried and taken back: both are the same."""
    connection = tx.sql._connection  # type: ignore[attr-defined]  # both databases have one
    connection.execute("SAVEPOINT apart")
    apart = [admission.admit(tx, [f], now=now)[0] for f in firings]
    ledger = _ledger(connection)
    connection.execute("ROLLBACK TO SAVEPOINT apart")
    connection.execute("RELEASE SAVEPOINT apart")
    together = admit(tx, firings, now=now)
    outlines = [[(a.verdict, a.reason, a.run_id, a.firing_id) for a in each] for each in (apart, together)]
    assert outlines[0] == outlines[1], f"one by one {outlines[0]}, together {outlines[1]}"
    assert ledger == _ledger(connection), "a batch left another ledger than one by one"
    return together


def _ledger(connection: Any) -> dict[str, list[str]]:
    return {
        table: sorted(map(repr, connection.execute(f"SELECT {columns} FROM {table}")))
        for table, columns in COMPARED.items()
    }
