"""The program of a child that calls one Python function: `python -m nightporter.runners.child`.

Reads `{call, args, path, limit, run, look}` as JSON from standard input; writes `{text, data}` or `{problem,
configuration}` as JSON to the descriptor that `NIGHTPORTER_ANSWER_FD` names. What the function prints is its log.
`look` is `{state, folder}` where the function only looks: what it kept before, and where alone it may write.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from datetime import datetime
from typing import Any

from nightporter.runners.calls import Uncallable, bound, find, kept, named, trace, understood


class ChildRun:
    """What a function in a child is told of its run: the same names as in process, where it can have them."""

    def __init__(self, run: dict[str, Any]) -> None:
        self.id: str = run["id"]
        self.automation: str = run["automation"]
        self.payload: Any = run["payload"]
        self.text: str = run["text"]
        self.attempt: int = run["attempt"]
        self.look: str | None = run["look"]
        slot = run["scheduled_for"]
        self.scheduled_for = None if slot is None else datetime.fromisoformat(slot)
        self.cancelled = False
        """Never true: a child is not asked, it is ended."""

    def effect(self, name: str, key: str) -> None:
        raise RuntimeError("effects are written down for functions in the desk's own process only; "
                           "declare `idempotent: true` where repeating the call is safe")


def _call(order: dict[str, Any]) -> Any:
    function = find(order["call"])
    run = ChildRun(order["run"])
    offered = {"run": run, "payload": run.payload, "text": run.text, "look": run.look}
    if order["look"] is not None:
        offered["state"] = order["look"]["state"]
    arguments = bound(function, order["args"], offered)
    value = function(**arguments)
    if inspect.isawaitable(value):
        import asyncio

        async def awaited() -> Any:
            return await value

        return asyncio.run(awaited())
    return value


def main() -> int:
    """Call and answer. The exit code is 0 for every answer, problems included."""
    order = json.load(sys.stdin.buffer)
    answer = int(os.environ.pop("NIGHTPORTER_ANSWER_FD"))
    os.set_inheritable(answer, False)
    # A function that reads standard input finds it empty, as it would in a service.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:0] = order["path"]
    if order["look"] is not None:
        from nightporter.outside.readonly import restrict

        restrict(order["look"]["folder"])
    try:
        text, data = understood(_call(order))
        if order["look"] is not None and data is not None and len(text.encode(errors="replace")) > order["limit"]:
            raise ValueError(f"it returned more than {order['limit']} bytes")
        text, data = kept(text, data, order["limit"])
        said = {"text": text, "data": data}
    except Uncallable as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, TypeError):
            print(trace(error.__cause__), file=sys.stderr)
        said = {"problem": str(error), "configuration": True}
    except BaseException as error:  # SystemExit too: a function that exits has not returned.
        print(trace(error), file=sys.stderr)
        said = {"problem": named(error), "configuration": False}
    sys.stdout.flush()
    with os.fdopen(answer, "wb") as pipe:
        pipe.write(json.dumps(said, ensure_ascii=False).encode(errors="replace"))
    return 0


if __name__ == "__main__":
    # Not sys.exit: threads the function left behind must not keep a finished call waiting.
    code = main()
    sys.stderr.flush()
    os._exit(code)
