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


def off_by(seconds: float) -> None:
    """The wall clock of this machine is off by so much."""
    off = int(seconds * SECOND)
    setattr(SystemClock, "now", lambda _: Instant(time.time_ns() // 1000 + off))  # noqa: B010
