"""A short question to a program of this machine, such as `crontab -l`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

PATIENCE = 20.0
"""Seconds."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What it said."""

    code: int
    out: bytes = b""
    err: str = ""
    missing: bool = False
    """There is no such program."""


def answer_of(argv: list[str], given: bytes = b"") -> Answer:
    """Run a program to its end, `given` on its standard input. Never raises: what cannot be started or takes too long
    is an answer with a code that is not 0."""
    try:
        done = subprocess.run(argv, input=given, capture_output=True, timeout=PATIENCE, check=False)
    except FileNotFoundError:
        return Answer(127, err=f"{argv[0]} is not there", missing=True)
    except subprocess.TimeoutExpired:
        return Answer(124, err=f"{argv[0]} did not answer within {PATIENCE:.0f} s")
    except OSError as error:
        return Answer(126, err=error.strerror or str(error))
    return Answer(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))
