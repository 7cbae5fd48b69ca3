"""The guard: one small process beside each desk that ends the desk's children when the desk is gone.

A desk killed with SIGKILL cannot end anything itself, and its children, in sessions of their own, would live on.
The guard holds the other end of a pipe; when that falls silent for good, it ends what was still being watched.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from nightporter.outside import groups
from nightporter.outside.groups import end_group

__all__ = ["Guard", "end_group"]


class Guard:
    """Starts the guard process and tells it what to watch. Safe to call from any thread; no call blocks for long."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: dict[int, int] = {}
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The guard process, while it runs."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the guard process; nothing happens where it runs already. Raises OSError where none can be started."""
        with self._lock:
            if self._process is None:
                self._start()

    def watch(self, group: int, birth: int) -> None:
        """From now on `group` dies with the desk. In force when this returns."""
        with self._lock:
            self._watched[group] = birth
            self._tell(f"watch {group} {birth}\n")

    def forget(self, group: int) -> None:
        """`group` has ended, all of it."""
        with self._lock:
            if self._watched.pop(group, None) is not None:
                self._tell(f"forget {group}\n")

    def close(self) -> None:
        """End the guard process; what is still watched is ended first. Returns when it is done."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _start(self) -> None:
        # -I -S: nobody's site packages or variables reach into it, and it is up in some 10 ms.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", groups.__file__, str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd="/", env={}, bufsize=0,
        )
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        for group, birth in self._watched.items():
            self._write(f"watch {group} {birth}\n")

    def _tell(self, line: str) -> None:
        if self._process is None:
            self._start()  # Which tells the new one everything, this line's group included.
            return
        try:
            self._write(line)
        except (BrokenPipeError, BlockingIOError):
            # Somebody killed it, or it was frozen until its pipe was full: a new one takes over.
            stalled, self._process = self._process, None
            stalled.kill()
            stalled.wait()
            self._start()

    def _write(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        # Below PIPE_BUF a write is whole or refused, never cut.
        os.write(self._process.stdin.fileno(), line.encode())
