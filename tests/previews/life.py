"""Schedules drawn at random are previewed, stored, and lived through around a change of the clock: what fires is what
was said.

A life is a store, a dozen automations, and two days around a change of some zone's clock. The desk is another process
again and again, at any instant, also between a slot's coming and its answer; and what is stored is sometimes written
again as it was read.
"""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from builders import Night

from nightporter import operations
from nightporter.clock import HOUR, MINUTE, SECOND, Instant, Kick, ManualClock, instant, moment, rfc3339
from nightporter.errors import BadSchedule
from nightporter.rules.exclusions import excluded
from nightporter.rules.plain import read_words
from nightporter.rules.schedule import parse, slots_between, wants_anchor
from nightporter.rules.zones import zone
from nightporter.sources.clock import ClockSource
from nightporter.store import open_store
from nightporter.words import Definition, Limits, Overlap, Schedule, TriggerSpec
from nightporter.words.bounds import Bounds, Days, Season, Window
from soak.order import Order

CHANGES = [
    ("America/New_York", "2026-03-08T07:00"), ("America/New_York", "2026-11-01T06:00"),
    ("Europe/Berlin", "2026-03-29T01:00"), ("Europe/Berlin", "2026-10-25T01:00"),
    ("Europe/Dublin", "2026-10-25T01:00"), ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Australia/Lord_Howe", "2026-04-04T15:00"), ("Pacific/Chatham", "2026-09-26T14:00"),
    ("Pacific/Apia", "2011-12-30T10:00"), ("Asia/Pyongyang", "2015-08-14T15:00"),
    ("Asia/Pyongyang", "2018-05-04T15:00"), ("Antarctica/Casey", "2010-03-04T15:00"),
    ("Antarctica/Troll", "2026-10-25T01:00"), ("Africa/Casablanca", "2025-02-23T02:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"), ("Europe/Moscow", "2014-10-25T22:00"),
]
ZONES = sorted({name for name, _ in CHANGES} | {"UTC", "Asia/Kolkata", "America/Los_Angeles", "Asia/Tokyo"})
SPAN = 44 * HOUR
AUTOMATIONS = 12
MOST = 30
"""Slots of one schedule in a life; one that has more is drawn again."""
FREE = Limits(per_hour=None, queued=None, concurrent=None)
WORDS = (
    "every 2h from 08:00 to 20:00", "weekdays at 01:30", "every day at 2:30", "first monday at 10", "sunday at 01:30",
    "last day of the month at 18:00", "every 90m", "daily_morning", "Mon..Sun *-*-* 01,02,03:15", "*-*-* 02:30:00",
    "hourly", "Sat,Sun *-*-* 00/3:00", "every 45m", "weekends at 02:15",
)


class Said(NamedTuple):
    """What a preview said: the slots that will run, and those that are left out."""

    runs: list[Instant]
    left_out: list[Instant]


