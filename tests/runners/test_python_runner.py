"""python: a function by its import path, in a child of its own."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from desks import RecordingDesk, work_for

from nightporter.clock import Instant
from nightporter.errors import BadInput, LostClaim
from nightporter.outside import groups
from nightporter.runners.python import Python, check
from nightporter.words import Ended, Ending, ErrorClass

MODULE = """
import asyncio, os, sys, signal, threading, time

def nothing(): print("seen"); print("aside", file=sys.stderr)
def text(): return "a report"
def data(): return {"rows": [1, None, "né"]}
def number(): return 7
async def later(): await asyncio.sleep(0); return "later"
def add(a, b=2): return a + b
def told(run, payload, text):
    return [run.id, run.automation, run.attempt, run.scheduled_for.isoformat(), run.payload == payload, payload, text]
def wrong(): raise ValueError("the table\\nis empty")
def leaves(): sys.exit(4)
def dies(): os.kill(os.getpid(), signal.SIGSEGV)
def killed(): os.kill(os.getpid(), signal.SIGKILL)
def vanishes(): os._exit(0)
def unsayable(): return object()
def not_a_number(): return float("nan")
def long(): return "x" * 1000
def control(): return "\\x01" * 1000
def sleeps(): print("up", flush=True); time.sleep(300)
def reads(): return repr(sys.stdin.read())
def spawns(): os.system("sleep 300 >/dev/null 2>&1 &"); return "spawned"
def lingers(): threading.Thread(target=time.sleep, args=(300,)).start(); return "returned"
def acts(run): run.effect("post", "key")
def where(): return [os.getcwd(), sorted(os.environ)]
class Jobs:
    @staticmethod
    def nested(): return "nested"
constant = 3
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path) -> Path:
    (tmp_path / "my_jobs.py").write_text(MODULE)
    (tmp_path / "broken_jobs.py").write_text("import no_such_package\n")
    (tmp_path / "rude_jobs.py").write_text("raise SystemExit('not today')\n")
    return tmp_path


async def run(folder: Path, config: Any, *, desk: RecordingDesk | None = None, **given: Any) -> Ended:
    if isinstance(config, str):
        config = f"my_jobs:{config}" if ":" not in config else config
    return await Python().run(work_for("python", check(config, folder), **given), desk or RecordingDesk())


@pytest.mark.parametrize(("function", "text", "data"), [
    ("text", "a report", None),
    ("nothing", "", None),
    ("later", "later", None),
    ("data", '{\n  "rows": [\n    1,\n    null,\n    "né"\n  ]\n}', {"rows": [1, None, "né"]}),
    ("number", "7", 7),
    ("Jobs.nested", "nested", None),
])
async def test_what_a_function_returns_is_the_report(modules: Path, function: str, text: str, data: Any) -> None:
    ended = await run(modules, function)
    assert (ended.ending, ended.text, ended.data, ended.error) == (Ending.OK, text, data, "")


async def test_what_a_function_prints_is_its_log(modules: Path) -> None:
    assert (await run(modules, "nothing")).log == "seen\naside"


async def test_a_function_gets_its_arguments(modules: Path) -> None:
    assert (await run(modules, {"call": "my_jobs:add", "args": {"a": 40}})).data == 42


async def test_a_function_is_told_of_its_run_where_it_asks(modules: Path) -> None:
    ended = await run(modules, "told", payload={"n": 1}, text="hello", attempt=2, scheduled_for=Instant(1_000_000))
    assert ended.data == ["run_0123", "brief", 2, "1970-01-01T00:00:01+00:00", True, {"n": 1}, "hello"]


