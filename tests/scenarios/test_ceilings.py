"""S-39, S-40, S-41: how many an hour, how soon after one another, how late; each to the microsecond."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from builders import SAID, Night
from scenes import UNAVAILABLE, a_night, at, until

from nightporter import operations
from nightporter.clock import ManualClock
from nightporter.store import Store, open_store
from nightporter.words import Answer, Ended, Limits, Overlap, Retry, TriggerSpec
from words import a_clock_trigger

FIVE = Limits(per_hour=5, concurrent=None)
STARTS = ("10:00:00", "10:10:00", "10:20:00", "10:30:00", "10:40:00")


def arrives(night: Night, automation: str, time: str, *, trigger: str = "call") -> Answer:
    """Something arrives at that time; what is admitted is run at once."""
    until(night, time)
    answer = night.fire(automation, trigger=trigger)
    night.work()
    return answer


def test_the_hour_slides_and_five_are_five_in_any_sixty_minutes(store: Store) -> None:
    """S-39. A counter by the hour of the clock would let ten through around eleven."""
    night = a_night(store, "09:55")
    automation = night.define("brief", limits=FIVE)
    assert [arrives(night, automation, time).verdict for time in STARTS] == ["admitted"] * 5
    assert arrives(night, automation, "10:50", trigger="manual").verdict == "admitted"
    early = arrives(night, automation, "10:59:59")
    assert (early.verdict, early.reason) == ("skipped", "hourly_ceiling")
    assert early.detail == "the ceiling is 5 an hour; free again at 2026-06-10T11:00:00Z"
    assert arrives(night, automation, "11:00:00").verdict == "admitted"
    again = arrives(night, automation, "11:00:01")
    assert (again.reason, again.detail) == (
        "hourly_ceiling", "the ceiling is 5 an hour; free again at 2026-06-10T11:10:00Z")
    assert night.found() == {}


def test_the_hour_is_counted_from_the_ledger_so_a_restart_forgets_nothing(store_url: str) -> None:
    """S-39."""
    first = open_store(store_url, now=at("09:55"))
    night = a_night(first, "09:55")
    automation = night.define("brief", limits=FIVE)
    for time in STARTS:
        arrives(night, automation, time)
    first.close()
    store = open_store(store_url, now=at("10:45"))
    again = Night(store, ManualClock(at("10:45")))
    assert arrives(again, automation, "10:45").reason == "hourly_ceiling"
    assert again.found() == {}
    store.close()


def test_a_clock_that_goes_back_resets_no_hour(store: Store) -> None:
    """S-39."""
    night = a_night(store, "09:55")
    automation = night.define("brief", limits=FIVE)
    for time in STARTS:
        arrives(night, automation, time)
    night.clock.step(timedelta(hours=-1))
    assert night.fire(automation).reason == "hourly_ceiling"


def test_two_processes_that_admit_at_once_never_admit_more_than_the_hour_allows(store_url: str) -> None:
    """S-39, S-41: the count and what is decided by it are one transaction."""
    stores = [open_store(store_url, now=at("10:00")) for _ in range(2)]
    night = a_night(stores[0], "10:00")
    automation = night.define("brief", limits=FIVE)
    verdicts: list[str] = []
    gate = threading.Barrier(2)

    def admits(number: int) -> None:
        gate.wait(10)
        for n in range(10):
            verdicts.append(stores[number].write(lambda tx, key=f"{number}-{n}": operations.fire(  # type: ignore[misc]
                tx, automation, trigger="call", external_id=key, now=night.now)).verdict)

    threads = [threading.Thread(target=admits, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(verdicts) == ["admitted"] * 5 + ["skipped"] * 15
    assert night.found() == {}
    for store in stores:
        store.close()


def test_the_cooldown_counts_from_the_last_start_and_a_failure_is_a_start(store: Store) -> None:
    """S-40. A cooldown from the last success would let all five run."""
    night = a_night(store, "10:00")
    automation = night.define("brief", cooldown=timedelta(seconds=600), retry=Retry(attempts=1))
    became = {}
    for second in (0, 60, 599, 600, 700):
        night.tick(microseconds=at("10:00") + second * 1_000_000 - night.now)
        answer = night.fire(automation)
        became[second] = str(answer.reason or answer.verdict)
        for claimed in night.begin():
            night.pass_time(seconds=5)
            night.finish(claimed, UNAVAILABLE)
    assert became == {0: "admitted", 60: "cooldown", 599: "cooldown", 600: "admitted", 700: "cooldown"}
    assert night.found() == {}


def test_past_the_cooldown_of_a_long_run_an_arrival_still_meets_overlap(store: Store) -> None:
    """S-40."""
    night = a_night(store, "10:00")
    call = TriggerSpec("call", "call", overlap=Overlap.SKIP)
    automation = night.define("brief", call, cooldown=timedelta(seconds=600))
    [claimed] = [night.start(automation)]
    night.tick(seconds=700)
    assert night.fire(automation).reason == "overlap"
    night.tick(seconds=200)
    night.finish(claimed)
    assert night.fire(automation).verdict == "admitted"
    assert night.found() == {}


@pytest.mark.parametrize(("late", "flag"), [(300_000_000, 0), (300_000_001, 1)])
@pytest.mark.parametrize("ended", [SAID, UNAVAILABLE], ids=["ends well", "is tried again"])
def test_late_is_more_than_five_minutes_after_the_slot_at_the_first_start(
    store: Store, late: int, flag: int, ended: Ended
) -> None:
    """S-41 (c): a run that takes an hour is no later for it, and a second attempt has the verdict of the first."""
    night = a_night(store, "09:50")
    night.define("brief", a_clock_trigger("0 10 * * *"))
    until(night, "10:00")
    night.pass_time(microseconds=late)
    [claimed] = night.begin()
    night.pass_time(hours=1)
    night.finish(claimed, ended)
    night.pass_time(hours=1)
    night.work()
    assert night.sql("SELECT ran_late, attempt FROM run") == [(flag, 1 if ended is SAID else 2)]
    assert night.found() == {}


def test_a_moment_has_one_outcome_whatever_else_its_automation_runs(store: Store) -> None:
    """S-41 (b), as far as counts go: `at` is a schedule that fires once. Runs by hand and attempts count for nothing,
    and once it has its outcome it is completed and not armed."""
    night = a_night(store, "09:50")
    automation = night.define("brief", a_clock_trigger("2026-06-10T10:00", kind="at"))
    night.run(automation, trigger="manual")
    assert night.row(automation).state == "active"
    until(night, "10:00")
    night.work(UNAVAILABLE)
    assert night.row(automation).state == "active", "it is tried again"
    night.pass_time(minutes=1)
    night.work()
    assert night.row(automation).state == "completed"
    until(night, "23:00")
    assert night.lines("verdict") == [("admitted",)]
    assert night.found() == {}
