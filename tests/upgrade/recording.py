"""How a release was recorded: `python recording.py FOLDER`, by the Python that has the released program.

    git worktree add ../released TAG
    PYTHONPATH=../released/src python tests/upgrade/recording.py tests/upgrade/releases/VERSION

A desk of that release works, is killed, takes back what it had, works on, and is killed again in the middle of
everything. What it left in its store is written down as INSERTs that both databases read, a row a line. Its home, its
host and the address of the world outside become `{home}`, `{host}` and `{world}`, which `loading` fills in again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import apsw

FILE = """\
---
name: from-a-file
when: "30 6 * * mon-fri"
timezone: America/New_York
---
Good morning.
"""


class Outside(BaseHTTPRequestHandler):
    """The world: a receiver that takes, one that is gone, one that is busy, and one that never answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        match self.path:
            case "/ok":
                self._answer(200)
            case "/gone":
                self._answer(410)
            case "/busy":
                self._answer(503, "retry-after", "30")
            case _:
                time.sleep(600)

    do_GET = do_POST

    def _answer(self, status: int, *header: str) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        if header:
            self.send_header(*header)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


class Desk:
    """A desk of the release, in a process group of its own."""

    def __init__(self, home: Path, world: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("night.py")), str(home), world], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=(home / "desk.log").open("ab"), text=True, start_new_session=True,
        )
        self.worker = self._hear()["worker"]

    def fire(self, name: str, external_id: str = "") -> str:
        """Something arrives for it; the run, if there is one."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {external_id or f'{name}-1'}\n")
        self._process.stdin.flush()
        return str(self._hear()["run"])

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        """It is killed."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


class Home:
    """Where it lives, and what is asked of its store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "nightporter.sqlite"
        (folder / "automations").mkdir(parents=True)
        (folder / "automations" / "from-a-file.md").write_text(FILE)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(apsw.Connection(str(self.store))) as connection:
            connection.set_busy_timeout(5000)
            return list(connection.execute(sql))

    def until(self, fact: str) -> None:
        """Wait until a query gives rows."""
        limit = time.monotonic() + 60
        while not self.rows(fact):
            if time.monotonic() > limit:
                raise SystemExit(f"not within a minute: {fact}")
            time.sleep(0.02)

    def ask(self, *words: str) -> None:
        """A command of the release."""
        subprocess.run(
            [sys.executable, "-c", "from nightporter.surfaces.cli import main; raise SystemExit(main())", *words,
             "--home", str(self.folder)], check=True, stdout=subprocess.DEVNULL,
        )


def _first_night(home: Home, world: str) -> None:
    with Desk(home.folder, world) as desk:
        for name in ("letter", "letter", "refused", "cool", "quiet", "broken", "slow", "acts"):
            desk.fire(name)
        for name in ("cool", "few", "few"):
            desk.fire(name, f"{name}-2" if name == "cool" else "")
        desk.fire("few", "few-2")
        for name in ("dismissed", "cut", "again"):
            run = desk.fire(name)
            home.until(f"SELECT 1 FROM child WHERE run_id = '{run}'")
        home.until("SELECT 1 FROM delivery WHERE state = 'given_up'")
        home.until("SELECT 1 FROM run WHERE state = 'timed_out'")
        home.until("SELECT 1 WHERE (SELECT count(*) FROM firing WHERE source = 'clock') > 4")
        home.ask("disable", "often", "--reason", "a holiday")
        home.ask("enable", "often")
        home.ask("remove", "gone")


def _second_night(home: Home, world: str) -> None:
    with Desk(home.folder, world) as desk:
        home.until("SELECT 1 WHERE (SELECT count(*) FROM run WHERE state = 'review') = 2")
        [(dismissed,)] = home.rows(
            "SELECT r.id FROM run r JOIN automation a ON a.id = r.automation_id WHERE a.name = 'dismissed'")
        home.ask("review", dismissed, "dismiss")
        home.ask("disable", "often", "--reason", "the recording ends")
        home.rows("UPDATE trigger SET schedule = '[]' WHERE name = 'spoilt'")
        home.until("SELECT 1 FROM trigger WHERE name = 'spoilt' AND error <> ''")
        for name in ("later", "hanging", "provider", "flaky", "acting"):
            desk.fire(name)
        for name in ("line", "line", "line", "single", "single", "newest", "newest", "narrow", "narrow"):
            desk.fire(name, f"{name}-{time.monotonic_ns()}")
        unwanted = desk.fire("unwanted")
        home.until(f"SELECT 1 FROM child WHERE run_id = '{unwanted}'")
        home.ask("cancel", unwanted)
        home.until(f"SELECT 1 FROM run WHERE id = '{unwanted}' AND state = 'cancelled'")
        for number in range(3):
            desk.fire("asleep", f"asleep-{number}")
        home.ask("disable", "asleep", "--reason", "it snores", "--until", "1h")
        for fact in (
            "SELECT 1 FROM run WHERE state = 'held'", "SELECT 1 FROM run WHERE state = 'queued' AND attempt = 1",
            "SELECT 1 FROM delivery WHERE state = 'sending'",
            "SELECT 1 FROM delivery WHERE state = 'pending' AND tries > 0",
            "SELECT 1 FROM effect WHERE name = 'second' AND state = 'intended'",
            "SELECT 1 WHERE (SELECT count(*) FROM child) > 4",
        ):
            home.until(fact)
        # What no slot is left for waits to be claimed.
        for number in range(8):
            desk.fire("again", f"again-more-{number}")


def _written(home: Home, substitutes: dict[str, str]) -> Iterator[str]:
    """The store as INSERTs, tables and rows in a fixed order."""
    tables = home.rows(
        "SELECT m.name, group_concat(c.name, ', '), "
        "(SELECT group_concat(name, ', ') FROM pragma_table_info(m.name) WHERE pk > 0) "
        "FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' GROUP BY m.name ORDER BY m.name")
    for table, columns, key in tables:
        rows = home.rows(f'SELECT {columns} FROM "{table}" ORDER BY {key}')
        if rows:
            text = ",\n".join(f"({', '.join(_literal(value) for value in row)})" for row in rows)
            for concrete, place in substitutes.items():
                text = text.replace(concrete, place)
            yield f'INSERT INTO "{table}" ({columns}) VALUES\n{text};\n'


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


@contextmanager
def _a_world() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Outside)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"


def record(folder: Path) -> None:
    """Make `folder/store.sql`."""
    with tempfile.TemporaryDirectory() as place, _a_world() as world:
        home = Home(Path(place) / "home")
        (home.folder / "hold").touch()
        steps: tuple[Callable[[Home, str], None], ...] = (_first_night, _second_night)
        for step in steps:
            step(home, world)
        program = str(Path(__file__).with_name("night.py"))
        substitutes = {str(home.folder): "{home}", program: "{home}/night.py", world: "{world}",
                       socket.gethostname(): "{host}"}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "store.sql").write_text("\n".join(_written(home, substitutes)), encoding="utf-8")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
