"""Until when an automation acts, and when its end is told."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from nightporter.clock import HOUR, Instant
from nightporter.rules.expiry import Told, ends_at, to_be_told
from words import a_definition

DAY = 24 * HOUR
RENEWED = Instant(1_774_598_400_000_000)
END = Instant(RENEWED + 30 * DAY)


def test_a_duration_is_counted_from_the_last_renewal_and_a_date_is_not() -> None:
    assert ends_at(a_definition(lasts=timedelta(days=30)), RENEWED) == END
    assert ends_at(a_definition(expires=END), Instant(RENEWED + DAY)) == END
    assert ends_at(a_definition(), RENEWED) is None


def told(days_before: float, by_then: Told = Told.NOTHING, renewed: Instant | None = RENEWED) -> Told | None:
    return to_be_told(END, renewed, by_then, Instant(END - round(days_before * DAY)))


def test_an_end_is_told_a_week_and_a_day_before_each_once() -> None:
    assert [told(each) for each in (8, 7.001, 7, 2, 1.001)] == [None, None, Told.WEEK, Told.WEEK, Told.WEEK]
    assert [told(each) for each in (1, 0.5, 0, -1)] == [Told.DAY, Told.DAY, None, None]
    assert [told(3, Told.WEEK), told(0.5, Told.WEEK), told(0.5, Told.DAY), told(3, Told.DAY)] == [
        None, Told.DAY, None, None]


def test_what_lives_shorter_than_a_notice_ahead_is_not_told_of_it_at_birth() -> None:
    assert told(6, renewed=Instant(END - 7 * DAY)) is None
    assert told(6, renewed=Instant(END - 7 * DAY - 1)) is Told.WEEK
    assert told(0.5, renewed=Instant(END - DAY)) is None
    assert told(6, renewed=None) is Told.WEEK, "of what was made before renewals were written down"


@given(st.lists(st.integers(-2 * DAY, 40 * DAY), max_size=30))
def test_however_the_clock_steps_nothing_is_told_twice(instants: list[int]) -> None:
    said: list[Told] = []
    for offset in instants:
        word = to_be_told(END, RENEWED, max(said, default=Told.NOTHING), Instant(RENEWED + offset))
        if word is not None:
            said.append(word)
    assert said == sorted(set(said))
