"""A process of its own to be measured: a module of this package that says `ready` and ends when its input does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def process(module: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Run `python -m module words...` from when it is ready. Raises RuntimeError where it does not get there."""
    with subprocess.Popen(
        [sys.executable, "-m", module, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=Path(__file__).parent.parent,
    ) as started:
        assert started.stdin is not None
        assert started.stdout is not None
        try:
            if started.stdout.readline().strip() != "ready":
                raise RuntimeError(f"{module} {' '.join(words)} did not come up")
            yield started
        finally:
            started.stdin.close()
