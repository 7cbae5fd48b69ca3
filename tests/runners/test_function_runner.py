"""function: functions of the embedding program, in its own process."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from desks import RecordingDesk, until, work_for

from nightporter.clock import Instant
from nightporter.errors import Conflict, LostClaim
from nightporter.runners.context import Run
from nightporter.runners.function import InProcess, check
from nightporter.words import Ended, Ending, ErrorClass, Outcome


async def run(function: Callable[..., Any], *, desk: RecordingDesk | None = None, args: dict[str, Any] | None = None,
              **given: Any) -> Ended:
    work = work_for("function", check({"name": "job", "args": args or {}}), **given)
    return await InProcess({"job": function}).run(work, desk or RecordingDesk())


async def test_an_async_function_is_awaited_in_the_desks_loop() -> None:
    async def job() -> str:
        return f"in {threading.current_thread().name} {asyncio.get_running_loop() is loop}"

    loop = asyncio.get_running_loop()
    assert (await run(job)).text == "in MainThread True"


async def test_a_synchronous_function_gets_a_thread_and_the_loop_goes_on() -> None:
    release = threading.Event()

    def job() -> str:
        release.wait()
        return threading.current_thread().name

    task = asyncio.ensure_future(run(job))
    await asyncio.sleep(0)
    release.set()
    assert (await task).text == "nightporter-run_0123"


async def test_many_waiting_functions_do_not_wait_for_one_another() -> None:
    together = threading.Barrier(50)

    def job() -> int:
        return together.wait()

    numbers = [ended.data for ended in await asyncio.gather(*(run(job) for _ in range(50)))]
    assert sorted(numbers) == list(range(50))


async def test_a_function_is_told_of_its_run_where_it_asks() -> None:
    def job(payload: Any, me: Run, factor: int) -> list[Any]:
        assert me.scheduled_for is not None
        return [payload, me.text, me.id, me.automation, me.attempt, me.scheduled_for.isoformat(), me.cancelled, factor]

    ended = await run(job, payload=[1], text="hi", args={"factor": 3}, attempt=2, scheduled_for=Instant(0))
    assert ended.data == [[1], "hi", "run_0123", "brief", 2, "1970-01-01T00:00:00+00:00", False, 3]


async def test_a_function_sees_the_context_variables_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("seen")
    assert (await run(lambda: variable.get())).text == "seen"


async def test_an_exception_is_named_and_its_traceback_begins_with_the_persons_code() -> None:
    def job() -> None:
        raise KeyError("price")

    ended = await run(job)
    assert (ended.ending, ended.error_class, ended.error) == (Ending.ERROR, ErrorClass.EXCEPTION, "KeyError: 'price'")
    assert ended.log.splitlines()[1].endswith("in job")

    async def later() -> None:
        raise StopAsyncIteration

    assert (await run(later)).error.startswith("StopAsyncIteration")
    assert (await run(lambda: next(iter([])))).error == "RuntimeError: the function raised StopIteration"


async def test_a_function_that_exits_or_cancels_itself_does_not_take_the_desk_along() -> None:
    async def leaves() -> None:
        raise SystemExit(3)

    async def gives_up() -> None:
        raise asyncio.CancelledError

    def exits() -> None:
        raise SystemExit(4)

    assert (await run(leaves)).error == "SystemExit: 3"
    assert (await run(exits)).error == "SystemExit: 4"
    assert (await run(gives_up)).error == "it cancelled itself"


async def test_a_function_that_nobody_registered_is_a_configuration_error() -> None:
    ended = await InProcess({}).run(work_for("function", check("job")), RecordingDesk())
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "no function named 'job'" in ended.error


async def test_a_function_that_wants_what_nobody_gives_is_a_configuration_error() -> None:
    def job(customer: str) -> None: ...

    ended = await run(job)
    assert ended.error_class == ErrorClass.CONFIGURATION
    assert "missing a required argument: 'customer'" in ended.error


async def test_a_function_registered_later_is_found() -> None:
    functions: dict[str, Callable[..., Any]] = {}
    runner = InProcess(functions)
    functions["job"] = lambda: "found"
    assert (await runner.run(work_for("function", check("job")), RecordingDesk())).text == "found"


async def test_an_async_function_beyond_its_timeout_is_ended() -> None:
    ended_how: list[str] = []

    async def job() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended_how.append("cancelled")
            raise

    ended = await run(job, timeout=timedelta(seconds=0.05))
    assert ended.ending == Ending.TIMEOUT
    assert ended_how == ["cancelled"]


async def test_a_timeout_error_of_the_function_itself_is_its_exception() -> None:
    async def job() -> None:
        raise TimeoutError("upstream")

    ended = await run(job, timeout=timedelta(seconds=30))
    assert (ended.ending, ended.error) == (Ending.ERROR, "TimeoutError: upstream")


async def test_a_thread_is_asked_to_end_and_waited_for() -> None:
    seen: list[bool] = []

    def job(run: Run) -> None:
        while not run.cancelled:
            pass
        seen.append(True)

    ended = await run(job, timeout=timedelta(seconds=0.05))
    assert ended.error == "it ran longer than its timeout of 0.05 s"
    assert seen == [True]


async def test_a_thread_that_does_not_end_is_said_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightporter.runners.function.GRACE", timedelta(0))
    release = threading.Event()
    ended = await run(release.wait, timeout=timedelta(seconds=0.05))
    release.set()
    assert ended.ending == Ending.TIMEOUT
    assert ended.error.endswith("its thread goes on")


async def test_a_cancel_reaches_an_async_function() -> None:
    up = asyncio.Event()

    async def job() -> None:
        up.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(run(job))
    await up.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_effect_is_written_down_before_and_after_it_happens() -> None:
    desk = RecordingDesk()
    order: list[tuple[dict[str, str], dict[str, str]]] = []

    async def job(run: Run) -> str:
        async with run.effect("post the summary", "summary-1") as effect:
            assert not effect.done
            order.append((dict(desk.intents), dict(desk.done)))
            effect.permalink = "https://example.com/1"
        return "posted"

    ended = await run(job, desk=desk)
    assert order == [({"summary-1": "post the summary"}, {})]
    assert desk.done == {"summary-1": "https://example.com/1"}
    assert (ended.text, ended.outcome) == ("posted", Outcome.ACTION)


async def test_an_effect_from_a_thread_is_written_down_too() -> None:
    desk = RecordingDesk()

    def job(run: Run) -> None:
        with run.effect("post", "k") as effect:
            effect.permalink = "link"

    assert (await run(job, desk=desk)).outcome == Outcome.ACTION
    assert desk.done == {"k": "link"}


async def test_an_effect_that_is_done_already_says_so() -> None:
    desk = RecordingDesk()
    desk.done["k"] = "link"

    async def job(run: Run) -> str:
        async with run.effect("post", "k") as effect:
            return f"{effect.done} {effect.permalink}"

    ended = await run(job, desk=desk)
    assert (ended.text, ended.outcome) == ("True link", None)


async def test_an_effect_that_raised_is_not_written_as_done() -> None:
    desk = RecordingDesk()

    async def job(run: Run) -> None:
        async with run.effect("post", "k"):
            raise OSError("connection lost")

    ended = await run(job, desk=desk)
    assert ended.error == "OSError: connection lost"
    assert (desk.intents, desk.done) == ({"k": "post"}, {})


async def test_a_lost_claim_is_passed_on_and_the_act_is_not_done() -> None:
    acted: list[bool] = []

    def job(run: Run) -> None:
        with run.effect("post", "k"):
            acted.append(True)

    with pytest.raises(LostClaim):
        await run(job, desk=RecordingDesk(LostClaim("gone")))
    assert acted == []


async def test_an_unsettled_effect_of_an_earlier_attempt_ends_the_run() -> None:
    async def job(run: Run) -> None:
        async with run.effect("post", "k"):
            raise AssertionError("must not be reached")

    ended = await run(job, desk=RecordingDesk(Conflict("it may have happened")))
    assert ended.error == "Conflict: it may have happened"


async def test_a_synchronous_with_in_the_loop_is_refused_instead_of_stopping_the_desk() -> None:
    async def job(run: Run) -> None:
        with run.effect("post", "k"):
            pass

    assert "async with" in (await run(job)).error


async def test_a_report_beyond_the_limit_is_cut() -> None:
    assert (await run(lambda: "x" * 100, output_limit=10)).text == "x" * 10 + "\n[cut here: 90 more bytes]"


def test_a_thread_that_ends_after_the_loop_disturbs_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightporter.runners.function.GRACE", timedelta(0))
    raised: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    up, release = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def job() -> None:
        threads.append(threading.current_thread())
        up.set()
        release.wait()

    async def desk() -> None:
        task = asyncio.ensure_future(run(job))
        await until(up.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(desk())
    release.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    assert raised == []
