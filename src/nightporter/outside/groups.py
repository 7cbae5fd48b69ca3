"""Process groups: which processes belong to a child of the desk, and how all of them are ended.

A child is known by its *group* (the leader's pid) and its *birth* (the kernel's start time of the leader, with the
machine's boot folded in), because a pid alone comes round again. Every process of a child carries both in its
environment, so those that left the group are found too.

This file is also the program of the guard process (`python -I -S groups.py DESK_PID`), which starts in the shadow
of a dying desk and must depend on nothing: standard library only, and few modules of it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from zlib import crc32

MARK = "NIGHTPORTER_CHILD"
"""The environment variable by which a child's processes are known; its value is `mark(group, birth)`."""

_PROC = "/proc"
_TICK_BITS = 40
"""Ticks since boot need 40 bits for some 350 years; the boot's hash stands above them, within 63 bits."""
_GONE_WITHIN = 5.0
"""Seconds after SIGKILL after which a process that the kernel does not let go is no longer waited for."""


def _boot() -> int:
    try:
        with open(f"{_PROC}/sys/kernel/random/boot_id", "rb") as file:  # noqa: PTH123 - pathlib is not imported here
            return crc32(file.read().strip()) & 0x7FFFFF
    except OSError:
        return 0  # No boot id: ticks alone must do.


_BOOT = _boot() << _TICK_BITS


def _stat(pid: int) -> tuple[str, int, int] | None:
    """State letter, process group and birth; None where there is no such process."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123
            text = file.read()
    except OSError:
        return None
    # The command name stands in parentheses and may hold anything, parentheses and spaces included.
    fields = text[text.rfind(b")") + 2 :].split()
    return fields[0].decode(), int(fields[2]), _BOOT | int(fields[19])


def birth_of(pid: int) -> int | None:
    """When the kernel started `pid`: comparable for equality only, over reboots too. None where it is gone.

    A zombie, dead but not yet taken off, still has its birth.
    """
    found = _stat(pid)
    return None if found is None else found[2]


def mark(group: int, birth: int) -> str:
    """The value of `MARK` in the environment of a child's processes."""
    return f"{group}:{birth}"


def _bears(pid: int, line: bytes) -> bool:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123
            return line in file.read().split(b"\0")
    except OSError:
        return False  # Gone meanwhile, or somebody else's: then it is none of ours.


def living(group: int, birth: int, *, leaderless: bool = False, strays: bool = True) -> list[int]:
    """The pids of the child's processes that are not dead yet: its group, and with `strays` what carries its mark
    in a group or session of its own.

    A group whose leader is gone may by now be somebody else's: it counts only if one of its members carries the
    mark, or if `leaderless` says that the caller knows it is still the same.
    """
    line = f"{MARK}={mark(group, birth)}".encode()
    leader = birth_of(group)
    given_away = leader is not None and leader != birth
    known = leader == birth or (leader is None and leaderless)
    members: list[int] = []
    marked: set[int] = set()
    for entry in os.listdir(_PROC):  # noqa: PTH208
        found = _stat(int(entry)) if entry.isdigit() else None
        if found is None or found[0] in "ZX":
            continue
        pid, inside = int(entry), found[1] == group and not given_away
        if inside:
            members.append(pid)
        if (strays or inside) and _bears(pid, line):
            marked.add(pid)
            known = known or inside
    return sorted(marked.union(members) if known else marked)


def send(number: signal.Signals, group: int, birth: int, pids: list[int]) -> None:
    """Signal the group, if it is still the same one, and each of `pids`."""
    if birth_of(group) == birth:
        # At one stroke, so that no member forks its way out between two signals.
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            pass  # Gone meanwhile, or members of another user among them; each pid is tried below.
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # Gone meanwhile; one of another user is reported by the caller as still living.


def end_group(group: int, birth: int, *, leaderless: bool = False) -> bool:
    """End what is left of a child, at once, and wait until it is gone. True when there was something to end.

    Safe against pids that came round again. Blocks the calling thread, 5 s at most.
    """
    pids = living(group, birth, leaderless=leaderless)
    if not pids:
        return False
    until = time.monotonic() + _GONE_WITHIN
    pause = 0.001
    while pids and time.monotonic() < until:
        send(signal.SIGKILL, group, birth, pids)
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
        pids = living(group, birth, leaderless=leaderless)
    return True


def keep_watch(desk: int) -> None:
    """The guard: read `watch GROUP BIRTH` and `forget GROUP` from standard input; when the desk is gone, end
    every group still watched. Returns after that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # It ends when the desk does; a polite kill of everything must not take it away first.
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, int] = {}
    rest = b""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    try:
        desk_end = os.pidfd_open(desk) if os.getppid() == desk else -1
    except OSError:
        desk_end = -1
    if desk_end >= 0:
        # A process that the desk forked may hold the pipe open; the desk's own end counts too.
        poll.register(desk_end, select.POLLIN)
    os.set_blocking(0, False)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        try:
            chunk: bytes | None = os.read(0, 65536)
        except BlockingIOError:
            chunk = None
        if chunk:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                word, *numbers = line.split()
                if word == b"watch":
                    watched[int(numbers[0])] = int(numbers[1])
                else:
                    watched.pop(int(numbers[0]), None)
        elif chunk == b"" or desk_end in ready:
            break
    for group, birth in watched.items():
        # All at once first, so that none outlives the waiting for another.
        send(signal.SIGKILL, group, birth, [])
    for group, birth in watched.items():
        # The desk forgot a group as soon as it was empty: one still watched is the same even without its leader.
        end_group(group, birth, leaderless=True)


if __name__ == "__main__":
    keep_watch(int(sys.argv[1]))
