"""The courier: results are carried, a few to each receiver, and how every try ended is written whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from acting import a_worker
from desks import until
from flights import ToldDestination, landed, launched
from night import Night
from turns import held

import nightporter.air
import nightporter.delivery.courier
from nightporter.clock import ManualClock
from nightporter.delivery import LANE_SLOTS, Courier, Tried, claim, record
from nightporter.delivery.recover import take_back
from nightporter.errors import StoreRefused, StoreUnwritable
from nightporter.store import Store
from nightporter.words import Destination, Ended, Limits, Parcel, Receipt, Sent
from words import an_automation, fire, rows

FREE = Limits(per_hour=None, queued=None, concurrent=None)
OUT = Destination("out", "told", {"url": "https://one.example.org"})
DELIVERED = Sent(Receipt.DELIVERED, evidence="200 OK", status=200)

Carry = Callable[..., Courier]


@pytest.fixture(autouse=True)
def joined(store: Store, clock: ManualClock) -> None:
    """The worker of these tests is there."""
    a_worker(store, clock.now(), name="wrk_1")


@pytest.fixture
async def carry(store: Store, clock: ManualClock) -> AsyncIterator[Carry]:
    """Makes a courier with the destinations it is given; at the end it is drained."""
    couriers: list[Courier] = []

    def make(*destinations: ToldDestination, slots: int = 32) -> Courier:
        courier = Courier(store, clock, {d.kind: d for d in destinations}, worker="wrk_1", slots=slots)
        couriers.append(courier)
        return courier

    yield make
    for courier in couriers:
        await courier.drain(0)


async def delivered(parcel: Parcel) -> Sent:
    return DELIVERED


class Door:
    """A receiver that answers once its door is opened."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.reached = asyncio.Event()

    async def __call__(self, parcel: Parcel) -> Sent:
        self.reached.set()
        await self.open.wait()
        return DELIVERED


def results(store: Store, clock: ManualClock, n: int, *deliver: Destination, name: str = "brief") -> None:
    """Runs that end with something to deliver."""
    brief = an_automation(store, now=clock.now(), name=name, deliver=deliver or (OUT,), limits=FREE)
    for _ in range(n):
        fire(store, brief, now=clock.now())
    Night(store, clock).run_all(Ended.ok("report"))


def deliveries(store: Store) -> list[tuple[Any, ...]]:
    return rows(store, "SELECT state, evidence, error FROM delivery ORDER BY id")


async def test_a_result_is_carried_without_anybody_looking(store: Store, clock: ManualClock, carry: Carry) -> None:
    out = ToldDestination(delivered)
    courier = carry(out)
    results(store, clock, 1)
    await landed(store, courier)
    assert deliveries(store) == [("delivered", "200 OK", "")]
    assert out.parcels[0].body["data"]["text"] == "report"
    assert courier.in_the_air == 0


