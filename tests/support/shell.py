"""The command line as a person types it: in this process where that is the same, in one of its own where it is not."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightporter.surfaces.cli import main


@dataclass(frozen=True)
class Said:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its answer; there is exactly one."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Shell:
    """A home, and commands typed for it."""

    home: Path
    store: str = ""

    @property
    def definitions(self) -> Path:
        return self.home / "automations"

    def write(self, file: str, text: str) -> Path:
        """A definition file."""
        self.definitions.mkdir(parents=True, exist_ok=True)
        path = self.definitions / file
        path.write_text(text, encoding="utf-8")
        return path

    def __call__(self, *words: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        where = ["--home", str(self.home), *(["--store", self.store] if self.store else [])]
        logger = logging.getLogger("nightporter")
        before = (logger.handlers[:], logger.level, logger.propagate)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main([*words, *where])
        finally:
            logger.handlers[:], logger.level, logger.propagate = before
        return Said(code, out.getvalue(), err.getvalue())

    def process(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        """The same in a process of its own, its output in pipes."""
        environment = {**os.environ, "NIGHTPORTER_HOME": str(self.home), "PYTHONUNBUFFERED": "1"}
        if self.store:
            environment["NIGHTPORTER_STORE"] = self.store
        program = "import sys; from nightporter.surfaces.cli import main; sys.exit(main())"
        return subprocess.Popen(
            [sys.executable, "-c", program, *words], env=environment, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **more,
        )

