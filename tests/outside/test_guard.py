"""The guard: what a dead desk's children come to, and whom it leaves alone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from desks import until

from nightporter.outside import groups
from nightporter.outside.guard import Guard, end_group

DESK = """
import asyncio, os, sys
from pathlib import Path
from nightporter.outside.guard import Guard
from nightporter.outside.commands import Command, scrubbed
from nightporter.outside.processes import run_child

async def tell(group, birth):
    print(group, birth, flush=True)

async def desk(script):
    guard = Guard()
    guard.start()
    command = Command(argv=("/bin/sh", "-c", script), environment=scrubbed({}), cwd=Path(sys.argv[1]))
    await run_child(command, tell, guard)

def fork():
    # A process forked by the program around the desk holds the guard's pipe open.
    if os.fork() == 0:
        os.close(1)
        Path(sys.argv[1], "forked").touch()
        time.sleep(100)

if os.environ.get("FORK"):
    import threading, time
    threading.Timer(0.1, fork).start()
asyncio.run(desk(sys.argv[2]))
"""


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 300 & sleep 301 & wait"], start_new_session=True)
    yield process
    groups.end_group(process.pid, groups.birth_of(process.pid) or 0, leaderless=True)
    process.kill()
    process.wait()


def birth(pid: int) -> int:
    found = groups.birth_of(pid)
    assert found is not None
    return found


async def start_desk(folder: Path, script: str, **environment: str) -> tuple[asyncio.subprocess.Process, int, int]:
    desk = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DESK, str(folder), script, stdout=asyncio.subprocess.PIPE, start_new_session=True,
        env={**os.environ, **environment})
    assert desk.stdout is not None
    group, born = (int(word) for word in (await desk.stdout.readline()).split())
    return desk, group, born


@pytest.mark.parametrize("script", [
    "echo up > up; sleep 300",
    "trap '' TERM HUP INT; echo up > up; while :; do sleep 1; done",
    "(setsid sh -c 'echo up > up; sleep 300' &) ; sleep 300",
])
async def test_the_children_of_a_desk_killed_with_its_whole_group_are_ended(tmp_path: Path, script: str) -> None:
    desk, group, born = await start_desk(tmp_path, script)
    await until((tmp_path / "up").exists)
    assert groups.living(group, born)
    os.killpg(desk.pid, signal.SIGKILL)
    await desk.wait()
    await until(lambda: not groups.living(group, born))


async def test_a_child_outliving_its_leader_dies_with_the_desk(tmp_path: Path) -> None:
    # The leader ends while the desk is frozen: nobody forgets the group, and its leader's number is gone.
    desk, group, born = await start_desk(tmp_path, "env -i sleep 300 & echo up > up; read line < gate")
    await until((tmp_path / "up").exists)
    os.kill(desk.pid, signal.SIGSTOP)
    os.kill(group, signal.SIGKILL)
    assert groups.living(group, born, leaderless=True)
    os.kill(desk.pid, signal.SIGKILL)
    await desk.wait()
    await until(lambda: not groups.living(group, born, leaderless=True))


async def test_a_fork_that_holds_the_pipe_does_not_keep_a_dead_desks_children_alive(tmp_path: Path) -> None:
    script = "while [ ! -e forked ]; do sleep 0.01; done; echo up > up; sleep 300"
    desk, group, born = await start_desk(tmp_path, script, FORK="1")
    await until((tmp_path / "up").exists)
    os.kill(desk.pid, signal.SIGKILL)
    await desk.wait()
    await until(lambda: not groups.living(group, born))
    (fork,) = _group_of(desk.pid)
    os.kill(fork, signal.SIGKILL)


def _group_of(group: int) -> list[int]:
    members = []
    for entry in Path("/proc").iterdir():
        found = groups._stat(int(entry.name)) if entry.name.isdigit() else None
        if found is not None and found[1] == group and found[0] not in "ZX":
            members.append(int(entry.name))
    return members


def test_what_is_still_watched_ends_when_the_guard_is_closed(sleeper: subprocess.Popen[bytes]) -> None:
    guard = Guard()
    guard.start()
    guard.watch(sleeper.pid, birth(sleeper.pid))
    guard.close()
    assert sleeper.wait() == -signal.SIGKILL


def test_what_is_still_watched_ends_even_without_its_leader_and_its_mark() -> None:
    leader = subprocess.Popen(["/bin/sh", "-c", "sleep 300 & echo $!"], stdout=subprocess.PIPE, start_new_session=True)
    guard = Guard()
    guard.start()
    guard.watch(leader.pid, birth(leader.pid))
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    leader.stdout.close()
    leader.wait()
    guard.close()
    found = groups._stat(child)
    assert found is None or found[0] in "ZX"


def test_what_was_forgotten_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    guard = Guard()
    guard.start()
    guard.watch(sleeper.pid, birth(sleeper.pid))
    guard.forget(sleeper.pid)
    guard.close()
    assert sleeper.poll() is None


def test_a_number_that_was_given_to_another_process_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    guard = Guard()
    guard.start()
    guard.watch(sleeper.pid, birth(sleeper.pid) - 1)
    guard.close()
    assert sleeper.poll() is None
    assert end_group(sleeper.pid, birth(sleeper.pid) - 1) is False
    assert sleeper.poll() is None


def test_a_guard_that_was_killed_is_replaced_and_knows_everything(sleeper: subprocess.Popen[bytes]) -> None:
    guard = Guard()
    guard.start()
    guard.watch(sleeper.pid, birth(sleeper.pid))
    first = guard.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    guard.watch(os.getpid(), 1)
    guard.forget(os.getpid())
    assert guard.pid != first
    guard.close()
    assert sleeper.wait() == -signal.SIGKILL


def test_a_frozen_guard_is_replaced_before_it_blocks_the_desk(sleeper: subprocess.Popen[bytes]) -> None:
    guard = Guard()
    guard.start()
    first = guard.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    guard.watch(sleeper.pid, birth(sleeper.pid))
    for _ in range(10_000):
        guard.watch(2, 1)
        if guard.pid != first:
            break
    assert guard.pid != first
    guard.close()
    assert sleeper.wait() == -signal.SIGKILL


def test_the_guard_shrugs_off_a_polite_request_to_end(sleeper: subprocess.Popen[bytes]) -> None:
    guard = Guard()
    guard.start()
    guard.watch(sleeper.pid, birth(sleeper.pid))
    assert guard.pid is not None
    # It answers to the request once it is up; before that, the signal may find a bare interpreter.
    while not _ignores_requests(guard.pid):
        time.sleep(0.002)
    os.kill(guard.pid, signal.SIGTERM)
    os.kill(guard.pid, signal.SIGINT)
    pid = guard.pid
    guard.watch(os.getpid(), 1)
    guard.forget(os.getpid())
    assert guard.pid == pid
    guard.close()
    assert sleeper.wait() == -signal.SIGKILL


def _ignores_requests(pid: int) -> bool:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigIgn:"):
            return bool(int(line.split()[1], 16) & (1 << (signal.SIGTERM - 1)))
    return False


def test_recovery_ends_a_stored_group_and_waits_until_it_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    born = birth(sleeper.pid)
    assert end_group(sleeper.pid, born) is True
    assert groups.living(sleeper.pid, born) == []
    assert sleeper.wait() == -signal.SIGKILL
    assert end_group(sleeper.pid, born) is False


def test_recovery_finds_a_group_without_its_leader_by_its_mark(tmp_path: Path) -> None:
    leader = subprocess.Popen(
        ["/bin/sh", "-c", f'read -r {groups.MARK}; export {groups.MARK}; sleep 300 & env -i sleep 300 & echo $!'],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    born = birth(leader.pid)
    assert leader.stdin is not None
    assert leader.stdout is not None
    leader.stdin.write(f"{groups.mark(leader.pid, born)}\n".encode())
    leader.stdin.close()
    child = int(leader.stdout.readline())
    leader.wait()
    leader.stdout.close()
    assert groups.birth_of(leader.pid) is None
    # One of its members carries the mark; that proves the group, and so the other one, who lost it.
    # It appears when the program is executed, which may be a moment after its start was reported.
    while len(groups.living(leader.pid, born)) < 2:
        time.sleep(0.002)
    assert child in groups.living(leader.pid, born)
    assert end_group(leader.pid, born) is True
    assert groups.living(leader.pid, born) == []


def test_recovery_leaves_a_leaderless_group_without_the_mark_alone() -> None:
    leader = subprocess.Popen(["/bin/sh", "-c", "sleep 300 & echo $!"], stdout=subprocess.PIPE, start_new_session=True)
    born = birth(leader.pid)
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    leader.wait()
    leader.stdout.close()
    try:
        assert end_group(leader.pid, born) is False
        assert groups.living(leader.pid, born, leaderless=True) == [child]
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_birth_tells_processes_and_reboots_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    here = birth(os.getpid())
    assert here == birth(os.getpid())
    assert 0 < here < 1 << 63
    monkeypatch.setattr(groups, "_BOOT", groups._BOOT ^ (1 << 40))
    assert birth(os.getpid()) != here
