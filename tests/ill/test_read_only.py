"""A store that cannot be written: a desk refuses to start on it, and every command that only reads answers."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from shell import Said, Shell

pytest_plugins = ["homes"]

READING = (
    ("list",), ("show", "hello"), ("next",), ("runs",), ("firings",), ("deliveries",), ("inbox", "--all"), ("dead",),
    ("explain", "hello"), ("logs", "hello"), ("status",), ("doctor",), ("audit",),
)
WRITING = (("run", "hello"), ("disable", "hello"), ("add", "every 1h", "hi", "--name", "another"), ("stop",), ("up",),
           ("tick",))
OVERRIDES = (1, 2)
"""Capabilities by which root writes and reads whatever it likes."""
DROP_FROM_WHAT_IS_STARTED = 24

PROGRAM = """
import json, sys
from pathlib import Path
from shell import Shell
for words in json.loads(sys.argv[2]):
    said = Shell(Path(sys.argv[1]))(*words)
    print(json.dumps([said.code, said.out, said.err]))
"""


def without_privileges(home: Path, commands: Sequence[Sequence[str]]) -> list[Said]:
    """What commands say to somebody whom the modes of files bind, as they do not bind root."""
    libc = ctypes.CDLL(None)

    def drop() -> None:
        for one in OVERRIDES:
            libc.prctl(DROP_FROM_WHAT_IS_STARTED, one, 0, 0, 0)

    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "support")}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(home), json.dumps(commands)], env=environment,
                          capture_output=True, text=True, timeout=100, preexec_fn=drop)
    assert done.returncode == 0, done.stderr
    return [Said(*json.loads(line)) for line in done.stdout.splitlines()]


@pytest.fixture
def home(shell: Shell) -> Iterator[Path]:
    """A home with a run in it, closed in order, that nobody may write."""
    shell.write("hello.md", "---\nname: hello\nwhen: '0 9 * * *'\n---\nHello.\n")
    assert shell("tick").code == 0
    assert shell("run", "hello").code == 0
    paths = [shell.home, *shell.home.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in reversed(paths):
        path.chmod(0o500 if path.is_dir() else 0o400)
    yield shell.home
    for path in paths:
        path.chmod(modes[path])


def test_what_only_reads_answers_and_what_writes_says_why_it_cannot(home: Path) -> None:
    *read, runs, status = without_privileges(home, [*READING, ("runs", "--json"), ("status", "--json")])
    for words, said in zip(READING, read, strict=True):
        assert said.code in (0, 1), (words, said.err)
        assert said.out
    assert "cannot be written" in read[READING.index(("doctor",))].out
    assert runs.json["items"][0]["state"] == "succeeded"
    assert status.json["healthy"] is False
    for words, said in zip(WRITING, without_privileges(home, WRITING), strict=True):
        assert said.code == 6, (words, said.out, said.err)
        assert "error[store_unwritable]: the store cannot be written" in said.err
        assert "next: " in said.err
