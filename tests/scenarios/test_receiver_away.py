"""S-43: a receiver that is away for three days, beside one that is there."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from builders import Night
from scenes import HOOK, a_night

from nightporter import delivery, operations
from nightporter.clock import HOUR, SECOND, Instant
from nightporter.delivery import Sending, Tried
from nightporter.rules.retry import DELIVERY_TRIES
from nightporter.store import Store
from nightporter.words import AlertRoute, Alerts, Destination, Receipt, Sent

BESIDE = Destination("beside", "webhook", {"url": "https://two.example"})
ALERTS = Alerts(to=(AlertRoute("same", "webhook", {"url": "https://one.example/alerts"}),
                    AlertRoute("phone", "webhook", {"url": "https://phone.example"})))
DELIVERED, AWAY = Sent(Receipt.DELIVERED, evidence="200 OK"), Sent(Receipt.TRANSIENT, error="503 at 09:15", status=503)
RUNS = 300
EVERY = timedelta(days=3) / RUNS
AWAY_LANE = "webhook:one.example"


class Receivers:
    """What each was sent, and when; one of them answers as it is told."""

    def __init__(self, night: Night) -> None:
        self.night = night
        self.answer = AWAY
        self.got: dict[str, list[Instant]] = {}
        """By event, when it was taken."""
        self.tried: dict[str, list[Instant]] = {}
        """By delivery, of the one that is away."""
        self.busiest = 0
        """Deliveries to it that were in the air at once."""
        self.alerts: Counter[str] = Counter()

    def carry(self, room: int = 50) -> int:
        """Everything that is due now is sent; how many."""
        count = 0
        while taken := self.night.take(room):
            self.busiest = max(self.busiest, sum(one.lane == AWAY_LANE and not one.alert for one in taken))
            tried = [Tried(one, self._sent(one)) for one in taken]
            self.night.store.write(lambda tx, tried=tried: delivery.record(tx, tried, {}, now=self.night.now))  # type: ignore[misc]
            count += len(taken)
        return count

    def _sent(self, one: Sending) -> Sent:
        away = one.lane == AWAY_LANE
        answer = self.answer if away else DELIVERED
        if one.alert:
            self.alerts[f"{one.lane} {one.parcel.body['type']}"] += answer is DELIVERED
            return answer
        if away:
            self.tried.setdefault(one.parcel.delivery_id, []).append(self.night.now)
        if answer is DELIVERED:
            self.got.setdefault(one.parcel.event_id, []).append(self.night.now)
        return answer


def three_days(night: Night, automation: str, receivers: Receivers) -> None:
    """Every quarter of an hour or so a run ends; in the middle of it all the process is another one."""
    for n in range(RUNS):
        night.run(automation)
        if n == RUNS // 2:
            night.change_shifts()
        for _ in range(2):
            receivers.carry()
            night.clock.advance(EVERY / 2)


def sent_to(night: Night, destination: str, *columns: str) -> list[tuple[Any, ...]]:
    return night.sql(f"SELECT {', '.join(columns)} FROM delivery WHERE destination = ? AND alert IS NULL "
                     "ORDER BY created_at, id", destination)


def test_results_for_a_receiver_that_is_away_for_three_days_arrive_once_each_and_nobody_else_waits(
    store: Store
) -> None:
    night = a_night(store, "00:00")
    receivers = Receivers(night)
    automation = night.define("brief", deliver=[HOOK, BESIDE], alerts=ALERTS)
    three_days(night, automation, receivers)
    assert night.sql("SELECT state, count(*) FROM run GROUP BY state") == [("succeeded", RUNS)], "the work goes on"
    assert {state for (state,) in sent_to(night, "beside", "state")} == {"delivered"}
    assert all(ended - created <= SECOND for created, ended in sent_to(night, "beside", "created_at", "ended_at"))
    assert {state for (state,) in sent_to(night, "hook", "state")} == {"pending"}, "three days are not too long"
    assert receivers.busiest <= 4, "no more than a lane holds, however many wait"
    waits = [later - earlier for times in receivers.tried.values() for earlier, later in pairwise(times)]
    assert max(waits) <= 4 * HOUR + EVERY / timedelta(microseconds=1)
    first = next(iter(receivers.tried.values()))
    assert first[5] - first[0] < HOUR < first[-1] - first[-4], "it is asked less and less often"
    assert len(first) < DELIVERY_TRIES
    [(kind, count)] = night.sql("SELECT kind, count FROM incident")
    assert kind == "delivery"
    assert count >= 1
    assert receivers.alerts["webhook:phone.example incident.opened"] == 1, "not only to whom it is about"
    assert len(night.sql("SELECT id FROM inbox WHERE kind = 'incident'")) == 1

    receivers.answer = DELIVERED
    for _ in range(int(4 * HOUR / SECOND / 30)):
        receivers.carry()
        night.pass_time(seconds=1)
        if {state for (state,) in sent_to(night, "hook", "state")} == {"delivered"}:
            break
        night.pass_time(seconds=29)
    assert len(receivers.got) == 2 * RUNS
    assert {len(times) for times in receivers.got.values()} == {1}, "once each, by its event"
    back = sorted(ended for (ended,) in sent_to(night, "hook", "ended_at"))
    assert back[-1] - back[0] >= RUNS // 2 * 2 * SECOND, "and not all at once"
    assert receivers.alerts["webhook:phone.example incident.recovered"] == 1
    assert night.found() == {}


def test_what_is_given_up_in_the_end_is_one_message_and_each_can_be_sent_again(store: Store) -> None:
    night = a_night(store, "00:00")
    receivers = Receivers(night)
    automation = night.define("brief", deliver=[HOOK], alerts=ALERTS)
    for _ in range(20):
        night.run(automation)
    for _ in range(DELIVERY_TRIES + 1):
        receivers.carry()
        night.pass_time(hours=4)
    assert set(sent_to(night, "hook", "state", "reason", "tries")) == {("given_up", "gave_up", 50)}
    assert night.sql("SELECT state, count(*) FROM run GROUP BY state") == [("succeeded", 20)]
    [(title,)] = night.sql("SELECT title FROM inbox WHERE kind = 'given_up'")
    assert title.endswith("results were not delivered to webhook:one.example")
    assert night.found() == {}
    receivers.answer = DELIVERED
    for (one,) in sent_to(night, "hook", "id"):
        store.write(lambda tx, one=one: operations.resend(tx, one, now=night.now))  # type: ignore[misc]
    receivers.carry()
    assert {state for (state,) in sent_to(night, "hook", "state")} == {"delivered"}
    assert night.found() == {}


@pytest.mark.parametrize("status", [404, 410])
def test_what_is_refused_for_good_is_not_tried_again(store: Store, status: int) -> None:
    night = a_night(store, "00:00")
    receivers = Receivers(night)
    receivers.answer = Sent(Receipt.PERMANENT, error=f"{status}", status=status)
    night.run(night.define("brief", deliver=[HOOK]))
    receivers.carry()
    night.pass_time(days=1)
    assert receivers.carry() == 0
    assert sent_to(night, "hook", "state", "reason", "tries") == [("given_up", "rejected_by_receiver", 1)]
    assert night.found() == {}
