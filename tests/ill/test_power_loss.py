"""The power goes in the middle of everything: what was answered is there, and the rest is as if it had not been."""

from __future__ import annotations

from pathlib import Path

from fire.recorder import a_world
from ill.losses import a_ward, power_losses

ROUNDS = 6


def test_what_was_answered_survives_a_power_loss(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_ward(tmp_path, str(tmp_path / "ledger.db"), world) as house:
        figures, found = power_losses(house, rounds=ROUNDS, seed=20261101)
        print(figures)
        assert found == []
        assert figures.answers > 50
        assert figures.sectors + figures.cut > 0


def test_commits_answered_before_they_are_on_the_disk_are_found_lost(tmp_path: Path) -> None:
    with a_world(tmp_path) as world, a_ward(tmp_path, str(tmp_path / "ledger.db"), world) as house:
        _, found = power_losses(house, rounds=ROUNDS, seed=20261101, careless=True)
        assert any("was answered, and is not there" in one for one in found)
