"""How much goes into one write: as much as takes a few milliseconds, learnt from the writes before."""

from __future__ import annotations

import pytest

from nightporter.store.portion import AIM, FIRST, Portion


def after(portion: Portion, each: float, writes: int = 20) -> int:
    """Its size after so many full writes of which each item took `each` seconds."""
    for _ in range(writes):
        portion.learn(portion.size, portion.size * each)
    return portion.size


def test_the_first_portion_is_small_because_nobody_knows_yet_how_long_it_takes() -> None:
    assert Portion(500).size == FIRST
    assert Portion(4).size == 4


def test_a_portion_shrinks_until_it_takes_what_it_is_to_take() -> None:
    assert after(Portion(500), AIM / 100) == pytest.approx(100, abs=2)


def test_a_portion_grows_again_when_its_items_take_less() -> None:
    portion = Portion(500)
    after(portion, AIM / 50)
    assert after(portion, AIM / 300) == pytest.approx(300, abs=4)


def test_a_portion_stays_within_its_bounds() -> None:
    assert after(Portion(500), AIM / 10_000) == 500
    assert after(Portion(500), AIM) == 16
    assert after(Portion(4), AIM) == 4


def test_where_a_commit_takes_longer_a_portion_may_too() -> None:
    assert after(Portion(500, commit=lambda: 3 * AIM), AIM / 100) == pytest.approx(300, abs=4)


def test_a_write_of_a_few_says_nothing_about_many() -> None:
    portion = Portion(500)
    portion.learn(1, AIM / 2)
    portion.learn(0, AIM / 2)
    assert portion.size == FIRST


def test_a_portion_measures_what_is_done_in_it() -> None:
    portion = Portion(500)
    with portion.taking(FIRST):
        sum(range(3_000_000))
    assert portion.size < FIRST
