"""Three desks and four workers on one PostgreSQL database: whoever is killed, hangs or is cut off is succeeded, nothing
is lost or done twice, and a machine whose clock is off by minutes does as the others do."""

from __future__ import annotations

from pathlib import Path

from fire.accounts import findings
from fire.house import a_house
from fire.recorder import a_world
from group.night import a_group
from nightporter.clock import SystemClock

AT_LAST = 30.0
"""Seconds; how fast it goes is measured by `make soak`, on a machine that has nothing else to do."""


def test_a_group_loses_its_leader_in_every_way_there_is(migrated_postgres_url: str, tmp_path: Path) -> None:
    with (
        a_world(tmp_path) as world, a_house(tmp_path, migrated_postgres_url, world) as house,
        a_group(house, world="house", lease=1.0) as group,
    ):
        workers = {member.seat.name: member for member in group.members if member.seat.role == "worker"}
        group.lose("killed", group.leading(), workers["fourth worker"])
        group.bring_back()
        group.lose("cut off", group.leading(), workers["second worker"])
        group.bring_back()
        group.lose("hangs", group.leading(), workers["third worker"])
        group.bring_back()
        group.quieten()
        assert findings(house, alive=True) == []
        assert group.loud() == []
        for each in group.takeovers:
            assert max(each.lead or 0.0, each.runs or 0.0) < AT_LAST, each
        assert [each.lead is not None for each in group.takeovers] == [True, False] * 3
        never = f"abs(arrived_at - scheduled_for) > 100000000 OR arrived_at > {SystemClock().now()}"
        assert house.ledger.count(f"firing WHERE {never}") == 0, "somebody went by his own clock"
