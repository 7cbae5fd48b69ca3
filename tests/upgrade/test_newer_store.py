"""An older program and a store that a newer one has used: it says so, and leaves everything as it is."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nightporter.surfaces.cli import main
from nightporter.surfaces.cli.verbs import VERBS
from upgrade.homes import Home
from upgrade.loading import RELEASES, counts, load, rows

REFUSED = 6
"""The exit code for a store that cannot be used, as docs/cli.md has it."""
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "add": ("every 5m", "say hello"), "show": ("letter",), "next": ("hourly",), "enable": ("asleep",),
    "disable": ("letter",), "remove": ("letter",), "run": ("letter",), "logs": ("letter",), "explain": ("letter",),
    "cancel": ("letter",), "review": ("cut", "retry"), "replay": ("broken",), "deliver": ("refused",),
    "import": ("os",), "renew": ("letter",),
}


def command(home: Path, *words: str, store: str = "") -> tuple[int, str]:
    """A command in this process: its code, and what it complains of."""
    out, err = io.StringIO(), io.StringIO()
    where = ["--home", str(home), *(["--store", store] if store else [])]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*words, *where])
    return code, err.getvalue()


def bytes_of(folder: Path) -> dict[str, bytes | None]:
    """Every file there is; of the index of an SQLite log, only that it is there: readers write themselves down."""
    return {str(path.relative_to(folder)): None if path.name.endswith("-shm") else path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The home of a newer program that was killed: what it committed last is in the log, not yet in the file."""
    store = tmp_path / "nightporter.sqlite"
    load(RELEASES[0], str(store), home=tmp_path, host="elsewhere", world="http://127.0.0.1:9")
    subprocess.run([sys.executable, "-c", KILLED, str(store)], check=False)
    assert (tmp_path / "nightporter.sqlite-wal").stat().st_size > 0
    return tmp_path


KILLED = """
import apsw, os, signal, sys
store = apsw.Connection(sys.argv[1])
store.execute("UPDATE setting SET value = '99' WHERE key = 'schema_version'")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_every_command_refuses_a_newer_store_and_changes_no_byte_of_it(killed: Path) -> None:
    before = bytes_of(killed)
    for verb in VERBS:
        if verb.name in ("up", "worker", "tick"):
            continue  # in processes of their own, below
        code, said = command(killed, verb.name, *ARGUMENTS.get(verb.name, ()))
        assert code == REFUSED, (verb.name, said)
        for part in ("schema 99", "why: a newer program", "next: install that newer version"):
            assert part in said, (verb.name, said)
        made = {name: text for name, text in bytes_of(killed).items() if before.get(name, b"") != text}
        assert made in ({}, {"nightporter.sqlite-shm": None}), verb.name
        assert before.keys() <= bytes_of(killed).keys()


@pytest.mark.parametrize("verb", ["up", "worker", "tick"])
def test_no_desk_or_worker_starts_on_a_newer_store(killed: Path, verb: str) -> None:
    before = bytes_of(killed)
    done = _process(killed, str(killed / "nightporter.sqlite"), verb)
    assert done.wait(30) == REFUSED
    assert "schema 99" in done.communicate()[1]
    after = bytes_of(killed)
    assert {name: after.get(name) for name in before} == before


def test_no_command_touches_a_newer_database(postgres_url: str, tmp_path: Path) -> None:
    load(RELEASES[0], postgres_url, home=tmp_path, host="elsewhere", world="http://127.0.0.1:9")
    _bump(postgres_url)
    before = _everything(postgres_url)
    for verb in ("list", "run", "stop", "doctor"):
        code, said = command(tmp_path, verb, *ARGUMENTS.get(verb, ()), store=postgres_url)
        assert code == REFUSED
        assert "schema 99" in said
    assert _everything(postgres_url) == before


@pytest.mark.parametrize("home", ["sqlite", "postgres"], indirect=True)
def test_a_desk_under_which_the_store_was_brought_forward_lets_go_and_ends_with_that_error(home: Home) -> None:
    (home.folder / "hold").touch()  # what it runs goes on for long
    desk = _process(home.folder, home.store, "up")
    try:
        home.until_none("SELECT 1 WHERE (SELECT count(*) FROM child) < 5")
        _bump(home.store)
        before = _everything(home.store)
        assert desk.wait(30) == REFUSED
        _, said = desk.communicate()
    finally:
        desk.kill()
        desk.wait()
    assert "schema 99" in said
    assert _everything(home.store) == before
    groups = [Path(f"/proc/{group}") for (group,) in rows(home.store, "SELECT process_group FROM child")]
    until = time.monotonic() + 10  # what was killed may be waited for by nobody for a moment
    while (left := [group for group in groups if group.exists()]) and time.monotonic() < until:
        time.sleep(0.02)
    assert left == [], "it ended what it had started"


def _process(folder: Path, store: str, verb: str) -> subprocess.Popen[str]:
    home = Home(folder, store)
    return subprocess.Popen(
        home.command(verb), env=home.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _bump(store: str) -> None:
    rows(store, "UPDATE setting SET value = '99' WHERE key = 'schema_version' RETURNING 1")


def _everything(store: str) -> dict[str, list[tuple[Any, ...]]]:
    return {table: sorted(rows(store, f'SELECT * FROM "{table}"'), key=repr) for table in counts(store)}
