"""A night in which everything happens that can: a ledger that holds a row for whatever an audit may look at."""

from __future__ import annotations

from datetime import timedelta

from acting import a_worker
from builders import EVERY_HOUR, SAID, Night

from nightporter.clock import ManualClock, moment
from nightporter.store import Store
from nightporter.words import (
    Coalesce,
    Destination,
    Ended,
    Ending,
    ErrorClass,
    Limits,
    Overlap,
    Receipt,
    Retry,
    TriggerSpec,
)
from words import a_clock_trigger

HOOK = Destination("hook", "webhook", {"url": "https://receiver.example/in"})
INBOX = Destination("inbox", "announce")
QUIET = Destination("kept", "silent")
FAILS = Ended.failed(ErrorClass.EXCEPTION, "it broke")
LATER = Ended.failed(ErrorClass.TRANSIENT, "no answer")
HOLDS = Ended(Ending.HOLD, error="asked to come back", retry_after=timedelta(minutes=2))


def a_full_night(store: Store, clock: ManualClock) -> Night:
    """Fifteen hours; what is under way at the end was begun within its last minutes."""
    night = Night(store, clock)
    on_the_hour, between = moment(night.now) + timedelta(hours=2), moment(night.now) + timedelta(minutes=90)
    names = {
        "brief": night.define("brief", EVERY_HOUR, deliver=[HOOK, INBOX, QUIET]),
        "daily": night.define("daily", a_clock_trigger("0 9 * * *", timezone="Europe/Berlin")),
        "often": night.define("often", a_clock_trigger("40m", kind="every")),
        "edited": night.define("edited", EVERY_HOUR),
        "once": night.define("once", a_clock_trigger(f"{on_the_hour:%Y-%m-%dT%H:%M}Z", kind="at")),
        "too late": night.define("too-late", a_clock_trigger(f"{between:%Y-%m-%dT%H:%M}Z", kind="at")),
        "too late again": night.define("too-late-again", a_clock_trigger(f"{between:%Y-%m-%dT%H:%M}Z", kind="at")),
        "off": night.define("off", a_clock_trigger("0 * * * *", enabled=False)),
        "proposal": night.define("proposal", EVERY_HOUR, proposed=True),
        "plain": night.define("plain", deliver=[QUIET]),
        "job": night.define("job", runner="script"),
        "safe": night.define("safe", runner="script", idempotent=True),
        "line": night.define("line", TriggerSpec("call", "call", overlap=Overlap.QUEUE), runner="script"),
        "newest": night.define("newest", TriggerSpec("call", "call", overlap=Overlap.REPLACE)),
        "single": night.define("single", TriggerSpec("call", "call", overlap=Overlap.SKIP)),
        "cool": night.define("cool", cooldown=timedelta(minutes=10)),
        "few": night.define("few", limits=Limits(per_hour=2)),
        "narrow": night.define("narrow", limits=Limits(concurrent=1)),
        "retrying": night.define("retrying", retry=Retry(attempts=2, delays=(timedelta(seconds=60),))),
        "gone": night.define("gone", EVERY_HOUR),
        "spoilt": night.define("spoilt", EVERY_HOUR),
        "elsewhere": night.define("elsewhere", workspace="elsewhere"),
        "asleep": night.define("asleep", EVERY_HOUR),
        "twice": night.define("twice", EVERY_HOUR, limits=Limits(max_runs=2)),
        "bursts": night.define("bursts", TriggerSpec("call", "call", coalesce=Coalesce(
            timedelta(seconds=30), timedelta(minutes=2)))),
    }
    _slots(night, names)
    _runs(night, names)
    _crashes(night, names)
    _under_way(night, names)
    night.runs.update(names)
    return night


def _slots(night: Night, names: dict[str, str]) -> None:
    night.sql("UPDATE trigger SET schedule = '[]' WHERE id = ?", f"{names['spoilt']}/clock")
    night.hours(2)
    night.send(Receipt.TRANSIENT, Receipt.DELIVERED)
    night.hours(1)
    night.send(Receipt.PERMANENT)
    night.remove(names["gone"])
    night.define("edited", a_clock_trigger("30 * * * *"))
    night.hours(1)
    night.send(Receipt.UNVERIFIED)
    night.next_hour()
    late = night.begin(50)
    night.next_hour()  # they are still going: this hour is skipped
    night.finish(late)
    night.tick(hours=3, minutes=20)  # nobody looked meanwhile
    night.work()
    night.pause(names["brief"])
    night.pass_time(hours=2)
    night.enable(names["brief"])
    night.tick()
    night.run_after_all(names["too late"])
    night.work()
    night.send(Receipt.DELIVERED)