async def test_a_function_works_in_the_scratch_folder_with_a_scrubbed_environment(
    modules: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HIDDEN", "x")
    scratch = modules / "scratch"
    scratch.mkdir()
    ended = await run(modules, "where", scratch=scratch)
    assert ended.data[0] == str(scratch)
    assert "HIDDEN" not in ended.data[1]
    assert "NIGHTPORTER_RUN_ID" in ended.data[1]
    assert "NIGHTPORTER_ANSWER_FD" not in ended.data[1]


@pytest.mark.parametrize(("function", "error_class", "said"), [
    ("wrong", ErrorClass.EXCEPTION, "ValueError: the table is empty"),
    ("leaves", ErrorClass.EXCEPTION, "SystemExit: 4"),
    ("vanishes", ErrorClass.EXCEPTION, "its process ended before my_jobs:vanishes returned"),
    ("unsayable", ErrorClass.EXCEPTION, "TypeError: it returned a object, which is no JSON value"),
    ("not_a_number", ErrorClass.EXCEPTION, "TypeError: it returned a float, which is no JSON value"),
    ("dies", ErrorClass.NONZERO_EXIT, "it was ended by SIGSEGV"),
    ("killed", ErrorClass.RESOURCE, "it was killed (SIGKILL)"),
    ("acts", ErrorClass.EXCEPTION, "RuntimeError: effects are written down for functions in the desk's own process"),
    ("add", ErrorClass.CONFIGURATION, "add(a, b=2) cannot be called with its `args`: missing a required argument: 'a'"),
    ("absent", ErrorClass.CONFIGURATION, "the module my_jobs has no absent"),
    ("constant", ErrorClass.CONFIGURATION, "my_jobs:constant is no function"),
    ("broken_jobs:x", ErrorClass.CONFIGURATION,
     "the module broken_jobs cannot be imported: ModuleNotFoundError: No module named 'no_such_package'"),
    ("rude_jobs:x", ErrorClass.CONFIGURATION, "the module rude_jobs cannot be imported: SystemExit: not today"),
    ("no_such_jobs:x", ErrorClass.CONFIGURATION, "the module no_such_jobs cannot be imported"),
])
async def test_each_bad_ending_has_its_class_and_its_words(
    modules: Path, function: str, error_class: ErrorClass, said: str,
) -> None:
    ended = await run(modules, function)
    assert (ended.ending, ended.error_class) == (Ending.ERROR, error_class)
    assert ended.error.startswith(said)


async def test_the_traceback_is_in_the_log_and_begins_with_the_persons_code(modules: Path) -> None:
    log = (await run(modules, "wrong")).log
    assert log.startswith("Traceback (most recent call last):\n")
    assert f'File "{modules}/my_jobs.py"' in log.splitlines()[1]
    assert log.endswith("ValueError: the table\nis empty")


@pytest.mark.parametrize("function", ["long", "control"])
async def test_a_report_beyond_the_limit_is_cut_and_says_so(modules: Path, function: str) -> None:
    ended = await run(modules, function, output_limit=10)
    assert ended.ending == Ending.OK
    assert len(ended.text.partition("\n")[0]) == 10
    assert ended.text.endswith("\n[cut here: 990 more bytes]")


async def test_a_function_beyond_its_timeout_is_ended(modules: Path) -> None:
    desk = RecordingDesk()
    ended = await run(modules, "sleeps", desk=desk, timeout=timedelta(seconds=1.5))
    assert (ended.ending, ended.log) == (Ending.TIMEOUT, "up")
    ((group, birth),) = desk.children
    assert groups.living(group, birth) == []


async def test_a_function_finds_standard_input_empty(modules: Path) -> None:
    assert (await run(modules, "reads", payload=[1])).text == "''"


async def test_threads_and_processes_a_function_left_do_not_keep_its_run(modules: Path) -> None:
    assert (await run(modules, "lingers")).text == "returned"
    ended = await run(modules, "spawns")
    assert (ended.text, ended.log) == ("spawned", "[it left 1 process behind; they were ended]")


async def test_a_lost_claim_is_passed_on(modules: Path) -> None:
    with pytest.raises(LostClaim):
        await run(modules, "text", desk=RecordingDesk(LostClaim("gone")))


@pytest.mark.parametrize(("config", "said"), [
    ({}, "`python` needs `call`"), ({"call": "os.path.join"}, "takes package.module:function"),
    ({"call": "a b:c"}, "takes package.module:function"), ({"call": 7}, "takes package.module:function"),
    ({"call": "a:b", "args": [1]}, "`python.args` cannot be a list"),
    ({"call": "a:b", "args": {"a b": 1}}, "from names of parameters"),
    ({"call": "a:b", "arg": {}}, "did you mean `args`?"),
    ({"call": "a:b", "path": 7}, "`python.path` cannot be a number"),
])
def test_a_config_that_cannot_be_used_is_refused_with_its_key(config: object, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        check(config)
    assert said in str(caught.value)
