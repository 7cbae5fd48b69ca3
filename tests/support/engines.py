"""Engines on a ledger that several may share, with intervals a test can wait for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import nightporter.engine
from nightporter.config import Config
from nightporter.engine import Engine

SHORT = {
    "drain": timedelta(milliseconds=50), "beat": timedelta(milliseconds=20), "sweep": timedelta(hours=1),
    "lease": timedelta(minutes=1), "patience": timedelta(seconds=20),
    "boot_push": timedelta(0),
}
IN_EARNEST_LONGER = {
    "POLL_SECONDS": 0.01, "WATCH_SECONDS": 0.01, "DELIVERY_DRAIN": 0.05, "GRACE": 0.2, "LAST_WORDS": 0.2,
}


class Engines:
    """Makes engines, each with settings of its own; `close` stops those that are running."""

    def __init__(self, folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._home = folder / "home"
        self._store_url = store_url
        self._made: list[Engine] = []
        for name, seconds in IN_EARNEST_LONGER.items():
            monkeypatch.setattr(nightporter.engine, name, seconds)

    def __call__(self, *, settings: dict[str, Any] | None = None, **of: Any) -> Engine:
        """An engine that is not started; `settings` are fields of Config, `of` fields of Engine."""
        config = Config(
            state=self._home, outputs=self._home / "outputs", home=self._home, store=self._store_url,
            **{**SHORT, **(settings or {})},
        )
        engine = Engine(config, **{"watch_files": False, **of})
        self._made.append(engine)
        return engine

    async def close(self) -> None:
        for engine in self._made:
            if hasattr(engine, "store"):
                await engine.stop(drain=False)
