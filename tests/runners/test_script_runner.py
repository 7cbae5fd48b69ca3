"""script: what it is given, what it leaves, and what each way of ending badly is called."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desks import RecordingDesk, until, work_for

from nightporter.clock import MINUTE, Instant
from nightporter.errors import BadInput, LostClaim
from nightporter.outside import groups
from nightporter.runners.script import Script, check
from nightporter.words import Ended, Ending, ErrorClass


async def run(config: Any, *, desk: RecordingDesk | None = None, folder: Path | None = None, **given: Any) -> Ended:
    return await Script().run(work_for("script", check(config, folder), **given), desk or RecordingDesk())


async def test_standard_output_is_the_report_and_standard_error_the_log() -> None:
    ended = await run("echo report; echo log >&2")
    assert ended == Ended.ok("report\n", log="log", exit_code=0)


async def test_a_program_that_is_not_there_is_looked_for_beside_the_definition() -> None:
    ended = await run("report.sh --all")
    assert ended.error_class is ErrorClass.CONFIGURATION
    assert "`./` before the name of a file beside the definition, or `cwd: .`" in ended.error
    assert "./report.sh is a file beside the definition" in (await run(["report.sh"])).error


async def test_line_ends_of_windows_are_named(tmp_path: Path) -> None:
    script = tmp_path / "report.sh"
    script.write_bytes(b"#!/bin/sh\r\necho x\r\n")
    script.chmod(0o700)
    ended = await run({"file": str(script)})
    assert ended.error_class is ErrorClass.CONFIGURATION
    assert "its first line ends as lines of Windows do" in ended.error


async def test_a_list_is_run_without_a_shell() -> None:
    ended = await run({"command": ["printf", "%s|", "a b", "$HOME", "*", 7]})
    assert ended.text == "a b|$HOME|*|7|"


async def test_the_payload_is_on_standard_input_and_in_a_file(tmp_path: Path) -> None:
    ended = await run('cat; echo; cat "$NIGHTPORTER_PAYLOAD_FILE"; pwd', payload={"né": [1]}, scratch=tmp_path)
    first, second = ended.text.split("\n", 1)
    assert first == '{"né": [1]}'
    assert second == f'{{"né": [1]}}{tmp_path}\n'


async def test_without_a_payload_standard_input_is_empty_and_no_file_is_named() -> None:
    assert (await run('cat; echo "${NIGHTPORTER_PAYLOAD_FILE-none}"')).text == "none\n"


async def test_a_script_is_told_which_run_it_is() -> None:
    ended = await run("env | grep ^NIGHTPORTER | sort", scheduled_for=Instant(90 * MINUTE), attempt=2)
    lines = [line for line in ended.text.splitlines() if not line.startswith(groups.MARK)]
    assert lines == [
        "NIGHTPORTER_ATTEMPT=2", "NIGHTPORTER_AUTOMATION=brief", "NIGHTPORTER_RUN_ID=run_0123",
        "NIGHTPORTER_SCHEDULED_FOR=1970-01-01T01:30:00Z", "NIGHTPORTER_TRIGGER=clock",
    ]


async def test_declared_variables_and_secrets_are_given_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_DESK", "s3cret")
    config = {"command": 'echo "$A $TOKEN ${TOKEN_OF_THE_DESK-hidden}"', "env": {"A": 1},
              "secrets": {"TOKEN": "env:TOKEN_OF_THE_DESK"}}
    assert (await run(config)).text == "1 s3cret hidden\n"
    monkeypatch.delenv("TOKEN_OF_THE_DESK")
    desk = RecordingDesk()
    ended = await run(config, desk=desk)
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "env:TOKEN_OF_THE_DESK is not there" in ended.error
    assert desk.children == []


async def test_the_scratch_folder_of_a_run_without_one_is_gone_afterwards() -> None:
    folder = Path((await run("touch left; pwd")).text.strip())
    assert not folder.exists()


async def test_a_declared_folder_is_worked_in(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    assert (await run({"command": "pwd", "cwd": "below"}, folder=tmp_path)).text == f"{tmp_path}/below\n"
    ended = await run({"command": "pwd", "cwd": str(tmp_path / "missing")})
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "missing' is not there" in ended.error


async def test_a_file_is_run_with_its_arguments(tmp_path: Path) -> None:
    script = tmp_path / "report.sh"
    script.write_text('#!/bin/sh\necho "$@"\n')
    ended = await run({"file": "report.sh", "args": ["a", 2]}, folder=tmp_path)
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "cannot be executed" in ended.error
    assert "chmod +x" in ended.error
    script.chmod(0o755)
    assert (await run({"file": "report.sh", "args": ["a", 2]}, folder=tmp_path)).text == "a 2\n"
    script.unlink()
    desk = RecordingDesk()
    ended = await run({"file": "report.sh"}, folder=tmp_path, desk=desk)
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "is not there" in ended.error
    assert desk.children == [], "what cannot start is not written down as started"


async def test_a_file_whose_interpreter_is_missing_is_a_configuration_error(tmp_path: Path) -> None:
    script = tmp_path / "report"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    ended = await run({"file": str(script)})
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "the interpreter its first line names is missing" in ended.error


@pytest.mark.parametrize(("command", "error_class", "code", "said"), [
    ("echo half; echo why >&2; exit 3", ErrorClass.NONZERO_EXIT, 3, "it ended with exit code 3: why"),
    ("exit 1", ErrorClass.NONZERO_EXIT, 1, "it ended with exit code 1"),
    ("no-such-command", ErrorClass.CONFIGURATION, 127, "a command it calls is not there (exit code 127)"),
    ("/etc/passwd", ErrorClass.CONFIGURATION, 126, "a command it calls cannot be executed (exit code 126)"),
    ("kill -SEGV $$", ErrorClass.NONZERO_EXIT, 139, "it was ended by SIGSEGV"),
    ("kill -TERM $$", ErrorClass.NONZERO_EXIT, 143, "it was ended by SIGTERM"),
    ("kill -KILL $$", ErrorClass.RESOURCE, 137, "it was killed (SIGKILL) and not by the desk"),
    ("sh -c 'kill -KILL $$'; exit $?", ErrorClass.RESOURCE, 137, "it was killed (SIGKILL) and not by the desk"),
])
async def test_each_bad_ending_has_its_class_its_code_and_its_words(
    command: str, error_class: ErrorClass, code: int, said: str,
) -> None:
    ended = await run(command)
    assert (ended.ending, ended.error_class, ended.exit_code) == (Ending.ERROR, error_class, code)
    assert ended.error.startswith(said)


async def test_what_a_failed_script_said_before_is_kept() -> None:
    ended = await run("echo half; echo why >&2; exit 3")
    assert (ended.text, ended.log) == ("half\n", "why")


async def test_an_exit_code_of_a_program_itself_is_no_missing_command() -> None:
    assert (await run(["sh", "-c", "exit 127"])).error_class == ErrorClass.NONZERO_EXIT


async def test_a_script_beyond_its_timeout_is_ended_and_keeps_what_it_said() -> None:
    desk = RecordingDesk()
    ended = await run("echo so far; sleep 300", desk=desk, timeout=timedelta(seconds=0.5))
    assert (ended.ending, ended.error_class, ended.text) == (Ending.TIMEOUT, ErrorClass.TIMEOUT, "so far\n")
    assert ended.error == "it ran longer than its timeout of 0.5 s and was ended"
    ((group, birth),) = desk.children
    assert groups.living(group, birth) == []


async def test_a_script_beyond_its_processor_time_is_timed_out() -> None:
    ended = await run({"command": ["sh", "-c", "while :; do :; done"], "cpu": 1})
    assert ended.ending == Ending.TIMEOUT
    assert "more than its 1 s of processor time" in ended.error


async def test_a_script_beyond_its_memory_fails_inside_its_ceiling() -> None:
    ended = await run({"command": ["python3", "-c", "x = b'x' * 10**9"], "memory": "200m"})
    assert ended.ending == Ending.ERROR
    assert "MemoryError" in ended.log


async def test_output_beyond_the_limit_is_cut_and_says_so() -> None:
    ended = await run("yes | head -c 5000; yes no | head -c 300 >&2", output_limit=10)
    assert ended.text == "y\ny\ny\ny\ny\n\n[cut here: 4990 more bytes]"
    assert ended.log == "no\nno\nno\nn\n[cut here: 290 more bytes]"


async def test_a_process_left_behind_is_ended_and_mentioned() -> None:
    ended = await run("sleep 300 >/dev/null 2>&1 & echo done")
    assert (ended.text, ended.log) == ("done\n", "[it left 1 process behind; they were ended]")


async def test_a_lost_claim_is_passed_on_and_nothing_was_executed(tmp_path: Path) -> None:
    with pytest.raises(LostClaim):
        await run("touch ran", desk=RecordingDesk(LostClaim("gone")), scratch=tmp_path)
    assert not (tmp_path / "ran").exists()


async def test_a_cancel_ends_the_script_first_and_keeps_what_it_said(tmp_path: Path) -> None:
    desk = RecordingDesk()
    says = "echo half done; echo noise >&2; touch up; sleep 300"
    task = asyncio.ensure_future(run(says, desk=desk, scratch=tmp_path))
    await until((tmp_path / "up").exists)
    task.cancel()
    assert await task == Ended.cancelled(text="half done\n", log="noise")
    ((group, birth),) = desk.children
    assert groups.living(group, birth) == []


async def test_a_script_too_large_to_start_is_a_configuration_error() -> None:
    ended = await run(["echo", "x" * 3_000_000])
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "could not be started" in ended.error


async def test_a_script_killed_while_the_desk_watches_leaves_no_descriptor() -> None:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    await run(f"kill -{signal.SIGKILL.value} $$")
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@pytest.mark.parametrize(("config", "said"), [
    ({}, "`script` needs `command`"),
    ({"comand": "x"}, "did you mean `command`?"),
    ({"command": ""}, "`script.command` is empty"),
    ({"command": []}, "`script.command` cannot be a list"),
    ({"command": 7}, "`script.command` cannot be a number"),
    ({"command": ["a", ["b"]]}, "`script.command` cannot be a list"),
    ({"command": "x", "file": "y"}, "both `command` and `file`"),
    ({"command": "x", "args": ["y"]}, "`script.args` belongs to `file`"),
    ({"file": 7}, "`script.file` cannot be a number"),
    ({"file": "x", "args": "y"}, "`script.args` cannot be text"),
    ({"command": "x", "env": ["A=1"]}, "`script.env` cannot be a list"),
    ({"command": "x", "env": {"A-B": "1"}}, "cannot have the name 'A-B'"),
    ({"command": "x", "secrets": {"A": "hunter2"}}, "a secret is given where a reference"),
    ({"command": "x", "memory": "lots"}, "`script.memory` cannot be text"),
    ({"command": "x", "memory": 0}, "`script.memory` cannot be 0"),
    ({"command": "x", "cpu": "5"}, "`script.cpu` cannot be text"),
    ({"command": "x", "files": -1}, "`script.files` cannot be -1"),
    ({"command": "x", "cwd": ""}, "a path is empty"),
    (7, "`script` cannot be a number"),
])
def test_a_config_that_cannot_be_used_is_refused_with_its_key(config: object, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(config)
    assert said in str(caught.value)


def test_a_config_is_completed(tmp_path: Path) -> None:
    assert check("echo hi") == {"command": "echo hi", "env": {}, "secrets": {}}
    assert check({"file": "a.sh", "cwd": "sub", "memory": "1g"}, tmp_path) == {
        "file": f"{tmp_path}/a.sh", "args": [], "cwd": f"{tmp_path}/sub", "memory": 1 << 30, "env": {}, "secrets": {}}
    assert check(check({"file": "a.sh"}, tmp_path)) == check({"file": "a.sh"}, tmp_path)
