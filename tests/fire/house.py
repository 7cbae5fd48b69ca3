"""The house: where desks are opened, killed, frozen and opened again, always on the same store."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fire.recorder import SECRET, World
from nightporter.clock import SystemClock

T = TypeVar("T")

DESK = Path(__file__).with_name("desk.py")
PATIENCE = 60.0
"""Seconds after which what should have happened has not, on a machine that has much else to do."""
LINES = 10
"""As many times that long, a line of runs that wait for one another gets shorter."""
BOOT_LIMIT = 5.0
QUICK = {"beat": 0.2, "lease": 1.0, "sweep": 0.4, "drain": 5.0, "boot_push": 0.0}
"""Settings of a desk that notices within a second what takes a minute by default."""


def until(fact: Callable[[], T], what: str | Callable[[], str], within: float = PATIENCE) -> T:
    """What `fact` gives as soon as it gives something. Fails naming `what`."""
    limit = time.monotonic() + within
    while not (found := fact()):
        if time.monotonic() > limit:
            raise AssertionError(f"not within {within:g} s: {what() if callable(what) else what}")
        time.sleep(0.01)
    return found


@dataclass(frozen=True)
class Sample:
    """What a desk held just before it was killed: what must not grow with the number of kills."""

    kill: int
    files: int
    threads: int
    zombies: int
    log: int
    """Bytes of the write-ahead log of its SQLite file."""


class Ledger:
    """The store as somebody outside reads it, in plain SQL."""

    def __init__(self, store: str) -> None:
        self.store = store

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        if self.store.startswith("postgresql:"):
            import psycopg

            with psycopg.connect(self.store, autocommit=True) as postgres:
                return postgres.execute(sql.encode()).fetchall()
        import apsw

        connection = apsw.Connection(self.store, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(5000)
            return list(connection.execute(sql))
        finally:
            connection.close()

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add whole rows, as `SELECT *` gives them."""
        if self.store.startswith("postgresql:"):
            import psycopg

            with psycopg.connect(self.store) as postgres, postgres.cursor() as cursor:
                places = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f'INSERT INTO "{table}" VALUES ({places})'.encode(), rows)
            return
        import apsw

        with contextlib.closing(apsw.Connection(self.store)) as connection, connection:
            connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(rows[0]))})', rows)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Somebody else has the lock of it for the time of the block: on PostgreSQL, of the table that a child is
        written to before it is let go."""
        if self.store.startswith("postgresql:"):
            import psycopg

            with psycopg.connect(self.store) as postgres:
                postgres.execute("LOCK TABLE child IN EXCLUSIVE MODE")
                yield
            return
        import apsw

        with contextlib.closing(apsw.Connection(self.store)) as connection:
            connection.set_busy_timeout(5000)
            connection.execute("BEGIN IMMEDIATE")
            yield
            connection.execute("ROLLBACK")

    def count(self, sql: str) -> int:
        return int(self.rows(f"SELECT count(*) FROM {sql}")[0][0])

    def busy(self) -> list[tuple[Any, ...]]:
        """What still goes on by itself."""
        return self.rows(
            "SELECT id, state FROM run WHERE state IN ('queued', 'running', 'held', 'lost') "
            "UNION ALL SELECT id, state FROM delivery WHERE state IN ('pending', 'sending')"
        )

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table that says what happened."""
        keys = {
            "automation": "id", "trigger": "id", "firing": "id", "firing_payload": "firing_id", "run": "id",
            "run_output": "run_id", "transition": "run_id, seq", "effect": "run_id, key", "child": "run_id, token",
            "delivery": "id", "delivery_try": "delivery_id, n", "inbox": "id", "rollup_month": "automation_id, month",
            "definition_change": "id", "trigger_version": "trigger_id, version", "pause": "automation_id, paused_from",
            "quarantine": "subject, key",
        }
        return {table: self.rows(f'SELECT * FROM "{table}" ORDER BY {key}') for table, key in keys.items()}


