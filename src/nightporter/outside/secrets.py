"""Secrets: named in a definition, looked up at each use, never kept and never logged.

A reference is `env:NAME` (a variable of the desk's environment) or `file:/path` (a file's text, one trailing line
break removed).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from nightporter.errors import BadInput
from nightporter.outside.files import read_regular

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST = 65_536


class SecretUnavailable(BadInput):
    """A reference is well formed, but nothing, or nothing usable, is behind it now."""

    code = "secret_unavailable"


def check_reference(reference: object, key: str = "") -> str:
    """The reference as text. Raises BadInput where it is none; what stands behind it is not looked at.

    `key` is where it is written. The message names it, and never repeats what was given: it may be the secret itself.
    """
    if isinstance(reference, str):
        scheme, _, name = reference.partition(":")
        if (scheme == "env" and _VARIABLE.fullmatch(name)) or (scheme == "file" and name.startswith(("/", "~/"))):
            return reference
    at = f"`{key}`: " if key else ""
    raise BadInput(
        f"{at}a secret is given where a reference to one is expected" if isinstance(reference, str)
        else f"{at}a secret reference is text, not {type(reference).__name__}",
        why="a secret written into a definition would be stored and shown",
        next="write env:NAME for a variable of the desk's environment, or file:/absolute/path for a file",
    )


def resolve(reference: str) -> str:
    """The secret behind a reference, now. Raises BadInput (no reference) or SecretUnavailable."""
    scheme, _, name = check_reference(reference).partition(":")
    if scheme == "env":
        value = os.environ.get(name, "")
        if not value:
            raise SecretUnavailable(
                f"the secret {reference} is not there",
                why=f"the variable {name} is not set, or empty, in the environment the desk was started with",
                next=f"set {name} and start the desk again, or name another reference",
            )
        return value
    path = Path(name).expanduser()
    try:
        content = read_regular(path, _LARGEST + 1)
    except OSError as error:
        raise SecretUnavailable(
            f"the secret {reference} cannot be read", why=error.strerror or str(error),
            next=f"make {path} readable for the user the desk runs as",
        ) from error
    try:
        value = content.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        value = ""
    if not value or len(content) > _LARGEST:
        raise SecretUnavailable(
            f"the secret {reference} cannot be used", why="the file is empty, too large or not UTF-8 text",
            next=f"write the secret, and nothing else, into {path}",
        )
    return value
