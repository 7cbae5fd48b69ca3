"""S-12, S-13, S-15, S-17, S-42 with desks as people start them: `nightporter up` in a process of its own, on a machine
whose clocks are moved while it stands there. The books balance at the end of each, by the program's own audit.

The same scenarios to the second, with a clock in the hands of the test: `test_missed_time`, `test_nights_of_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from armed import at
from moved import Machine, a_machine, said, until

from nightporter.clock import HOUR, MINUTE, SECOND, Instant, instant

pytestmark = pytest.mark.timeout(300)

QUARTER = 15 * MINUTE
SOON = 5 * SECOND
"""Within so long a desk has noticed what became of its clock; more is allowed where the machine is busy."""

OnAMachine = Callable[[Instant], Machine]


@pytest.fixture
def machine(tmp_path: Path, store_url: str) -> Iterator[OnAMachine]:
    with_it: list[Any] = []

    def made(now: Instant) -> Machine:
        with_it.append(a_machine(tmp_path, store_url, now))
        opened: Machine = with_it[-1].__enter__()
        return opened

    yield made
    for each in with_it:
        each.__exit__(None, None, None)


def write(machine: Machine, name: str, trigger: str, target: str = "{echo: hello}") -> None:
    machine.write(name, f"triggers: [{{{trigger}}}]\ntarget: {target}\nlimits: {{per_hour: none, queued: none}}\n")


def lines(machine: Machine, name: str) -> list[tuple[Any, ...]]:
    """`(verdict, slot or first slot, how many)` of the clock's lines."""
    return machine.rows(
        "SELECT f.verdict, coalesce(f.scheduled_for, f.slot_from), f.slots FROM firing f JOIN automation a "
        f"ON a.id = f.automation_id WHERE a.name = '{name}' AND f.source = 'clock' ORDER BY 2")


def fired(machine: Machine, name: str) -> list[Instant]:
    return [slot for verdict, slot, _ in lines(machine, name) if verdict == "admitted"]


def cards(machine: Machine, name: str) -> list[Instant]:
    return [slot for (slot,) in machine.rows(
        "SELECT c.slot FROM missed_card c JOIN automation a ON a.id = c.automation_id "
        f"WHERE a.name = '{name}' AND c.state = 'pending' ORDER BY 1")]


def runs(machine: Machine, name: str) -> list[tuple[Any, ...]]:
    """`(slot, marked as catching up, marked late, state)`."""
    return machine.rows(
        "SELECT r.scheduled_for, r.catchup, r.ran_late, r.state FROM run r JOIN automation a ON a.id = r.automation_id "
        f"WHERE a.name = '{name}' ORDER BY 1")


def armed(machine: Machine, name: str) -> Instant | None:
    [(slot,)] = machine.rows("SELECT t.next_fire_at FROM trigger t JOIN automation a ON a.id = t.automation_id "
                             f"WHERE a.name = '{name}' AND t.kind = 'clock'")
    return None if slot is None else Instant(slot)


def gaps(machine: Machine) -> list[str]:
    return [kind for (kind,) in machine.rows("SELECT kind FROM gap ORDER BY kind")]


def all_have_ended(machine: Machine) -> None:
    until(lambda: not machine.rows("SELECT 1 FROM run WHERE state IN ('queued', 'running')"), "all runs have ended")


def balances(machine: Machine) -> None:
    """Nothing contradicts anything, each slot owed has its line, and no duration is negative."""
    audit = machine("audit", "--json")
    assert audit.code == 0, audit.out
    assert audit.json["clean"]
    assert machine.rows("SELECT 1 FROM run WHERE started_at < queued_at OR ended_at < started_at") == []
    assert machine.rows("SELECT 1 FROM run WHERE started_at < scheduled_for") == []


def one_in_flight(machine: Machine) -> Path:
    """A program at work, and the file that lets it end."""
    leave = machine.folder / "leave"
    machine.write("busy", f"target: {{script: 'while [ ! -e {leave} ]; do sleep 0.05; done; echo done'}}\n")
    return leave


def it_begins(machine: Machine) -> None:
    assert machine("run", "busy").code == 0
    until(lambda: machine.rows("SELECT 1 FROM run WHERE state = 'running'"), "a program is at work")


