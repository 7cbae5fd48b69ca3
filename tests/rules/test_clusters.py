"""Who meets again and again is found, with minutes that are free; who merely passes by is not."""

from __future__ import annotations

from nightporter.clock import DAY, HOUR, MINUTE, Instant
from nightporter.rules.clusters import MORE_THAN, Cluster, clusters

WEEK = 7 * DAY
Fires = list[tuple[Instant, str]]


def every(span: int, name: str, begin: int = 9 * HOUR) -> Fires:
    return [(Instant(at), name) for at in range(begin, WEEK, span)]


def found(*fires: Fires) -> list[tuple[tuple[str, ...], int, dict[str, int]]]:
    return [(c.names, c.times, dict(c.later)) for c in clusters([one for some in fires for one in some], WEEK)]


def test_two_that_are_due_in_the_same_minute_each_day_are_a_cluster_and_a_minute_apart_they_are_none() -> None:
    assert found(every(DAY, "a"), every(DAY, "b")) == [(("a", "b"), 7, {"b": 1})]
    assert found(every(DAY, "a"), every(DAY, "b", 9 * HOUR + 30_000_000)) == [(("a", "b"), 7, {"b": 1})]
    assert found(every(DAY, "a"), every(DAY, "b", 9 * HOUR + MINUTE)) == []


def test_who_meets_no_more_often_than_the_threshold_is_no_cluster() -> None:
    a, b = every(DAY, "a"), every(DAY, "b")
    assert found(a, b[:MORE_THAN]) == []
    assert found(a, b[: MORE_THAN + 1]) == [(("a", "b"), MORE_THAN + 1, {"b": 1})]


def test_each_is_moved_to_a_minute_in_which_nobody_comes() -> None:
    taken = every(DAY, "c", 9 * HOUR + MINUTE)
    assert found(every(DAY, "a"), every(DAY, "b"), every(DAY, "d"), taken) == [(("a", "b", "d"), 7, {"b": 2, "d": 3})]


def test_who_comes_all_the_time_meets_only_others_that_do() -> None:
    minutely, five, six = every(MINUTE, "m", 0), every(5 * MINUTE, "five", 0), every(5 * MINUTE, "six", 0)
    assert found(minutely, every(DAY, "a")) == []
    [(names, times, later)] = found(five, six, every(DAY, "a"))
    assert (names, times, later) == (("five", "six"), 7 * 288, {"six": 1})


def test_who_comes_each_minute_is_no_cluster_with_anybody_as_no_minute_is_free_of_it() -> None:
    assert found(every(MINUTE, "m", 0), every(5 * MINUTE, "five", 0), every(MINUTE, "n", 0)) == []


def test_one_that_meets_itself_is_no_cluster() -> None:
    assert found(every(DAY, "a"), every(DAY, "a")) == []


def test_the_largest_comes_first_and_is_said_in_a_sentence() -> None:
    many = [every(DAY, name) for name in "abcde"]
    pair = [every(DAY, name, 12 * HOUR) for name in "xy"]
    both = clusters([one for some in (*pair, *many) for one in some], WEEK)
    assert [cluster.names for cluster in both] == [("a", "b", "c", "d", "e"), ("x", "y")]
    assert str(both[0]) == ("a, b, c and 2 more are due in the same minute 7 times; let b by 1 min, c by 2 min, "
                            "d by 3 min ... come later, or give them `stagger`")
    assert both[1].as_json() == {"automations": ["x", "y"], "times": 7, "first": "1970-01-01T12:00:00Z",
                                 "stagger_minutes": {"y": 1}}
    assert isinstance(both[0], Cluster)
