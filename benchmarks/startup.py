"""How long a person waits for a command that does next to nothing, beside an interpreter that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from benchmarks import resting
from benchmarks.figures import Row, Target, rounds
from benchmarks.options import Options

COMMANDS = (
    ("help", ("--help",), 150.0),
    ("next", ("next", "--schedule", "0 9 * * mon-fri", "--timezone", "Europe/Berlin", "-n", "5", "--json"), 250.0),
    ("list", ("list", "--json"), 300.0),
)


def started(command: list[str], home: Path, starts: int) -> float:
    """Milliseconds from the call to the end of the process, at its fastest: whatever else the machine does only ever
    adds. Raises CalledProcessError when it fails. Bytecode is kept, as any installed program has it."""
    environment = {**os.environ, "NIGHTPORTER_HOME": str(home)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times = []
    for _ in range(starts):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        times.append((time.perf_counter() - start) * 1000)
    return min(times)


def rows(options: Options, home: Path) -> list[Row]:
    """`nightporter --help`, `next`, and `list` where there are a thousand automations."""
    if not home.exists():
        resting.prepare(home)
    program = str(Path(sys.executable).with_name("nightporter"))
    measured = rounds(
        options.rounds, partial(started, [sys.executable, "-c", "pass"], home, options.starts),
        *(partial(started, [program, *arguments], home, options.starts) for _, arguments, _ in COMMANDS),
    )
    return [
        Row(f"startup.{key}", f"nightporter {arguments[0]}", "ms", tuple(values), "python -c pass", tuple(measured[0]),
            more_is_better=False, targets=(Target("value", "<", target),))
        for (key, arguments, target), values in zip(COMMANDS, measured[1:], strict=True)
    ]