def it_was_left_alone(machine: Machine) -> None:
    assert [(attempt, late, state) for attempt, late, state in machine.rows(
        "SELECT r.attempt, r.ran_late, r.state FROM run r JOIN automation a ON a.id = r.automation_id "
        "WHERE a.name = 'busy'")] == [(1, 0, "succeeded")]
    assert machine.rows("SELECT count(*) FROM worker WHERE ended_how = 'dead'") == [(0,)]


# -- S-12, S-13 -------------------------------------------------------------------------------------------------------


def test_a_desk_whose_clock_is_set_forward_and_back_goes_on_right(machine: OnAMachine) -> None:
    here = machine(at(2026, 6, 1, 10, 7))
    write(here, "asked", 'cron: "*/15 * * * *", missed: review')
    write(here, "caught-up", 'cron: "*/15 * * * *", missed: run_once')
    leave = one_in_flight(here)
    desk = here.up()
    it_begins(here)

    here.set(at(2026, 6, 1, 13, 7))
    until(lambda: runs(here, "caught-up") and cards(here, "asked"), "what was jumped over is answered")
    assert cards(here, "asked") == [Instant(at(2026, 6, 1, 10, 15) + n * QUARTER) for n in range(12)]
    assert lines(here, "caught-up") == [
        ("collapsed", at(2026, 6, 1, 10, 15), 11), ("admitted", at(2026, 6, 1, 13), None)]
    until(lambda: runs(here, "caught-up") == [(at(2026, 6, 1, 13), 1, 1, "succeeded")], "one run makes up for it")
    until(lambda: gaps(here) == ["step_forward"], "the jump is written down")

    here.set(at(2026, 6, 1, 10, 7))
    until(lambda: gaps(here) == ["step_back", "step_forward"], "and back")
    assert here("run", "caught-up", "--wait").code == 0, "a person's run still works"
    assert armed(here, "asked") == armed(here, "caught-up") == at(2026, 6, 1, 13, 15)
    assert desk.said().count("clock.set_back") == 1
    assert len(fired(here, "caught-up")) == 1, "no slot is answered twice"
    balances(here)

    here.set(Instant(at(2026, 6, 1, 13, 15) - SECOND))
    until(lambda: len(fired(here, "caught-up")) == 2, "it goes on where it was")
    leave.touch()
    all_have_ended(here)
    assert fired(here, "caught-up") == [at(2026, 6, 1, 13), at(2026, 6, 1, 13, 15)]
    assert sum(count or 1 for _, _, count in lines(here, "caught-up")) == 13
    assert len(lines(here, "asked")) == 13
    it_was_left_alone(here)
    balances(here)


# -- S-15 -------------------------------------------------------------------------------------------------------------


def test_a_laptop_asleep_for_eight_hours_catches_up_at_once(machine: OnAMachine) -> None:
    here = machine(at(2026, 6, 1, 23, 10))
    write(here, "daily", 'cron: "0 3 * * *", missed: review')
    write(here, "quarter", 'cron: "*/15 * * * *", missed: run_once')
    write(here, "hourly", 'cron: "0 * * * *", missed: run_once')
    write(here, "once", "at: 2026-06-02T02:00")
    leave = one_in_flight(here)
    here.up()
    it_begins(here)

    here.sleep_until(at(2026, 6, 2, 7, 10))
    until(lambda: runs(here, "hourly") and cards(here, "daily"), "what was slept through is answered")
    assert cards(here, "daily") == [at(2026, 6, 2, 3)]
    assert cards(here, "once") == [at(2026, 6, 2, 2)]
    assert lines(here, "once") == [("missed", at(2026, 6, 2, 2), 1)]
    assert lines(here, "quarter") == [
        ("collapsed", at(2026, 6, 1, 23, 15), 31), ("admitted", at(2026, 6, 2, 7), None)]
    assert lines(here, "hourly") == [("collapsed", at(2026, 6, 2), 7), ("admitted", at(2026, 6, 2, 7), None)]
    begins = [after for (after,) in here.rows("SELECT run_after FROM run WHERE catchup = 1 ORDER BY 1")]
    assert [later - earlier for earlier, later in pairwise(begins)] == [2 * SECOND]
    until(lambda: gaps(here) == ["sleep"], "the sleep is written down")
    leave.touch()
    all_have_ended(here)
    assert runs(here, "quarter") == runs(here, "hourly") == [(at(2026, 6, 2, 7), 1, 1, "succeeded")]
    until(lambda: here.rows("SELECT count(*) FROM inbox WHERE kind = 'missed'") == [(1,)], "it is told once")
    it_was_left_alone(here)
    balances(here)


