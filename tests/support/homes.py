"""Fixtures of the command line's tests: `pytest_plugins = ["homes"]` takes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell import Shell


@pytest.fixture
def nobodys_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty project folder to be in, and no settings but those a test makes; the zone is Berlin's."""
    for name in ("HOME", "STORE", "CONFIG", "TIMEZONE"):
        monkeypatch.delenv(f"NIGHTPORTER_{name}", raising=False)
    monkeypatch.setenv("TZ", "Europe/Berlin")
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


@pytest.fixture
def shell(nobodys_place: Path, tmp_path: Path) -> Shell:
    """A home that `init` has made."""
    made = Shell(tmp_path / "home")
    assert made("init", "--quiet").code == 0
    return made