async def test_a_result_is_taken_in_the_commit_that_ended_its_run(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    door = Door()
    carry(ToldDestination(door))
    results(store, clock, 1)
    assert [state for state, *_ in deliveries(store)] == ["sending"], "before the loop had a turn"


async def test_a_result_that_waited_is_found_by_looking(store: Store, clock: ManualClock, carry: Carry) -> None:
    results(store, clock, 1)
    courier = carry(ToldDestination(delivered))
    courier.look()
    await landed(store, courier)
    assert [state for state, *_ in deliveries(store)] == ["delivered"]


async def test_a_passing_error_is_tried_again_when_its_time_has_come(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    async def second_time(parcel: Parcel) -> Sent:
        return DELIVERED if parcel.attempt == 2 else Sent(Receipt.TRANSIENT, error="503")

    out = ToldDestination(second_time)
    courier = carry(out)
    results(store, clock, 1)
    await landed(store, courier)
    courier.look()
    await landed(store, courier)
    assert len(out.parcels) == 1
    clock.advance(timedelta(seconds=2))
    courier.look()
    await landed(store, courier)
    assert [state for state, *_ in deliveries(store)] == ["delivered"]
    assert len({p.event_id for p in out.parcels}) == 1


# -- few at a time --------------------------------------------------------------------------------------------------


async def test_one_receiver_has_few_at_a_time_and_all_have_their_turn(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    async def a_turn_of_the_loop(parcel: Parcel) -> Sent:
        await asyncio.sleep(0)
        return DELIVERED

    results(store, clock, 20)
    out = ToldDestination(a_turn_of_the_loop)
    courier = carry(out)
    courier.look()
    await until(lambda: len(out.parcels) == 20)
    await landed(store, courier)
    assert out.most == LANE_SLOTS
    assert {state for state, *_ in deliveries(store)} == {"delivered"}


async def test_a_slow_receiver_holds_up_nobody_else(store: Store, clock: ManualClock, carry: Carry) -> None:
    door = Door()
    slow, swift = ToldDestination(door, kind="slow"), ToldDestination(delivered, kind="swift")
    courier = carry(slow, swift)
    results(store, clock, 9, Destination("out", "slow"), name="first")
    await door.reached.wait()
    results(store, clock, 9, Destination("out", "swift"), name="second")
    await until(lambda: len(swift.parcels) == 9)
    assert len(slow.parcels) == LANE_SLOTS
    door.open.set()
    await until(lambda: len(slow.parcels) == 9)
    await landed(store, courier)


async def test_looks_and_kicks_that_share_a_commit_take_no_more_than_there_is_room_for(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    for n in range(3):
        results(store, clock, 6, Destination("out", "told", {"url": f"https://{n}.example"}), name=f"brief-{n}")
    door = Door()
    out = ToldDestination(door)
    courier = carry(out, slots=6)
    with held(store.writer):
        for _ in range(3):
            courier.look()
        store.writer.post(lambda tx: tx.kick("delivery"), lambda upshot: None)
    await launched(store)
    assert courier.in_the_air == 6
    lanes = [p.config["url"] for p in out.parcels]
    assert max(lanes.count(lane) for lane in lanes) <= LANE_SLOTS
    door.open.set()


# -- what goes wrong ------------------------------------------------------------------------------------------------


async def test_a_destination_that_raises_is_tried_again(store: Store, clock: ManualClock, carry: Carry) -> None:
    async def raises(parcel: Parcel) -> Sent:
        raise KeyError("no such thing")

    courier = carry(ToldDestination(raises))
    results(store, clock, 1)
    await landed(store, courier)
    assert deliveries(store) == [("pending", "", "KeyError: 'no such thing'")]


async def test_a_receiver_that_never_answers_is_tried_again(
    store: Store, clock: ManualClock, carry: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightporter.delivery.courier, "TRY_SECONDS", 0.02)
    courier = carry(ToldDestination(Door()))
    results(store, clock, 1)
    await landed(store, courier)
    assert deliveries(store) == [("pending", "", "no answer within 0.02 s")]


async def test_a_destination_that_nobody_has_here_is_given_up(store: Store, clock: ManualClock, carry: Carry) -> None:
    courier = carry(ToldDestination(delivered))
    results(store, clock, 1, Destination("out", "strange"))
    await landed(store, courier)
    assert deliveries(store) == [("given_up", "", "no destination is called 'strange' here")]
    assert rows(store, "SELECT reason FROM delivery") == [("configuration",)]


async def test_what_cannot_be_read_is_given_up_and_never_sent(store: Store, clock: ManualClock, carry: Carry) -> None:
    out = ToldDestination(delivered)
    results(store, clock, 1)
    rows(store, "UPDATE automation_version SET definition = '{}'")
    courier = carry(out)
    courier.look()
    await landed(store, courier)
    assert out.parcels == []
    [(state, _, error)] = deliveries(store)
    assert state == "given_up"
    assert "cannot be read" in error


ANSWERS = [(Receipt.DELIVERED, "delivered"), (Receipt.PERMANENT, "given_up"), (Receipt.TRANSIENT, "pending")]


@pytest.mark.parametrize(("receipt", "becomes"), ANSWERS)
@pytest.mark.parametrize("unkept", ["bad\0body", "bad\ud83dbody"], ids=["nul", "surrogate"])
async def test_what_no_store_holds_is_replaced_and_the_answer_is_recorded(
    store: Store, clock: ManualClock, carry: Carry, receipt: Receipt, becomes: str, unkept: str
) -> None:
    async def strange(parcel: Parcel) -> Sent:
        return Sent(receipt, evidence=unkept, error=unkept)

    courier = carry(ToldDestination(strange))
    results(store, clock, 1)
    await landed(store, courier)
    [(state, _, error)] = deliveries(store)
    assert (state, error) == (becomes, "bad\ufffdbody")
    assert rows(store, "SELECT result, error FROM delivery_try") == [(str(receipt), "bad\ufffdbody")]
    assert courier.in_the_air == 0


@pytest.mark.parametrize(("receipt", "becomes"), ANSWERS)
async def test_an_answer_that_cannot_be_written_is_recorded_as_what_it_was(
    store: Store, clock: ManualClock, carry: Carry, receipt: Receipt, becomes: str
) -> None:
    async def strange(parcel: Parcel) -> Sent:
        return Sent(receipt, evidence="fine", status=1 << 70)

    courier = carry(ToldDestination(strange))
    results(store, clock, 1)
    await landed(store, courier)
    assert [state for state, *_ in deliveries(store)] == [becomes]
    assert rows(store, "SELECT result, status FROM delivery_try") == [(str(receipt), None)]
    assert courier.in_the_air == 0


@pytest.mark.parametrize(
    ("receipt", "becomes"), [*ANSWERS[:2], (Receipt.TRANSIENT, "given_up"), (Receipt.UNVERIFIED, "unverified")]
)
async def test_a_try_that_cannot_be_recorded_ends_its_delivery_all_the_same(
    store: Store, clock: ManualClock, carry: Carry, receipt: Receipt, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*of: Any, **rest: Any) -> Any:
        if of[1]:
            raise StoreRefused("no such column")
        return []

    monkeypatch.setattr(nightporter.delivery.courier, "record", refused)

    async def answers(parcel: Parcel) -> Sent:
        return Sent(receipt)

    courier = carry(ToldDestination(answers))
    results(store, clock, 1)
    await landed(store, courier)
    [(state, _, error)] = deliveries(store)
    assert state == becomes
    assert "could not be written" in error
    assert rows(store, "SELECT kind FROM inbox") == ([("given_up",)] if becomes == "given_up" else [])


async def test_a_try_is_recorded_when_the_store_is_well_again(
    store: Store, clock: ManualClock, carry: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightporter.air, "RETRY_WRITE", 0.001)
    ill = 3

    def sometimes(*of: Any, **rest: Any) -> Any:
        nonlocal ill
        if ill:
            ill -= 1
            raise StoreUnwritable("the disk is full")
        return record(*of, **rest)

    monkeypatch.setattr(nightporter.delivery.courier, "record", sometimes)
    out = ToldDestination(delivered)
    courier = carry(out)
    results(store, clock, 1)
    await landed(store, courier)
    assert ill == 0
    assert deliveries(store) == [("delivered", "200 OK", "")]
    assert len(out.parcels) == 1, "what was delivered is not sent again"


async def test_a_worker_that_was_declared_dead_takes_nothing(store: Store, clock: ManualClock, carry: Carry) -> None:
    results(store, clock, 1)
    store.write(lambda tx: tx.end_worker("wrk_1", "dead", now=clock.now()))
    carry(ToldDestination(delivered)).look()
    await launched(store)
    assert [state for state, *_ in deliveries(store)] == ["pending"]


# -- drained --------------------------------------------------------------------------------------------------------


async def test_a_drain_waits_for_what_is_in_the_air_and_takes_no_more(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    door = Door()
    courier = carry(ToldDestination(door))
    results(store, clock, 1, name="first")
    await door.reached.wait()
    draining = asyncio.create_task(courier.drain(60))
    await launched(store)
    results(store, clock, 1, name="second")
    courier.look()
    door.open.set()
    await draining
    assert sorted(state for state, *_ in deliveries(store)) == ["delivered", "pending"]


@pytest.mark.parametrize(("repeatable", "becomes"), [(True, "pending"), (False, "unknown")])
async def test_a_drain_that_takes_too_long_cuts_the_try_short(
    store: Store, clock: ManualClock, carry: Carry, repeatable: bool, becomes: str
) -> None:
    door = Door()
    courier = carry(ToldDestination(door, repeatable=repeatable))
    results(store, clock, 1)
    await door.reached.wait()
    await courier.drain(0.01)
    assert deliveries(store) == [(becomes, "", "the desk was shut down while sending")]


@pytest.mark.parametrize("repeatable", [True, False])
@pytest.mark.parametrize("tried", [0, 49])
async def test_what_was_taken_and_not_begun_when_the_drain_cut_it_short_is_sent_later_and_was_not_tried(
    store: Store, clock: ManualClock, carry: Carry, repeatable: bool, tried: int
) -> None:
    results(store, clock, 1)
    tried_before(store, tried)
    out = ToldDestination(Door(), repeatable=repeatable)
    courier = carry(out)
    courier.look()
    store.write(lambda tx: None)  # taken; the loop has not heard of it yet
    courier._claiming = False  # as a drain does

    def cut_short() -> None:
        for task in courier._tasks.values():
            task.cancel()

    asyncio.get_running_loop().call_soon(cut_short)  # behind the launch, and before the first step
    await landed(store, courier)
    assert out.parcels == []
    assert_not_tried(store, clock, tried)
    assert courier.in_the_air == 0


def tried_before(store: Store, times: int) -> None:
    rows(store, f"UPDATE delivery SET tries = {times}, token = {times}, reason = 'unreachable', error = '503'")


def assert_not_tried(store: Store, clock: ManualClock, tried: int) -> None:
    """It was taken once more, and is due as if it had not been."""
    assert rows(store, "SELECT state, tries, token, reason, error, next_try_at FROM delivery") == [
        ("pending", tried, tried + 1, "unreachable", "503", clock.now())
    ]
    assert rows(store, "SELECT * FROM delivery_try") == []
    assert rows(store, "SELECT * FROM inbox") == []


@pytest.mark.parametrize(("repeatable", "becomes"), [(True, "pending"), (False, "unknown")])
async def test_a_try_without_an_answer_may_have_arrived(
    store: Store, clock: ManualClock, carry: Carry, repeatable: bool, becomes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nightporter.delivery.courier, "TRY_SECONDS", 0.02)
    out = ToldDestination(Door(), repeatable=repeatable)
    courier = carry(out)
    results(store, clock, 1)
    await landed(store, courier)
    assert [state for state, *_ in deliveries(store)] == [becomes]
    assert rows(store, "SELECT kind FROM inbox") == ([] if repeatable else [("given_up",)])


@pytest.mark.parametrize(("repeatable", "becomes"), [(True, "pending"), (False, "unknown")])
async def test_a_destination_that_raises_may_have_handed_it_over(
    store: Store, clock: ManualClock, carry: Carry, repeatable: bool, becomes: str
) -> None:
    async def raises(parcel: Parcel) -> Sent:
        raise KeyError("no such thing")

    courier = carry(ToldDestination(raises, repeatable=repeatable))
    results(store, clock, 1)
    await landed(store, courier)
    assert [state for state, *_ in deliveries(store)] == [becomes]


async def test_a_claim_whose_answer_was_lost_is_taken_back_and_sent(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    results(store, clock, 1)
    store.write(lambda tx: claim(tx, worker="wrk_1", room=1, lanes={}, now=clock.now()))
    assert [state for state, *_ in deliveries(store)] == ["sending"]
    door = Door()
    out = ToldDestination(door)
    courier = carry(out)
    results(store, clock, 1, name="second")
    await door.reached.wait()
    assert store.write(courier.take_back) == 1
    assert store.write(courier.take_back) == 0
    door.open.set()
    courier.look()
    await until(lambda: len(out.parcels) == 2)
    await landed(store, courier)
    assert [state for state, *_ in deliveries(store)] == ["delivered"] * 2


@pytest.mark.parametrize("tried", [0, 50])
def test_a_claim_whose_answer_was_lost_is_no_try(store: Store, clock: ManualClock, tried: int) -> None:
    results(store, clock, 1)
    tried_before(store, tried)
    store.write(lambda tx: claim(tx, worker="wrk_1", room=1, lanes={}, now=clock.now()))
    clock.advance(timedelta(minutes=1))
    assert store.write(lambda tx: take_back(tx, "wrk_1", (), now=clock.now())) == 1
    assert_not_tried(store, clock, tried)


async def test_what_was_given_back_is_sent_under_a_new_token_and_its_tries_are_counted_on(
    store: Store, clock: ManualClock, carry: Carry
) -> None:
    results(store, clock, 1)
    [first] = store.write(lambda tx: claim(tx, worker="wrk_1", room=1, lanes={}, now=clock.now()))
    courier = carry(ToldDestination(delivered))
    assert store.write(courier.take_back) == 1
    courier.look()
    store.write(lambda tx: None)
    await landed(store, courier)
    assert rows(store, "SELECT state, tries, token FROM delivery") == [("delivered", 1, 2)]
    assert rows(store, "SELECT n, result FROM delivery_try") == [(1, "delivered")]
    late = Tried(first, Sent(Receipt.TRANSIENT))
    assert store.write(lambda tx: record(tx, [late], {}, now=clock.now())) == [False]


async def test_with_nothing_in_the_air_a_drain_is_done(carry: Carry) -> None:
    await carry(ToldDestination(delivered)).drain(60)
