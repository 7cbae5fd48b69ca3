"""Child processes: the gate, the bounds, and the end of everything a child started."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from desks import until

from nightporter.errors import BadInput, LostClaim
from nightporter.outside import groups
from nightporter.outside.commands import Ceilings, Command, program, scrubbed
from nightporter.outside.processes import Finished, NotStarted, run_child


def shell(script: str, cwd: Path, *, stdin: bytes = b"", timeout: float | None = None, output_limit: int = 1_000_000,
          ceilings: Ceilings | None = None) -> Command:
    return Command(argv=("/bin/sh", "-c", script), environment=scrubbed({"FOLDER": str(cwd)}), cwd=cwd, stdin=stdin,
                   timeout=None if timeout is None else timedelta(seconds=timeout), output_limit=output_limit,
                   ceilings=ceilings or Ceilings())


class Started:
    """Remembers the group and birth it is told."""

    def __init__(self) -> None:
        self.group = 0
        self.birth = 0

    async def __call__(self, group: int, birth: int) -> None:
        self.group, self.birth = group, birth

    @property
    def living(self) -> list[int]:
        return groups.living(self.group, self.birth, leaderless=True)


async def run(command: Command) -> tuple[Finished, Started]:
    started = Started()
    return await run_child(command, started, None), started


def alive(pid_file: Path) -> bool:
    found = groups._stat(int(pid_file.read_text()))
    return found is not None and found[0] not in "ZX"


def written(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


async def test_a_child_leaves_its_output_its_log_and_its_exit_code(tmp_path: Path) -> None:
    finished, _ = await run(shell("cat; echo log >&2; exit 3", tmp_path, stdin=b"given\n"))
    assert (finished.code, finished.stdout.text, finished.stderr.text) == (3, "given\n", "log\n")
    assert not finished.timed_out


async def test_a_child_is_not_executed_before_its_group_is_written_down(tmp_path: Path) -> None:
    seen: list[bool] = []

    async def slow(group: int, birth: int) -> None:
        assert groups.birth_of(group) == birth
        # Long enough for a program that is not held back to have run.
        for _ in range(20):
            await asyncio.sleep(0.005)
            seen.append((tmp_path / "ran").exists())

    await run_child(shell("touch ran", tmp_path), slow, None)
    assert seen
    assert not any(seen)
    assert (tmp_path / "ran").exists()


async def test_a_child_whose_claim_is_lost_is_never_let_go(tmp_path: Path) -> None:
    group = 0

    async def refuse(its_group: int, birth: int) -> None:
        nonlocal group
        group = its_group
        raise LostClaim("the run is somebody else's")

    with pytest.raises(LostClaim):
        await run_child(shell("touch ran", tmp_path), refuse, None)
    assert groups.birth_of(group) is None
    assert not (tmp_path / "ran").exists()


async def test_a_child_cancelled_at_the_gate_is_never_executed(tmp_path: Path) -> None:
    reached = asyncio.Event()
    group = 0

    async def never(its_group: int, birth: int) -> None:
        nonlocal group
        group = its_group
        reached.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(run_child(shell("touch ran", tmp_path), never, None))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert groups.birth_of(group) is None
    assert not (tmp_path / "ran").exists()


async def test_a_timeout_ends_grandchildren_too(tmp_path: Path) -> None:
    finished, started = await run(shell("sh -c 'sleep 300 & echo $! > pid; wait'", tmp_path, timeout=0.5))
    assert finished.timed_out
    assert started.living == []
    assert not alive(tmp_path / "pid")


async def test_a_timeout_ends_what_made_itself_a_session_of_its_own(tmp_path: Path) -> None:
    finished, _ = await run(shell("setsid sh -c 'echo $$ > pid; exec sleep 300' & sleep 300", tmp_path, timeout=0.5))
    assert finished.timed_out
    assert not alive(tmp_path / "pid")


async def test_a_child_is_asked_to_end_before_it_is_killed(tmp_path: Path) -> None:
    finished, _ = await run(shell("trap 'echo tidied; exit 0' TERM; sleep 300 & wait", tmp_path, timeout=0.5))
    assert finished.timed_out
    assert finished.stdout.text == "tidied\n"


async def test_a_child_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    finished, started = await run(shell("trap '' TERM; while :; do sleep 0.1; done", tmp_path, timeout=0.5))
    assert finished.timed_out
    assert finished.code == -signal.SIGKILL
    assert started.living == []


async def test_a_stopped_child_is_killed_too(tmp_path: Path) -> None:
    finished, started = await run(shell("kill -STOP $$", tmp_path, timeout=0.1))
    assert finished.timed_out
    assert started.living == []


async def test_a_cancel_ends_the_child_before_it_leaves(tmp_path: Path) -> None:
    started = Started()
    task = asyncio.ensure_future(run_child(shell("echo $$ > pid; sleep 300 & wait", tmp_path), started, None))
    await until(lambda: written(tmp_path / "pid"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started.living == []
    assert not alive(tmp_path / "pid")


async def test_a_second_cancel_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    started = Started()
    script = "trap 'echo asked > asked' TERM; echo up > up; while :; do sleep 0.05; done"
    task = asyncio.ensure_future(run_child(shell(script, tmp_path), started, None))
    await until(lambda: written(tmp_path / "up"))
    task.cancel()
    await until(lambda: written(tmp_path / "asked"))
    loop = asyncio.get_running_loop()
    asked_again = loop.time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert loop.time() - asked_again < 1.5
    assert started.living == []


async def test_what_a_finished_leader_left_in_its_group_is_ended_and_counted(tmp_path: Path) -> None:
    finished, started = await run(shell("sleep 300 >/dev/null 2>&1 & echo done", tmp_path))
    assert (finished.code, finished.stdout.text, finished.left_behind) == (0, "done\n", 1)
    assert started.living == []


async def test_what_a_finished_leader_left_writing_is_heard(tmp_path: Path) -> None:
    finished, _ = await run(shell("(sleep 0.05; echo last words) & echo first", tmp_path))
    assert finished.stdout.text == "first\nlast words\n"
    assert finished.left_behind == 0


async def test_a_flood_is_bounded_and_counted_and_does_not_block_the_child(tmp_path: Path) -> None:
    finished, _ = await run(shell("head -c 20000000 /dev/zero | tr '\\0' x; echo end >&2", tmp_path, output_limit=1000))
    assert bytes(finished.stdout.head) == b"x" * 1000
    assert finished.stdout.cut == 20_000_000 - 1000
    assert finished.stdout.text.endswith("\n[cut here: 19999000 more bytes]")
    assert finished.stderr.text == "end\n"


async def test_an_endless_flood_is_ended_by_its_timeout(tmp_path: Path) -> None:
    finished, started = await run(shell("yes", tmp_path, output_limit=10, timeout=0.2))
    assert finished.timed_out
    assert len(finished.stdout.head) == 10
    assert started.living == []


async def test_a_character_torn_by_the_cut_is_dropped(tmp_path: Path) -> None:
    finished, _ = await run(shell("printf 'aaé'", tmp_path, output_limit=3))
    assert finished.stdout.text == "aa\n[cut here: 1 more bytes]"


async def test_a_child_that_does_not_read_its_input_ends_all_the_same(tmp_path: Path) -> None:
    finished, _ = await run(shell("exit 0", tmp_path, stdin=b"x" * 5_000_000))
    assert finished.code == 0


async def test_a_large_input_arrives_whole(tmp_path: Path) -> None:
    finished, _ = await run(shell("wc -c", tmp_path, stdin=b"x" * 3_000_000))
    assert finished.stdout.text.strip() == "3000000"


async def test_a_child_sees_only_the_variables_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("LC_TIME", "C")
    finished, _ = await run(shell("env", tmp_path))
    names = {line.partition("=")[0] for line in finished.stdout.text.splitlines()}
    assert "AWS_SECRET_ACCESS_KEY" not in names
    assert {"PATH", "LC_TIME", "FOLDER"} <= names


async def test_a_child_leads_a_session_of_its_own(tmp_path: Path) -> None:
    finished, started = await run(shell("cut -d' ' -f1,5,6 /proc/self/stat", tmp_path))
    _, its_group, session = finished.stdout.text.split()
    assert its_group == session == str(started.group)


async def test_the_kernel_holds_a_child_to_its_ceilings(tmp_path: Path) -> None:
    ceilings = Ceilings(memory=1 << 31, files=37, cpu=11)
    finished, _ = await run(shell("ulimit -c; ulimit -v; ulimit -n; ulimit -t", tmp_path, ceilings=ceilings))
    assert finished.stdout.text.split() == ["0", str(1 << 21), "37", "11"]


async def test_a_child_without_ceilings_still_leaves_no_core_file(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        finished, _ = await run(shell("ulimit -c", tmp_path))
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    assert finished.stdout.text == "0\n"


async def test_a_child_answers_through_a_pipe_of_its_own(tmp_path: Path) -> None:
    script = "echo spoken; echo noise >&2; echo answer > /proc/self/fd/$NIGHTPORTER_ANSWER_FD"
    command = Command(argv=("/bin/sh", "-c", script), environment=scrubbed({}), cwd=tmp_path, merged=True,
                      answer_limit=100)
    finished, _ = await run(command)
    assert finished.answer.text == "answer\n"
    assert (finished.stdout.text, finished.stderr.text) == ("", "spoken\nnoise\n")


async def test_no_descriptor_stays_open_after_many_children(tmp_path: Path) -> None:
    await run(shell("true", tmp_path))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    await asyncio.gather(*(run(shell("exit 1", tmp_path)) for _ in range(20)))
    with pytest.raises(NotStarted, match="No such file"):
        await run(shell("true", tmp_path / "nowhere"))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_a_program_that_is_missing_or_not_executable_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")
    with pytest.raises(BadInput, match="is not there"):
        program("no-such-program", "/usr/bin:/bin", tmp_path)
    with pytest.raises(BadInput, match="is not there"):
        program("./missing", "/usr/bin:/bin", tmp_path)
    with pytest.raises(BadInput, match="cannot be executed") as caught:
        program("./plain", "/usr/bin:/bin", tmp_path)
    assert "chmod +x" in caught.value.next
    assert program("sh", "/usr/bin:/bin", tmp_path) in ("/bin/sh", "/usr/bin/sh")


def test_children_are_ended_even_when_their_loop_is_torn_down(tmp_path: Path) -> None:
    started = Started()

    async def abandon() -> None:
        task = asyncio.ensure_future(run_child(shell("echo $$ > pid; sleep 300", tmp_path), started, None))
        await until(lambda: written(tmp_path / "pid"))
        assert not task.done()

    asyncio.run(abandon())
    assert not alive(tmp_path / "pid")


async def test_a_child_is_ended_even_when_its_ending_is_cancelled(tmp_path: Path) -> None:
    # A loop that is torn down cancels every task, the one that ends the child included.
    script = "trap 'echo asked > asked' TERM; echo up > up; while :; do sleep 0.05; done"
    started = Started()
    task = asyncio.ensure_future(run_child(shell(script, tmp_path), started, None))
    await until(lambda: written(tmp_path / "up"))
    task.cancel()
    await until(lambda: written(tmp_path / "asked"))
    for one in asyncio.all_tasks() - {asyncio.current_task()}:
        one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started.living == []


async def test_a_child_of_a_desk_killed_before_the_go_is_never_executed(tmp_path: Path) -> None:
    desk = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DESK_KILLED_AT_THE_GATE, str(tmp_path), stdout=asyncio.subprocess.PIPE)
    assert desk.stdout is not None
    group, birth = (int(word) for word in (await desk.stdout.readline()).split())
    assert groups.living(group, birth)
    desk.kill()
    await desk.wait()
    await until(lambda: not groups.living(group, birth))
    assert not (tmp_path / "ran").exists()


DESK_KILLED_AT_THE_GATE = """
import asyncio, sys
from pathlib import Path
from nightporter.outside.commands import Command, scrubbed
from nightporter.outside.processes import run_child

async def tell(group, birth):
    print(group, birth, flush=True)
    await asyncio.Event().wait()

folder = Path(sys.argv[1])
command = Command(argv=("/bin/sh", "-c", "touch ran"), environment=scrubbed({}), cwd=folder)
asyncio.run(run_child(command, tell, None))
"""