# -- S-17 -------------------------------------------------------------------------------------------------------------

NIGHT = {
    "half-past-two": 'cron: "30 2 * * *"', "each-hour": 'cron: "0 * * * *"', "each-quarter": 'cron: "*/15 * * * *"',
    "half-past-one": 'cron: "30 1 * * *"', "each-day-at-noon": 'every: 24h, anchor: "2026-03-07T12:00"',
}


def the_night_before(machine: Machine, once: str) -> None:
    for name, schedule in NIGHT.items():
        write(machine, name, f"{schedule}, timezone: America/New_York, missed: {{policy: run_all, within: 1d}}")
    write(machine, "once", f"at: {once}, timezone: America/New_York, missed: {{policy: run_once, within: 1d}}")


def foretold(machine: Machine, until_: Instant) -> dict[str, list[Instant]]:
    """What is said to come, by automation."""
    found: dict[str, list[Instant]] = {}
    for fire in machine("next", "--json", "--until", f"{datetime.fromtimestamp(until_ / SECOND, UTC):%FT%TZ}",
                        "-n", "1000").json["items"]:
        found.setdefault(fire["automation"], []).append(instant(datetime.fromisoformat(fire["at"])))
    return found


def lived(machine: Machine) -> dict[str, list[Instant]]:
    return {name: slots for name in (*NIGHT, "once") if (slots := fired(machine, name))}


def everything_late_has_its_turn(machine: Machine) -> None:
    """They begin two seconds apart: their time comes sooner than it would."""
    until(lambda: not machine.rows("SELECT 1 FROM trigger WHERE next_fire_at IS NOT NULL AND next_fire_at <= "
                                   f"{machine.now}"), "all is answered")
    machine.sleep_until(Instant(machine.now + 100 * SECOND))
    all_have_ended(machine)


def test_the_night_in_which_an_hour_is_left_out(machine: OnAMachine) -> None:
    """Awake while the clocks go forward, then asleep until morning: each time has its run, as it was foretold."""
    here = machine(Instant(at(2026, 3, 8, 7) - 70 * SECOND))  # 01:58:50
    the_night_before(here, "2026-03-08T02:30")
    here.up()
    morning = at(2026, 3, 8, 13, 31)
    said_before = foretold(here, morning)
    here.set(Instant(at(2026, 3, 8, 7) + 5 * SECOND))
    three = {"half-past-two", "each-hour", "each-quarter", "once"}
    until(lambda: lived(here).keys() == three, "what was to come in the hour that is not there comes at its end")
    here.sleep_until(morning)
    everything_late_has_its_turn(here)
    assert {name: (len(slots), slots[0]) for name, slots in lived(here).items()} == {
        "half-past-two": (1, at(2026, 3, 8, 7)), "each-hour": (7, at(2026, 3, 8, 7)),
        "each-quarter": (27, at(2026, 3, 8, 7)), "once": (1, at(2026, 3, 8, 7)),
    }
    assert lived(here) == said_before
    balances(here)


def test_the_night_in_which_an_hour_comes_twice(machine: OnAMachine) -> None:
    """Awake in the first pass, begun anew in the second, asleep until noon."""
    here = machine(Instant(at(2026, 11, 1, 5, 30) - 70 * SECOND))  # 01:28:50 for the first time
    the_night_before(here, "2026-11-01T02:30")
    desk = here.up()
    noon = at(2026, 11, 1, 17, 1)
    said_before = foretold(here, noon)
    here.set(Instant(at(2026, 11, 1, 5, 30) + 5 * SECOND))
    until(lambda: lived(here).keys() == {"half-past-one", "each-quarter"}, "half past one comes in the first pass")
    desk.kill()
    here.set(at(2026, 11, 1, 6, 10))  # 01:10 again
    here.up()
    until(lambda: len(fired(here, "each-quarter")) == 3, "what passed meanwhile is made up for")
    assert armed(here, "half-past-one") == at(2026, 11, 2, 6, 30)
    here.sleep_until(noon)
    everything_late_has_its_turn(here)
    assert {name: (len(slots), slots[0]) for name, slots in lived(here).items()} == {
        "half-past-two": (1, at(2026, 11, 1, 7, 30)), "each-hour": (12, at(2026, 11, 1, 6)),
        "each-quarter": (47, at(2026, 11, 1, 5, 30)), "half-past-one": (1, at(2026, 11, 1, 5, 30)),
        "each-day-at-noon": (1, at(2026, 11, 1, 17)), "once": (1, at(2026, 11, 1, 7, 30)),
    }
    assert lived(here) == said_before
    balances(here)


