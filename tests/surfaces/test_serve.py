"""A program that is a desk says what happens, and leaves the saying to the program that has logging of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from nightporter import Porter, every
{setup}
porter = Porter(home=sys.argv[1])
porter.define("beat", {{"echo": "hello"}}, every("1s"))
porter.serve()
"""
ITS_OWN = 'import logging; logging.basicConfig(format="mine %(message)s", level="INFO", stream=sys.stderr)'


@pytest.mark.parametrize(("setup", "begins"), [("", ""), (ITS_OWN, "mine ")], ids=["nothing set up", "logging set up"])
def test_a_program_that_serves_says_what_happens_its_own_way(setup: str, begins: str, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(setup=setup), str(tmp_path / "home")], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if "run.ended" in line:
                process.send_signal(signal.SIGINT)
                break
        said += process.stderr.readlines()
        assert process.wait(20) == 0
    finally:
        process.kill()
    events = [line.removeprefix(begins).split() for line in said if line.startswith(begins)]
    at = 0 if begins else 1
    assert {"desk.started", "run.started", "run.ended", "desk.stopped"} <= {words[at] for words in events}