def a_schedule(draw: random.Random, begin: Instant, home: str) -> Schedule:
    """Raises BadSchedule where what was drawn is none."""
    name = home if draw.random() < 0.6 else draw.choice(ZONES)
    bounds = some_bounds(draw, begin, name) if draw.random() < 0.4 else None
    match draw.choice(["cron", "cron", "every", "at", "rrule", "rrule", "words"]):
        case "cron":
            return parse("cron", a_cron(draw), name, bounds=bounds)
        case "every":
            anchor = Instant(begin + draw.randint(-10_000, 600) * MINUTE + draw.choice([0, 0, 17 * SECOND]))
            return parse("every", draw.choice(["1h", "90m", "2h30m", "12h", "24h", "25h", "7h"]), name, anchor=anchor,
                         bounds=bounds)
        case "at":
            wall = moment(Instant(begin + draw.randint(0, SPAN // MINUTE) * MINUTE)).astimezone(zone(name))
            return parse("at", f"{wall:%Y-%m-%dT%H:%M}", name, bounds=bounds)
        case "rrule":
            return parse("rrule", a_rule(draw), name, bounds=bounds,
                         anchor=Instant((begin - draw.randint(0, 40) * 24 * HOUR) // MINUTE * MINUTE))
        case _:
            schedule = read_words(draw.choice(WORDS), name, now=begin).schedule
            counted_from = begin if wants_anchor(schedule) else schedule.anchor  # what is defined counts from now
            return parse(schedule.kind, schedule.expression, name, anchor=counted_from,
                         bounds=schedule.bounds or bounds)


def a_cron(draw: random.Random) -> str:
    minute = draw.choice(["0", "30", "15,45", "*/20", "59", "1-59/29", "0"])
    hour = draw.choice(["*", "1", "2", "3", "*/2", "0-4", "1,2", "2-3", "23", "9", "*/5"])
    day = draw.choice(["* * *", "* * *", "* * *", "* * sun", "* * sat,sun", "L * *", "* * 7#1", "* * sunL", "1W * *",
                       "1-8 * *", "* 3,10,11 *", "? * mon-fri"])
    return f"{draw.choice(['', '', '', '30 '])}{minute} {hour} {day}"


def a_rule(draw: random.Random) -> str:
    freq = draw.choice(["HOURLY", "DAILY", "DAILY", "WEEKLY", "MONTHLY"])
    parts = [f"FREQ={freq}", f"INTERVAL={draw.choice([1, 1, 1, 2, 3])}"]
    if draw.random() < 0.5:
        parts.append(f"BYHOUR={draw.choice(['1', '2', '1,2,3', '0,12', '23'])}")
    if draw.random() < 0.4:
        parts.append(f"BYMINUTE={draw.choice(['0', '30', '15,45'])}")
    if freq != "HOURLY" and draw.random() < 0.4:
        parts.append(f"BYDAY={draw.choice(['SU', 'SA,SU', 'MO,TU,WE,TH,FR', 'FR'])}")
    if draw.random() < 0.2:
        parts.append(f"COUNT={draw.randint(1, 60)}")
    return ";".join(parts)


def some_bounds(draw: random.Random, begin: Instant, name: str) -> Bounds:
    day = moment(Instant(begin + draw.randint(0, 40) * HOUR)).astimezone(zone(name)).date()
    at = draw.randint(0, 1439)
    return Bounds(
        Instant(begin + draw.randint(0, 40 * 60) * MINUTE) if draw.random() < 0.3 else None,
        Instant(begin + draw.randint(4 * 60, 44 * 60) * MINUTE) if draw.random() < 0.3 else None,
        draw.choice([(), (), (Season((day.month, day.day), (12, 31)),), (Season((10, 1), (4, 30)),)]),
        draw.choice([(), (Days(day.isoformat(), day.isoformat(), "off"),)]),
        draw.choice([(), (Window(at, (at + draw.randint(30, 300)) % 1440 or 1440, draw.choice([(), (6, 7)])),)]),
    )


def said_of(schedule: Schedule, begin: Instant, end: Instant) -> Said | None:
    """Its preview; None where that is too long for a life."""
    slots = list(islice(slots_between(schedule, begin, end), MOST + 1))
    if len(slots) > MOST:
        return None
    kept = [slot for slot in slots if excluded(schedule, slot) is None]
    return Said(kept, [slot for slot in slots if slot not in kept])


class Life:
    """One of them. `found` is what was not as it was said, one sentence each."""

    def __init__(self, seed: int, store_url: str) -> None:
        self.draw = random.Random(seed)
        self.url = store_url
        self.home, change = self.draw.choice(CHANGES)
        turn = instant(datetime.fromisoformat(change).replace(tzinfo=UTC))
        self.begin = Instant(turn - self.draw.randint(2, 30) * HOUR - self.draw.randint(0, 59) * MINUTE)
        self.end = Instant(self.begin + SPAN)
        self.night = Night(open_store(store_url, now=self.begin), ManualClock(self.begin))
        self.said: dict[str, Said] = {}
        self.restarts = 0

    def arm(self) -> None:
        """A dozen automations, each with its preview."""
        while len(self.said) < AUTOMATIONS:
            try:
                schedule = a_schedule(self.draw, self.begin, self.home)
            except BadSchedule:
                continue
            said = said_of(schedule, self.begin, self.end)
            if said is not None and (said.runs or self.draw.random() < 0.1):
                name = f"s-{len(self.said)}"
                self.night.define(name, TriggerSpec("clock", "clock", schedule, overlap=Overlap.PARALLEL), limits=FREE)
                self.said[name] = said

    def live(self) -> None:
        """To the end, awake at each slot; whatever else happens, happens between and at them."""
        while self.night.now < self.end:
            [(upcoming,)] = self.night.sql("SELECT min(next_fire_at) FROM trigger")
            wake = min(self.end, upcoming or self.end)
            if self.draw.random() < 0.2 and wake - self.night.now > 2:
                wake = self.draw.randrange(self.night.now + 1, wake)
            self.night.clock.advance(timedelta(microseconds=wake - self.night.now))
            if self.draw.random() < 0.1:
                self.restart()
            self.night.tick()
            if self.draw.random() < 0.05:
                self.write_again()
        self.night.work()

    def restart(self) -> None:
        """Another process, on the same store."""
        self.night.store.close()
        self.night.store = open_store(self.url, now=self.night.now)
        self.night.source = ClockSource(self.night.store, self.night.clock, Kick())
        self.restarts += 1

    def write_again(self) -> None:
        """An automation is written as it is read from the store, which is no edit."""
        name = self.draw.choice(sorted(self.said))
        [(automation,)] = self.night.sql("SELECT id FROM automation WHERE name = ?", name)
        text = self.night.store.read(lambda tx: tx.definition_in_force(automation))
        assert text is not None
        self.night.store.write(lambda tx: operations.define(
            tx, Definition.from_json(text), truth="code", by="test", now=self.night.now))

    def found(self) -> list[str]:
        """What did not come as it was said, and what an audit finds."""
        found = [f"the audit: {each}" for each in self.night.found().items()]
        for name, said in self.said.items():
            for what, slots, of in (("ran", said.runs, "verdict = 'admitted'"),
                                    ("left out", said.left_out, "reason = 'excluded'")):
                lived = [slot for (slot,) in self.night.sql(
                    "SELECT f.scheduled_for FROM firing f JOIN automation a ON a.id = f.automation_id "
                    f"WHERE a.name = ? AND f.{of} ORDER BY f.scheduled_for", name)]
                if lived != slots:
                    [(schedule,)] = self.night.sql("SELECT schedule FROM trigger t JOIN automation a ON "
                                                   "a.id = t.automation_id WHERE a.name = ? AND kind = 'clock'", name)
                    odd = sorted(set(lived) ^ set(slots))
                    found.append(f"{schedule}: {what} {len(lived)} times, said {len(slots)}; "
                                 f"differs at {[rfc3339(Instant(slot)) for slot in odd[:5]]}")
        for (slot,) in self.night.sql("SELECT next_fire_at FROM trigger WHERE next_fire_at <= ?", self.night.now):
            found.append(f"{rfc3339(Instant(slot))} is armed and has passed")
        return found


def lived(seed: int, store_url: str) -> Life:
    """A whole life, its store closed."""
    life = Life(seed, store_url)
    life.arm()
    life.live()
    return life


def soak(order: Order) -> list[str]:
    """Lives. A round is one of them on SQLite; PostgreSQL lives every tenth."""
    found: list[str] = []
    figures = {"seed": order.seed, "lives": 0, "schedules": 0, "slots": 0, "left_out": 0, "restarts": 0}
    rounds = order.rounds or 1000
    began = time.monotonic()
    with order.postgres() as databases:
        for number in range(rounds):
            for store in order.stores:
                if store == "postgres" and number % 10:
                    continue
                seed = order.seed * 100_000 + number
                name = f"life_{seed}"
                url = databases.create(name, migrated=True) if store == "postgres" else str(order.folder / f"{name}.db")
                life = lived(seed, url)
                found += [f"seed {seed}, {store}: {each}" for each in life.found()]
                figures["lives"] += 1
                figures["schedules"] += len(life.said)
                figures["slots"] += sum(len(said.runs) for said in life.said.values())
                figures["left_out"] += sum(len(said.left_out) for said in life.said.values())
                figures["restarts"] += life.restarts
                life.night.store.close()
                if not found and store == "postgres":
                    databases.drop(name)
                elif not found:
                    for file in order.folder.glob(f"{name}.db*"):
                        file.unlink()
    order.publish(figures)
    print(f"{figures}, {time.monotonic() - began:.0f} s")
    return found
