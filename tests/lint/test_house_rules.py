"""House rules that a reader cannot check by eye: the clock is read in one place, and no module grows without end."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nightporter

SOURCE = Path(nightporter.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400

WALL_READS = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime", "asctime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
"""By the name the attribute is read from; with no instant handed to them, all of these read the wall."""


def clock_reads(source: str) -> Iterator[tuple[int, str]]:
    """`(line, what)` of each place that reads the wall clock, under whatever name it was imported."""
    tree = ast.parse(source)
    known: dict[str, str] = {}  # the name here -> the name it has at home
    functions: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in ("time", "datetime"):
                    known[alias.asname or alias.name] = "time" if alias.name == "time" else "module datetime"
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
            for alias in node.names:
                if node.module == "time" and alias.name in WALL_READS["time"]:
                    functions[alias.asname or alias.name] = f"time.{alias.name}"
                elif node.module == "datetime" and alias.name in ("datetime", "date"):
                    known[alias.asname or alias.name] = alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in functions and isinstance(node.ctx, ast.Load):
            yield node.lineno, functions[node.id]
        elif isinstance(node, ast.Attribute):
            home = _home(node.value, known)
            if home is not None and node.attr in WALL_READS.get(home, ()):
                yield node.lineno, f"{home}.{node.attr}"


def _home(value: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(value, ast.Name):
        return known.get(value.id)
    if isinstance(value, ast.Attribute) and _home(value.value, known) == "module datetime":
        return value.attr if value.attr in WALL_READS else None
    return None


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_the_clock_is_read_in_the_clocks_own_module_only(module: Path) -> None:
    reads = list(clock_reads(module.read_text(encoding="utf-8")))
    if module == SOURCE / "clock.py":
        assert [what for _, what in reads] == ["time.time_ns"]
    else:
        assert reads == []


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_no_module_is_longer_than_a_reader_keeps_in_mind(module: Path) -> None:
    lines = len(module.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST


@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.time()", "import time as t\nt.time_ns()", "from time import time\ntime()",
        "from time import time_ns as ns\nread = ns", "import datetime\ndatetime.datetime.now()",
        "import datetime as dt\ndt.date.today()", "from datetime import datetime\ndatetime.now(tz=None)",
        "from datetime import datetime as D\nD.utcnow()", "from datetime import date\ndate.today()",
    ],
)
def test_the_check_finds_a_clock_read_under_any_name(source: str) -> None:
    assert [line for line, _ in clock_reads(source)] == [2]


@pytest.mark.parametrize(
    "source",
    ["import time\ntime.monotonic()\ntime.sleep(1)", "clock.now()", "def now(): ...\nnow()",
     "from datetime import datetime\ndatetime.fromisoformat('x')"],
)
def test_the_check_lets_durations_and_our_own_clock_pass(source: str) -> None:
    assert list(clock_reads(source)) == []