# -- S-42 -------------------------------------------------------------------------------------------------------------

WEEK_AGO, BOOT = at(2026, 6, 1, 0, 7), at(2026, 6, 8, 0, 7)
SHOTS = {"day-3": "2026-06-03T12:00", "130-s-ago": "2026-06-08T00:04:50", "20-s-ago": "2026-06-08T00:06:40"}


def after_a_week(machine: Machine) -> None:
    assert cards(machine, "quarter") == [Instant(at(2026, 6, 7, 19, 15) + n * QUARTER) for n in range(20)]
    assert lines(machine, "quarter")[0] == ("collapsed", at(2026, 6, 1, 0, 15), 480)
    assert machine.rows("SELECT slots_exact FROM firing WHERE slots = 480") == [(0,), (0,)], "at least so many"
    assert cards(machine, "daily") == [Instant(at(2026, 6, 1, 13) + n * 24 * HOUR) for n in range(7)]
    assert cards(machine, "weekly") == [at(2026, 6, 1, 9)]
    for name in ("day-3", "130-s-ago"):
        assert [verdict for verdict, *_ in lines(machine, name)] == ["missed"]
        assert len(cards(machine, name)) == 1
        assert armed(machine, name) is None
    assert [verdict for verdict, *_ in lines(machine, "20-s-ago")] == ["admitted"]
    assert [(slot, mark) for slot, mark, *_ in runs(machine, "20-s-ago")] == [(Instant(BOOT - 20 * SECOND), 0)]
    newest = ("admitted", at(2026, 6, 8), None)
    assert lines(machine, "caught-up") == [("collapsed", at(2026, 6, 1, 0, 15), 480), newest]
    assert [(slot, mark) for slot, mark, *_ in runs(machine, "caught-up")] == [(at(2026, 6, 8), 1)]
    assert lines(machine, "caught-up-too") == [("collapsed", at(2026, 6, 1, 1), 167), newest]
    assert lines(machine, "off") == []
    assert runs(machine, "off") == []
    assert armed(machine, "quarter") == at(2026, 6, 8, 0, 15)


def test_seven_days_off_are_accounted_for_once_however_often_the_desk_dies_over_them(machine: OnAMachine) -> None:
    here = machine(WEEK_AGO)
    write(here, "quarter", 'cron: "*/15 * * * *", missed: review')
    write(here, "daily", 'cron: "0 9 * * *", timezone: America/New_York, missed: review')
    write(here, "weekly", 'cron: "0 9 * * mon", missed: review')
    for name, when in SHOTS.items():
        write(here, name, f"at: {when}")
    write(here, "caught-up", 'cron: "*/15 * * * *", missed: run_once, overlap: queue')
    write(here, "caught-up-too", 'cron: "0 * * * *", missed: run_once')
    write(here, "off", 'cron: "*/15 * * * *", missed: review')
    desk = here.up()
    assert here("pause", "off").code == 0
    desk.stop()

    here.set(BOOT)
    for seen in ("worker WHERE ended_at IS NULL", "firing", "run WHERE attempt > 0"):
        dying = here.starting()
        until(lambda seen=seen: here.rows(f"SELECT 1 FROM {seen}"), f"there is a {seen}")  # type: ignore[misc]
        dying.kill()
    desk = here.up()
    all_have_ended(here)
    after_a_week(here)
    desk.kill()
    here.set(Instant(BOOT + 90 * SECOND))
    here.up()
    after_a_week(here)
    assert here.rows("SELECT count(*) FROM inbox WHERE kind = 'missed'") == [(1,)]

    [card] = [each["id"] for each in here("missed", "weekly", "--json").json["items"]]
    windows = [here.process("missed", "run", card), here.process("missed", "dismiss", card, "--reason", "too late")]
    codes = [said(window).code for window in windows]
    assert sorted(codes) == [0, 4], "of two windows one decides"
    all_have_ended(here)
    executed = codes[0] == 0
    assert [(slot, late) for slot, _, late, _ in runs(here, "weekly")] == [(at(2026, 6, 1, 9), 1)] * executed
    assert here.rows("SELECT state, note FROM missed_card WHERE state <> 'pending'") == [
        ("executed", "") if executed else ("dismissed", "too late")]
    balances(here)


