"""Plugs: what other packages add to a registry through an entry point.

One that cannot be loaded is reported and left out; it never stops the others or the desk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=8)
def _found(group: str) -> tuple[tuple[str, Any, str], ...]:
    from importlib.metadata import entry_points

    answers: list[tuple[str, Any, str]] = []
    for point in entry_points(group=group):
        try:
            answers.append((point.name, point.load(), ""))
        except Exception as error:  # Whatever a stranger's module raises at import stays with that module.
            answers.append((point.name, None, f"{type(error).__name__}: {error}"))
    return tuple(answers)


def plugged(group: str, taken: Collection[str], report: Callable[[str], None]) -> dict[str, Any]:
    """What the entry points of `group` give, by name. What is broken, or named like one of `taken`, is reported."""
    answers: dict[str, Any] = {}
    for name, value, problem in _found(group):
        if problem:
            report(f"the plug-in {name!r} of {group} cannot be loaded and is left out: {problem}")
        elif name in taken or name in answers:
            report(f"the plug-in {name!r} of {group} is left out: that name is taken")
        else:
            answers[name] = value
    return answers
