"""Options: what a target or a destination may say in its config, checked with the key named.

Runners and destinations describe their config by these; a wrong key gets the nearest right one offered.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from nightporter.errors import BadInput

T = TypeVar("T")


def mapping(config: object, what: str, *, known: tuple[str, ...], short: str | None = None) -> dict[str, Any]:
    """The config as a fresh dict with known keys only.

    `what` names the owner in messages (`script`); `short` is the key that a bare string stands for. None is an
    empty config. Raises BadInput naming the key, with the nearest known one.
    """
    if config is None:
        return {}
    if isinstance(config, str) and short is not None:
        return {short: config}
    if not isinstance(config, Mapping):
        expected = f"a map, or text for `{short}`" if short else "a map"
        raise BadInput(f"`{what}` cannot be {kind(config)}", why=f"it takes {expected}",
                       next=f"write its keys below it: {', '.join(known) or 'it has none'}")
    for key in config:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1, cutoff=0.6)
            raise BadInput(
                f"`{what}` has no key `{key}`",
                why=f"its keys are {', '.join(known)}" if known else "it has no keys",
                next=f"did you mean `{near[0]}`?" if near else f"remove `{key}`",
            )
    return {str(key): value for key, value in config.items() if value is not None}


def need(config: Mapping[str, Any], what: str, key: str, example: str) -> Any:
    """The value of a key that must be there. Raises BadInput."""
    if key not in config:
        raise BadInput(f"`{what}` needs `{key}`", why="without it there is nothing to do",
                       next=f"for example {example}")
    return config[key]


def typed(config: Mapping[str, Any], what: str, key: str, kind_: type[T] | tuple[type[T], ...], default: T,
          *, named: str = "") -> T:
    """The value of a key, of the given type. Raises BadInput. A bool is never taken for a number."""
    if key not in config:
        return default
    value = config[key]
    kinds: tuple[type[T], ...] = kind_ if isinstance(kind_, tuple) else (kind_,)
    if isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds):
        return value
    raise wrong(what, key, value, named or " or ".join(_NAMES.get(one, one.__name__) for one in kinds))


def texts(config: Mapping[str, Any], what: str, key: str) -> dict[str, str]:
    """A map of text to text; numbers become text as they were written. Raises BadInput."""
    value = typed(config, what, key, Mapping, {})
    for name, one in value.items():
        if isinstance(one, bool) or not isinstance(one, (str, int, float)):
            raise wrong(what, f"{key}.{name}", one, "text")
    return {str(name): str(one) for name, one in value.items()}


def items(config: Mapping[str, Any], what: str, key: str) -> list[str]:
    """A list of texts; one text stands for a list of one. Raises BadInput."""
    value = config.get(key, [])
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(one, str) for one in value):
        raise wrong(what, key, value, "a list of texts")
    return list(value)


def wrong(what: str, key: str, value: object, expected: str) -> BadInput:
    """The error for a value of the wrong kind."""
    return BadInput(f"`{what}.{key}` cannot be {kind(value)}", why=f"it takes {expected}",
                    next=f"correct `{key}`, or quote it if it is meant as text")


_NAMES: dict[type, str] = {
    str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a map",
    Mapping: "a map",
}


def kind(value: object) -> str:
    """What a value is, in the words of a definition file."""
    for type_, name in ((bool, "true or false"), (str, "text"), (int, "a number"), (float, "a number"),
                        (Mapping, "a map"), ((list, tuple), "a list")):
        if isinstance(value, type_):
            return name
    return "empty" if value is None else type(value).__name__
