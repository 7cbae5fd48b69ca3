"""Once a day the desk says how it is, well or not; what is late is said late; and nobody says it twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from acting import a_worker, after, begin, finish, send, setting
from desks import until
from receiver import HANG, Receiver, answer

from nightporter import destinations, operations
from nightporter.clock import ManualClock
from nightporter.config import Config
from nightporter.destinations import own
from nightporter.engine.heartbeat import DailyWord
from nightporter.errors import BadInput
from nightporter.ledger import inbox
from nightporter.ledger.heartbeat import heartbeat as composed
from nightporter.outside.http import Web
from nightporter.sources.clock import settle
from nightporter.store import Store
from nightporter.words import Destination, Ended, ErrorClass, Receipt, Retry, Sent
from words import a_clock_trigger, a_definition, an_automation, fire, rows


class Desk:
    """A desk of which only the daily word is there."""

    def __init__(self, store: Store, clock: ManualClock, outputs: Path, web: Web, **settings: Any) -> None:
        self.store, self.clock = store, clock
        config = Config(state=outputs, outputs=outputs, store="x", timezone="Europe/Berlin", **settings)
        own.check(config)
        carriers = destinations.registry(outputs=outputs, web=web, now=clock.now, report=print)
        self.word = DailyWord(config, store, clock, carriers, web, host="here")

    async def on(self, **span: float) -> list[str]:
        """Time passes, and a minute's turn comes; the titles of what was said by now, oldest first."""
        self.clock.advance(timedelta(**span))
        await self.word.beat()
        return [line.title for line in reversed(self.said())]

    def said(self) -> list[Any]:
        return list(self.store.read(lambda tx: inbox(tx, kind="heartbeat")).items)

    def text(self) -> str:
        """Of the newest."""
        return str(self.said()[0].text)

    def sent(self) -> list[tuple[Any, ...]]:
        return list(rows(self.store, "SELECT state, tries, evidence, error FROM heartbeat_sent "
                                     "ORDER BY slot, destination"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 6, 10, 5, 0, tzinfo=UTC))  # seven in Berlin


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()
    yield web
    await web.close()


@pytest.fixture
def desk(store: Store, clock: ManualClock, tmp_path: Path, web: Web) -> Desk:
    return Desk(store, clock, tmp_path, web)


QUIET = "All is well. 0 ran, 0 did not."


async def test_it_is_said_once_a_day_at_its_time_though_nothing_happened(desk: Desk) -> None:
    assert await desk.on() == []
    assert await desk.on(minutes=59) == []
    assert await desk.on(minutes=1) == [QUIET]
    assert await desk.on(minutes=1) == [QUIET]
    assert await desk.on(hours=23, minutes=58) == [QUIET]
    assert await desk.on(minutes=1) == [QUIET] * 2


async def test_the_first_day_of_a_desk_has_none_before_its_time(desk: Desk) -> None:
    assert await desk.on(hours=5) == []  # noon in Berlin
    assert await desk.on(hours=19, minutes=59) == []
    assert await desk.on(minutes=1) == [QUIET]


async def test_restarts_and_a_second_desk_say_nothing_twice(desk: Desk, tmp_path: Path, web: Web) -> None:
    other = Desk(desk.store, desk.clock, tmp_path, web)
    await desk.on()
    assert await other.on(hours=1) == await desk.on() == [QUIET]
    assert await Desk(desk.store, desk.clock, tmp_path, web).on(minutes=5) == [QUIET]


