"""The program of a child that calls one Python function: `python -m nightporter.runners.child`.

Reads `{call, args, path, offered}` as JSON from standard input; writes `{text, data}` or `{problem, configuration}`
as JSON to the descriptor that `NIGHTPORTER_ANSWER_FD` names. What the function prints is its log.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from types import SimpleNamespace
from typing import Any

from nightporter.runners.calls import Uncallable, bound, find, named, trace, understood


def _call(order: dict[str, Any]) -> Any:
    function = find(order["call"])
    offered = order["offered"]
    arguments = bound(function, order["args"], {**offered, "run": SimpleNamespace(**offered)})
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
    try:
        text, data = understood(_call(order))
        said = {"text": text, "data": data}
    except Uncallable as error:
        if error.__cause__ is not None and not isinstance(error.__cause__, TypeError):
            print(trace(error.__cause__, skip=0), file=sys.stderr)
        said = {"problem": str(error), "configuration": True}
    except BaseException as error:  # SystemExit too: a function that exits has not returned.
        print(trace(error, skip=2), file=sys.stderr)
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
