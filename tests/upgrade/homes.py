"""The home that a release left, and today's program in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from upgrade.loading import rows
from upgrade.recording import Outside

NIGHTPORTER = "from nightporter.surfaces.cli import main; raise SystemExit(main())"
SETTINGS = {"SWEEP": "400ms", "BEAT": "200ms", "LEASE": "1s", "KEEP_RUNS": "36500d", "KEEP_LEDGER": "36500d"}
"""A desk that notices within a second what takes a minute by default, and that prunes nothing of long ago."""


class Welcoming(Outside):
    """The world is well again."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self._answer(200)

    do_GET = do_POST


class Home:
    """A home and a store that a release left, and today's program."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        self.store = store
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NIGHTPORTER_")},
            **{f"NIGHTPORTER_{name}": value for name, value in SETTINGS.items()},
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-c", NIGHTPORTER, *words, "--home", str(self.folder), "--store", self.store]

    def ask(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def desk(self) -> Iterator[None]:
        """The desk is up for the time of the block, and then stops in order."""
        with (self.folder / "desk.log").open("ab") as log:
            process = subprocess.Popen(self.command("up"), env=self.environment, stdout=log, stderr=log)
            try:
                yield
                process.terminate()
                assert process.wait(60) == 0, (self.folder / "desk.log").read_text()
            finally:
                process.kill()
                process.wait()

    def until_none(self, sql: str) -> None:
        limit = time.monotonic() + 60
        while found := rows(self.store, sql):
            assert time.monotonic() < limit, f"{found}\n{(self.folder / 'desk.log').read_text()[-6000:]}"
            time.sleep(0.05)
