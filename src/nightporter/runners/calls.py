"""Calls: how a person's Python function is found, given its arguments, and understood.

One set of rules for functions in the desk's own process and in a child of their own. Standard library only, and
little of it: every child pays for these imports.
"""

from __future__ import annotations

import importlib
import inspect
import json
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import FunctionType
from typing import Any

_OURS = __file__.removesuffix("calls.py")


class Uncallable(Exception):
    """The function cannot be called as configured; the text says why."""


def find(path: str) -> Callable[..., Any]:
    """The function at `package.module:function`. Raises Uncallable; what the module's own code raised is its cause."""
    module_name, _, attribute = path.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except BaseException as error:
        raise Uncallable(f"the module {module_name} cannot be imported: {named(error)}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise Uncallable(f"the module {module_name} has no {attribute}")
        found = getattr(found, part)
    if not callable(found):
        raise Uncallable(f"{path} is no function")
    function: Callable[..., Any] = found
    return function


def bound(function: Callable[..., Any], args: Mapping[str, Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of one call: `args`, and of `offered` what the function has a parameter for.

    A parameter annotated `Run` takes `offered["run"]` under any name. Raises Uncallable.
    """
    try:
        signature = _signature(function) if isinstance(function, FunctionType) else inspect.signature(function)
    except (TypeError, ValueError):
        return dict(args)  # Written in C and silent about its parameters: what it makes of them, it will say.
    given = dict(args)
    for name, parameter in signature.parameters.items():
        if name in given or parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            continue
        if _is_run(parameter.annotation) and "run" in offered:
            given[name] = offered["run"]
        elif name in offered:
            given[name] = offered[name]
    try:
        signature.bind(**given)
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function))
        raise Uncallable(f"{name}{signature} cannot be called with its `args`: {error}") from error
    return given


@lru_cache(maxsize=1024)
def _signature(function: FunctionType) -> inspect.Signature:
    return inspect.signature(function)  # as long to find out as all else that a call takes


def _is_run(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__qualname__", "")
    return text.rpartition(".")[2] == "Run"


def understood(value: Any) -> tuple[str, Any]:
    """What a function returned, as report and data: text is the report; None has nothing to say; any other JSON value
    is data, and the report is its JSON. Raises TypeError where it is none."""
    if value is None:
        return "", None
    if isinstance(value, str):
        return value, None
    try:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"it returned a {type(value).__name__}, which is no JSON value: {error}") from error
    return text, json.loads(text)


def kept(text: str, data: Any, limit: int) -> tuple[str, Any]:
    """Report and data within `limit` bytes of UTF-8: a longer report is cut and says so, and comes without data."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return text, data
    return f"{encoded[:limit].decode(errors='ignore')}\n[cut here: {len(encoded) - limit} more bytes]", None


def named(error: BaseException) -> str:
    """`ValueError: what it says`, on one line and of bounded length."""
    text = " ".join(str(error).split())[:500]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def trace(error: BaseException) -> str:
    """The traceback as text, from the first frame that is not ours."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_OURS):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))
