"""Programs and functions that look, in real processes: what they say, what they may, and that they end."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asking import ask

from nightporter.looks import python, script
from nightporter.outside import readonly
from nightporter.rules.looks import TEXT_LIMIT, bounded
from nightporter.words import ErrorClass, Seen, Sight

SHORT = timedelta(milliseconds=400)


async def shell(command: str, before: Any = None, *, limit: timedelta = timedelta(seconds=20), **keys: Any) -> Seen:
    return bounded(await ask(script.Script(None, limit), script.check({"command": command, **keys}), before))


async def test_silence_and_an_exit_code_of_zero_are_nothing() -> None:
    assert (await shell("true")).sight is Sight.NOTHING
    assert (await shell("echo to the log >&2")).sight is Sight.NOTHING


async def test_what_it_prints_is_what_there_is_to_do() -> None:
    seen = await shell("echo two mails")
    assert (seen.sight, seen.text) == (Sight.SOMETHING, "two mails\n")


@pytest.mark.parametrize(
    ("command", "error_class", "error"),
    [
        ("echo half; exit 3", ErrorClass.NONZERO_EXIT, "it ended with exit code 3"),
        ("kill -TERM $$", ErrorClass.NONZERO_EXIT, "it was ended by SIGTERM"),
        ("nonsense-that-is-not-there", ErrorClass.CONFIGURATION, "a command it calls is not there"),
    ],
)
async def test_any_other_end_is_a_look_that_failed(command: str, error_class: ErrorClass, error: str) -> None:
    seen = await shell(command)
    assert (seen.sight, seen.text, seen.error_class) == (Sight.FAILED, "", error_class)
    assert seen.error.startswith(error)


async def test_a_program_that_is_not_there_or_cannot_be_executed_is_a_look_that_failed(tmp_path: Path) -> None:
    gone = await ask(script.Script(None), script.check(["/nowhere/look"]))
    assert (gone.sight, gone.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)
    strange = tmp_path / "look"
    strange.write_text("#!/nowhere/interpreter\n")
    strange.chmod(0o755)
    seen = await ask(script.Script(None), script.check([str(strange)]))
    assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)
    assert f"the program {str(strange)!r} cannot be executed" in seen.error


async def test_what_does_not_end_is_ended_with_all_it_started_and_has_failed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    note.touch()
    seen = await shell(f"(trap '' TERM; setsid sleep 600 & echo $! 1<>{note}; wait) & while :; do :; done", limit=SHORT,
                       cwd=str(tmp_path))
    assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.TIMEOUT)
    assert "longer than its timeout of 0.4 s" in seen.error


async def test_endless_output_is_cut_and_does_not_fill_the_memory() -> None:
    seen = await shell("yes | head -c 30000000")
    assert seen.sight is Sight.SOMETHING
    assert len(seen.text) < TEXT_LIMIT + 100
    assert "[cut here:" in seen.text
    assert (await shell("yes", limit=SHORT)).error_class is ErrorClass.TIMEOUT


async def test_output_that_is_no_text_can_be_kept_all_the_same() -> None:
    seen = await shell(r"printf '\377\000\001\376ok'")
    assert (seen.sight, seen.text) == (Sight.SOMETHING, "\ufffd\ufffd\x01\ufffdok")


async def test_json_that_is_cut_short_is_no_answer() -> None:
    assert (await shell("""printf '{"wake": fal'""")).sight is Sight.FAILED
    huge = f"{sys.executable} -c \"print('{{\\\"wake\\\": false, \\\"text\\\": \\\"' + 'x' * 100000 + '\\\"}}')\""
    assert (await shell(huge)).sight is Sight.FAILED


@pytest.mark.parametrize(
    ("before", "seen"), [(None, "<>"), ("17", "<17>"), (17, "<17>"), ({"last": [1]}, '<{"last": [1]}>')]
)
async def test_it_finds_what_it_kept_before(before: Any, seen: str) -> None:
    assert (await shell('printf "<%s>" "$NIGHTPORTER_STATE"', before)).text == seen


async def test_it_sees_no_variable_that_nobody_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANK_TOKEN", "hush")
    assert (await shell("printenv BANK_TOKEN || echo none")).text == "none\n"
    assert (await shell("printenv KEY", secrets={"KEY": "env:BANK_TOKEN"})).text == "hush\n"
    monkeypatch.delenv("BANK_TOKEN")
    gone = await shell("printenv KEY", secrets={"KEY": "env:BANK_TOKEN"})
    assert (gone.sight, gone.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)


def enforced() -> bool:
    """Whether this kernel has Landlock; asked in a child, for there is no way back from it."""
    pid = os.fork()
    if not pid:
        os._exit(0 if readonly.restrict("/tmp") else 1)
    return os.waitpid(pid, 0)[1] == 0


needs_landlock = pytest.mark.skipif(
    not enforced() and "CI" not in os.environ, reason="this kernel has no Landlock; in CI that is a failure")


@needs_landlock
async def test_it_changes_no_file_but_below_its_scratch_folder(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("as it was")
    tries = ["echo x > kept", "echo x >> kept", "rm kept", "mv kept other", "mkdir new", "ln kept hard",
             "ln -s kept soft", "mkfifo pipe", "truncate -s 0 kept"]
    for each in tries:
        seen = await shell(f"{{ {each}; }} 2>/dev/null; echo $?", cwd=str(tmp_path))
        assert seen.text not in ("0\n", ""), each
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept", "as it was")]
    here = await shell("echo x > here && cat here && mktemp > /dev/null && echo made")
    assert here.text == "x\nmade\n"


@needs_landlock
async def test_it_signals_nobody_outside() -> None:
    seen = await shell(f"kill -0 {os.getpid()} 2>/dev/null; echo $?")
    assert seen.text != "0\n"


# -- functions ------------------------------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "watching.py").write_text(
        "import os, sys, time\n"
        "def returns(value=None): return value\n"
        "def remembers(state): return {'wake': True, 'text': repr(state), 'state': 8}\n"
        "def breaks(): raise ValueError('no route')\n"
        "def prints(): print('as {\"wake\": true}')\n"
        "def leaves(): sys.exit(0)\n"
        "def dies(): os._exit(0)\n"
        "def sleeps(): time.sleep(600)\n"
        "def much(): return {'wake': False, 'text': 'x' * 100_000}\n"
        "def long(): return 'x' * 100_000\n"
        "def strange(): return {1, 2}\n"
        "async def later(): return 'later'\n"
        f"def writes(): open({str(tmp_path / 'written')!r}, 'w')\n"
    )
    return tmp_path


async def call(module: Path, name: str, before: Any = None, *, limit: timedelta = timedelta(seconds=20),
               **args: Any) -> Seen:
    config = python.check({"call": f"watching:{name}", "path": str(module), "args": args})
    return bounded(await ask(python.Python(None, limit), config, before))


@pytest.mark.parametrize("value", [None, False, {}, "", {"wake": False}])
async def test_a_function_that_returns_what_is_empty_found_nothing(module: Path, value: Any) -> None:
    assert (await call(module, "returns", value=value)).sight is Sight.NOTHING


async def test_a_function_that_returns_something_is_told(module: Path) -> None:
    assert (await call(module, "returns", value="two")).text == "two"
    assert '"n": 2' in (await call(module, "returns", value={"n": 2})).text
    assert (await call(module, "later")).text == "later"
    assert (await call(module, "long")).text.startswith("xxx")
    assert (await call(module, "prints")).sight is Sight.NOTHING, "what it prints is no answer"


async def test_a_function_is_given_what_it_kept(module: Path) -> None:
    seen = await call(module, "remembers", {"last": 7})
    assert (seen.text, seen.state) == ("{'last': 7}", 8)


@pytest.mark.parametrize(
    ("name", "error_class"),
    [("breaks", ErrorClass.EXCEPTION), ("leaves", ErrorClass.EXCEPTION), ("dies", ErrorClass.EXCEPTION),
     ("strange", ErrorClass.EXCEPTION), ("much", ErrorClass.EXCEPTION), ("missing", ErrorClass.CONFIGURATION)],
)
async def test_a_function_that_comes_to_no_answer_has_failed(module: Path, name: str, error_class: ErrorClass) -> None:
    seen = await call(module, name)
    assert (seen.sight, seen.error_class) == (Sight.FAILED, error_class)
    assert seen.error


async def test_a_function_that_does_not_return_is_ended(module: Path) -> None:
    begun = time.monotonic()
    assert (await call(module, "sleeps", limit=SHORT)).error_class is ErrorClass.TIMEOUT
    assert time.monotonic() - begun < 10


@needs_landlock
async def test_a_function_that_writes_is_not_let(module: Path) -> None:
    seen = await call(module, "writes")
    assert (seen.sight, seen.error.partition(":")[0]) == (Sight.FAILED, "PermissionError")
    assert not (module / "written").exists()
