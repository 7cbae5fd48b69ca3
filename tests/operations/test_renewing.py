"""What expires is told of in time, sleeps, and acts again once it is renewed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from acting import after
from builders import EVERY_HOUR, Night

from nightporter import operations
from nightporter.clock import HOUR, Instant, ManualClock
from nightporter.errors import BadInput, Conflict
from nightporter.store import Store, open_store
from words import rows

MONTH = timedelta(days=30)
DAY = 24 * HOUR


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def ends(night: Night, automation: str) -> float | None:
    """In how many days it ends."""
    at = night.store.read(lambda tx: tx.expiry(automation))
    return None if at is None else (at - night.now) / DAY


def renew(night: Night, automation: str, **lasting: float) -> None:
    night.store.write(lambda tx: operations.renew(
        tx, automation, by="ann", now=night.now, lasting=timedelta(**lasting) if lasting else None))


def told(night: Night) -> list[str]:
    """The titles of what the inbox says of ends, in their order."""
    titles = night.sql("SELECT title FROM inbox WHERE kind = 'expiry' ORDER BY created_at, id")
    return [title.partition(" at ")[0] for (title,) in titles]


def test_a_duration_is_counted_from_its_making_an_edit_and_a_renewal(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=MONTH)
    assert ends(night, brief) == 30
    night.pass_time(days=10)
    night.define("brief", EVERY_HOUR, lasts=MONTH)
    assert ends(night, brief) == 20, "it is the same as before"
    night.define("brief", EVERY_HOUR, lasts=MONTH, description="another")
    assert ends(night, brief) == 30
    night.pass_time(days=10)
    renew(night, brief)
    assert ends(night, brief) == 30
    renew(night, brief, days=3)
    assert ends(night, brief) == 3, "this once"
    night.define("brief", EVERY_HOUR)
    assert ends(night, brief) is None


def test_a_date_stays_one_and_cannot_be_renewed(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, expires=after(night.now, days=10))
    always = night.define("always", EVERY_HOUR)
    night.pass_time(days=4)
    night.define("brief", EVERY_HOUR, expires=Instant(night.now + 6 * DAY), description="another")
    assert ends(night, brief) == 6
    for automation, why in ((brief, "its end is a date"), (always, "it does not expire")):
        with pytest.raises(Conflict) as caught:
            renew(night, automation, days=90)
        assert caught.value.why == why


def test_an_end_is_told_a_week_before_a_day_before_and_after_each_once(night: Night) -> None:
    night.define("brief", EVERY_HOUR, lasts=MONTH)
    seen: list[tuple[float, str]] = []
    for hours in range(0, 31 * 24, 6):
        night.pass_time(hours=6)
        for _ in range(2):
            night.upkeep()
        if len(told(night)) > len(seen):
            seen.append((round((hours + 6) / 24, 2), told(night)[-1]))
    assert seen == [(23.0, "brief expires"), (29.0, "brief expires"), (30.0, "brief has expired")]
    assert night.sql("SELECT state FROM automation") == [("expired",)]
    assert night.found() == {}


def test_what_was_said_is_not_said_again_after_a_restart_or_a_step_of_the_clock(
    store_url: str, clock: ManualClock
) -> None:
    def boot() -> None:
        store = open_store(store_url, now=clock.now(), patience=5.0)
        try:
            Night(store, clock, worker=f"wrk_{clock.now()}").upkeep()
        finally:
            store.close()

    store = open_store(store_url, now=clock.now(), patience=5.0)
    Night(store, clock).define("brief", EVERY_HOUR, lasts=MONTH)
    store.close()
    for step in (24, -3, 3, 5.5, -2, 3, -10, 20, -30, 31):
        clock.advance(timedelta(days=step))
        boot()
        boot()
    store = open_store(store_url, now=clock.now(), patience=5.0)
    assert told(Night(store, clock)) == ["brief expires", "brief expires", "brief has expired"]
    store.close()


def test_a_desk_that_was_away_says_only_the_latest(night: Night) -> None:
    night.define("brief", EVERY_HOUR, lasts=MONTH)
    night.define("gone", EVERY_HOUR, lasts=timedelta(days=20))
    night.pass_time(days=29, hours=12)
    night.upkeep()
    assert sorted(told(night)) == ["brief expires", "gone has expired"]


@pytest.mark.parametrize(
    ("lasts", "words"),
    [(timedelta(days=7), ["brief expires", "brief has expired"]), (timedelta(days=1), ["brief has expired"])],
)
def test_what_lives_for_a_short_time_is_not_told_of_its_end_at_once(
    night: Night, lasts: timedelta, words: list[str]
) -> None:
    night.define("brief", EVERY_HOUR, lasts=lasts)
    for _ in range(9 * 4):
        night.upkeep()
        night.pass_time(hours=6)
    assert told(night) == words


def test_a_renewed_end_is_told_of_anew_and_an_unchanged_date_is_not(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=MONTH)
    dated = night.define("dated", EVERY_HOUR, expires=after(night.now, days=30))
    night.pass_time(days=25)
    night.upkeep()
    assert sorted(told(night)) == ["brief expires", "dated expires"]
    renew(night, brief)
    night.define("dated", EVERY_HOUR, expires=Instant(night.now + 5 * DAY), description="another")
    night.upkeep()
    night.pass_time(days=2)
    night.upkeep()
    assert len(told(night)) == 2
    night.pass_time(days=22)
    night.upkeep()
    assert sorted(told(night))[:2] == ["brief expires", "brief expires"]
    assert ends(night, dated) < 0  # type: ignore[operator]


def test_one_that_sleeps_is_not_told_of(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=MONTH)
    night.pause(brief)
    night.pass_time(days=26)
    night.upkeep()
    assert told(night) == []


@pytest.mark.parametrize("how", ["renew", "enable", "edit"])
def test_what_has_expired_comes_back_with_its_errors_forgotten_and_its_slots_on_one_line(
    night: Night, how: str
) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=timedelta(hours=3))
    night.store.write(lambda tx: tx.note_health([(brief, None, None, None, None, 0, 4, None)]))
    night.hours(2)
    night.pass_time(hours=1)
    night.upkeep()
    night.tick(hours=5)
    assert night.row(brief).state == "expired"
    if how == "renew":
        renew(night, brief)
    elif how == "enable":
        night.enable(brief)
    else:
        night.define("brief", EVERY_HOUR, lasts=timedelta(hours=3), description="another")
    row = night.row(brief)
    assert (row.state, ends(night, brief)) == ("active", 3 / 24)
    if how != "edit":
        assert row.errors_in_a_row == 0
    night.next_hour()
    lines = night.lines("verdict", "reason", "slots")
    assert [line for line in lines if line[0] == "collapsed"] == [("collapsed", "expired", 5)]
    assert lines[-1][0] == "admitted"
    assert night.found() == {}


def test_slots_behind_an_end_that_nobody_has_noticed_yet_do_not_run(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=timedelta(minutes=90))
    night.hours(3)
    assert night.lines() == [("admitted", None), ("skipped", "expired"), ("skipped", "expired")]
    renew(night, brief)
    night.hours(1)
    assert night.lines()[-1] == ("admitted", None)


def test_enabling_what_has_passed_a_date_says_how_it_is_renewed(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, expires=after(night.now, hours=1))
    night.pass_time(hours=2)
    night.upkeep()
    with pytest.raises(Conflict, match="brief has expired"):
        night.enable(brief)
    definition = night.written("brief", EVERY_HOUR, expires=after(night.now, days=1))
    night.store.write(lambda tx: operations.define(tx, definition, truth="code", by="ann", now=night.now))
    assert night.row(brief).state == "active"


@pytest.mark.parametrize("span", [{"minutes": 59}, {"days": 366}, {"days": 999_999_999}])
def test_it_is_renewed_for_no_span_that_a_definition_could_not_say(night: Night, span: dict[str, float]) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=MONTH)
    with pytest.raises(BadInput, match="nothing is renewed for"):
        renew(night, brief, **span)
    assert ends(night, brief) == 30


def test_what_is_removed_is_not_renewed_and_a_trail_is_kept(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR, lasts=MONTH)
    renew(night, brief)
    assert ("ann", "renew") in rows(night.store, "SELECT actor, verb FROM definition_change")
    night.remove(brief)
    with pytest.raises(Conflict, match="was removed"):
        renew(night, brief)
