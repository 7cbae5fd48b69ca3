"""Elsewhere: a desk under fire believes to be on another machine, whose clock may be wrong."""

from __future__ import annotations

import ctypes
import functools
import socket
import time
from pathlib import Path

from nightporter.clock import SECOND, Instant, SystemClock
from nightporter.engine import Engine, Role
from nightporter.surfaces import api

_off = 0


CLONE_NEWNET = 0x40000000


def be(machine: str = "", off: float = 0.0, role: Role = "desk", namespace: str = "") -> None:
    """From now on this process is on that machine, in that network, and a desk or a worker there."""
    if namespace:
        with Path(f"/run/netns/{namespace}").open() as network:
            if ctypes.CDLL(None, use_errno=True).setns(network.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"the network {namespace} cannot be entered")
    if machine:
        socket.gethostname = lambda: machine
    if off:
        off_by(off)
    if role != "desk":
        setattr(api, "Engine", functools.partial(Engine, role=role))  # noqa: B010  mypy forbids the assignment


def sleep_for(seconds: float) -> None:
    """This machine sleeps for so long: its wall clock and the time since its boot go on, and nothing else does."""
    slept = SystemClock().elapsed() - SystemClock().monotonic() + int(seconds * SECOND)
    setattr(SystemClock, "elapsed", lambda self: self.monotonic() + slept)  # noqa: B010
    off_by(_off / SECOND + seconds)


def off_by(seconds: float) -> None:
    """The wall clock of this machine is off by so much."""
    global _off
    _off = int(seconds * SECOND)
    setattr(SystemClock, "now", lambda _: Instant(time.time_ns() // 1000 + _off))  # noqa: B010
