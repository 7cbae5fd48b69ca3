"""function: a function of the program that embeds the desk, called in its process.

An async function is awaited in the desk's loop. A synchronous one gets a thread of its own; no thread can be ended
from outside, so it should look at `run.cancelled`, and work that must be stoppable belongs in a `python` target.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nightporter.errors import LostClaim, MayHaveHappened
from nightporter.outside.options import mapping, need, typed
from nightporter.outside.processes import GRACE
from nightporter.runners.calls import Uncallable, bound, kept, named, trace, understood
from nightporter.runners.context import Run
from nightporter.words import Desk, Ended, Ending, ErrorClass, Outcome, Work


def check(config: object, folder: Path | None = None) -> dict[str, Any]:
    """`name`: that of a registered function. `args`: a map of further arguments. Raises BadInput."""
    given = mapping(config, "function", known=("name", "args"), short="name")
    need(given, "function", "name", "name: nightly_sync")
    typed(given, "function", "name", str, "")
    return {**given, "args": typed(given, "function", "args", dict, {})}


class InProcess:
    """Calls what `functions` holds by name at the moment of the call; the embedding program fills it."""

    kind = "function"
    opaque = True

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions

    def serves(self, automation: str, config: Mapping[str, Any]) -> bool:
        """Whether this program has the function: another one that has it may be running."""
        return str(config.get("name", automation)) in self._functions

    async def run(self, work: Work, desk: Desk) -> Ended:
        name = str(work.config.get("name", work.automation))
        function = self._functions.get(name)
        if function is None:
            return Ended.failed(
                ErrorClass.CONFIGURATION,
                f"this program has no function named {name!r}; start the program that defines it, or remove "
                "the automation")
        run = Run(work, desk, asyncio.get_running_loop())
        offered = {"run": run, "payload": work.payload, "text": work.text, "look": work.look}
        try:
            arguments = bound(function, work.config.get("args", {}), offered)
        except Uncallable as error:
            return Ended.failed(ErrorClass.CONFIGURATION, str(error))
        limit = asyncio.timeout(None if work.timeout is None else work.timeout.total_seconds())
        try:
            async with limit:
                value = await _called(function, arguments, run)
            text, data = kept(*understood(value), work.output_limit)
        except (LostClaim, MayHaveHappened):
            raise
        except TimeoutError as error:
            if not limit.expired():
                return Ended.failed(ErrorClass.EXCEPTION, named(error), log=trace(error))
            assert work.timeout is not None
            on = "; it does not look at run.cancelled, and its thread goes on" if run.goes_on else ""
            return Ended.timed_out(f"it ran longer than its timeout of {work.timeout.total_seconds():g} s{on}")
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return Ended.failed(ErrorClass.EXCEPTION, "it cancelled itself", log=trace(error))
        except (Exception, SystemExit) as error:  # A function may end its own call, never the desk.
            return Ended.failed(ErrorClass.EXCEPTION, named(error), log=trace(error))
        return Ended(Ending.OK, text=text, data=data, outcome=Outcome.ACTION if run.acted else None)


async def _called(function: Callable[..., Any], arguments: dict[str, Any], run: Run) -> Any:
    if inspect.iscoroutinefunction(function):
        try:
            return await function(**arguments)
        finally:
            run.end()
    value = await _in_thread(function, arguments, run)
    return await value if inspect.isawaitable(value) else value


async def _in_thread(function: Callable[..., Any], arguments: dict[str, Any], run: Run) -> Any:
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if answered.done():
            return
        if error is None:
            answered.set_result(value)
        else:
            answered.set_exception(error)

    def body() -> None:
        value: Any = None
        failure: BaseException | None = None
        try:
            value = context.run(function, **arguments)
        except StopIteration as error:
            # A future refuses it: it would end the coroutine that waits instead of failing it.
            failure = RuntimeError(f"the function raised {named(error)}")
        except BaseException as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:
            pass  # The loop is closed: the desk went down without it, and nobody waits for the answer.

    # Not the loop's pool: a few long functions would leave no thread for anybody else.
    threading.Thread(target=body, name=f"nightporter-{run.id}", daemon=True).start()
    try:
        return await asyncio.shield(answered)
    except asyncio.CancelledError:
        run.end()
        await asyncio.wait({answered}, timeout=GRACE.total_seconds())
        run.goes_on = not answered.done()
        if answered.done() and not answered.cancelled():
            answered.exception()  # Looked at, so that nobody is told of an exception nobody fetched.
        raise
    finally:
        run.end()