class Desk:
    """One desk process."""

    def __init__(self, order: dict[str, Any], log: Path, program: Path) -> None:
        self._started = time.monotonic()
        self.began = SystemClock().now()
        """When its process was started."""
        self.ready_at: int | None = None
        """When it was ready, by its own account."""
        self.ended = 0
        """When its process had ended."""
        self.alone = True
        """No other desk was at work on its store."""
        self.hampered = bool(order["slow"])
        """Its boot took as long as it was made to take."""
        self._log = log
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NIGHTPORTER_")}
        environment["FIRE_SECRET"] = SECRET
        environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, str(program), json.dumps(order)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log.open("ab"), text=True, env=environment,
            start_new_session=True,
        )
        self._heard: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.boot = 0.0
        """Seconds from the start of the process to its being ready, without those it stood in line for a processor:
        how busy the machine is with other things is not the desk's doing."""
        self.waited_for = 0.0
        """The same with those."""
        self.worker = ""
        self.leading = False
        self.guard = 0
        """Its guard process."""

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            said = json.loads(line)
            if said["event"] == "ready":
                self.waited_for = time.monotonic() - self._started
                # Threads stand in line side by side too: it takes no less than what the processor gave it.
                self.boot = max(self.waited_for - self.stood_in_line(), self.worked())
            self._heard.put(said)
        self._heard.put(None)

    def hear(self, event: str, within: float = PATIENCE) -> dict[str, Any]:
        """Wait for it to say so. Fails when it ends first."""
        try:
            said = self._heard.get(timeout=within)
        except queue.Empty:
            raise AssertionError(f"the desk did not say {event!r} within {within:g} s:\n{self.log()}") from None
        if said is None or said["event"] != event:
            raise AssertionError(
                f"the desk said {said} instead of {event!r}, code {self.process.poll()}:\n{self.log()}"
            )
        return said

    def ready(self) -> Desk:
        said = self.hear("ready")
        self.worker, self.leading, self.guard, self.ready_at = (
            said["worker"], said["leading"], said["guard"], said["at"])
        return self

    def ask(self, *words: str) -> None:
        """A command, which it may not have carried out yet."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def tell(self, *words: str, within: float = PATIENCE) -> None:
        """A command, carried out when this returns."""
        self.ask(*words)
        self.hear(words[0], within)

    def kill(self) -> None:
        """End its process group without a last word."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.gone()

    def gone(self, within: float = PATIENCE) -> int:
        """Its code, once it has ended."""
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the desk did not end within {within:g} s:\n{self.log()}") from None
        self.ended = self.ended or SystemClock().now()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        return code

    def stop(self, within: float = PATIENCE) -> int:
        """Ask it to end, and wait until it has: its code."""
        self.process.terminate()
        return self.gone(within)

    def freeze(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        self.frozen()

    def frozen(self) -> None:
        """Wait until it stands still."""
        until(lambda: _state_of(self.process.pid) == "T", "the desk stands still")

    def thaw(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def stood_in_line(self) -> float:
        """Seconds that its threads were ready to go on and had no processor."""
        waited = 0
        for path in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):  # a thread that has just ended
                waited += int(path.read_text().split()[1])
        return waited / 1e9

    def worked(self) -> float:
        """Seconds that a processor gave it."""
        try:
            text = Path(f"/proc/{self.process.pid}/stat").read_text()
        except OSError:  # it has ended
            return 0.0
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def log(self) -> str:
        """The end of what it said."""
        return self.whole_log()[-6000:]

    def whole_log(self) -> str:
        return self._log.read_text()


@dataclass
class House:
    """A home and a store, and all desks that were ever opened on them."""

    folder: Path
    store: str
    outside: World
    world: str = "storm"
    """What desks in a storm do, see `worlds`."""
    bug: str = ""
    """A bug that each of its desks has, see `seeded`."""
    patience: float = PATIENCE
    """Seconds after which what was begun has not ended."""
    desks: list[Desk] = field(default_factory=list)
    kills: int = 0
    samples: list[Sample] = field(default_factory=list)
    """What each desk that was killed held at its end."""
    program: Path = DESK
    """What a desk is here."""

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.home.mkdir(parents=True, exist_ok=True)
        self.ledger = Ledger(self.store)

    def open(
        self, world: str = "house", *, fault: str = "", quiet: bool = False, arrivals: float = 0.0,
        all_lead: bool = False, slow: float = 0.0, also: Mapping[str, Any] | None = None, **settings: Any,
    ) -> Desk:
        """Start a desk; it may not be ready yet, and with a `fault` perhaps never will be.

        `quiet`: without clocks. `arrivals`: seconds between things that a program fires; 0 is none. `all_lead`: it
        takes the lead whoever else has it, so that two of them contend for every slot. `slow`: seconds that each of
        its commits takes longer. `also`: what its program takes beside.
        """
        order = {
            "home": str(self.home), "store": self.store, "recorder": self.outside.url, "world": world, "fault": fault,
            "quiet": quiet, "arrivals": arrivals, "all_lead": all_lead, "slow": slow, "told": str(self.folder / "told"),
            "starts": str(self.folder / "starts"), "beats": str(self.folder / "beats"), "bug": self.bug,
            "settings": {**QUICK, **settings}, **(also or {}),
        }
        desk = Desk(order, self.folder / f"desk-{len(self.desks)}.log", self.program)
        self.desks.append(desk)
        return desk

    def kill(self, desk: Desk) -> None:
        if desk.ready_at is not None and (sample := self._sample(desk)) is not None:
            self.samples.append(sample)
        desk.kill()
        self.kills += 1

    def _sample(self, desk: Desk) -> Sample | None:
        process = Path(f"/proc/{desk.process.pid}")
        log = Path(f"{self.store}-wal")
        try:
            children = [_state_of(int(pid)) for task in (process / "task").iterdir()
                        for pid in (task / "children").read_text().split()]
            files, threads = (len(list((process / kind).iterdir())) for kind in ("fd", "task"))
            size = log.stat().st_size if log.exists() else 0
            return Sample(self.kills + 1, files, threads, children.count("Z"), size)
        except OSError:  # it has ended by itself, or a child of it just has
            return None

    def settle(self, world: str = "house") -> None:
        """Open once more without clocks, wait until all that was started has ended, and stop in order."""
        desk = self.open(world, quiet=True).ready()
        self.idle()
        litter = self.litter
        until(lambda: not litter(), lambda: f"what dead desks left is cleared away: {litter()}", self.patience)
        assert desk.stop() == 0, desk.log()

    def idle(self) -> None:
        """Wait until nothing goes on. A long line that gets shorter is no reason to lose patience."""
        left, limit = self.ledger.busy(), time.monotonic() + LINES * self.patience
        while left and time.monotonic() < limit:
            before, length = left, len(left)
            until(
                lambda: len(self.ledger.busy()) < length,  # noqa: B023  # asked within this turn
                f"nothing goes on any more: {before[:5]}", self.patience,
            )
            left = self.ledger.busy()
        assert not left, f"nothing goes on any more: {left[:5]}"

    def litter(self) -> set[str]:
        """Scratch folders of runs that nobody has to look at, locks of workers that are no more, and processes that
        outlived their desk or their run."""
        kept = {run for (run,) in self.ledger.rows("SELECT id FROM run WHERE state = 'review'")}
        alive = {worker for (worker,) in self.ledger.rows("SELECT id FROM worker WHERE ended_at IS NULL")}
        return {path.name.partition("-")[0] for path in (self.home / "scratch").glob("*")} - kept | (
            {path.stem for path in (self.home / "locks").glob("*")} - alive
        ) | self._left_alive()

    def _left_alive(self) -> set[str]:
        """Children of runs, and guards of desks that are dead."""
        ours = f"STARTS={self.folder / 'starts'}".encode()
        dead = {str(desk.process.pid).encode() for desk in self.desks if desk.ended}
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has just ended
                words = (process / "cmdline").read_bytes().split(b"\0")
                guards = len(words) > 2 and words[-3].endswith(b"groups.py") and words[-2] in dead
                if guards or ours in (process / "environ").read_bytes().split(b"\0"):
                    found.add(f"process {process.name}")
        return found

    def boots(self) -> list[float]:
        """How long each desk that got there took to be ready."""
        return [desk.boot for desk in self.desks if desk.boot and not desk.hampered]

    def lines(self, name: str) -> list[str]:
        """What scripts wrote down: `starts` or `beats`."""
        book = self.folder / name
        return book.read_text().splitlines() if book.exists() else []


@contextlib.contextmanager
def a_house(
    folder: Path, store: str, outside: World, *, world: str = "storm", bug: str = "", patience: float = PATIENCE,
    program: Path = DESK,
) -> Iterator[House]:
    """A house; whatever still lives in it at the end of the block is ended."""
    house = House(folder, store, outside, world, bug, patience, program=program)
    try:
        yield house
    finally:
        for desk in house.desks:
            if desk.process.poll() is None:
                desk.kill()


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
