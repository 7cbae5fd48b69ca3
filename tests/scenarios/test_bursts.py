"""Arrivals that come close together are one run: `coalesce`, and `debounce` for words in pieces."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from builders import Night
from scenes import UNAVAILABLE, a_night, at

from nightporter import operations
from nightporter.ledger import explain
from nightporter.store import Store
from nightporter.words import (
    Coalesce,
    Overlap,
    TriggerSpec,
)
from words import steps

GATHERS = Coalesce(timedelta(seconds=30), timedelta(minutes=2))


def called(**options: Any) -> TriggerSpec:
    return TriggerSpec("call", "call", **options)


def said(night: Night, subject: str) -> str:
    return night.store.read(lambda tx: explain(tx, subject, night.now)).text


def test_a_burst_is_one_run_that_carries_the_last_of_it(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    first = night.fire(automation, payload={"n": 1})
    more = []
    for n in (2, 3):
        night.pass_time(seconds=20)
        more.append(night.fire(automation, payload={"n": n}))
    assert [each.verdict for each in (first, *more)] == ["admitted", "merged", "merged"]
    assert {each.run_id for each in (first, *more)} == {first.run_id}
    assert "it gathers what else arrives until 2026-06-10 10:01:10" in said(night, str(first.run_id))
    night.pass_time(seconds=29)
    assert night.begin() == [], "it waits for more"
    night.pass_time(seconds=1)
    [claimed] = night.begin()
    assert claimed.work.payload == {"n": 3}
    night.finish(claimed)
    text = said(night, str(first.run_id))
    assert "1 min 10 s late, because it waited 1 min 10 s for others like it" in text
    assert "2 more arrivals were folded into it while it waited." in text
    assert night.sql("SELECT merged FROM run") == [(2,)]
    assert night.found() == {}


def test_without_it_the_same_burst_is_as_many_runs(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called())
    assert [night.fire(automation).verdict for _ in range(3)] == ["admitted"] * 3


def test_a_burst_that_does_not_end_is_run_after_its_longest_wait(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    verdicts = []
    started = None
    while started is None:
        verdicts.append(night.fire(automation).verdict)
        night.pass_time(seconds=10)
        if claimed := night.begin():
            started = night.now
    assert started == at("10:02:00")
    assert verdicts == ["admitted"] + ["merged"] * 11
    after = night.fire(automation)
    assert after.verdict == "admitted", "a run that has begun takes nothing more"
    night.finish(claimed)
    night.pass_time(seconds=30)
    night.work()
    assert night.sql("SELECT merged FROM run ORDER BY id") == [(11,), (0,)]
    assert night.found() == {}


def test_what_belongs_together_is_told_by_a_field_of_the_payload(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=replace(GATHERS, key="payload.order.id")))
    payloads: list[Any] = [
        {"order": {"id": 1}}, {"order": {"id": 2}}, {"order": {"id": 1}, "more": 1}, {"order": 7}, None,
        {"order": {"id": "1"}},
    ]
    answers = [night.fire(automation, payload=payload) for payload in payloads]
    assert [answer.verdict == "admitted" for answer in answers] == [True, True, False, True, False, True]
    assert {answer.verdict for answer in answers} == {"admitted", "merged"}
    assert answers[2].run_id == answers[0].run_id
    night.pass_time(seconds=30)
    carried = {str(one.work.run_id): one.work.payload for one in night.begin(10)}
    assert carried[str(answers[0].run_id)] == {"order": {"id": 1}, "more": 1}
    assert night.found() == {}


def test_a_burst_while_a_run_is_going_is_one_run_behind_it(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS, overlap=Overlap.QUEUE))
    night.fire(automation)
    night.pass_time(seconds=30)
    [slow] = night.begin()
    behind = [night.fire(automation) for _ in range(3)]
    assert [answer.verdict for answer in behind] == ["admitted", "merged", "merged"]
    night.pass_time(seconds=40)
    assert night.begin() == [], "it must go alone"
    assert night.fire(automation).verdict == "merged", "and waits for those that come meanwhile"
    night.finish(slow)
    assert night.begin() == [], "and for no more of them"
    night.pass_time(seconds=30)
    [next_] = night.begin()
    assert next_.work.run_id == behind[0].run_id
    night.finish(next_)
    assert night.found() == {}


def test_what_another_takes_the_place_of_takes_nothing_more(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(
        coalesce=replace(GATHERS, key="payload.n"), overlap=Overlap.REPLACE))
    one, other = night.fire(automation, payload={"n": 1}), night.fire(automation, payload={"n": 2})
    assert steps(store, one.run_id) == ["queued", "cancelled"]
    again = night.fire(automation, payload={"n": 1})
    assert (other.verdict, again.verdict) == ("admitted", "admitted")
    night.pass_time(seconds=30)
    assert night.work() == [again.run_id]
    assert night.found() == {}


def test_a_run_that_failed_once_and_waits_takes_nothing_more(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    night.fire(automation)
    night.pass_time(seconds=30)
    night.finish(night.begin(), UNAVAILABLE)
    assert night.fire(automation).verdict == "admitted"
    assert night.found() == {}


def test_a_repeat_of_what_was_folded_is_a_repeat(store: Store) -> None:
    night = a_night(store, "10:00")
    automation = night.define("brief", called(coalesce=GATHERS))
    first = night.fire(automation, "a")
    night.fire(automation, "b")
    again = night.fire(automation, "b")
    assert (again.verdict, again.run_id) == ("repeated", first.run_id)
    assert night.sql("SELECT merged FROM run") == [(1,)]
    assert night.found() == {}


def test_words_in_pieces_are_one_run_with_all_of_them(store: Store) -> None:
    night = a_night(store, "10:00")
    spoken = Coalesce(timedelta(seconds=5), timedelta(seconds=50), joins=True)
    automation = night.define("brief", called(coalesce=spoken), TriggerSpec("manual", "manual", coalesce=spoken))
    for trigger in ("call", "manual"):
        first = night.fire(automation, text="Look at the numbers", trigger=trigger, payload={"n": 1})
        night.pass_time(seconds=3)
        more = [night.fire(automation, text=text, trigger=trigger) for text in ("of last week", "")]
        assert {each.run_id for each in more} == {first.run_id} or trigger == "manual"
        night.pass_time(seconds=3)
        night.fire(automation, text="and not of this one", trigger=trigger)
        night.pass_time(seconds=5)
        claimed = {str(one.work.run_id): one for one in night.begin(10)}
        work = claimed[str(first.run_id)].work
        assert work.text == "Look at the numbers\nof last week\nand not of this one"
        assert work.payload == {"n": 1}
        night.finish(list(claimed.values()))
        replayed = night.store.write(lambda tx, run=work.run_id: operations.replay(  # type: ignore[misc]  # bound
            tx, run, external_id="again", by="ann", now=night.now))
        night.pass_time(seconds=50)
        [again] = night.begin(run=replayed.run_id)
        assert again.work.text == work.text
        night.finish(again)
    assert night.found() == {}


def test_a_person_who_says_nothing_beside_now_means_now(store: Store) -> None:
    night = a_night(store, "10:00")
    spoken = Coalesce(timedelta(seconds=5), timedelta(seconds=50), joins=True)
    automation = night.define("brief", TriggerSpec("manual", "manual", coalesce=spoken))
    night.fire(automation, trigger="manual", text="look")
    now = night.fire(automation, trigger="manual")
    assert [one.work.run_id for one in night.begin(10)] == [now.run_id]