async def test_two_desks_that_say_it_in_the_same_moment_write_it_once(
    desk: Desk, tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Desk(desk.store, desk.clock, tmp_path, web)
    await desk.on()
    desk.clock.advance(timedelta(hours=1))

    def meanwhile(*args: Any, **more: Any) -> Any:
        monkeypatch.setattr("nightporter.engine.heartbeat.heartbeat", composed)
        assert other.word.say()
        return composed(*args, **more)

    monkeypatch.setattr("nightporter.engine.heartbeat.heartbeat", meanwhile)
    assert not desk.word.say()
    assert len(desk.said()) == 1


async def test_one_whose_time_passed_while_no_desk_was_there_is_said_late_and_says_so(desk: Desk) -> None:
    await desk.on(hours=1)
    await desk.on(hours=1)
    assert "late" not in "".join(line.text for line in desk.said())
    assert len(await desk.on(days=3)) == 1
    text = desk.text().splitlines()[0]
    assert text == ("This was due at 2026-06-13 08:00 Europe/Berlin and is 1 h late: no desk was there to say it. "
                    "2 before it were not said at all.")


@pytest.mark.parametrize(("time", "hours"), [("08:00", 1), ("09:30", 2.5)])
async def test_its_time_is_a_setting(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web, time: str, hours: float
) -> None:
    desk = Desk(store, clock, tmp_path, web, heartbeat=time)
    await desk.on()
    assert await desk.on(hours=hours - 0.01) == []
    assert await desk.on(hours=0.01) == [QUIET]


async def test_it_can_be_switched_off(store: Store, clock: ManualClock, tmp_path: Path, web: Web) -> None:
    desk = Desk(store, clock, tmp_path, web, heartbeat="none")
    assert await desk.on() == await desk.on(days=2) == []


async def test_it_counts_what_ran_what_did_not_and_why_and_what_comes(desk: Desk) -> None:
    store, clock = desk.store, desk.clock
    await desk.on()
    await desk.on(seconds=1)
    out = Destination("out", "file", {"path": "out.txt"})
    name = an_automation(store, a_definition("brief", deliver=[out], retry=Retry(attempts=1),
                                             triggers=[a_clock_trigger("30 8 * * *", timezone="Europe/Berlin")]),
                         now=clock.now())
    resting = an_automation(store, a_definition("resting"), now=clock.now())
    store.write(lambda tx: operations.pause(tx, resting, by="ana", reason="", now=clock.now()))
    fire(store, resting, now=clock.now())
    for n, ended in enumerate([Ended.ok("hi"), Ended.ok(""), Ended.failed(ErrorClass.EXCEPTION, "no")]):
        fire(store, name, f"e{n}", now=clock.now())
        finish(store, begin(store, clock.now())[0], ended, clock.now())
    settle_at = after(clock.now(), minutes=50)
    store.write(lambda tx: settle(tx, name, now=settle_at))
    [title] = await desk.on(minutes=59, seconds=59)
    assert title == "Wants a look: 1 failed, incidents: 1 open. 3 ran, 1 did not."
    assert desk.text() == (
        "Automations: 1 active, 1 paused.\n"
        "Ran since 2026-06-10 07:00 Europe/Berlin: 3 (1 failed, 1 with nothing to say, 1 succeeded).\n"
        "Did not run: 1:\n"
        "  1 skipped: the automation is paused\n"
        "Incidents: 1 open.\n"
        "1 dead letter(s): nightporter dead lists them.\n"
        "The audit found nothing.\n"
        "Next: brief 2026-06-10 08:30 Europe/Berlin\n"
    )
    await desk.on(days=1)
    assert "Ran since 2026-06-10 08:00 Europe/Berlin: 0." in desk.text()


async def test_what_was_missed_what_waits_and_what_is_stuck_is_said(desk: Desk) -> None:
    store, clock = desk.store, desk.clock
    await desk.on()
    hook = Destination("hook", "webhook", {"url": "https://one.example"})
    brief = an_automation(store, a_definition("brief", deliver=[hook], triggers=[a_clock_trigger("0 * * * *")]),
                          now=clock.now())
    fire(store, brief, now=clock.now())
    finish(store, begin(store, clock.now())[0], Ended.ok("hi"), clock.now())
    send(store, Sent(Receipt.TRANSIENT, error="503"), clock.now())
    store.write(lambda tx: settle(tx, brief, now=after(clock.now(), days=2)))
    store.write(lambda tx: operations.stop(tx, by="ana", reason="enough", now=clock.now()))
    [title] = await desk.on(days=2, hours=1)
    assert title.startswith("Wants a look: the desk is stopped, 47 missed, 1 deliveries were tried in vain")
    assert "The whole desk is stopped by ana. enough\n" in desk.text()
    assert "  47 collapsed: its moment passed" in desk.text()


async def test_what_the_audit_finds_is_said(desk: Desk) -> None:
    await desk.on()
    a_worker(desk.store, desk.clock.now())
    fire(desk.store, an_automation(desk.store, now=desk.clock.now()), now=desk.clock.now())
    assert "1 contradiction(s), 1 stale queued. 0 ran" in (await desk.on(hours=1))[0]
    assert "Work that does not get on: 1 stale queued. nightporter audit says what to do." in desk.text()


async def test_a_part_that_cannot_be_told_keeps_no_other_from_being_told(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bad row")

    await desk.on()
    monkeypatch.setattr("nightporter.ledger.heartbeat.audit", broken)
    [title] = await desk.on(hours=1)
    assert title == "Wants a look: the audit cannot be told. 0 ran, 0 did not."
    assert "What there is to say of the audit cannot be told: a bad row\nNext: nothing within a day\n" in desk.text()


async def test_it_goes_to_a_webhook_and_a_file_beside_the_inbox(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "a secret of some length")
    async with Receiver(answer(503), answer(202, x_request_id="r-1")) as receiver:
        desk = Desk(store, clock, tmp_path, web, heartbeat_to=f"{receiver.url}, heart/{{{{date}}}}.txt",
                    heartbeat_secret="env:KEY", own_hosts="127.0.0.1")
        await desk.on()
        await desk.on(hours=1)
        assert sorted(row[0] for row in desk.sent()) == ["delivered", "pending"]
        await desk.on(minutes=1)
        await desk.on(hours=2)
        first, second = receiver.asked
    assert (first.headers["webhook-id"], first.body) == (second.headers["webhook-id"], second.body)
    assert second.headers["webhook-signature"].startswith("v1,")
    said = json.loads(second.body)
    assert (said["type"], said["timestamp"]) == ("nightporter.heartbeat", "2026-06-10T06:00:00Z")
    assert (said["data"]["well"], said["data"]["title"], said["data"]["next"]) == (True, QUIET, [])
    assert (tmp_path / "heart" / "2026-06-10.txt").read_text() == desk.text()
    assert sorted((state, tries) for state, tries, *_ in desk.sent()) == [("delivered", 1), ("delivered", 2)]
    assert any("r-1" in evidence for _, _, evidence, _ in desk.sent())


async def test_one_that_is_refused_for_good_is_given_up_and_the_inbox_has_it_all_the_same(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web
) -> None:
    async with Receiver(answer(410, "gone")) as receiver:
        desk = Desk(store, clock, tmp_path, web, heartbeat_to=receiver.url, own_hosts="127.0.0.1")
        await desk.on()
        assert await desk.on(hours=1) == [QUIET]
        await desk.on(hours=1)
        assert len(receiver.asked) == 1
    assert [(state, error) for state, _, _, error in desk.sent()] == [("given_up", "HTTP 410 Gone: gone")]


async def test_a_private_address_is_refused_unless_it_is_one_of_the_desks_own_hosts(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web
) -> None:
    async with Receiver() as receiver:
        desk = Desk(store, clock, tmp_path, web, heartbeat_to=receiver.url, deadman=receiver.url)
        setting(store, "due_evaluated_at", clock.now() + 3_600_000_000)
        await desk.on()
        await desk.on(hours=1)
        assert receiver.asked == []
    assert [state for state, *_ in desk.sent()] == ["given_up"]


async def test_a_destination_that_the_settings_name_no_more_is_given_up(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web
) -> None:
    async with Receiver(answer(503)) as receiver:
        desk = Desk(store, clock, tmp_path, web, heartbeat_to=receiver.url, own_hosts="127.0.0.1")
        await desk.on()
        await desk.on(hours=1)
    await Desk(store, clock, tmp_path, web).on(minutes=5)
    assert [(state, error) for state, _, _, error in desk.sent()] == [("given_up", "the settings name it no more")]


async def test_the_address_outside_is_called_as_long_as_what_is_due_is_looked_at(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web
) -> None:
    async with Receiver() as receiver:
        desk = Desk(store, clock, tmp_path, web, deadman=receiver.url, own_hosts="127.0.0.1")
        await desk.on()
        assert receiver.asked == []  # nobody has looked yet
        setting(store, "due_evaluated_at", clock.now())
        await desk.on(minutes=1)
        await desk.on(minutes=1)
        assert [(asked.method, asked.body) for asked in receiver.asked] == [("GET", b"")] * 2
        await desk.on(minutes=2)
        assert len(receiver.asked) == 2


async def test_a_call_outside_that_fails_keeps_nothing_from_being_said(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightporter.engine.heartbeat._CALL", timedelta(milliseconds=50))
    async with Receiver(HANG) as receiver:
        desk = Desk(store, clock, tmp_path, web, deadman=receiver.url, own_hosts="127.0.0.1")
        setting(store, "due_evaluated_at", after(clock.now(), hours=1))
        await desk.on()
        assert await desk.on(hours=1) == [QUIET]


async def test_a_destination_that_does_not_answer_keeps_neither_the_others_nor_the_call_outside_waiting(
    store: Store, clock: ManualClock, tmp_path: Path, web: Web
) -> None:
    async with Receiver(HANG) as hanging, Receiver() as outside:
        desk = Desk(store, clock, tmp_path, web, heartbeat_to=f"{hanging.url}, heart.txt", deadman=outside.url,
                    own_hosts="127.0.0.1")
        setting(store, "due_evaluated_at", after(clock.now(), hours=1))
        await desk.on()
        saying = asyncio.create_task(desk.on(hours=1))
        await until(lambda: "delivered" in [state for state, *_ in desk.sent()])
        assert len(outside.asked) == 2
        assert not saying.done()
        saying.cancel()
        await asyncio.wait([saying])


def test_old_ones_are_pruned_with_the_ledger(desk: Desk) -> None:
    desk.word.say()
    for _ in range(35):
        desk.clock.advance(timedelta(days=1))
        assert desk.word.say()
    slots = [slot for slot, in rows(desk.store, "SELECT slot FROM heartbeat ORDER BY slot")]
    assert len(slots) == 30
    assert min(slots) > after(desk.clock.now(), days=-31)


@pytest.mark.parametrize(("settings", "said"), [
    ({"heartbeat": "8"}, "NIGHTPORTER_HEARTBEAT is '8'"), ({"heartbeat": "24:00"}, "'24:00'"),
    ({"heartbeat_to": "ftp://example.com"}, "http"), ({"heartbeat_to": "/etc/passwd"}, "outputs folder"),
    ({"heartbeat_to": "https://example.com", "heartbeat_secret": "hunter2"}, "reference"),
    ({"deadman": "example.com"}, "NIGHTPORTER_DEADMAN"), ({"own_hosts": "http://a/"}, "NIGHTPORTER_OWN_HOSTS"),
])
def test_settings_that_cannot_be_used_are_refused(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    config = Config(state=tmp_path, outputs=tmp_path, store="x")
    with pytest.raises(BadInput) as caught:
        own.check(replace(config, **settings))
    assert said in str(caught.value) + caught.value.why