def _runs(night: Night, names: dict[str, str]) -> None:
    runs = night.runs
    runs["told"] = night.run(names["plain"], external_id="first", payload={"n": 1}, text="go")
    night.fire(names["plain"], "first")
    runs["by hand"] = night.run(names["plain"], trigger="manual")
    runs["quiet"] = night.run(names["plain"], Ended.ok())
    runs["dead"] = night.run(names["plain"], FAILS)
    runs["timed out"] = night.run(names["plain"], Ended.timed_out("too long"))
    runs["cancelled"] = night.fire(names["plain"]).run_id or ""
    night.cancel(runs["cancelled"])
    acting = night.start(names["plain"])
    night.act(acting, "post-1")
    night.finish(acting)
    runs["acted"] = acting.work.run_id
    runs["retried"] = night.run(names["retrying"], LATER)
    runs["resumed"] = night.run(names["plain"], HOLDS)
    night.pass_time(minutes=3)
    night.work()
    burst = [night.fire(names["bursts"], payload={"n": n}) for n in range(3)]
    night.pass_time(minutes=1)
    night.work()
    runs["burst"] = burst[0].run_id or ""
    runs["cool first"] = night.run(names["cool"])
    night.fire(names["cool"])
    night.pass_time(minutes=20)
    runs["cool second"] = night.run(names["cool"])
    for _ in range(3):
        night.fire(names["few"])
    night.work()
    runs["single first"] = night.run(names["single"])
    night.pass_time(minutes=20)
    busy = night.start(names["single"])
    night.fire(names["single"])
    night.finish(busy)
    night.pass_time(minutes=20)
    runs["single last"] = night.run(names["single"])
    replaced = night.start(names["newest"])
    night.fire(names["newest"])
    night.fire(names["newest"])
    night.finish(replaced, Ended.cancelled())
    night.work()


def _crashes(night: Night, names: dict[str, str]) -> None:
    runs = night.runs
    runs["job done"] = night.run(names["job"])
    for name, key, decision in (("job", "reviewed", "retry"), ("line", "dismissed", "dismiss")):
        worker = a_worker(night.store, night.now)
        started = night.start(names[name], worker=worker)
        night.pass_time(minutes=1)
        night.fire(names[name])
        night.lose(worker)
        night.pass_time(minutes=5)
        night.work()  # what waited behind it goes on
        night.pass_time(minutes=5)
        night.review(started.work.run_id, decision)  # type: ignore[arg-type]  # one of the two
        night.work()
        runs[key] = started.work.run_id
    worker = a_worker(night.store, night.now)
    runs["repeated"] = night.start(names["safe"], worker=worker).work.run_id
    night.lose(worker)
    night.work()


def _under_way(night: Night, names: dict[str, str]) -> None:
    runs = night.runs
    night.tick()
    night.work()
    worker = a_worker(night.store, night.now)
    lost = night.start(names["job"], worker=worker)
    night.lose(worker)
    runs["in review"] = lost.work.run_id
    kept = [night.fire(names["asleep"]).run_id or "" for _ in range(2)]
    night.pause(names["asleep"])
    assert [night.begin(run=one) for one in kept] == [[], []]
    runs["kept"] = kept[0]
    runs["lonely"] = night.start(names["plain"], worker=a_worker(night.store, night.now)).work.run_id
    runs["going first"] = night.start(names["line"]).work.run_id
    runs["behind"] = night.fire(names["line"]).run_id or ""
    runs["further behind"] = night.fire(names["line"]).run_id or ""
    runs["narrow first"] = night.start(names["narrow"]).work.run_id
    assert night.begin(run=night.fire(names["narrow"]).run_id) == []
    night.pass_time(minutes=3)
    held = night.start(names["plain"])
    night.pass_time(milliseconds=1)
    night.finish(held, HOLDS)
    runs["held"] = held.work.run_id
    night.finish(night.begin(run=night.fire(names["retrying"]).run_id), LATER)
    for _ in range(2):
        claimed = night.begin(run=night.fire(names["brief"]).run_id)
        night.finish(claimed, SAID)
    night.take(room=1)
    runs["waiting"] = night.fire(names["elsewhere"]).run_id or ""
