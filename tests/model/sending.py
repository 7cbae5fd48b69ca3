"""What workers do with results: take them, send them, and write what became of each try."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from model.account import Delivery
from model.desk import Worker
from model.labour import DAY, Labour
from model.trouble import Trouble
from model.wishes import DESTINATIONS
from nightporter.delivery import LANE_SLOTS, Tried, claim, record
from nightporter.delivery import Sending as BeingSent
from nightporter.words import Receipt, Sent


class Sending(Labour):
    """A desk whose workers send."""

    def take(self, worker: Worker, room: int, trouble: Trouble | None = None) -> None:
        now = self.now
        lanes = Counter(t.lane for t in worker.sending)
        error = self.try_("take", lambda: self.store.write(
            lambda tx: claim(tx, worker=worker.id, room=room, lanes=lanes, now=now)), trouble)
        if not self.done:
            return
        taken: list[BeingSent] = self.done[0].result
        assert not taken or not (self.account.stopped or worker.ended)
        for one in taken:
            delivery = self._delivery(one)
            assert delivery.state == "pending"
            assert delivery.due <= now
            assert not one.error, one.error
            delivery.state, delivery.worker = "sending", worker.id
            delivery.tries, delivery.token = delivery.tries + 1, delivery.token + 1
            assert (one.token, one.tries) == (delivery.token, delivery.tries - delivery.before)
            lanes[one.lane] += 1
            delivery.run.bodies.setdefault(delivery.name, set()).add(f"{one.parcel.event_id} {one.body_hash}")
            assert len(delivery.run.bodies[delivery.name]) == 1, "another body, or under another event id"
        assert all(n <= LANE_SLOTS for n in lanes.values())
        if len(taken) < room and not (self.account.stopped or worker.ended):
            left = [d.run.id for d in self.account.deliveries("pending") if d.due <= now and lanes[d.lane] < LANE_SLOTS]
            assert not left, f"these could have been taken: {left}"
        if error is None:
            worker.sending += taken

    def _delivery(self, taken: BeingSent) -> Delivery:
        run = self.account.run(taken.parcel.run_id)
        config: Any = taken.parcel.config
        name = "pager" if taken.kind == "pager" else "hook" if "one" in config["url"] else "quiet"
        assert name in run.deliveries, f"{run.id} owes nothing to {name}, and it is sent to"
        return run.deliveries[name]

    def record(
        self, worker: Worker, ones: Sequence[BeingSent], receipt: Receipt, doubtful: bool,
        trouble: Trouble | None = None, *, begun: bool = True,
    ) -> None:
        now = self.now
        sent = Sent(receipt, evidence="202" if receipt is Receipt.DELIVERED else "", error="no" * (receipt > "e"))
        tried = [Tried(t, sent, doubtful=doubtful, begun=begun) for t in ones]
        error = self.try_("record", lambda: self.store.write(
            lambda tx: record(tx, tried, DESTINATIONS, now=now)), trouble)
        if error is None:
            worker.sending = [t for t in worker.sending if t not in ones]
        if not self.done:
            return
        for one, current in zip(ones, self.done[0].result, strict=True):
            run = self.account.runs.get(one.parcel.run_id)
            delivery = None if run is None else self._delivery(one)
            holds = delivery is not None and delivery.state == "sending" and delivery.token == one.token
            assert current == holds, f"a claim on {one.parcel.delivery_id} counted, and should not, or the reverse"
            self.tally[f"{f'tried: {receipt}' if begun else 'not begun'}{'' if holds else ', lost claim'}"] += 1
            if delivery is not None and holds:
                if begun:
                    self._tried(delivery, receipt, doubtful, now)
                else:
                    self.not_sent(delivery, now)
        if begun and receipt in (Receipt.DELIVERED, Receipt.UNVERIFIED):
            self._hastened({one.lane for one in ones}, now)

    def _hastened(self, lanes: Collection[str], now: int) -> None:
        """What waits for a receiver that is back may go sooner; how soon is told by the store."""
        due: dict[tuple[str, str], int] = self.store.read(lambda tx: {
            (run, name): at for run, name, at in tx.sql._connection.execute(  # type: ignore[attr-defined]
                "SELECT run_id, destination, next_try_at FROM delivery WHERE state = 'pending'")})
        for delivery in self.account.deliveries("pending"):
            at = due.get((delivery.run.id, delivery.name), delivery.due)
            if at != delivery.due and delivery.lane in lanes and delivery.tries:
                assert now <= at < delivery.due, f"{delivery.run.id} waits until {at}, and not until {delivery.due}"
                delivery.due = at

    def not_sent(self, delivery: Delivery, now: int) -> None:
        """Let go before anything was sent: it was no try."""
        delivery.state, delivery.due, delivery.tries = "pending", now, delivery.tries - 1

    def _tried(self, delivery: Delivery, receipt: Receipt, doubtful: bool, now: int) -> None:
        match receipt:
            case Receipt.DELIVERED | Receipt.UNVERIFIED:
                delivery.state = str(receipt)
                return
            case Receipt.PERMANENT:
                delivery.state = "given_up"
            case _ if doubtful and not delivery.repeatable:
                delivery.state = "unknown"
            case _ if delivery.tries - delivery.before >= 50:
                delivery.state = "given_up"
            case _:
                delivery.state = "pending"
                of = self.delivery_id(delivery)
                (delivery.due,) = self.store.read(lambda tx: next(iter(tx.sql._connection.execute(  # type: ignore[attr-defined]
                    f"SELECT next_try_at FROM delivery WHERE id = '{of}'"))))
                assert now < delivery.due <= now + DAY
                return
        if not delivery.best_effort:
            delivery.run.notices.add("given_up")
