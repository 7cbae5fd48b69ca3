"""A machine whose clocks can be moved from outside: desks and commands on it are processes of the real program, on a
store of either kind, and a test says what time it is, that the machine slept, and when a desk is ended."""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from unittest.mock import patch

import psycopg
from shell import Said, Shell

from nightporter.clock import Instant, SystemClock

_OFF = struct.Struct("=qq")
"""What is added to the wall clock, and to the time since the machine was started; in microseconds."""
PROGRAM = (
    "import sys, moved; moved.follow(sys.argv.pop(1)); from nightporter.surfaces.cli import main; sys.exit(main())"
)
PATIENCE = 90.0
"""Seconds, on a machine that has much else to do."""
SERVER = """
CREATE SCHEMA moved;
CREATE TABLE moved.clock (off bigint NOT NULL);
INSERT INTO moved.clock VALUES (0);
CREATE FUNCTION moved.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT pg_catalog.clock_timestamp() + (SELECT off FROM moved.clock) * interval '1 microsecond' $$
"""
"""A database whose sessions are told another time: theirs is the first function of that name they come across."""
FIRST_OURS = "&options=-csearch_path%3Dpublic,moved,pg_catalog"


def follow(file: str) -> None:
    """From now on the clocks of this process are off by what the file says."""
    with Path(file).open("rb") as opened:
        view = mmap.mmap(opened.fileno(), _OFF.size, prot=mmap.PROT_READ)
    now, elapsed = SystemClock.now, SystemClock.elapsed
    setattr(SystemClock, "now", lambda self: Instant(now(self) + _OFF.unpack_from(view)[0]))  # noqa: B010
    setattr(SystemClock, "elapsed", lambda self: elapsed(self) + _OFF.unpack_from(view)[1])  # noqa: B010


@dataclass
class Machine:
    """One machine, its home and its store; no desk runs on it yet."""

    folder: Path
    store: str
    desks: list[Desk] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        (self.home / "automations").mkdir(parents=True)
        self._file = self.folder / "clock"
        self._file.write_bytes(bytes(_OFF.size))
        if self.store.startswith("postgresql:"):
            with psycopg.connect(self.store, autocommit=True) as server:
                server.execute(SERVER)
            self._plain, self.store = self.store, self.store + FIRST_OURS

    # -- time -------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Instant:
        return Instant(SystemClock().now() + self._off()[0])

    def _off(self) -> tuple[int, int]:
        wall, asleep = _OFF.unpack(self._file.read_bytes())
        return wall, asleep

    def _move(self, wall: int, asleep: int) -> None:
        with self._file.open("r+b") as file:  # in place: others have it before their eyes
            file.write(_OFF.pack(wall, asleep))
        if self.store.startswith("postgresql:"):
            with psycopg.connect(self._plain, autocommit=True) as server:
                server.execute("UPDATE moved.clock SET off = %s", (wall,))

    def set(self, now: Instant) -> None:
        """Somebody sets the wall clock; on PostgreSQL, that of the server."""
        wall, asleep = self._off()
        self._move(wall + now - self.now, asleep)

    def sleep_until(self, now: Instant) -> None:
        """The machine sleeps until then. Its desks stand still meanwhile."""
        for desk in self.desks:
            desk.freeze()
        wall, asleep = self._off()
        slept = now - self.now
        self._move(wall + slept, asleep + slept)
        for desk in self.desks:
            desk.thaw()

    # -- what is on it ----------------------------------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """A definition file."""
        (self.home / "automations" / f"{name}.yaml").write_text(text, encoding="utf-8")

    def up(self) -> Desk:
        """A desk, once it leads and has loaded what there is."""
        desk = self.starting()
        until(lambda: "desk.started" in desk.said() or desk.process.poll() is not None, "the desk has started")
        assert desk.process.poll() is None, desk.said()
        return desk

    def starting(self) -> Desk:
        """A desk, as soon as its process is there."""
        log = self.folder / f"desk-{len(self.desks)}.log"
        with log.open("wb") as said:
            desk = Desk(self.process("up", stdout=said), log)
        self.desks.append(desk)
        return desk

    def process(self, *words: str, stdout: int | IO[bytes] = subprocess.PIPE) -> subprocess.Popen[str]:
        """The same in a process of its own."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTPORTER_")}
        environment |= {
            "NIGHTPORTER_HOME": str(self.home), "NIGHTPORTER_STORE": self.store, "NIGHTPORTER_TIMEZONE": "UTC",
            "NIGHTPORTER_BOOT_PUSH": "0s", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(Path(__file__).parent),
        }
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self._file), *words], env=environment, text=True, stdout=stdout,
            stderr=subprocess.STDOUT, start_new_session=True,
        )

    def __call__(self, *words: str) -> Said:
        """A command and what it said, typed in this process: beside the desk nothing tells the two apart."""
        now, (off, _) = SystemClock.now, self._off()
        with patch.object(SystemClock, "now", lambda self: Instant(now(self) + off)):
            return Shell(self.home, self.store)(*words)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What stands in its store, in plain SQL."""
        if self.store.startswith("postgresql:"):
            with psycopg.connect(self._plain, autocommit=True) as postgres:
                return postgres.execute(sql.encode()).fetchall()
        import apsw

        with contextlib.closing(apsw.Connection(self.store, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.set_busy_timeout(5000)
            return list(connection.execute(sql))

    def close(self) -> None:
        for desk in self.desks:
            desk.kill()


def said(process: subprocess.Popen[str]) -> Said:
    """What a command left, once it has ended."""
    out, _ = process.communicate(timeout=PATIENCE)
    return Said(process.returncode, out, "")


class Desk:
    """One `nightporter up`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._log = log

    def said(self) -> str:
        """All that it has said."""
        return self._log.read_text(encoding="utf-8")

    def freeze(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGSTOP)
            until(lambda: self._state() == "T", "the desk stands still")

    def thaw(self) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)

    def _state(self) -> str:
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def kill(self) -> None:
        """End it and what belongs to it, without a last word."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        """End it in order."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.said()


def until(fact: Callable[[], Any], what: str, within: float = PATIENCE) -> Any:
    """What `fact` gives as soon as it gives something. Fails naming `what`."""
    limit = time.monotonic() + within
    while not (found := fact()):
        assert time.monotonic() < limit, f"not within {within:g} s: {what}"
        time.sleep(0.02)
    return found


@contextlib.contextmanager
def a_machine(folder: Path, store: str, now: Instant) -> Iterator[Machine]:
    """A machine whose wall clock shows `now`; whatever still runs on it at the end of the block is ended."""
    machine = Machine(folder, store)
    machine.set(now)
    try:
        yield machine
    finally:
        machine.close()

